//! Filters: the transitions one by one, and any history, under every policy, against the filtered state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::super::{Backlog, ChangeFilter, Filter, Policy, WhenFull};
use super::world::{Publish, World, publish, sources};
use super::{deleted, drained, record, snapshot, text_of, updated};
use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{object, worded};

/// Objects pass whose version is no multiple of `not`; updates pass that change the version divided by `step`.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    not: u64,
    step: Option<u64>,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (2..5_u64, prop::option::of(2..9_u64)).prop_map(|(not, step)| Wanted { not, step })
}

fn number(object: &Object<String>) -> u64 {
    object.version().to_string().parse().expect("a number")
}

impl Wanted {
    fn passes(self, object: &Object<String>) -> bool {
        !number(object).is_multiple_of(self.not)
    }

    fn value(self, object: &Object<String>) -> u64 {
        number(object) / self.step.unwrap_or(1)
    }

    fn filter(self) -> Option<Arc<Filter<String>>> {
        let filter = Filter::default().objects(move |object| self.passes(object));
        let changes = ChangeFilter::of(move |object| self.value(object));
        Some(Arc::new(if self.step.is_some() { filter.changes(changes) } else { filter }))
    }

    /// What client-go's filtering handler and a predicate on the update would tell of one change.
    fn plainly(self, change: &Change<String>) -> Option<String> {
        match change {
            Change::Added { object: subject, .. } | Change::Deleted { old: subject, .. } => {
                self.passes(subject).then(|| text_of(change))
            }
            Change::Updated { old, object, cause } => match (self.passes(old), self.passes(object)) {
                (false, false) => None,
                (false, true) => Some(text_of(&Change::Added { object: object.clone(), cause: *cause })),
                (true, false) => {
                    Some(format!("{} (LeftFilter)", text_of(&deleted(old)).replace(" (Watch)", "")))
                }
                (true, true) => (self.value(old) != self.value(object)).then(|| text_of(change)),
            },
        }
    }
}

/// What a subscriber was told.
#[derive(Default)]
struct Known(BTreeMap<ObjectKey, Object<String>>);

impl Known {
    fn hear(&mut self, change: &Change<String>, wanted: Wanted) -> Result<(), TestCaseError> {
        let (known, text) = (self.0.get(change.key()), text_of(change));
        let follows =
            |old: &Object<String>| known.is_some_and(|known| wanted.value(known) == wanted.value(old));
        match change {
            Change::Added { .. } => prop_assert!(known.is_none(), "{text}: it is there"),
            Change::Updated { old, .. } => prop_assert!(follows(old), "{text} does not follow {known:?}"),
            Change::Deleted { old, last, exact, cause } => {
                prop_assert!(follows(old), "{text} does not follow {known:?}");
                prop_assert!(*cause != Cause::LeftFilter || (wanted.passes(last) && !exact), "{text}");
            }
        }
        match change.object() {
            Some(object) => {
                prop_assert!(wanted.passes(object), "{text} does not pass");
                self.0.insert(change.key().clone(), object.clone());
            }
            None => drop(self.0.remove(change.key())),
        }
        Ok(())
    }

    fn take(
        &mut self,
        backlog: &mut Backlog<String>,
        max: usize,
        wanted: Wanted,
    ) -> Result<(), TestCaseError> {
        for change in backlog.take(max) {
            self.hear(&change, wanted)?;
        }
        Ok(())
    }

    /// It knows every object that passes, in a state of equal value, and no other.
    fn equals(&self, world: &World, wanted: Wanted) -> Result<(), TestCaseError> {
        let values = |objects: &BTreeMap<ObjectKey, Object<String>>| -> BTreeMap<ObjectKey, u64> {
            let passing = objects.iter().filter(|(_, object)| wanted.passes(object));
            passing.map(|(key, object)| (key.clone(), wanted.value(object))).collect()
        };
        prop_assert_eq!(values(&self.0), values(&world.live));
        prop_assert_eq!(self.0.len(), values(&world.live).len());
        Ok(())
    }
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
        8 => publish().prop_map(Step::Happen),
        1 => Just(Step::Resync),
        5 => (0..5_usize).prop_map(Step::Take),
        2 => (1..9_usize).prop_map(Step::Walk),
        3 => Just(Step::Acknowledge),
    ]
}

fn run(policy: Policy, joins: usize, steps: Vec<Step>, wanted: Wanted) -> Result<(), TestCaseError> {
    let (mut world, mut known, mut steps) = (World::default(), Known::default(), steps.into_iter());
    for step in steps.by_ref().take(joins) {
        if let Step::Happen(publish) = step {
            world.publish(publish);
        }
    }
    let mut backlog =
        Backlog::starting_from(policy, sources(), world.snapshot()).filtered_by(wanted.filter());
    for step in steps {
        match step {
            Step::Happen(publish) => world.publish(publish).record(&mut backlog),
            Step::Resync => backlog.resync(),
            Step::Take(max) if policy != Policy::Keys => known.take(&mut backlog, max, wanted)?,
            Step::Take(max) => look_up(&mut known, &mut backlog, &world, (max, wanted)),
            Step::Walk(visits) => backlog.walk_some(visits),
            Step::Acknowledge => backlog.acknowledge(),
        }
    }
    for _ in 0..1_000 {
        match policy {
            Policy::Keys => look_up(&mut known, &mut backlog, &world, (3, wanted)),
            _ => known.take(&mut backlog, 3, wanted)?,
        }
    }
    prop_assert!(backlog.is_empty() && backlog.stats().impossible == 0, "{backlog:?}");
    known.equals(&world, wanted)
}

/// Looks up each key that it receives, as a work queue does.
fn look_up(known: &mut Known, backlog: &mut Backlog<String>, world: &World, (max, wanted): (usize, Wanted)) {
    for (key, _) in backlog.take_keys(max) {
        match world.live.get(&key).filter(|live| wanted.passes(live)) {
            Some(live) => drop(known.0.insert(key, live.clone())),
            None => drop(known.0.remove(&key)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn lis_35_whatever_happens_what_was_delivered_replays_to_the_objects_that_pass(
        steps in prop::collection::vec(step(), 1..80),
        joins in 0..20_usize,
        wanted in wanted(),
        policy in prop_oneof![
            3 => Just(Policy::Coalesce),
            1 => Just(Policy::Keys),
            2 => (64..400_usize).prop_map(|bytes| Policy::Every { bytes, when_full: WhenFull::Restate }),
        ],
    ) {
        run(policy, joins, steps, wanted)?;
    }

    #[test]
    fn lis_35_to_a_subscriber_that_keeps_up_each_live_change_is_what_a_filtering_handler_would_tell(
        publishes in prop::collection::vec(publish(), 1..60),
        wanted in wanted(),
        every in any::<bool>(),
    ) {
        let every_event = Policy::Every { bytes: 1 << 20, when_full: WhenFull::Disconnect };
        let policy = if every { every_event } else { Policy::Coalesce };
        let mut world = World::default();
        let mut backlog = Backlog::starting_from(policy, sources(), world.snapshot()).filtered_by(wanted.filter());
        for publish in publishes {
            let is_live = matches!(publish, Publish::Parts(_));
            let published = world.publish(publish);
            published.record(&mut backlog);
            let delivered = drained(&mut backlog);
            backlog.acknowledge();
            let plainly: Vec<String> =
                published.events.iter().filter_map(|change| wanted.plainly(change)).collect();
            prop_assert!(!is_live || delivered == plainly, "{delivered:?} instead of {plainly:?}");
        }
    }
}

/// A subscriber of objects with an `x` among their words, which has been told the first list.
fn of_x(objects: &[Object<String>]) -> Backlog<String> {
    let filter = Filter::default().objects(|object: &Object<String>| object.contains('x'));
    let backlog = Backlog::starting_from(Policy::Coalesce, [], snapshot(objects));
    backlog.filtered_by(Some(Arc::new(filter)))
}

#[test]
fn lis_35_an_object_that_begins_to_pass_is_added_and_one_that_passes_no_more_is_deleted_as_it_was_delivered()
{
    let states = ["", "x", "xx", "", ""].into_iter().zip(1..).map(|(words, n)| worded("a", n, words));
    let states: Vec<Object<String>> = states.collect();
    let mut backlog = of_x(&states[..1]);
    assert_eq!(drained(&mut backlog), Vec::<String>::new());
    backlog.acknowledge();
    let mut told = Vec::new();
    for pair in states.windows(2) {
        record(&mut backlog, &[updated(&pair[0], &pair[1])]);
        let changes = backlog.take(9);
        for change in &changes {
            if let Change::Deleted { last, exact, .. } = change {
                assert!(last.ptr_eq(&states[2]) && !exact, "the last state that was delivered");
            }
        }
        told.extend(changes.iter().map(text_of));
        backlog.acknowledge();
    }
    assert_eq!(told, ["+ a u1@2 (Watch)", "a u1@2 -> a u1@3 (Watch)", "- a u1@3 (LeftFilter)"]);
    assert_eq!(backlog.stats().filtered, 2, "one object of the list and one update");
}

#[test]
fn lis_35_what_a_filter_drops_is_nowhere_in_the_backlog() {
    let objects: Vec<Object<String>> = (1..=100).map(|n| object(&format!("p-{n}"), n)).collect();
    for policy in
        [Policy::Coalesce, Policy::Keys, Policy::Every { bytes: 1, when_full: WhenFull::Disconnect }]
    {
        let nothing = Filter::default().objects(|_: &Object<String>| false);
        let mut backlog =
            Backlog::starting_from(policy, [], Snapshot::empty()).filtered_by(Some(Arc::new(nothing)));
        backlog.is_under_way = true;
        for object in &objects {
            record(&mut backlog, &[super::added(object)]);
        }
        let stats = backlog.stats();
        assert_eq!((stats.depth, stats.events, stats.bytes, stats.filtered), (0, 0, 0, 100), "{policy:?}");
        assert!(backlog.is_empty() && backlog.overflow().is_none());
    }
}

// LIS-36: given a subscription with a filter of changes, when updates come, then those are dropped that leave
// its value as it was, whatever else changes, and Added and Deleted are told in any case; once nothing waits,
// the value of the state told last is that of the newest state, however much was coalesced; a resync is asked
// about like an update between equal states, so a filter of a value drops it.
// - a updates that leave the value are dropped, others and Added and Deleted are told
// - b the value of the state told last is that of the newest, under every policy:
//   `lis_35_whatever_happens_what_was_delivered_replays_to_the_objects_that_pass`
// - c a resync passes no filter of a value, and a condition is asked about it
// - d either of two: `lis_36_either_of_two_changes_passes_and_a_condition_sees_a_resync`
// - e by generation, labels and annotations: `lis_36_generation_labels_and_annotations_tell_updates_apart`
#[test]
fn lis_36_a_filter_of_changes_drops_updates_alone_and_what_waits_carries_the_newest_state() {
    let filter = Filter::default().changes(ChangeFilter::of(|object: &Object<String>| object.len()));
    let [one, same, other, again] =
        [(1, "x"), (2, "y"), (3, "xx"), (4, "yy")].map(|(n, words)| worded("a", n, words));
    let mut backlog = Backlog::starting_from(Policy::Coalesce, [], snapshot([&one]));
    backlog = backlog.filtered_by(Some(Arc::new(filter)));
    assert_eq!(drained(&mut backlog), ["+ a u1@1 (InitialList)"]);
    record(&mut backlog, &[updated(&one, &same)]);
    assert!(backlog.is_empty(), "the length has not changed");
    record(&mut backlog, &[updated(&same, &other)]);
    record(&mut backlog, &[updated(&other, &again)]);
    assert_eq!(drained(&mut backlog), ["a u1@2 -> a u1@4 (Watch)"]);
    backlog.acknowledge();
    backlog.resync();
    assert_eq!(drained(&mut backlog), Vec::<String>::new(), "a resync changes no value");
    record(&mut backlog, &[deleted(&again)]);
    assert_eq!(drained(&mut backlog), ["- a u1@4 (Watch)"]);
}

#[test]
fn lis_36_either_of_two_changes_passes_and_a_condition_sees_a_resync() {
    let length = ChangeFilter::of(|object: &Object<String>| object.len());
    let resynced = ChangeFilter::between(|old: &Object<String>, new: &Object<String>| old.ptr_eq(new));
    let filter = Filter::default().changes(length.or(resynced));
    let [one, same, longer] = [(1, "x"), (2, "y"), (3, "xx")].map(|(n, words)| worded("a", n, words));
    let mut backlog = Backlog::starting_from(Policy::Coalesce, [], snapshot([&one]));
    backlog = backlog.filtered_by(Some(Arc::new(filter)));
    drained(&mut backlog);
    backlog.acknowledge();
    record(&mut backlog, &[updated(&one, &same), updated(&same, &longer)]);
    assert_eq!(drained(&mut backlog), ["a u1@2 -> a u1@3 (Watch)"]);
    backlog.acknowledge();
    backlog.resync();
    assert_eq!(drained(&mut backlog), ["a u1@3 -> a u1@3 (Resync)"]);
}

#[test]
fn lis_37_a_predicate_that_panics_counts_as_yes_and_is_reported_with_the_key() {
    let heard = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&heard);
    let filter = Filter::default()
        .objects(|object: &Object<String>| if object.contains('!') { panic!("on purpose") } else { false })
        .changes(ChangeFilter::of(|object: &Object<String>| assert!(!object.contains('!'), "on purpose")))
        .on_panic(move |key, _panic| {
            assert_eq!(key.to_string(), "a");
            count.fetch_add(1, Ordering::Relaxed);
        });
    let [one, two] = [worded("a", 1, "!"), worded("a", 2, "!")];
    let mut backlog =
        Backlog::starting_from(Policy::Coalesce, [], snapshot(&[one.clone(), worded("b", 1, "")]));
    backlog = backlog.filtered_by(Some(Arc::new(filter)));
    assert_eq!(drained(&mut backlog), ["+ a u1@1 (InitialList)"]);
    record(&mut backlog, &[updated(&one, &two)]);
    assert_eq!(drained(&mut backlog), ["a u1@1 -> a u1@2 (Watch)"]);
    assert_eq!(heard.load(Ordering::Relaxed), 4, "once for the list, both states and the change");
}
