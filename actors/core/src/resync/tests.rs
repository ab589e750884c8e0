//! The resync clock, against a naive simulation too.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::{ProptestConfig, Strategy, prop, prop_assert_eq, prop_oneof, proptest};

use super::{MIN_PERIOD, ResyncClock};
use crate::processor::ListenerId;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(number: u64) -> ListenerId {
    ListenerId::new(number)
}

/// Wakes only when the clock asks for it and counts who was due, up to `end`.
fn resyncs_until(clock: &mut ResyncClock, end: Duration, listener: ListenerId) -> usize {
    let mut count = 0;
    while let Some(time) = clock.next_due().filter(|time| *time <= end) {
        count += clock.due(time).into_iter().filter(|due| *due == listener).count();
    }
    count
}

#[test]
fn inf_20_each_subscription_resyncs_in_its_own_period() {
    let asked = [(1, None), (2, Some(60)), (3, Some(60)), (4, Some(55)), (5, Some(5))];
    let delivered: Vec<usize> = asked
        .iter()
        .map(|(number, _)| {
            let mut clock = ResyncClock::new();
            for (number, period) in asked {
                if let Some(period) = period {
                    clock.schedule(id(number), seconds(period), Duration::ZERO);
                }
            }
            resyncs_until(&mut clock, seconds(121), id(*number))
        })
        .collect();
    assert_eq!(delivered, [0, 2, 2, 2, 24]);
}

#[test]
fn a_clock_nobody_asks_of_wakes_nobody() {
    let mut clock = ResyncClock::new();
    assert_eq!(clock.next_due(), None);
    assert!(clock.due(seconds(1_000)).is_empty());
}

#[test]
fn missed_times_are_skipped_and_the_rhythm_is_kept() {
    let mut clock = ResyncClock::new();
    clock.schedule(id(1), seconds(10), seconds(3));
    assert_eq!(clock.due(seconds(12)), []);
    assert_eq!(clock.due(seconds(47)), [id(1)], "due at 13, 23, 33 and 43, delivered once");
    assert_eq!(clock.next_due(), Some(seconds(53)), "from the due times, not from 47");
}

#[test]
fn a_period_below_one_second_becomes_one_second() {
    let mut clock = ResyncClock::new();
    clock.schedule(id(1), Duration::ZERO, seconds(5));
    assert_eq!(clock.next_due(), Some(seconds(5) + MIN_PERIOD));
}

#[test]
fn who_cancels_is_due_no_more() {
    let mut clock = ResyncClock::new();
    clock.schedule(id(1), seconds(2), Duration::ZERO);
    clock.schedule(id(2), seconds(3), Duration::ZERO);
    clock.cancel(id(1));
    clock.cancel(id(9));
    assert_eq!(clock.due(seconds(4)), [id(2)]);
}

#[test]
fn asking_again_replaces_the_period() {
    let mut clock = ResyncClock::new();
    clock.schedule(id(1), seconds(2), Duration::ZERO);
    clock.schedule(id(1), seconds(30), seconds(1));
    assert_eq!(clock.next_due(), Some(seconds(31)));
    assert_eq!(clock.due(seconds(31)), [id(1)]);
}

#[test]
fn a_period_without_end_is_no_overflow() {
    let mut clock = ResyncClock::new();
    clock.schedule(id(1), Duration::MAX, seconds(1));
    assert_eq!(clock.due(seconds(1 << 40)), []);
    assert_eq!(clock.due(Duration::MAX), [id(1)]);
}

#[derive(Debug, Clone)]
enum Step {
    Schedule(u64, u64),
    Cancel(u64),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u64, 0..7_000_u64).prop_map(|(number, millis)| Step::Schedule(number, millis)),
        (0..4_u64).prop_map(Step::Cancel),
        (1..9_000_u64).prop_map(Step::Pass),
    ]
}

/// The naive clock: tries every millisecond since it looked last.
#[derive(Default)]
struct Naive {
    started: BTreeMap<u64, (u64, u64)>,
    looked: u64,
}

impl Naive {
    fn due(&mut self, now: u64) -> Vec<u64> {
        let due = |(started, period): (u64, u64)| {
            (self.looked + 1..=now).any(|at| at > started && (at - started) % period == 0)
        };
        let found = self.started.iter().filter(|(_, schedule)| due(**schedule)).map(|(number, _)| *number);
        let found = found.collect();
        self.looked = now;
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_clock_agrees_with_one_that_tries_every_millisecond(
        steps in prop::collection::vec(step(), 1..20),
    ) {
        let (mut clock, mut naive, mut now) = (ResyncClock::new(), Naive::default(), 0_u64);
        for step in steps {
            match step {
                Step::Schedule(number, period) => {
                    clock.schedule(id(number), Duration::from_millis(period), Duration::from_millis(now));
                    naive.started.insert(number, (now, period.max(1_000)));
                }
                Step::Cancel(number) => {
                    clock.cancel(id(number));
                    naive.started.remove(&number);
                }
                Step::Pass(millis) => {
                    now += millis;
                    let mut delivered: Vec<u64> =
                        clock.due(Duration::from_millis(now)).iter().map(|due| due.number()).collect();
                    delivered.sort_unstable();
                    prop_assert_eq!(delivered, naive.due(now));
                }
            }
            let next_is_ahead = clock.next_due().is_none_or(|next| next > Duration::from_millis(now));
            prop_assert_eq!(next_is_ahead, true, "what is due now has been delivered");
        }
    }
}
