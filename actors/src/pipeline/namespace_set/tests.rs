//! Tests of one set of namespaces.

use std::collections::BTreeSet;
use std::sync::Arc;

use informer_core::namespaces::Names;

use super::{Makers, NamespaceSets};

fn makers() -> Makers<()> {
    Makers { each: Arc::new(|_| Err("no source".into())), all: None, is_selected: false }
}

fn names<const N: usize>(names: [&str; N]) -> Names {
    Arc::new(names.into_iter().map(Arc::from).collect::<BTreeSet<_>>())
}

#[test]
fn a_look_at_an_older_change_does_not_fail_a_newer_one() {
    let sets = NamespaceSets::new(Vec::new());
    let (set, _) = sets.renewed_or_new(None, makers()).expect("it is new");
    let older = set.change(|_| names(["bad"]));
    let newer = set.change(|_| names(["good"]));
    let failed = Some((Arc::from("bad"), Arc::from("no source")));
    set.fail(older, failed.clone());
    assert_eq!(set.failed(), None, "nobody wants that namespace any more");
    set.fail(newer, failed.clone());
    assert_eq!(set.failed(), failed);
}

#[test]
fn who_is_woken_by_the_removal_of_a_cluster_sees_that_it_is_removed() {
    for round in 0..5_000 {
        let sets = NamespaceSets::new(Vec::new());
        let (set, _) = sets.renewed_or_new(None, makers()).expect("it is new");
        set.change(|_| names(["a"]));
        let seen = set.changed.count();
        std::thread::scope(|threads| {
            threads.spawn(|| set.remove());
            while set.changed.count() == seen {
                std::hint::spin_loop();
            }
            assert!(sets.end(&set), "round {round}");
        });
    }
}
