//! Which scenario is proved by which test: makes `tests/CONTRACT.md` and fails when it is stale.
//!
//! Answers "is sentence REF-38 kept, and where is that shown?" by reading the names of all test functions. A scenario
//! counts as proved when a test of its number exists anywhere in the workspace, and as measured when only a benchmark
//! of its number does. `INFORMER_WRITE_CONTRACT=1 cargo test
//! --test contract_table` writes the table anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SECTIONS: [&str; 9] = ["ref", "wl", "fifo", "rf", "idx", "inf", "lis", "lst", "rest"];

const BENCHES: &str = "benches";

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The numbers in a test's name: `inf_23_and_24_a_panic` gives INF-23 and INF-24.
fn numbers(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut section = None;
    for word in name.split('_') {
        if SECTIONS.contains(&word) {
            section = Some(word.to_uppercase());
        } else if word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_digit()) {
            let Some(section) = &section else { break };
            found.push(format!("{section}-{word}"));
        } else if word != "and" && !["memory", "real"].contains(&word) {
            break;
        }
    }
    found
}

/// Every test of the workspace that is named after a scenario, by number.
fn proofs() -> BTreeMap<String, Vec<String>> {
    let mut files = Vec::new();
    for folder in ["src", "actors", "tests", BENCHES] {
        rust_files(&Path::new(ROOT).join(folder), &mut files);
    }
    files.sort();
    let mut proofs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable source");
        let shown = file.strip_prefix(ROOT).unwrap_or(&file).display().to_string();
        for line in text.lines() {
            let declared = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("async ");
            let Some(rest) = declared.strip_prefix("fn ") else { continue };
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            for number in numbers(name) {
                proofs.entry(number).or_default().push(format!("`{name}` ({shown})"));
            }
        }
    }
    proofs
}

/// Whether only benchmarks speak for a scenario.
fn is_measured(tests: &[String]) -> bool {
    tests.iter().all(|test| test.contains(&format!("({BENCHES}/")))
}

fn table() -> String {
    let scenarios =
        std::fs::read_to_string(Path::new(ROOT).join("tests/contract/scenarios.md")).expect("scenarios");
    let proofs = proofs();
    let lines: Vec<(&str, &str)> =
        scenarios.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(' ')).collect();
    let shown: Vec<_> = lines.iter().filter_map(|(number, _)| proofs.get(*number)).collect();
    let measured = shown.iter().filter(|tests| is_measured(tests)).count();
    let proved = shown.len() - measured;
    let mut table = format!(
        "# The contract, and its proofs\n\nMade by `tests/contract_table.rs` from `tests/contract/scenarios.md` and \
         the names of all tests; do not edit.\n\n{proved} of {} scenarios are proved by a test of their number, {measured} by a benchmark.\n\n\
         | number | sentence | tests | state |\n|---|---|---|---|\n",
        lines.len()
    );
    for (number, sentence) in lines {
        let sentence = sentence.replace('|', "\\|");
        let tests = proofs.get(number);
        let state = match tests {
            None => "open",
            Some(tests) if is_measured(tests) => "benchmark",
            Some(_) => "proved",
        };
        let tests = tests.map(|tests| tests.join("<br>")).unwrap_or_default();
        writeln!(table, "| {number} | {sentence} | {tests} | {state} |").expect("a string takes all");
    }
    table
}

#[test]
fn the_contract_table_is_not_stale() {
    let path = Path::new(ROOT).join("tests/CONTRACT.md");
    let table = table();
    if std::env::var_os("INFORMER_WRITE_CONTRACT").is_some() {
        std::fs::write(&path, &table).expect("a writable table");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table,
        "tests/CONTRACT.md is stale: INFORMER_WRITE_CONTRACT=1 cargo test --test contract_table writes it anew"
    );
}

#[test]
fn a_tests_name_may_carry_several_numbers() {
    assert_eq!(numbers("ref_01_first_list"), ["REF-01"]);
    assert_eq!(numbers("inf_23_and_24_a_panic"), ["INF-23", "INF-24"]);
    assert_eq!(numbers("wl_01_and_wl_02_fresh"), ["WL-01", "WL-02"]);
    assert!(numbers("a_supervisor_01").is_empty());
}
