//! The scenarios and their clauses, as `tests/contract/scenarios.md` writes them.
//!
//! Answers "which tests does this clause name?" and reports what is wrong with the text. It knows no tests: whether a
//! named one exists is checked elsewhere (`main.rs`). A scenario is a line `- REF-35 given ...`; its clauses stand
//! under it, indented, lettered from `a`: ``- a what holds: `test`, `test` `` or `- b open: what should hold`.

#[derive(Debug, PartialEq)]
pub(crate) struct Scenario {
    pub(crate) number: String,
    pub(crate) sentence: String,
    pub(crate) clauses: Vec<Clause>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Clause {
    pub(crate) letter: char,
    pub(crate) sentence: String,
    pub(crate) is_open: bool,
    pub(crate) proofs: Vec<String>,
}

/// The scenarios with their clauses, and what is wrong with the text.
pub(crate) fn scenarios(text: &str) -> (Vec<Scenario>, Vec<String>) {
    let (mut found, mut faults) = (Vec::<Scenario>::new(), Vec::new());
    for line in text.lines() {
        if let Some((number, sentence)) = line.strip_prefix("- ").and_then(|line| line.split_once(' ')) {
            if found.iter().any(|scenario| scenario.number == number) {
                faults.push(format!("{number} is there twice"));
            }
            let (number, sentence) = (number.to_owned(), sentence.to_owned());
            found.push(Scenario { number, sentence, clauses: Vec::new() });
        } else if let (true, Some(scenario)) = (line.starts_with(' '), found.last_mut()) {
            match clause(line) {
                Err(fault) => faults.push(format!("{}: {fault}: {line}", scenario.number)),
                Ok(clause) => {
                    let expected = ('a'..='z').nth(scenario.clauses.len());
                    if expected != Some(clause.letter) {
                        faults.push(format!("{}: its next clause is {expected:?}: {line}", scenario.number));
                    }
                    scenario.clauses.push(clause);
                }
            }
        }
    }
    (found, faults)
}

/// Reads `  - a what holds: `test`, `test`` or `- b open: what should hold`.
fn clause(line: &str) -> Result<Clause, &'static str> {
    let (letter, rest) =
        line.strip_prefix("  - ").and_then(|line| line.split_once(' ')).ok_or("not a clause")?;
    let mut letters = letter.chars();
    let (Some(letter @ 'a'..='z'), None) = (letters.next(), letters.next()) else {
        return Err("a clause begins with one letter");
    };
    let (sentence, proofs) = match rest.rsplit_once(": `") {
        Some((sentence, names)) => (sentence, names_in(&format!("`{names}"))?),
        None => (rest, Vec::new()),
    };
    let (is_open, sentence) = sentence.strip_prefix("open: ").map_or((false, sentence), |open| (true, open));
    match (is_open, proofs.is_empty()) {
        (true, false) => Err("an open clause names no tests"),
        (false, true) => Err("names no test and is not open"),
        _ => Ok(Clause { letter, sentence: sentence.to_owned(), is_open, proofs }),
    }
}

/// The names in "`one`, `two`".
fn names_in(text: &str) -> Result<Vec<String>, &'static str> {
    let name = |word: &str| {
        let name = word.strip_prefix('`')?.strip_suffix('`')?;
        let is_function =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_function.then(|| name.to_owned())
    };
    text.split(", ").map(name).collect::<Option<_>>().ok_or("ends with names of tests, and only with these")
}

#[test]
fn a_clause_may_quote_code_and_name_several_tests() {
    let found = clause("  - b its `Runtime`: it says `x: y`, at once: `one`, `two`").expect("a clause");
    assert_eq!((found.letter, found.is_open), ('b', false));
    assert_eq!(found.sentence, "its `Runtime`: it says `x: y`, at once");
    assert_eq!(found.proofs, ["one", "two"]);
    assert!(clause("  - c open: what `Runtime` does").expect("a clause").is_open);
}
