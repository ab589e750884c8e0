//! The policy `Keys`: contract scenarios, and any history against a set of keys that were touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Backlog, Policy};
use super::world::{Publish, Published, World, publish, sources};
use super::{added, deleted, list, record, snapshot, updated};
use crate::delta::{Cause, Change, Changes};
use crate::meta::{Object, ObjectKey, SourceId, Uid};
use crate::snapshot::fixture::{life, object};
use crate::snapshot::{Frame, Snapshot};

fn of_keys(now: Snapshot<String>) -> Backlog<String> {
    Backlog::starting_from(Policy::Keys, [], now)
}

/// All that is owed, as `name (cause)`.
fn told(backlog: &mut Backlog<String>) -> Vec<String> {
    let mut lines = Vec::new();
    while !backlog.is_empty() {
        let keys = backlog.take_keys(64);
        lines.extend(keys.into_iter().map(|(key, cause)| format!("{key} ({cause})")));
    }
    backlog.acknowledge();
    lines
}

fn walk(backlog: &mut Backlog<String>) {
    while backlog.must_walk() {
        backlog.walk();
    }
}

#[test]
fn lis_34_a_late_join_a_resync_and_a_rewind_deliver_every_key_with_their_cause() {
    let objects = ["a", "b", "c"].map(|name| object(name, 1));
    let mut backlog = of_keys(snapshot(&objects));
    assert_eq!((backlog.stats().depth, backlog.stats().events), (3, 0));
    assert_eq!(told(&mut backlog), ["a (InitialList)", "b (InitialList)", "c (InitialList)"]);
    backlog.resync();
    assert_eq!(told(&mut backlog), ["a (Resync)", "b (Resync)", "c (Resync)"]);
    let after = super::rewound(&snapshot(&objects), &objects[..2]);
    list(&mut backlog, &after, Cause::Rewind);
    assert_eq!(told(&mut backlog), ["a (Rewind)", "b (Rewind)"]);
}

#[test]
fn lis_34_a_relist_and_a_restart_deliver_the_keys_that_differ_each_once() {
    let [a, b, c] = ["a", "b", "c"].map(|name| object(name, 1));
    let mut backlog = of_keys(snapshot([&a, &b, &c]));
    told(&mut backlog);
    list(&mut backlog, &snapshot([&object("a", 5), &life("c", "u2", 6), &object("d", 7)]), Cause::Relist);
    assert_eq!(told(&mut backlog), ["a (Relist)", "b (Relist)", "c (Relist)", "d (Relist)"]);
    backlog.reattach(snapshot([&object("a", 8), &life("c", "u2", 6)]));
    assert_eq!(told(&mut backlog), ["a (Relist)", "d (Relist)"]);
}

#[test]
fn lis_34_a_key_whose_object_was_created_and_deleted_is_delivered_also_ahead_of_a_first_list() {
    let mut backlog = of_keys(Snapshot::empty());
    let child = object("child", 1);
    record(&mut backlog, &[added(&child), deleted(&child)]);
    assert_eq!(told(&mut backlog), ["child (Watch)"]);
    let mut late = of_keys(snapshot([&object("a", 1), &object("z", 1)]));
    let job = object("job", 5);
    record(&mut late, &[added(&job)]);
    record(&mut late, &[deleted(&job)]);
    assert_eq!(told(&mut late), ["a (InitialList)", "z (InitialList)", "job (Watch)"]);
}

#[test]
fn lis_34_a_stalled_recipient_of_keys_is_behind_on_keys_and_not_on_events() {
    let mut backlog = of_keys(Snapshot::empty());
    let names: Vec<String> = (0..100).map(|n| format!("key-{n:03}")).collect();
    record(&mut backlog, &names.iter().map(|name| added(&object(name, 1))).collect::<Vec<_>>());
    for version in 1..=100 {
        let update = |name: &String| updated(&object(name, version), &object(name, version + 1));
        record(&mut backlog, &names.iter().map(update).collect::<Vec<_>>());
    }
    let stats = backlog.stats();
    assert_eq!((stats.depth, stats.events, stats.cursors, stats.coalesced), (100, 100, 0, 10_000));
    assert_eq!(told(&mut backlog).len(), 100);
}

#[test]
fn lis_34_a_first_list_costs_a_cursor_also_while_every_object_changes() {
    let objects: Vec<_> = (0..500).map(|n| object(&format!("k-{n:03}"), 1)).collect();
    let mut backlog = of_keys(snapshot(&objects));
    let update = |old: &Object<String>| updated(old, &object(&old.key().to_string(), 2));
    record(&mut backlog, &objects.iter().map(update).collect::<Vec<_>>());
    assert_eq!((backlog.stats().depth, backlog.stats().events, backlog.stats().cursors), (500, 0, 1));
    assert!(!backlog.must_walk());
}

#[test]
fn what_comes_and_goes_behind_a_first_list_leaves_as_much_of_it() {
    let objects: Vec<_> = (0..10).map(|n| object(&format!("k-{n:03}"), 1)).collect();
    let mut backlog = of_keys(snapshot(&objects));
    assert_eq!((backlog.take_keys(4).len(), backlog.stats().depth), (4, 6));
    record(&mut backlog, &[deleted(&objects[0]), deleted(&objects[1]), added(&object("k-000a", 3))]);
    assert_eq!((backlog.stats().depth, backlog.stats().events), (6 + 3, 3));
    assert_eq!(told(&mut backlog).len(), 9);
}

/// A state of one object with this body.
fn with_body(body: &Arc<()>, version: u64) -> (Object<Arc<()>>, Snapshot<Arc<()>>) {
    let object = Object::new(object("a", version).cached_meta().clone(), Arc::clone(body));
    let mut frame = Frame::default();
    frame.insert(object.clone());
    (object, Snapshot::publish(frame))
}

#[test]
fn lis_34_what_waits_for_a_stalled_recipient_of_keys_keeps_no_object_alive() {
    let bodies = [(); 4].map(Arc::new);
    let [first, second, third, fourth] = &bodies;
    let (mut old, state) = with_body(first, 1);
    let mut backlog = Backlog::starting_from(Policy::Keys, [], state);
    let mut update = |backlog: &mut Backlog<_>, body, version| {
        let (object, state) = with_body(body, version);
        let change = Change::Updated { old: old.clone(), object: object.clone(), cause: Cause::Watch };
        backlog.publish(&[Changes::Parts([change].into())], &state);
        old = object;
    };
    // Its first list is owed.
    update(&mut backlog, second, 2);
    assert_eq!(Arc::strong_count(first), 1);
    // A resync is owed.
    while !backlog.is_empty() {
        backlog.take_keys(9);
    }
    backlog.acknowledge();
    backlog.resync();
    update(&mut backlog, third, 3);
    drop(old);
    assert_eq!((backlog.is_empty(), Arc::strong_count(second)), (false, 1));
    // A relist is owed.
    let (before, after) = (with_body(third, 3).1, with_body(fourth, 4).1);
    let source = SourceId::default();
    let listed = Changes::Listed { source, before, after: after.clone(), cause: Cause::Relist };
    backlog.publish(&[listed], &after);
    while backlog.must_walk() {
        backlog.walk();
    }
    assert_eq!((backlog.is_empty(), Arc::strong_count(third)), (false, 1));
}

#[derive(Debug, Clone)]
enum Step {
    Happen(Publish),
    Resync,
    Take(usize),
    Walk(usize),
    Acknowledge,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        9 => publish().prop_map(Step::Happen),
        1 => Just(Step::Resync),
        5 => (0..6_usize).prop_map(Step::Take),
        3 => (1..9_usize).prop_map(Step::Walk),
        2 => Just(Step::Acknowledge),
    ]
}

/// What there is of a key, as far as a recipient can tell it apart.
type Seen = BTreeMap<ObjectKey, (Option<Uid>, String, String)>;

fn seen(world: &World) -> Seen {
    let of =
        |live: &Object<String>| (live.object_uid().cloned(), live.version().to_string(), live.body().clone());
    world.live.iter().map(|(key, live)| (key.clone(), of(live))).collect()
}

/// Keys that were touched and not told since.
#[derive(Default)]
struct Naive {
    touched: BTreeSet<ObjectKey>,
    ever: BTreeSet<ObjectKey>,
}

impl Naive {
    fn observe(&mut self, before: &Seen, after: &Seen, published: &Published) {
        let differs = |key: &&ObjectKey| before.get(key) != after.get(key);
        let keys = before.keys().chain(after.keys()).filter(differs).cloned();
        let touched: Vec<ObjectKey> =
            keys.chain(published.events.iter().map(|change| change.key().clone())).collect();
        self.ever.extend(touched.iter().cloned());
        self.touched.extend(touched);
    }

    fn receive(&mut self, delivered: Vec<(ObjectKey, Cause)>) -> Result<(), TestCaseError> {
        for (key, cause) in delivered {
            prop_assert!(self.ever.contains(&key), "{key} ({cause}) was never touched");
            self.touched.remove(&key);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn lis_34_whatever_happens_every_touched_key_is_delivered_afterwards_and_waits_once(
        steps in prop::collection::vec(step(), 1..80),
        bite in 1..6_usize,
        is_late in any::<bool>(),
    ) {
        let (mut world, mut naive) = (World::default(), Naive::default());
        if is_late {
            let first = Publish::List(0, vec![super::world::Deed::Write(0), super::world::Deed::Write(6)]);
            let published = world.publish(first);
            naive.observe(&Seen::new(), &seen(&world), &published);
        }
        let mut backlog = Backlog::starting_from(Policy::Keys, sources(), world.snapshot());
        for step in steps {
            match step {
                Step::Happen(publish) => {
                    let before = seen(&world);
                    let published = world.publish(publish);
                    naive.observe(&before, &seen(&world), &published);
                    published.record(&mut backlog);
                }
                Step::Resync => backlog.resync(),
                Step::Take(max) => {
                    let delivered = backlog.take_keys(max);
                    prop_assert!(delivered.len() <= max);
                    naive.receive(delivered)?;
                }
                Step::Walk(visits) => backlog.walk_some(visits),
                Step::Acknowledge => backlog.acknowledge(),
            }
            let stats = backlog.stats();
            prop_assert!(stats.depth <= naive.ever.len() && stats.events <= naive.ever.len(), "{stats:?}");
            prop_assert_eq!((stats.impossible, stats.bytes, stats.oldest.is_none()), (0, 0, backlog.is_empty()));
        }
        while backlog.must_walk() {
            backlog.walk_some(3);
        }
        prop_assert!(backlog.stats().cursors <= 4, "first lists and a resync: {:?}", backlog);
        let mut delivered = Vec::new();
        for _ in 0..200 {
            delivered.extend(backlog.take_keys(bite));
        }
        prop_assert!(backlog.is_empty(), "it never runs empty: {:?}", backlog);
        let mut times = BTreeMap::<&ObjectKey, usize>::new();
        delivered.iter().for_each(|(key, _)| *times.entry(key).or_default() += 1);
        prop_assert!(times.values().all(|times| *times <= 3), "{delivered:?}");
        naive.receive(delivered)?;
        prop_assert!(naive.touched.is_empty(), "never delivered: {:?}", naive.touched);
        backlog.acknowledge();
        prop_assert_eq!(backlog.initial_delivered(), world.is_listed());
    }
}

#[test]
fn keys_that_wait_are_delivered_in_order_of_arrival_with_the_last_cause_that_counts() {
    let mut backlog = of_keys(Snapshot::empty());
    record(&mut backlog, &[added(&object("b", 1)), added(&object("a", 2))]);
    backlog.reattach(snapshot([&object("b", 3), &object("c", 4)]));
    walk(&mut backlog);
    assert_eq!(told(&mut backlog), ["b (Relist)", "a (Relist)", "c (Relist)"]);
    assert!(backlog.initial_delivered() && !backlog.must_walk());
}
