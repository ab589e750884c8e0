//! Which clause of which scenario is proved by which test: writes `tests/CONTRACT.md` and fails when it is stale.
//!
//! Answers "is each half of sentence REF-38 kept, and where is that shown?" from `tests/contract/scenarios.md`, whose
//! head explains how clauses are written, and from the names of all tests. Invariants:
//! 1. A clause is proved only by a test that it names and that runs: the function exists, is a test, is not ignored.
//! 2. A scenario is proved only if each of its clauses is; benchmarks measure, they do not prove.
//! 3. A test whose name begins with a scenario's number, and that no clause names, is shown as "also" and proves
//!    nothing.
//!
//! `scenarios.rs` reads the sentences, `proofs.rs` finds the tests.
//! `INFORMER_WRITE_CONTRACT=1 cargo test --test contract_table` writes the table anew.

mod proofs;
mod scenarios;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use proofs::{Proof, Proofs, numbers, proofs};
use scenarios::{Clause, Scenario, scenarios};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SECTIONS: [&str; 19] = [
    "ref", "wl", "fifo", "rf", "idx", "inf", "lis", "fac", "lst", "wq", "rl", "rest", "dyn", "str", "le",
    "rec", "opr", "ctl", "op",
];

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum State {
    Open,
    Measured,
    Proved,
}

impl Clause {
    fn proofs<'a>(&self, proofs: &'a Proofs) -> Vec<&'a Proof> {
        self.proofs.iter().filter_map(|name| proofs.get(name)).flatten().collect()
    }

    fn state(&self, proofs: &Proofs) -> State {
        let found = self.proofs(proofs);
        if self.is_open || found.is_empty() {
            State::Open
        } else if found.iter().all(|proof| proof.is_benchmark) {
            State::Measured
        } else {
            State::Proved
        }
    }
}

impl Scenario {
    /// The state of its worst clause, and `None` while it has no clauses.
    fn state(&self, proofs: &Proofs) -> Option<State> {
        self.clauses.iter().map(|clause| clause.state(proofs)).min()
    }

    fn letters(&self, proofs: &Proofs, state: State) -> String {
        let letters = self.clauses.iter().filter(|clause| clause.state(proofs) == state);
        letters.map(|clause| clause.letter.to_string()).collect::<Vec<_>>().join(", ")
    }
}

/// The tests that carry a scenario's number and that none of its clauses names.
fn also<'a>(scenario: &Scenario, proofs: &'a Proofs) -> Vec<&'a Proof> {
    let named: BTreeSet<_> = scenario.clauses.iter().flat_map(|clause| &clause.proofs).collect();
    let unnamed =
        proofs.iter().filter(|(name, _)| numbers(name).contains(&scenario.number) && !named.contains(name));
    unnamed.flat_map(|(_, proofs)| proofs).collect()
}

/// The reasons why the table is not true.
fn faults(scenarios: &[Scenario], proofs: &Proofs) -> Vec<String> {
    let mut faults = Vec::new();
    for scenario in scenarios {
        let number = &scenario.number;
        let section = number.split('-').next().unwrap_or_default();
        if !SECTIONS.contains(&section.to_lowercase().as_str()) {
            faults.push(format!("{number} is of no section"));
        }
        if scenario.clauses.is_empty() {
            faults.push(format!("{number} has no clauses"));
        }
        for Clause { letter, proofs: names, .. } in &scenario.clauses {
            for name in names.iter().filter(|name| !proofs.contains_key(*name)) {
                faults.push(format!("{number} {letter} names `{name}`, which is not a test that runs"));
            }
        }
    }
    faults
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn shown(proofs: &[&Proof]) -> String {
    let show = |proof: &&Proof| {
        let kind = if proof.is_benchmark { "benchmark, " } else { "" };
        format!("`{}` ({kind}{})", proof.name, proof.file)
    };
    proofs.iter().map(show).collect::<Vec<_>>().join("<br>")
}

fn table(scenarios: &[Scenario], proofs: &Proofs) -> String {
    let states: Vec<_> = scenarios.iter().map(|scenario| scenario.state(proofs)).collect();
    let clauses: Vec<_> =
        scenarios.iter().flat_map(|scenario| &scenario.clauses).map(|clause| clause.state(proofs)).collect();
    let of = |state| states.iter().filter(|found| **found == state).count();
    let clauses_of = |state| clauses.iter().filter(|found| **found == state).count();
    let mut table = format!(
        "# The contract, and its proofs\n\nMade by `tests/contract_table` from `tests/contract/scenarios.md` and \
         the names of all tests; do not edit. A scenario is proved only if each of its clauses is asserted by a test.\n\n\
         {} of {} scenarios are proved in every clause, {} are proved or measured by a benchmark, {} have open clauses, \
         {} are not looked through.\n{} of {} clauses are proved, {} are measured, {} are open.\n\n\
         | number | sentence | tests | state |\n|---|---|---|---|\n",
        of(Some(State::Proved)),
        scenarios.len(),
        of(Some(State::Measured)),
        of(Some(State::Open)),
        of(None),
        clauses_of(State::Proved),
        clauses.len(),
        clauses_of(State::Measured),
        clauses_of(State::Open),
    );
    for scenario in scenarios {
        let state = match scenario.state(proofs) {
            None => "not looked through".to_owned(),
            Some(State::Proved) => "proved".to_owned(),
            Some(State::Measured) => format!("measured: {}", scenario.letters(proofs, State::Measured)),
            Some(State::Open) => format!("open: {}", scenario.letters(proofs, State::Open)),
        };
        rows(&mut table, scenario, &state, proofs);
    }
    table
}

fn rows(table: &mut String, scenario: &Scenario, state: &str, proofs: &Proofs) {
    let mut row = |number: &str, sentence: &str, tests: &str, state: &str| {
        writeln!(table, "| {number} | {} | {tests} | {state} |", cell(sentence)).expect("a string takes all");
    };
    row(&format!("**{}**", scenario.number), &scenario.sentence, "", &format!("**{state}**"));
    for clause in &scenario.clauses {
        let state = format!("{:?}", clause.state(proofs)).to_lowercase();
        let number = format!("{} {}", scenario.number, clause.letter);
        row(&number, &clause.sentence, &shown(&clause.proofs(proofs)), &state);
    }
    let also = also(scenario, proofs);
    if !also.is_empty() {
        row(&scenario.number, "also", &shown(&also), "");
    }
}

fn written_scenarios() -> (Vec<Scenario>, Vec<String>) {
    scenarios(
        &std::fs::read_to_string(Path::new(ROOT).join("tests/contract/scenarios.md")).expect("scenarios"),
    )
}

#[test]
fn every_scenario_has_clauses_and_every_clause_names_tests_that_run() {
    let (scenarios, mut found) = written_scenarios();
    found.extend(faults(&scenarios, &proofs()));
    assert!(found.is_empty(), "tests/contract/scenarios.md:\n{}", found.join("\n"));
}

#[test]
fn the_contract_table_is_not_stale() {
    let path = Path::new(ROOT).join("tests/CONTRACT.md");
    let table = table(&written_scenarios().0, &proofs());
    if std::env::var_os("INFORMER_WRITE_CONTRACT").is_some() {
        std::fs::write(&path, &table).expect("a writable table");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table,
        "tests/CONTRACT.md is stale: INFORMER_WRITE_CONTRACT=1 cargo test --test contract_table writes it anew"
    );
}

/// A text in which one test `t`, one benchmark `b` and nothing else exists.
fn table_of(text: &str) -> (String, Vec<String>) {
    let (scenarios, mut found) = scenarios(text);
    let proof =
        |name: &str, is_benchmark| Proof { name: name.into(), file: format!("{name}.rs"), is_benchmark };
    let of = |proof: Proof| (proof.name.clone(), vec![proof]);
    let proofs: Proofs = [of(proof("t", false)), of(proof("b", true)), of(proof("ref_01_x", false))].into();
    found.extend(faults(&scenarios, &proofs));
    (table(&scenarios, &proofs), found)
}

#[test]
fn a_scenario_is_proved_only_if_each_of_its_clauses_is() {
    let (table, faults) =
        table_of("# Head\n\n- REF-01 given x, then y | z.\n  - a y: `t`\n  - b z: `t`, `b`\n");
    assert_eq!(faults, [""; 0]);
    assert!(table.contains("| **REF-01** | given x, then y \\| z. |  | **proved** |\n"), "{table}");
    assert!(table.contains("| REF-01 a | y | `t` (t.rs) | proved |\n"), "{table}");
    assert!(table.contains("| REF-01 b | z | `t` (t.rs)<br>`b` (benchmark, b.rs) | proved |\n"), "{table}");
    assert!(table.contains("\n1 of 1 scenarios are proved"), "{table}");

    let (table, faults) = table_of("- REF-02 x\n  - a y: `t`\n  - b open: z\n  - c open: w\n");
    assert_eq!(faults, [""; 0]);
    assert!(table.contains("| **REF-02** | x |  | **open: b, c** |\n"), "{table}");
    assert!(table.contains("| REF-02 c | w |  | open |\n"), "{table}");

    let (table, _) = table_of("- REF-02 x\n  - a y: `t`\n  - b z: `b`\n");
    assert!(table.contains("| **REF-02** | x |  | **measured: b** |\n"), "{table}");
    assert!(table.contains("\n1 of 2 clauses are proved, 1 are measured, 0 are open.\n"), "{table}");
}

#[test]
fn a_test_that_only_carries_the_number_proves_nothing_and_is_shown() {
    let (table, _) = table_of("- REF-01 x\n");
    assert!(table.contains("| **REF-01** | x |  | **not looked through** |\n"), "{table}");
    assert!(table.contains("| REF-01 | also | `ref_01_x` (ref_01_x.rs) |  |\n"), "{table}");
}

#[test]
fn a_clause_that_names_no_test_that_runs_is_a_fault() {
    for (clause, fault) in [
        ("  - a y: `missing`", "REF-02 a names `missing`, which is not a test that runs"),
        ("  - a y", "names no test and is not open"),
        ("  - a open: y: `t`", "an open clause names no tests"),
        ("  - b y: `t`", "its next clause is Some('a')"),
        ("  - a y: `t` and more", "ends with names of tests"),
        ("  - a y: `Some text`", "ends with names of tests"),
        ("  - ab y: `t`", "a clause begins with one letter"),
        ("  y: `t`", "not a clause"),
        ("    - a y: `t`", "not a clause"),
        ("- REF-02 again", "REF-02 is there twice"),
        ("- LOG-01 again", "LOG-01 is of no section"),
    ] {
        let (_, faults) = table_of(&format!("- REF-02 x\n{clause}\n"));
        assert!(faults.iter().any(|found| found.contains(fault)), "{clause}: {faults:?}");
    }
}
