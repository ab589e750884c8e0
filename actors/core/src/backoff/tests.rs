//! The waits, one by one and for every number of failures.

use super::*;
use proptest::prelude::*;

fn waits(chance: f64, count: usize) -> Vec<u128> {
    let mut backoff = Backoff::new(BackoffPolicy::default());
    (0..count).map(|_| backoff.next_wait(chance).as_millis()).collect()
}

#[test]
fn waits_double_from_their_base_to_their_cap() {
    let least = [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000];
    assert_eq!(waits(0.0, 9), least);
    assert_eq!(waits(0.5, 9), least.map(|wait| wait * 3 / 2));
    assert_eq!(waits(1.0, 9), least.map(|wait| wait * 2));
}

#[test]
fn a_reset_begins_anew_and_nothing_else_does() {
    let mut backoff = Backoff::new(BackoffPolicy::default());
    assert_eq!((backoff.attempts(), backoff.last_wait()), (0, None));
    backoff.next_wait(0.0);
    backoff.count_told(Duration::from_secs(7));
    assert_eq!((backoff.attempts(), backoff.last_wait()), (1, Some(Duration::from_secs(7))));
    assert_eq!(backoff.next_wait(0.0), Duration::from_millis(1_600));
    backoff.reset();
    assert_eq!((backoff.attempts(), backoff.last_wait()), (0, None));
    assert_eq!(backoff.next_wait(0.0), Duration::from_millis(800));
}

#[test]
fn a_cap_below_the_base_is_the_wait_and_chance_out_of_range_is_clamped() {
    let policy = BackoffPolicy { base: Duration::from_secs(9), cap: Duration::from_secs(2) };
    let mut backoff = Backoff::new(policy);
    assert_eq!(backoff.next_wait(-3.0), Duration::from_secs(2));
    assert_eq!(backoff.next_wait(17.0), Duration::from_secs(4));
    assert_eq!(backoff.next_wait(f64::NAN), Duration::from_secs(2));
}

proptest! {
    #[test]
    fn every_wait_lies_between_its_step_and_twice_that(
        base in 1_u64..10_000,
        cap in 1_u64..100_000,
        chances in prop::collection::vec(0.0_f64..1.0, 1..80),
    ) {
        let policy = BackoffPolicy { base: Duration::from_millis(base), cap: Duration::from_millis(cap) };
        let mut backoff = Backoff::new(policy);
        let mut step = policy.base.min(policy.cap);
        for (failure, chance) in chances.into_iter().enumerate() {
            let wait = backoff.next_wait(chance);
            prop_assert!(wait >= step && wait <= step * 2, "{wait:?} is not in {step:?}..{:?}", step * 2);
            prop_assert_eq!(backoff.last_wait(), Some(wait));
            prop_assert_eq!(backoff.attempts() as usize, failure + 1);
            step = (step * 2).min(policy.cap);
        }
    }
}

#[test]
fn inf_55_a_backoff_of_any_durations_gives_a_wait_that_is_not_zero() {
    let extremes = [Duration::ZERO, Duration::from_secs(u64::MAX), Duration::MAX];
    for base in extremes {
        for cap in extremes {
            let mut backoff = Backoff::new(BackoffPolicy { base, cap });
            for chance in [0.0, 0.5, 0.999_999_999_999_999_9, 1.0] {
                let wait = backoff.next_wait(chance);
                assert!(wait >= LEAST_WAIT, "base {base:?}, cap {cap:?}: {wait:?}");
            }
        }
    }
    let never = BackoffPolicy { base: Duration::MAX, cap: Duration::MAX };
    assert_eq!(Backoff::new(never).next_wait(0.0), Duration::MAX);
}
