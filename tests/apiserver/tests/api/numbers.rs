//! The table of the README: which behaviour is shown by which tests, on our server and on the real one.
//!
//! Answers: is each numbered behaviour tested, was it compared with a real server, and what still differs? The rows
//! and their sentences are the README's; the two last columns come from the names of test functions and from
//! DIFFERENCES.md. `INFORMER_WRITE_NUMBERS=1 cargo test -p informer-apiserver --test api numbers` writes them anew.
//! 1. A behaviour that was not compared with a real server fails; so does a fault whose row names no test.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const HEAD: &str = "| | behaviour | ours | real |";
const FAULTS: &str = "| fault | shown by |";
/// The tests of clients from other projects.
const PROGRAMS: [(&str, &str); 3] = [("kubectl", "kubectl"), ("go", "Go"), ("kube_rs", "kube-rs")];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of all test functions below a folder.
fn tests(folder: &str) -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&Path::new(ROOT).join(folder), &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).expect("a readable source");
        let mut lines = text.lines().map(str::trim);
        while let Some(line) = lines.next() {
            if !line.starts_with("#[") || !line.contains("test]") {
                continue;
            }
            let declared = lines.find(|line| line.contains("fn ")).unwrap_or_default();
            let name = declared.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

/// The rows that a test proves: `api_26_...` for 26, `e13_e6_...` for E13 and E6, `kubectl_...` for kubectl.
fn rows_of(name: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let mut rest = name;
    while let Some((word, behind)) = rest.split_once('_') {
        match word.strip_prefix('e').unwrap_or(word).parse::<u32>() {
            Ok(number) if word.starts_with('e') => rows.push(format!("E{number}")),
            Ok(number) => rows.push(number.to_string()),
            Err(_) if matches!(word, "api" | "and") => {}
            Err(_) => break,
        }
        rest = behind;
    }
    let is_of = |prefix: &str| rest.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'));
    rows.extend(PROGRAMS.iter().find(|(prefix, _)| is_of(prefix)).map(|(_, row)| (*row).to_owned()));
    rows
}

fn by_row(names: &BTreeSet<String>) -> BTreeMap<String, Vec<&str>> {
    let mut rows: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names {
        for row in rows_of(name) {
            rows.entry(row).or_default().push(name);
        }
    }
    rows
}

/// The scripts with a line in DIFFERENCES.md.
fn differing() -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(ROOT).join("DIFFERENCES.md")).expect("the differences");
    let lines = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let script = |line: &str| line.split('|').nth(1).unwrap_or_default().trim().to_owned();
    lines.map(|line| script(line).trim_start_matches("* (").trim_end_matches(')').to_owned()).collect()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// The README with its columns as they should be.
fn renewed(readme: &str) -> String {
    let (ours, judged) =
        (tests("tests/api").into_iter().chain(tests("src")).collect(), tests("tests/judged"));
    let (ours, judged, differing) = (by_row(&ours), by_row(&judged), differing());
    let mut within = false;
    let mut lines = Vec::new();
    for line in readme.lines() {
        within = line == HEAD || within && line.starts_with('|');
        if !within || line == HEAD || line.starts_with("|---") {
            lines.push(line.to_owned());
            continue;
        }
        let [row, sentence, ..] = cells(line)[..] else { panic!("a row of four cells: {line}") };
        let ours = if ours.contains_key(row) { "tested" } else { "" };
        let scripts = judged.get(row).map(Vec::as_slice).unwrap_or_default();
        let real = match scripts.iter().filter(|script| differing.contains(**script)).count() {
            _ if scripts.is_empty() => "not asked",
            0 => "alike",
            _ => "differs in parts",
        };
        lines.push(format!("| {row} | {sentence} | {ours} | {real} |"));
    }
    lines.join("\n") + "\n"
}

fn readme() -> String {
    fs::read_to_string(Path::new(ROOT).join("README.md")).expect("the README")
}

fn rows_below(head: &str) -> Vec<String> {
    let readme = readme();
    let below = readme.lines().skip_while(|line| *line != head).skip(2);
    below.take_while(|line| line.starts_with('|')).map(str::to_owned).collect()
}

#[test]
fn the_table_of_the_readme_is_true() {
    let (written, renewed) = (readme(), renewed(&readme()));
    if std::env::var_os("INFORMER_WRITE_NUMBERS").is_some() {
        fs::write(Path::new(ROOT).join("README.md"), &renewed).expect("a writable README");
        return;
    }
    let stale: Vec<_> = written.lines().zip(renewed.lines()).filter(|(is, should)| is != should).collect();
    assert!(
        stale.is_empty(),
        "INFORMER_WRITE_NUMBERS=1 cargo test -p informer-apiserver --test api numbers writes them anew: {stale:#?}"
    );
}

#[test]
fn every_behaviour_was_compared_with_a_real_server() {
    let rows = rows_below(HEAD);
    let of = |row: &String| cells(row)[0].to_owned();
    let received: Vec<String> = rows.iter().map(of).collect();
    let numbers =
        (1..=44).map(|number| number.to_string()).chain((1..=20).map(|number| format!("E{number}")));
    let numbers = numbers.chain(PROGRAMS.map(|(_, row)| row.to_owned()));
    assert_eq!(received, numbers.collect::<Vec<_>>());
    let judged = by_row(&tests("tests/judged")).into_keys().collect::<BTreeSet<_>>();
    let unasked: Vec<_> = received.iter().filter(|row| !judged.contains(*row)).collect();
    assert!(unasked.is_empty(), "no script in tests/judged carries these numbers: {unasked:?}");
}

/// The calls that set and lift faults.
fn faults() -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for file in ["src/faults.rs", "src/faults/names.rs", "src/outages.rs"] {
        let text = fs::read_to_string(Path::new(ROOT).join(file)).expect("the source of the faults");
        let declared = text.lines().filter_map(|line| line.trim().strip_prefix("pub fn "));
        calls.extend(declared.map(|call| call.split('(').next().unwrap_or_default().to_owned()));
    }
    calls.retain(|call| !matches!(&**call, "of" | "try_of" | "counts" | "total_count" | "clear_counts"));
    calls
}

#[test]
fn every_fault_has_a_test_that_shows_it() {
    let tests = tests("tests/api");
    let rows = rows_below(FAULTS);
    let bare = |cell: &str| cell.trim_matches('`').to_owned();
    let named: BTreeSet<_> = rows.iter().flat_map(|row| cells(row)[0].split(", ").map(bare)).collect();
    assert_eq!(named, faults(), "the calls in the README, and those there are");
    let without: Vec<_> = rows.iter().filter(|row| !tests.contains(&bare(cells(row)[1]))).collect();
    assert!(without.is_empty(), "no such tests: {without:#?}");
}

#[test]
fn a_tests_name_contains_its_rows() {
    assert_eq!(rows_of("api_26_finalizers_hold"), ["26"]);
    assert_eq!(rows_of("e13_e6_namespaces"), ["E13", "E6"]);
    assert_eq!(rows_of("api_41_kubectl_applies"), ["41", "kubectl"]);
    assert_eq!(rows_of("go_events"), ["Go"]);
    assert_eq!(rows_of("everything_else"), [""; 0]);
}
