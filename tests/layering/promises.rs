//! What an informer promises: the sentences above the tests that bear their numbers.
//!
//! A scenario is a comment `// REF-01: given ..., when ..., then ...` above the test whose name begins with `ref_01`. Under
//! the sentence stand its clauses: `// - a ...`, with the name of another test behind a clause that this one does not
//! assert. `.ci/promises` prints all sentences. An open clause is a test with `#[ignore = "open: ..."]`.

use std::collections::{BTreeMap, BTreeSet};

const SECTIONS: [&str; 19] = [
    "ref", "wl", "fifo", "rf", "idx", "inf", "lis", "fac", "lst", "wq", "rl", "rest", "dyn", "str", "le",
    "rec", "opr", "ctl", "op",
];

/// The numbers in a test's name: `inf_23_and_24_a_panic` has INF-23 and INF-24.
fn numbers(name: &str) -> Vec<String> {
    let (mut found, mut section) = (Vec::new(), None);
    for word in name.split('_') {
        if SECTIONS.contains(&word) {
            section = Some(word.to_uppercase());
        } else if word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_digit()) {
            let Some(section) = &section else { break };
            found.push(format!("{section}-{word}"));
        } else if word != "and" {
            break;
        }
    }
    found
}

/// The number with which a sentence begins.
fn number(comment: &str) -> Option<&str> {
    let (number, _) = comment.split_once(": ")?;
    let (section, digits) = number.split_once('-')?;
    let is_number = SECTIONS.contains(&section.to_lowercase().as_str()) && digits.len() == 2;
    is_number.then_some(number)
}

/// The name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let declared =
        line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").trim_start_matches("async ");
    declared.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// How many lines a source has beside its promises.
pub(crate) fn without_sentences(text: &str) -> usize {
    let mut is_promise = false;
    let is_counted = |line: &&str| {
        let comment = line.trim_start().strip_prefix("// ");
        is_promise = comment.is_some_and(|comment| is_promise || number(comment).is_some());
        !is_promise
    };
    text.lines().filter(is_counted).count()
}

/// What is wrong with the sentences in these sources, and how many there are.
fn faults(sources: &BTreeMap<String, String>) -> (Vec<String>, usize) {
    let (mut faults, mut seen, mut named) = (Vec::new(), BTreeSet::new(), Vec::new());
    let functions: BTreeSet<&str> =
        sources.values().flat_map(|text| text.lines().map(str::trim).filter_map(function)).collect();
    for (file, text) in sources {
        let mut above: Vec<&str> = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(comment) = line.strip_prefix("// ") {
                if let Some(number) = number(comment) {
                    above.push(number);
                    if !seen.insert(number) {
                        faults.push(format!("{file}: {number} is there twice"));
                    }
                }
                let is_clause = !above.is_empty() && comment.ends_with('`');
                let test = comment.trim_end_matches('`').rsplit('`').next().filter(|_| is_clause);
                named.extend(
                    test.filter(|name| name.len() > 20 && name.contains('_')).map(|name| (file, name)),
                );
            } else if let Some(name) = function(line) {
                let of = numbers(name);
                let wrong = above.drain(..).filter(|number| !of.iter().any(|own| own == number));
                faults.extend(wrong.map(|number| format!("{file}: {number} stands above {name}")));
            }
        }
    }
    let missing = named.iter().filter(|(_, name)| !functions.contains(name));
    faults.extend(missing.map(|(file, name)| format!("{file}: a clause names {name}, which does not exist")));
    (faults, seen.len())
}

#[test]
fn each_promise_stands_once_above_a_test_with_its_number_and_names_only_tests_that_exist() {
    let (faults, count) = faults(&super::all_sources());
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(count >= 462, "{count} promises are left");
}

#[test]
fn a_promise_above_another_test_and_a_clause_that_names_no_test_are_faults() {
    let check = |text: &str| faults(&BTreeMap::from([("a.rs".to_owned(), text.to_owned())])).0.len();
    assert_eq!(check("// REF-01: given.\n#[test]\nfn ref_01_it_is() {}"), 0);
    assert_eq!(check("// REF-01: given.\n#[test]\nfn ref_02_it_is() {}"), 1);
    assert_eq!(check("// REF-01: given.\n// REF-02: given.\nfn ref_01_and_02_it_is() {}"), 0);
    assert_eq!(check("// REF-01: given.\nfn ref_01_it() {}\n// REF-01: given.\nfn ref_01_is() {}"), 1);
    assert_eq!(
        check("// REF-01: given.\n// - a it is: `ref_01_what_is_not_there_at_all`\nfn ref_01_it() {}"),
        1
    );
}
