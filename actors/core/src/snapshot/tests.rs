//! Snapshots read alone: order, agreement, and the difference between any two.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::fixture::{key, life, object, version, written};
use super::{DiffCursor, Difference, Frame, Snapshot};
use crate::delta::WatchPart;
use crate::indexer::Store;
use crate::meta::{Object, ObjectKey, SourceId};

type Model = BTreeMap<ObjectKey, Object<String>>;

fn snapshot(objects: &[Object<String>]) -> Snapshot<String> {
    let mut frame = Frame::default();
    for object in objects {
        frame.insert(object.clone());
    }
    Snapshot::publish(frame)
}

fn differences(older: &[Object<String>], newer: &[Object<String>]) -> Vec<String> {
    snapshot(older).diff(&snapshot(newer)).map(|difference| tell(&difference)).collect()
}

fn tell(difference: &Difference<String>) -> String {
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
    crosses::<crate::indexer::Applied<String>>();
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
    let expecting = Snapshot::<String>::empty_with_indices(["node".into()]);
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

#[test]
fn idx_22_a_snapshot_kept_over_100_000_updates_is_unchanged_and_what_it_alone_held_is_freed_with_it() {
    let alive = Arc::new(());
    let object = |name: usize, number: u64| {
        let meta = object(&format!("ns-{}/o-{name:03}", name % 7), number).meta().clone();
        Object::new(meta, Arc::clone(&alive))
    };
    let objects = || Arc::strong_count(&alive) - 1;
    let mut store = Store::new(Snapshot::empty(), Vec::new());
    let apply = |store: &mut Store<Arc<()>>, objects: Vec<Object<Arc<()>>>| {
        let parts = objects.into_iter().map(|object| (SourceId::default(), WatchPart::Applied(object)));
        drop(store.apply_parts(parts.collect()));
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
fn idx_24_a_difference_is_told_by_life_and_version() {
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

#[test]
fn a_cursor_visits_at_most_the_keys_it_was_allowed() {
    let older = snapshot(&[object("a/1", 1), object("a/2", 1), object("b/1", 1)]);
    let newer = snapshot(&[object("a/2", 2), object("a/3", 2), object("c/1", 2)]);
    let mut cursor = DiffCursor::new(older, newer);
    let mut chunks = Vec::new();
    loop {
        let mut chunk = Vec::new();
        let goes_on = cursor.next_chunk(2, &mut chunk);
        chunks.push(chunk.iter().map(tell).collect::<Vec<_>>());
        if !goes_on {
            break;
        }
    }
    let told: Vec<String> = chunks.concat();
    assert_eq!(told, ["- a/1 u1@1", "a/2 u1@1 -> a/2 u1@2", "+ a/3 u1@2", "- b/1 u1@1", "+ c/1 u1@2"]);
    assert!(chunks.iter().all(|chunk| chunk.len() <= 2), "{chunks:?}");
}

#[test]
fn a_cursor_knows_what_it_has_passed_and_any_one_key() {
    let newer = snapshot(&[object("x", 1), object("a/1", 1), object("a/2", 1)]);
    let mut cursor = DiffCursor::new(Snapshot::empty(), newer);
    let mut out = Vec::new();
    assert!(!cursor.has_passed(&key("x")));
    assert!(cursor.next_chunk(2, &mut out));
    assert_eq!(out.iter().map(tell).collect::<Vec<_>>(), ["+ x u1@1", "+ a/1 u1@1"]);
    assert!(cursor.has_passed(&key("x")) && cursor.has_passed(&key("y")) && cursor.has_passed(&key("a/0")));
    assert!(
        cursor.has_passed(&key("a/1")) && !cursor.has_passed(&key("a/2")) && !cursor.has_passed(&key("b/0"))
    );
    assert_eq!(cursor.at(&key("a/2")).iter().map(tell).collect::<Vec<_>>(), ["+ a/2 u1@1"]);
    assert_eq!(cursor.at(&key("a/1")).iter().map(tell).collect::<Vec<_>>(), ["+ a/1 u1@1"]);
    assert!(cursor.at(&key("a/9")).is_empty());
    while cursor.next_chunk(1, &mut out) {}
    assert!(cursor.is_finished() && cursor.has_passed(&key("z/z")) && out.len() == 3);
}

#[test]
fn a_cursor_between_one_snapshot_and_itself_is_finished() {
    let same = snapshot(&[object("a/x", 1)]);
    assert!(DiffCursor::new(same.clone(), same).is_finished());
}

#[test]
fn a_namespace_that_both_share_is_one_visit() {
    let mut frame = Frame::default();
    for number in 0..500 {
        frame.insert(object(&format!("shared/{number}"), 1));
    }
    let older = Snapshot::publish(frame.clone());
    frame.insert(object("z/changed", 2));
    let mut cursor = DiffCursor::new(older, Snapshot::publish(frame));
    let mut out = Vec::new();
    assert!(!cursor.next_chunk(4, &mut out), "{cursor:?}");
    assert_eq!(out.iter().map(tell).collect::<Vec<_>>(), ["+ z/changed u1@2"]);
}

/// How the second of two snapshots is made of the first, so that they share structure.
#[derive(Debug, Clone)]
enum Step {
    Put(usize, u8, u64),
    Take(usize),
}

fn name(number: usize) -> String {
    match number % 4 {
        0 => format!("n{number:03}"),
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
            let rest: Vec<String> = snapshot.frame().after(Some(&at)).map(written).collect();
            let expected: Vec<String> = state.values().filter(|object| *object.key() > at).map(written).collect();
            prop_assert_eq!(rest, expected);
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
        let mut told = Vec::new();
        for most in chunks.iter().cycle() {
            let before = told.len();
            let goes_on = cursor.next_chunk(*most, &mut told);
            prop_assert!(told.len() - before <= 2 * most);
            for (at, difference) in all.iter().enumerate() {
                prop_assert_eq!(cursor.has_passed(difference.key()), at < told.len());
                prop_assert!(cursor.at(difference.key()).iter().any(|own| tell(own) == tell(difference)));
            }
            if !goes_on {
                break;
            }
        }
        let (told, all): (Vec<_>, Vec<_>) = (told.iter().map(tell).collect(), all.iter().map(tell).collect());
        prop_assert_eq!(told, all);
    }
}

proptest! {
    #[test]
    fn a_cursor_led_to_newer_snapshots_and_the_changes_behind_it_give_the_newest(
        first in steps(200),
        later in prop::collection::vec((steps(40), 1..60_usize), 1..6),
        after in prop::option::of(0..200_usize),
        until in prop::option::of(0..200_usize),
    ) {
        let (mut frame, mut state) = (Frame::default(), Model::new());
        walk(&mut frame, &mut state, &first);
        let seen = Snapshot::publish(frame.clone());
        let (after, until) = (after.map(|at| key(&name(at))), until.map(|at| key(&name(at))));
        let is_inside = |key: &ObjectKey| {
            after.as_ref().is_none_or(|after| key > after) && until.as_ref().is_none_or(|until| key <= until)
        };
        let mut told = model(&seen);
        let mut cursor = DiffCursor::between(seen.clone(), seen.clone(), after.clone(), until.clone());
        for (round, (steps, most)) in later.iter().enumerate() {
            walk(&mut frame, &mut state, steps);
            let newer = Snapshot::publish(frame.clone());
            if round == 0 {
                cursor = DiffCursor::between(seen.clone(), newer, after.clone(), until.clone());
            } else {
                // What changes behind the cursor is an event of its own; what changes ahead of it costs nothing.
                let before = cursor.lead_to(newer.clone());
                let behind = before.diff(&newer).filter(|difference| !cursor.covers(difference.key()));
                told = apply(told, behind.filter(|difference| is_inside(difference.key())));
            }
            let mut chunk = Vec::new();
            cursor.next_chunk(*most, &mut chunk);
            for difference in &chunk {
                prop_assert!(is_inside(difference.key()) && cursor.has_passed(difference.key()));
                prop_assert!(!cursor.covers(difference.key()));
            }
            told = apply(told, chunk);
        }
        let mut rest = Vec::new();
        while cursor.next_chunk(7, &mut rest) {}
        told = apply(told, rest);
        let mut expected = model(&seen);
        expected.retain(|key, _| !is_inside(key));
        expected.extend(state.into_iter().filter(|(key, _)| is_inside(key)));
        prop_assert_eq!(states(&told), states(&expected));
    }
}

#[test]
fn a_difference_says_whether_a_rewind_lies_between_and_equal_versions_prove_nothing_then() {
    let mut frame = Frame::default();
    for name in ["a/listed", "a/other", "a/watched"] {
        frame.insert(object(name, 5));
    }
    let older = Snapshot::publish(frame.clone());
    frame.count_rewind();
    frame.insert_rewound(object("a/listed", 5));
    frame.insert_rewound(object("a/watched", 3));
    frame.insert(object("a/watched", 5));
    frame.insert(object("a/other", 6));
    let newer = Snapshot::publish(frame);
    let told: Vec<(String, bool)> = older
        .diff(&newer)
        .map(|difference| {
            let is_rewound = matches!(difference, Difference::Updated { is_rewound: true, .. });
            (difference.key().to_string(), is_rewound)
        })
        .collect();
    let expected = [("a/listed", true), ("a/other", false), ("a/watched", true)];
    assert_eq!(told, expected.map(|(key, is_rewound)| (key.to_owned(), is_rewound)));
    assert_eq!(newer.diff(&newer.clone()).count(), 0);
}

#[test]
fn a_cursor_of_a_range_covers_the_keys_after_one_up_to_another() {
    let newer = snapshot(&[object("x", 1), object("a/1", 1), object("a/2", 1), object("b/1", 1)]);
    let range = |after: Option<&str>, until: Option<&str>| {
        DiffCursor::between(Snapshot::empty(), newer.clone(), after.map(key), until.map(key))
    };
    let mut cursor = range(Some("x"), Some("a/2"));
    assert!(cursor.place() == Some(&key("x")) && cursor.has_passed(&key("x")));
    assert!(!cursor.covers(&key("x")) && cursor.covers(&key("a/1")) && cursor.covers(&key("a/2")));
    assert!(!cursor.covers(&key("b/1")) && !cursor.has_passed(&key("b/1")));
    let mut out = Vec::new();
    while cursor.next_chunk(1, &mut out) {}
    assert_eq!(out.iter().map(tell).collect::<Vec<_>>(), ["+ a/1 u1@1", "+ a/2 u1@1"]);
    assert!(range(Some("a/2"), Some("a/2")).is_finished());
    assert!(range(Some("b/1"), Some("a/2")).is_finished());
}

#[test]
fn a_frame_keeps_one_version_per_source_and_moves_it_forward() {
    let mut frame = Frame::<String>::default();
    let (a, b) = (SourceId::new("a"), SourceId::new("b"));
    frame.reach(&b, &version(9));
    frame.reach(&a, &version(10));
    frame.reach(&b, &version(5));
    assert_eq!(frame.versions(), [(a.clone(), version(10)), (b, version(9))]);
    frame.set_version(a.clone(), version(2));
    assert_eq!(frame.version(&a), Some(&version(2)));
}
