//! The house rules within `informer-operator`: its machines decide, its actors act, its Kubernetes side talks. Machines of
//! `informer-client` decide by the same rules.
//!
//! Answers "does each concept keep its three parts apart?". A part is known by its name: a file or a folder `machine` is what
//! decides, `kubernetes` what talks; all else acts.

use std::collections::BTreeMap;

use super::{
    CLIENT, LOCKS, OF_ACTORS, OF_CLIENTS, OPERATOR, assert_absent_in, imports, sources, without_tests,
};

/// The sources of this crate that are named so, or stand in a folder of that name.
fn part(folder: &str, name: &str) -> BTreeMap<String, String> {
    let is_named = |file: &str| file.trim_end_matches(".rs").split('/').any(|part| part == name);
    sources(folder).into_iter().filter(|(file, _)| is_named(file)).collect()
}

/// The sources without the Kubernetes side.
fn without_kubernetes() -> BTreeMap<String, String> {
    let kubernetes = part(OPERATOR, "kubernetes");
    sources(OPERATOR).into_iter().filter(|(file, _)| !kubernetes.contains_key(file)).collect()
}

#[test]
fn machines_of_operators_and_of_the_client_keep_the_rules_of_the_core() {
    for (folder, least) in [(OPERATOR, 40), (CLIENT, 5)] {
        let machines = part(folder, "machine");
        assert!(machines.len() >= least, "{} files of {folder} decide", machines.len());
        for words in [&OF_ACTORS[..], &OF_CLIENTS, &["informer_actors", "informer_client"]] {
            assert_absent_in(machines.clone(), &[], words);
        }
        let is_machine = |module: &str| module.split("::").any(|part| part == "machine");
        for (file, imports) in imports::imports(folder, sources(folder)) {
            let other = imports.iter().find(|import| is_machine(&file) && !is_machine(import));
            assert_eq!(other, None, "{file} decides, and uses what acts");
        }
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
fn actors_of_operators_name_no_locks_and_no_channels() {
    assert_absent_in(without_tests(without_kubernetes()), &[], &LOCKS);
    assert_absent_in(sources(OPERATOR), &[], &["arc_swap", "ArcSwap"]);
}
