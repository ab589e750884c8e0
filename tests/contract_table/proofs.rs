//! Every test and benchmark of the workspace, read from the sources.
//!
//! Answers "does a test of this name run?" A function counts as a test by its attribute; helpers and ignored tests do
//! not count, so that no clause can name them. The scenarios that `tests/end_to_end/main.rs` runs, most of
//! them by its `group!`, count under their own names. Each function of a benchmark's file counts as a benchmark.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{ROOT, SECTIONS};

const BENCHES: &str = "benches";

/// A function that proves something.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Proof {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) is_benchmark: bool,
}

pub(crate) type Proofs = BTreeMap<String, Vec<Proof>>;

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

/// The names of the tests that a source declares: functions with a test's attribute and without `ignore`, and the
/// scenarios that a `group!` makes tests of, or that a test runs by `stage::scenario!`.
pub(crate) fn tests_in(text: &str) -> Vec<&str> {
    let (mut found, mut attributes) = (Vec::new(), Vec::new());
    let (mut is_within, mut in_group) = (false, false);
    for line in text.lines().map(str::trim) {
        if is_within || line.starts_with("#[") {
            attributes.push(line);
            is_within = !line.ends_with(']');
        } else if let Some(rest) = function(line) {
            let is = |kind: fn(&str) -> bool| attributes.iter().any(|attribute| kind(attribute));
            if is(is_test) && !is(|attribute| attribute.contains("ignore")) {
                found.push(rest);
            }
            attributes.clear();
        } else if !line.starts_with("//") {
            attributes.clear();
        }
        let opens = line.starts_with("group! {") || line.starts_with("group_at_once! {");
        in_group = (in_group && line != "}") || (opens && !line.ends_with('}'));
        let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let called = line.split_once("stage::scenario!(").and_then(|(_, rest)| rest.split(')').next());
        let scenario = if in_group { Some(line.trim_end_matches(',')) } else { called };
        found.extend(scenario.and_then(|path| path.split_once("::")).map(|(_, name)| name).filter(is_name));
    }
    found
}

/// Whether an attribute makes a test: `#[test]`, `#[tokio::test(start_paused = true)]`.
fn is_test(attribute: &str) -> bool {
    let path = attribute.trim_start_matches("#[").split(['(', ']']).next().unwrap_or_default();
    path.rsplit("::").next() == Some("test")
}

/// The name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let declared =
        line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").trim_start_matches("async ");
    declared.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Every test and benchmark of the workspace, by name.
pub(crate) fn proofs() -> Proofs {
    let mut files = Vec::new();
    for folder in ["src", "actors", "tests", BENCHES] {
        rust_files(&Path::new(ROOT).join(folder), &mut files);
    }
    files.sort();
    let mut proofs = Proofs::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a readable source");
        let file = path.strip_prefix(ROOT).unwrap_or(&path).display().to_string();
        let is_benchmark = file.starts_with(BENCHES);
        let names = if is_benchmark { text.lines().filter_map(function).collect() } else { tests_in(&text) };
        for name in names {
            let proof = Proof { name: name.to_owned(), file: file.clone(), is_benchmark };
            proofs.entry(name.to_owned()).or_default().push(proof);
        }
    }
    proofs
}

/// The numbers in a test's name: `inf_23_and_24_a_panic` gives INF-23 and INF-24.
pub(crate) fn numbers(name: &str) -> Vec<String> {
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

#[test]
fn a_tests_name_may_carry_several_numbers() {
    assert_eq!(numbers("ref_01_first_list"), ["REF-01"]);
    assert_eq!(numbers("inf_23_and_24_a_panic"), ["INF-23", "INF-24"]);
    assert_eq!(numbers("wl_01_and_wl_02_fresh"), ["WL-01", "WL-02"]);
    assert!(numbers("a_supervisor_01").is_empty());
}

#[test]
fn helpers_and_ignored_tests_do_not_count() {
    let of = |attributes: &str| tests_in(&format!("{attributes}\npub async fn x() {{}}")).len();
    assert_eq!(of("#[test]"), 1);
    assert_eq!(of("#[test]\n#[should_panic]\n/// Words."), 1);
    assert_eq!(of("#[cfg(unix)]\n#[tokio::test(start_paused = true)]"), 1);
    assert_eq!(of("#[actix_rt::test]"), 1);
    assert_eq!(of("#[actix_rt::test(\n    slow,\n)]"), 1);
    assert_eq!(of(""), 0);
    assert_eq!(of("#[cfg(test)]"), 0);
    assert_eq!(of("#[test]\nfn other() {}"), 1, "the other one");
    assert_eq!(of("#[test]\n#[ignore]"), 0);
    assert_eq!(of("#[ignore =\n\"it is slow\"]\n#[test]"), 0);
    assert_eq!(of("#[test]\n#[cfg_attr(windows, ignore)]"), 0);
}

#[test]
fn the_scenarios_that_a_group_or_a_test_runs_are_tests() {
    let text = "macro_rules! group {\n}\ngroup! { calm:\n    sync::one,\n    live::two,\n}\nuse a::three;\n";
    assert_eq!(tests_in(text), ["one", "two"]);
    let run = "let one = crate::stage::scenario!(net::one);\ncrate::stage::scenario!($file::$name)\n";
    assert_eq!(tests_in(run), ["one"]);
    assert_eq!(tests_in("group_at_once! { off on real:\n    net::one,\n}\nnet::two,\n"), ["one"]);
}
