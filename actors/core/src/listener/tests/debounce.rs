//! Events that are held until their key is quiet: the times one by one, and any history against a naive clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::super::invariants::Replay;
use super::super::{Backlog, MOST_PERIODS, Policy};
use super::world::{Publish, World, publish, sources};
use super::{added, deleted, drained, list, record, snapshot, updated};
use crate::delta::{Cause, Changes};
use crate::meta::ObjectKey;
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::object;

const QUIET: Duration = Duration::from_secs(5);

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn held(now: Snapshot<String>) -> Backlog<String> {
    Backlog::starting_from(Policy::Coalesce, [], now).debounced_by(Some(QUIET))
}

/// What is delivered at this time.
fn told_at(backlog: &mut Backlog<String>, seconds: u64) -> Vec<String> {
    backlog.release_due(at(seconds));
    let lines = drained(backlog);
    backlog.acknowledge();
    lines
}

#[test]
fn lis_42_a_key_waits_until_it_has_been_quiet_and_others_go_their_own_way() {
    let [a1, a2, b1] = [object("a", 1), object("a", 3), object("b", 2)];
    let mut backlog = held(Snapshot::empty());
    backlog.set_now(at(0));
    record(&mut backlog, &[added(&a1)]);
    assert_eq!(backlog.poll_alarm(), Some(at(5)));
    backlog.set_now(at(2));
    record(&mut backlog, &[added(&b1)]);
    backlog.set_now(at(4));
    record(&mut backlog, &[updated(&a1, &a2)]);
    assert_eq!(backlog.poll_alarm(), None, "one wait at a time");
    assert_eq!(backlog.stats().depth, 2);
    assert_eq!(told_at(&mut backlog, 5), Vec::<String>::new());
    assert_eq!(backlog.poll_alarm(), Some(at(7)));
    assert_eq!(told_at(&mut backlog, 7), ["+ b u1@2 (Watch)"]);
    assert_eq!(told_at(&mut backlog, 9), ["+ a u1@3 (Watch)"]);
    assert_eq!((backlog.poll_alarm(), backlog.stats().depth, backlog.stats().coalesced), (None, 0, 1));
}

#[test]
fn lis_42_the_age_of_an_event_that_was_held_counts_from_when_it_began_to_be_held() {
    let mut backlog = held(Snapshot::empty());
    backlog.set_now(at(3));
    record(&mut backlog, &[added(&object("a", 1))]);
    backlog.set_now(at(4));
    record(&mut backlog, &[updated(&object("a", 1), &object("a", 2))]);
    backlog.release_due(at(9));
    assert_eq!(backlog.stats().oldest_since, Some(at(3)));
    drained(&mut backlog);
    record(&mut backlog, &[added(&object("b", 3))]);
    backlog.release_due(at(14));
    assert_eq!(backlog.stats().oldest_since, Some(at(4)), "the time of others is as it was");
}

#[test]
fn lis_42_it_is_known_since_when_the_key_is_held_that_was_held_the_longest() {
    let mut backlog = held(Snapshot::empty());
    let [a1, a2, b1] = [object("a", 1), object("a", 3), object("b", 2)];
    assert_eq!(backlog.stats().held_since, None);
    backlog.set_now(at(1));
    record(&mut backlog, &[added(&a1)]);
    backlog.set_now(at(3));
    record(&mut backlog, &[added(&b1)]);
    backlog.set_now(at(5));
    record(&mut backlog, &[updated(&a1, &a2)]);
    assert_eq!((backlog.stats().held_since, backlog.stats().oldest_since), (Some(at(1)), None));
    backlog.release_due(at(8));
    assert_eq!((backlog.stats().held_since, backlog.stats().oldest_since), (Some(at(1)), Some(at(3))));
    drained(&mut backlog);
    backlog.release_due(at(10));
    assert_eq!((backlog.stats().held_since, backlog.stats().oldest_since), (None, Some(at(1))));
}

#[test]
fn lis_42_a_key_has_to_be_quiet_from_when_its_event_came_and_not_from_when_the_batch_began() {
    let mut backlog = held(Snapshot::empty());
    // The batch began with the event of another key, ten seconds earlier.
    backlog.set_now(at(10));
    backlog.set_touched_at(at(20));
    record(&mut backlog, &[added(&object("a", 1))]);
    assert_eq!(backlog.poll_alarm(), Some(at(25)));
    assert_eq!(told_at(&mut backlog, 24), Vec::<String>::new());
    assert_eq!(told_at(&mut backlog, 25), ["+ a u1@1 (Watch)"]);
}

#[test]
fn lis_42_a_key_that_is_never_quiet_waits_ten_times_as_long_and_what_came_to_nothing_is_not_delivered() {
    let mut backlog = held(snapshot(&[object("a", 1)]));
    assert_eq!(told_at(&mut backlog, 0), ["+ a u1@1 (InitialList)"], "the first list is not held");
    for second in 0..u64::from(MOST_PERIODS) * 5 {
        backlog.set_now(at(second));
        record(&mut backlog, &[updated(&object("a", second + 1), &object("a", second + 2))]);
        assert_eq!(told_at(&mut backlog, second), Vec::<String>::new());
    }
    assert_eq!(told_at(&mut backlog, 50), ["a u1@1 -> a u1@51 (Watch)"]);
    backlog.set_now(at(60));
    record(&mut backlog, &[added(&object("b", 60)), deleted(&object("b", 60))]);
    assert_eq!(told_at(&mut backlog, 65), ["+ b u1@60 (Watch)", "- b u1@60 (Watch)"], "a brief life");
}

#[test]
fn lis_42_a_list_and_a_drain_end_every_wait() {
    let (one, two) = (object("a", 1), object("a", 2));
    for ends in [
        (|backlog, now| list(backlog, now, Cause::Relist)) as fn(&mut Backlog<String>, &Snapshot<String>),
        |backlog, now| backlog.reattach(now.clone()),
        |backlog, _| backlog.stop_holding(),
    ] {
        let mut backlog = held(Snapshot::empty());
        record(&mut backlog, &[added(&one)]);
        record(&mut backlog, &[updated(&one, &two)]);
        assert!(backlog.is_empty() && backlog.stats().depth == 1);
        ends(&mut backlog, &snapshot([&two]));
        assert_eq!(drained(&mut backlog), ["+ a u1@2 (Watch)"]);
    }
}

#[test]
fn lis_42_a_key_alone_is_held_too() {
    let one = object("a", 1);
    let mut backlog = Backlog::starting_from(Policy::Keys, [], Snapshot::empty()).debounced_by(Some(QUIET));
    record(&mut backlog, &[added(&one)]);
    let changes = [deleted(&one)];
    backlog.publish(&[Changes::Parts(changes.into())], &Snapshot::empty());
    assert!(backlog.take_keys(9).is_empty());
    backlog.release_due(QUIET);
    assert_eq!(backlog.take_keys(9), [(one.key().clone(), Cause::Watch)]);
}

#[derive(Debug, Clone)]
enum Step {
    Happen(Publish),
    Resync,
    Take(usize),
    Acknowledge,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => publish().prop_map(Step::Happen),
        1 => Just(Step::Resync),
        4 => (0..5_usize).prop_map(Step::Take),
        2 => Just(Step::Acknowledge),
        6 => (0..4_u64).prop_map(Step::Pass),
    ]
}

/// A bookkeeper of one subscription that takes whatever it can.
#[derive(Default)]
struct Book {
    replay: Replay<String>,
    /// When each key was touched by a watch: first, since it was told last, and last.
    touched: BTreeMap<ObjectKey, (Duration, Duration)>,
    now: Duration,
    /// Keys whose wait a list has ended.
    free: BTreeSet<ObjectKey>,
}

impl Book {
    fn take(&mut self, backlog: &mut Backlog<String>, max: usize) -> Result<(), TestCaseError> {
        for change in backlog.take(max) {
            self.replay.apply(&change).map_err(TestCaseError::fail)?;
            if change.cause() != Cause::Watch {
                continue;
            }
            let key = change.key();
            if let Some((first, last)) = self.touched.get(key).filter(|_| !self.free.contains(key)) {
                let is_quiet = self.now >= *last + QUIET || self.now >= *first + QUIET * MOST_PERIODS;
                prop_assert!(is_quiet, "{key} at {:?}, touched {first:?} to {last:?}", self.now);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn lis_42_whatever_happens_nothing_is_delivered_before_it_is_quiet_and_in_the_end_everything_is(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let (mut world, mut book) = (World::default(), Book::default());
        let mut backlog = Backlog::starting_from(Policy::Coalesce, sources(), world.snapshot());
        backlog = backlog.debounced_by(Some(QUIET));
        for step in steps {
            match step {
                Step::Happen(publish) => {
                    let is_live = matches!(publish, Publish::Parts(_));
                    let published = world.publish(publish);
                    backlog.set_now(book.now);
                    published.record(&mut backlog);
                    if !is_live {
                        book.free.extend(book.touched.keys().cloned());
                    }
                    for change in &published.events {
                        // One that was told or freed begins anew.
                        let first = match book.touched.get(change.key()) {
                            Some((first, _)) if backlog.holds(change.key()) && *first + QUIET * MOST_PERIODS > book.now => *first,
                            _ => book.now,
                        };
                        book.touched.insert(change.key().clone(), (first, book.now));
                        // A cursor gives the newest state when it gets there; and what was quiet earlier may still wait.
                        if backlog.holds(change.key()) && !backlog.waiting.contains(change.key()) {
                            book.free.remove(change.key());
                        } else {
                            book.free.insert(change.key().clone());
                        }
                    }
                }
                Step::Resync => backlog.resync(),
                Step::Take(max) => book.take(&mut backlog, max)?,
                Step::Acknowledge => backlog.acknowledge(),
                Step::Pass(seconds) => {
                    book.now += at(seconds);
                    backlog.release_due(book.now);
                    if let Some(alarm) = backlog.poll_alarm() {
                        prop_assert!(alarm > book.now && alarm <= book.now + QUIET);
                    }
                }
            }
            let since = backlog.stats().held_since;
            prop_assert!(since.is_some() == (backlog.held() > 0) && since.is_none_or(|since| since <= book.now));
        }
        backlog.release_due(book.now + QUIET * MOST_PERIODS);
        prop_assert_eq!(backlog.poll_alarm(), None);
        book.now += QUIET * MOST_PERIODS;
        for _ in 0..1_000 {
            book.take(&mut backlog, 3)?;
        }
        prop_assert!(backlog.is_empty() && backlog.stats().impossible == 0 && backlog.stats().depth == 0);
        prop_assert_eq!(book.replay.equals(&world.snapshot()), Ok(()));
    }
}
