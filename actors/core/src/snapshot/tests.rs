//! Snapshots read alone: order, agreement, and the difference between any two.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;

use super::fixture::{key, life, object, version, written};
use super::{DiffCursor, Difference, Frame, Snapshot};
use crate::delta::WatchPart;
use crate::indexer::Store;
use crate::meta::{Meta, Object, ObjectKey, SourceId};
use crate::tree::Sources;

mod cursor;
mod indices;

type Model = BTreeMap<ObjectKey, Object<String>>;

fn snapshot(objects: &[Object<String>]) -> Snapshot<String> {
    let mut frame = Frame::default();
    for object in objects {
        frame.insert(object.clone());
    }
    Snapshot::publish(frame)
}

#[test]
fn the_bytes_of_a_snapshot_are_those_of_the_objects_that_are_in_it() {
    let of = |name: &str, bytes: u32| {
        let object = object(name, 1);
        let meta = Meta {
            key: object.key().clone(),
            uid: None,
            version: version(1),
            source: SourceId::default(),
            wire_bytes: bytes,
            form: 0,
        };
        Object::new(meta, String::new())
    };
    let mut frame = Frame::default();
    frame.insert(of("a/one", 100));
    frame.insert(of("a/two", 20));
    frame.insert(of("a/one", 3));
    assert_eq!(Snapshot::publish(frame).wire_bytes(), 23);
}

fn differences(older: &[Object<String>], newer: &[Object<String>]) -> Vec<String> {
    snapshot(older).diff(&snapshot(newer)).map(|difference| text_of(&difference)).collect()
}

fn text_of(difference: &Difference<String>) -> String {
    match difference {
        Difference::Added(object) => format!("+ {}", written(object)),
        Difference::Updated { old, new, .. } => format!("{} -> {}", written(old), written(new)),
        Difference::Deleted(object) => format!("- {}", written(object)),
    }
}

/// Applies differences as someone would who holds the older state; each must fit what it meets.
fn apply(mut state: Model, differences: impl IntoIterator<Item = Difference<String>>) -> Model {
    for difference in differences {
        let key = difference.key().clone();
        let met = match difference {
            Difference::Added(object) => (None, state.insert(key, object)),
            Difference::Updated { old, new, .. } => (Some(old), state.insert(key, new)),
            Difference::Deleted(object) => (Some(object), state.remove(&key)),
        };
        let (expected, found) = (met.0.map(|object| written(&object)), met.1.map(|object| written(&object)));
        assert_eq!(expected, found);
    }
    state
}

fn model(snapshot: &Snapshot<String>) -> Model {
    snapshot.iter().map(|object| (object.key().clone(), object.clone())).collect()
}

fn states(model: &Model) -> Vec<String> {
    model.values().map(written).collect()
}

#[test]
fn snapshots_and_stores_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Snapshot<String>>();
    crosses::<DiffCursor<String>>();
    crosses::<crate::indexer::Publish<String>>();
    fn moves<T: Send>() {}
    moves::<Store<String>>();
}

#[test]
fn objects_come_in_key_order_with_those_without_namespace_first() {
    let all =
        snapshot(&[object("b/x", 1), object("a/y", 2), object("z", 3), object("a/x", 4), object("c", 5)]);
    let keys: Vec<String> = all.iter().map(|object| object.key().to_string()).collect();
    assert_eq!(keys, ["c", "z", "a/x", "a/y", "b/x"]);
    let names: Vec<String> = all.namespace("a").map(written).collect();
    assert_eq!(names, ["a/x u1@4", "a/y u1@2"]);
    assert_eq!(all.namespace("nowhere").count(), 0);
}

#[test]
fn an_empty_snapshot_has_nothing() {
    let empty = Snapshot::<String>::empty();
    assert!(empty.is_empty() && empty.iter().next().is_none() && empty.versions().is_empty());
    assert!(empty.version(&SourceId::default()).is_none());
    assert!(empty.by_index("node", "n1").is_err());
    let expecting =
        Snapshot::<String>::empty_with_indices([
            crate::index::Index::new("node", |_| Some(String::new())).into()
        ]);
    assert_eq!(expecting.by_index("node", "n1").expect("a known index").count(), 0);
}

#[test]
fn idx_22_a_kept_snapshot_is_unchanged_by_later_ones() {
    let mut frame = Frame::default();
    frame.insert(object("a/x", 1));
    let kept = Snapshot::publish(frame.clone());
    frame.insert(object("a/x", 2));
    frame.insert(object("a/y", 3));
    frame.remove(&key("a/x"));
    assert_eq!(states(&model(&kept)), ["a/x u1@1"]);
    assert_eq!(states(&model(&Snapshot::publish(frame))), ["a/y u1@3"]);
}

// IDX-22: given a snapshot kept over 100,000 updates, when read, then it is unchanged, publishing was not
// slower for it, and what it pinned is freed when dropped; replaced objects are dropped on another thread
// than the arbiter's.
// - a it is unchanged
// - b publishing allocates no more with it than without it:
//   `lis_10_and_wl_20_and_inf_38_and_ref_31_and_lst_02_memory_stays_within_the_bounds_of_the_contract`
// - c what it pinned is freed when it is dropped
// - d replaced objects are dropped on another thread than the arbiter's:
//   `idx_22_replaced_objects_are_dropped_on_a_thread_of_their_own_and_never_on_the_pipelines_arbiter`
#[test]
fn idx_22_a_snapshot_kept_over_100_000_updates_is_unchanged_and_what_it_alone_held_is_freed_with_it() {
    let alive = Arc::new(());
    let object = |name: usize, number: u64| {
        let meta = object(&format!("ns-{}/o-{name:03}", name % 7), number).cached_meta().clone();
        Object::new(meta, Arc::clone(&alive))
    };
    let objects = || Arc::strong_count(&alive) - 1;
    let mut store = Store::new(Snapshot::empty(), Vec::new());
    let apply = |store: &mut Store<Arc<()>>, objects: Vec<Object<Arc<()>>>| {
        let parts = objects.into_iter().map(|object| (SourceId::default(), WatchPart::Applied(object)));
        drop(store.apply_parts(parts));
    };
    apply(&mut store, (0..100).map(|name| object(name, 1)).collect());
    let kept = store.snapshot();
    let before = states_of(&kept);
    for round in 0..1_000 {
        apply(&mut store, (0..100).map(|name| object(name, 2 + round)).collect());
    }
    assert_eq!(states_of(&kept), before);
    assert_eq!(store.snapshot().iter().filter(|object| object.version() == &version(1_001)).count(), 100);
    assert_eq!(objects(), 200, "the first hundred, the last hundred, and none between");
    drop(kept);
    assert_eq!(objects(), 100);
}

fn states_of<S>(snapshot: &Snapshot<S>) -> Vec<String> {
    snapshot.iter().map(written).collect()
}

#[test]
fn lst_03_of_other_namespaces_no_object_is_visited() {
    let others = (0..2_000).map(|number| object(&format!("ns-{}/{number}", number % 20), number + 1));
    let objects: Vec<_> = others.chain([object("ns-7/x", 9_001), object("only/y", 9_002)]).collect();
    let snapshot = snapshot(&objects);
    for (namespace, count) in [("only", 1), ("ns-7", 101), ("ns-8", 100)] {
        let mut found = snapshot.namespace(namespace);
        assert!(found.next().is_some_and(|first| first.key().namespace() == Some(namespace)));
        // A filter over all objects could not tell how many it will let through.
        assert_eq!(found.size_hint(), (count - 1, Some(count - 1)), "{namespace}");
        assert_eq!(found.count(), count - 1, "{namespace}");
    }
}

#[test]
fn objects_of_several_clusters_are_found_by_key_and_by_namespace_in_the_order_of_their_clusters() {
    let all = snapshot(&[
        object("eu|a/x", 1),
        object("us|a/x", 2),
        object("a/x", 3),
        object("eu|x", 4),
        object("eu|b/x", 5),
    ]);
    let keys: Vec<String> = all.iter().map(|object| object.key().to_string()).collect();
    assert_eq!(keys, ["a/x", "eu|x", "eu|a/x", "eu|b/x", "us|a/x"]);
    assert_eq!(
        all.namespace("a").map(written).collect::<Vec<_>>(),
        ["a/x u1@3", "eu|a/x u1@1", "us|a/x u1@2"]
    );
    assert_eq!(all.get(&key("us|a/x")).map(written), Some("us|a/x u1@2".into()));
    assert!(all.get(&key("us|b/x")).is_none());
    assert!(all.keys().eq(all.iter().map(Object::key)));
    let namespaces: Vec<_> = all
        .namespaces()
        .map(|found| (found.cluster.map(ToString::to_string), found.name, found.objects))
        .collect();
    let [eu, us] = ["eu", "us"].map(|name| Some(name.to_owned()));
    assert_eq!(
        namespaces,
        [
            (None, Some("a"), 1),
            (eu.clone(), None, 1),
            (eu.clone(), Some("a"), 1),
            (eu, Some("b"), 1),
            (us, Some("a"), 1)
        ]
    );
}

// IDX-24: given any two snapshots, when diff(seen, now) is applied to seen, then now: Added, Updated,
// Deleted{exact: false}, a new uid as Deleted then Added, nothing for the same uid and version (property
// test).
// - a applied to seen it gives now, for any two snapshots:
//   `idx_24_diff_applied_to_what_was_seen_gives_what_is_now`
// - b Added, Updated and Deleted, a new uid as Deleted then Added, nothing for the same uid and version
// - c delivered to a subscriber, a Deleted of it has exact: false:
//   `lis_21_beyond_its_bound_a_subscription_that_restates_receives_the_difference`
#[test]
fn idx_24_a_difference_is_decided_by_life_and_version() {
    let check = |older: &[Object<String>], newer: &[Object<String>], expected: &[&str]| {
        assert_eq!(differences(older, newer), expected);
    };
    check(&[], &[], &[]);
    check(&[], &[object("a/x", 1)], &["+ a/x u1@1"]);
    check(&[object("a/x", 1)], &[], &["- a/x u1@1"]);
    check(&[object("a/x", 1)], &[object("a/x", 1)], &[]);
    check(&[object("a/x", 1)], &[object("a/x", 2)], &["a/x u1@1 -> a/x u1@2"]);
    check(&[object("a/x", 1)], &[life("a/x", "u2", 2)], &["- a/x u1@1", "+ a/x u2@2"]);
    check(
        &[object("x", 1), object("a/x", 1)],
        &[object("b/x", 2)],
        &["- x u1@1", "- a/x u1@1", "+ b/x u1@2"],
    );
}

/// How the second of two snapshots is made of the first, so that they share structure.
#[derive(Debug, Clone)]
enum Step {
    Put(usize, u8, u64),
    Take(usize),
}

fn name(number: usize) -> String {
    match number % 5 {
        0 => format!("n{number:03}"),
        4 => format!("eu|ns1/n{number:03}"),
        other => format!("ns{other}/n{number:03}"),
    }
}

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let put = (0..200_usize, 0..3_u8, 1..4_u64).prop_map(|(at, uid, version)| Step::Put(at, uid, version));
    let take = (0..200_usize).prop_map(Step::Take);
    prop::collection::vec(prop_oneof![3 => put, 1 => take], 0..count)
}

fn walk(frame: &mut Frame<String>, state: &mut Model, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Put(at, uid, number) => {
                let object = life(&name(*at), &format!("u{uid}"), *number);
                let (old, known) = (state.insert(object.key().clone(), object.clone()), frame.insert(object));
                assert_eq!(old.map(|old| old.address()), known.map(|known| known.address()));
            }
            Step::Take(at) => {
                let at = key(&name(*at));
                let (old, known) = (state.remove(&at), frame.remove(&at));
                assert_eq!(old.map(|old| old.address()), known.map(|known| known.address()));
            }
        }
    }
}

proptest! {
    #[test]
    fn a_frame_is_a_sorted_map(steps in steps(400)) {
        let (mut frame, mut state) = (Frame::default(), Model::new());
        walk(&mut frame, &mut state, &steps);
        let snapshot = Snapshot::publish(frame);
        prop_assert!(crate::indexer::invariants::is_consistent(&snapshot));
        prop_assert_eq!(states(&model(&snapshot)), states(&state));
        for at in 0..200 {
            let at = key(&name(at));
            prop_assert_eq!(snapshot.get(&at).map(written), state.get(&at).map(written));
            let (cluster, namespace) = at.scope();
            let named = snapshot.named(cluster, namespace, at.name());
            prop_assert_eq!(named.map(Object::address), state.get(&at).map(Object::address));
            // The very objects: 200 walks would take long if each wrote out what it finds.
            let rest = snapshot.frame().objects().after(Some(&at), Sources::ALL).map(|held| held.object().address());
            let after = (Bound::Excluded(&at), Bound::Unbounded);
            prop_assert!(rest.eq(state.range(after).map(|(_, object)| object.address())), "after {at}");
        }
        for namespace in ["ns1", "ns2", "ns3"] {
            let found: Vec<String> = snapshot.namespace(namespace).map(written).collect();
            let of_it = state.values().filter(|object| object.key().namespace() == Some(namespace));
            prop_assert_eq!(found, of_it.map(written).collect::<Vec<_>>());
        }
    }

    #[test]
    fn idx_24_diff_applied_to_what_was_seen_gives_what_is_now(
        first in steps(300),
        later in steps(80),
        is_related: bool,
        chunks in prop::collection::vec(1..40_usize, 1..20),
    ) {
        let (mut frame, mut state) = (Frame::default(), Model::new());
        walk(&mut frame, &mut state, &first);
        let seen = Snapshot::publish(frame.clone());
        if !is_related {
            (frame, state) = (Frame::default(), Model::new());
        }
        walk(&mut frame, &mut state, &later);
        let now = Snapshot::publish(frame);

        let all: Vec<Difference<String>> = seen.diff(&now).collect();
        prop_assert!(all.windows(2).all(|pair| pair[0].key() <= pair[1].key()));
        prop_assert_eq!(states(&apply(model(&seen), all.clone())), states(&state));
        prop_assert_eq!(seen.diff(&seen).count(), 0);

        let mut cursor = DiffCursor::new(seen, now);
        let mut delivered = Vec::new();
        for most in chunks.iter().cycle() {
            let before = delivered.len();
            let goes_on = cursor.next_chunk(*most, &mut delivered);
            prop_assert!(delivered.len() - before <= 2 * most);
            for (at, difference) in all.iter().enumerate() {
                prop_assert_eq!(cursor.has_passed(difference.key()), at < delivered.len());
                prop_assert!(cursor.at(difference.key()).iter().any(|own| text_of(own) == text_of(difference)));
            }
            if !goes_on {
                break;
            }
        }
        let texts = |differences: &[_]| differences.iter().map(text_of).collect::<Vec<_>>();
        let (delivered, all) = (texts(&delivered), texts(&all));
        prop_assert_eq!(delivered, all);
    }
}

#[test]
fn a_frame_keeps_one_version_per_source_and_moves_it_forward() {
    let mut frame = Frame::<String>::default();
    let (a, b) = (SourceId::new("a"), SourceId::new("b"));
    frame.reach(&b, &version(9));
    frame.reach(&a, &version(10));
    frame.reach(&b, &version(5));
    assert!(frame.versions().iter().eq([(&a, &version(10)), (&b, &version(9))]));
    frame.set_version(&a, &version(2));
    assert_eq!(frame.version(&a), Some(&version(2)));
}
