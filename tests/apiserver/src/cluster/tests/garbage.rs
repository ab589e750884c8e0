//! Objects and their owners: behaviour 26, where the collector is on.
use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::cluster::propagation::Propagation;

fn bench() -> Bench {
    let mut bench = Bench::new("", "configmaps");
    bench.cluster.collect_garbage();
    bench
}

impl Bench {
    fn owned(&mut self, name: &str, owners: &[(&str, &str)]) -> Arc<Object> {
        let reference = |(owner, uid): &(&str, &str)| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true});
        let owners: Vec<Value> = owners.iter().map(reference).collect();
        self.create("default", json!({"metadata": {"name": name, "ownerReferences": owners}})).unwrap()
    }

    fn delete_with(&mut self, name: &str, propagation: Propagation) {
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        self.act("default", name, |cluster, call| cluster.delete(call, &options)).unwrap();
    }

    fn swept(&mut self) -> Vec<String> {
        while self.cluster.sweep(0) {}
        let page = self.list(&[]).unwrap();
        page.objects.iter().map(|object| object.name.to_string()).collect()
    }
}

#[test]
fn api_26_dependants_are_deleted_with_their_owner_through_all_generations() {
    let mut bench = bench();
    let a = bench.named("a");
    let b = bench.owned("b", &[("a", &a.uid)]);
    bench.owned("c", &[("b", &b.uid)]);
    assert_eq!(bench.swept(), ["a", "b", "c"]);
    bench.delete("a").unwrap();
    assert!(bench.swept().is_empty());
}

#[test]
fn api_26_an_object_with_another_owner_stays_and_loses_the_reference_to_the_deleted_one() {
    let mut bench = bench();
    let (a, b) = (bench.named("a"), bench.named("b"));
    bench.owned("c", &[("a", &a.uid), ("b", &b.uid)]);
    bench.delete("a").unwrap();
    assert_eq!(bench.swept(), ["b", "c"]);
    let left = bench.cluster.get(&bench.kind, "default", "c").unwrap().decode();
    assert_eq!(left["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    bench.delete("b").unwrap();
    assert!(bench.swept().is_empty());
}

#[test]
fn api_26_an_owner_of_the_same_name_is_another_one() {
    let mut bench = bench();
    bench.named("a");
    bench.owned("b", &[("a", "the uid of an earlier a")]);
    assert_eq!(bench.swept(), ["a"]);
}

#[test]
fn api_26_an_owner_in_the_foreground_is_deleted_last() {
    let mut bench = bench();
    let a = bench.named("a");
    let b = bench.owned("b", &[("a", &a.uid)]);
    bench.owned("c", &[("b", &b.uid)]);
    bench.merge("c", json!({"metadata": {"finalizers": ["example.com/held"]}})).unwrap();
    bench.delete_with("a", Propagation::Foreground);
    assert_eq!(bench.swept(), ["a", "b", "c"], "the last one is held, and so are all above it");
    bench.merge("c", json!({"metadata": {"finalizers": null}})).unwrap();
    assert!(bench.swept().is_empty());
}

#[test]
fn api_26_an_orphan_has_no_owner_reference_and_stays() {
    let mut bench = bench();
    let a = bench.named("a");
    for number in 0..100 {
        bench.owned(&format!("b{number:03}"), &[("a", &a.uid)]);
    }
    bench.delete_with("a", Propagation::Orphan);
    assert_eq!(bench.swept().len(), 100);
    let left = bench.cluster.get(&bench.kind, "default", "b099").unwrap().decode();
    assert_eq!(left["metadata"].get("ownerReferences"), None);
}

#[test]
fn api_26_a_sweep_is_bounded() {
    let mut bench = bench();
    let a = bench.named("a");
    for number in 0..200 {
        bench.owned(&format!("b{number:03}"), &[("a", &a.uid)]);
    }
    bench.swept();
    bench.delete("a").unwrap();
    let before = bench.cluster.revision();
    assert!(bench.cluster.sweep(0));
    assert_eq!(bench.cluster.revision() - before, 64);
    assert!(bench.swept().is_empty());
}

proptest! {
    /// Each object has up to two owners among those made before it; some are deleted, with any policy.
    #[test]
    fn api_26_every_remaining_object_has_an_existing_owner_or_never_had_one(
        owners in proptest::collection::vec((0usize..12, 0usize..12), 12),
        deleted in proptest::collection::vec((0usize..12, 0usize..2), 1..6),
    ) {
        let mut bench = bench();
        let mut uids: Vec<String> = Vec::new();
        let name = |at: usize| format!("o{at:02}");
        for (at, (one, other)) in owners.iter().enumerate() {
            let chosen: BTreeSet<usize> = [*one, *other].into_iter().filter(|owner| *owner < at).collect();
            let named: Vec<(String, String)> = chosen.iter().map(|at| (name(*at), uids[*at].clone())).collect();
            let named: Vec<(&str, &str)> = named.iter().map(|(name, uid)| (&**name, &**uid)).collect();
            uids.push(bench.owned(&name(at), &named).uid.to_string());
        }
        let mut lost: BTreeSet<usize> = BTreeSet::new();
        for (at, how) in deleted {
            if lost.contains(&at) {
                continue;
            }
            bench.delete_with(&name(at), [Propagation::Background, Propagation::Foreground][how]);
            lost.insert(at);
            for (at, (one, other)) in owners.iter().enumerate() {
                let mut owned = [*one, *other].into_iter().filter(|owner| *owner < at).peekable();
                if owned.peek().is_some() && owned.all(|owner| lost.contains(&owner)) {
                    lost.insert(at);
                }
            }
            let left: Vec<String> = (0..12).filter(|at| !lost.contains(at)).map(name).collect();
            prop_assert_eq!(bench.swept(), left);
        }
    }
}
