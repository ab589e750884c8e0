//! The house rules within `informer-operator`: its machines decide, its actors act, its Kubernetes side talks.
//!
//! Answers "does each concept keep its three parts apart?". A part is known by its name: a file or a folder `machine` is what
//! decides, `kubernetes` what talks; all else acts.

use std::collections::BTreeMap;

use super::{LOCKS, OF_ACTORS, OF_CLIENTS, OPERATOR, assert_absent_in, imports, sources};

/// The sources that are named so, or stand in a folder of that name.
fn part(name: &str) -> BTreeMap<String, String> {
    let is_named = |file: &str| file.trim_end_matches(".rs").split('/').any(|part| part == name);
    sources(OPERATOR).into_iter().filter(|(file, _)| is_named(file)).collect()
}

/// The sources without the Kubernetes side.
fn without_kubernetes() -> BTreeMap<String, String> {
    let kubernetes = part("kubernetes");
    sources(OPERATOR).into_iter().filter(|(file, _)| !kubernetes.contains_key(file)).collect()
}

#[test]
fn machines_of_operators_keep_the_rules_of_the_core() {
    let machines = part("machine");
    assert!(machines.len() >= 40, "{} files decide", machines.len());
    assert_absent_in(machines.clone(), &[], &OF_ACTORS);
    assert_absent_in(machines, &[], &["informer_actors", "informer_client"]);
    let is_machine = |module: &str| module.split("::").any(|part| part == "machine");
    for (file, imports) in imports::imports(OPERATOR, sources(OPERATOR)) {
        let other = imports.iter().find(|import| is_machine(&file) && !is_machine(import));
        assert_eq!(other, None, "{file} decides, and uses what acts");
    }
}

#[test]
fn actors_of_operators_use_no_http_no_files_and_no_kubernetes() {
    let mut acting = without_kubernetes();
    // What declares a Kubernetes side has to name it.
    for text in acting.values_mut() {
        *text = text.replace("feature = \"kubernetes\"", "").replace("mod kubernetes;", "");
    }
    assert_absent_in(acting, &[], &OF_CLIENTS);
}

#[test]
fn actors_of_operators_share_no_lock_but_the_one_of_their_content() {
    let except = [
        "controller/cells.rs",
        // Tests that record from more than one thread.
        "/tests.rs",
        "/tests/ending.rs",
    ];
    assert_absent_in(without_kubernetes(), &except, &LOCKS);
    assert_absent_in(sources(OPERATOR), &[], &["arc_swap", "ArcSwap"]);
}
