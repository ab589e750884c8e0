//! The rate limiters, by the numbers of client-go's own tests.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::queue::machine::{
    Bucket, ExponentialPerKey, FastSlow, KeyBackoff, KeyBackoffPolicy, MaxOf, MaxWait, Priority,
    QueueMachine, RateLimiter, TooLong, default_limiter,
};
use informer_core::reflector::Moment;

const START: Moment = Moment { now: Duration::ZERO, chance: 0.0 };

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn waits(limiter: &mut impl RateLimiter<&'static str>, key: &'static str, times: usize) -> Vec<Duration> {
    (0..times).map(|_| limiter.when(&key, START)).collect()
}

// RL-01: given base 1 ms cap 1 s, when x fails 5 times, then 1,2,4,8,16 ms and requeues 5; y is independent;
// Forget(x) restarts at 1 ms.
// - a 1, 2, 4, 8, 16 ms, requeues 5, y is independent
// - b Forget(x) restarts at 1 ms
#[test]
fn rl_01_waits_double_for_each_key_by_itself_until_it_is_forgotten() {
    let mut limiter = ExponentialPerKey::new(ms(1), s(1));
    assert_eq!(waits(&mut limiter, "x", 5), [1, 2, 4, 8, 16].map(ms));
    assert_eq!(limiter.failures(&"x"), 5);
    assert_eq!(waits(&mut limiter, "y", 2), [1, 2].map(ms));
    assert_eq!(limiter.failures(&"y"), 2);
    limiter.forget(&"x");
    assert_eq!((limiter.failures(&"x"), limiter.when(&"x", START)), (0, ms(1)));
}

// RL-02: given 1000 failures, when asked, then exactly the cap, no overflow (1000 s; 1000 h).
#[test]
fn rl_02_a_thousand_failures_wait_exactly_the_longest_time() {
    for (base, cap) in [(ms(1), s(1_000)), (ms(1), s(3_600_000)), (Duration::MAX, Duration::MAX)] {
        let mut limiter = ExponentialPerKey::new(base, cap);
        let all = waits(&mut limiter, "x", 1_000);
        assert!(all.is_sorted() && all.last() == Some(&cap));
        assert_eq!(limiter.when(&"x", START), cap);
    }
    let mut limiter = ExponentialPerKey::new(Duration::from_nanos(1), s(3_600_000));
    assert_eq!(waits(&mut limiter, "x", 42).last(), Some(&Duration::from_nanos(1 << 41)), "none is left out");
}

// RL-03: given fast 5 ms, slow 10 s, 3 fast tries, when asked 5 times, then 5,5,5 ms,10,10 s.
#[test]
fn rl_03_some_tries_are_fast_and_all_others_slow() {
    let mut limiter = FastSlow::new(ms(5), s(10), 3);
    assert_eq!(waits(&mut limiter, "x", 5), [ms(5), ms(5), ms(5), s(10), s(10)]);
    assert_eq!(limiter.failures(&"x"), 5);
    limiter.forget(&"x");
    assert_eq!(waits(&mut limiter, "x", 1), [ms(5)]);
}

// RL-05: given a limiter returning 1000 s and max wait 500 s, when asked, then 500 s; 5 ms passes unchanged.
#[test]
fn rl_05_a_longest_wait_cuts_off_and_leaves_shorter_ones_unchanged() {
    let mut long = MaxWait::new(FastSlow::new(ms(5), s(1_000), 1), s(500));
    assert_eq!(waits(&mut long, "x", 2), [ms(5), s(500)]);
    assert_eq!(long.failures(&"x"), 2);
    long.forget(&"x");
    assert_eq!((long.failures(&"x"), waits(&mut long, "x", 1)), (0, vec![ms(5)]));
}

#[test]
fn the_longer_wait_of_two_limiters_counts_and_both_count() {
    let mut limiter = MaxOf::new(ExponentialPerKey::new(ms(1), s(1)), FastSlow::new(ms(5), s(3), 3));
    assert_eq!(waits(&mut limiter, "x", 5), [ms(5), ms(5), ms(5), s(3), s(3)]);
    assert_eq!(limiter.failures(&"x"), 5);
    limiter.forget(&"x");
    assert_eq!(limiter.failures(&"x"), 0);
    let mut first_counts = MaxOf::new(ExponentialPerKey::new(ms(1), s(1)), Bucket::new(ms(1), 9));
    waits(&mut first_counts, "x", 2);
    assert_eq!(RateLimiter::failures(&first_counts, &"x"), 2, "the larger count");
}

#[test]
fn the_usual_waits_double_from_5_ms_to_1000_s_and_are_shortened_by_up_to_a_half() {
    for (chance, part) in [(0.0, 1.0), (0.5, 0.75), (1.0, 0.5)] {
        let mut usual = default_limiter();
        let waits: Vec<_> = (0..20).map(|_| usual.when(&7, Moment { chance, ..START })).collect();
        let whole = |failures: u32| (ms(5) * 2_u32.pow(failures)).min(s(1_000));
        assert_eq!(waits, (0..20).map(|failures| whole(failures).mul_f64(part)).collect::<Vec<_>>());
        assert_eq!(usual.failures(&7), 20);
        usual.forget(&7);
        assert_eq!(usual.failures(&7), 0);
    }
}

/// 3,000 keys fail for ten seconds. When each of them is in order, and how many tries there were.
fn outage(limiter: &mut impl RateLimiter<u32>) -> (BTreeMap<u32, Duration>, u64) {
    let mut queue = QueueMachine::<u32>::new();
    for key in 0..3_000 {
        queue.add(key, Priority::Normal, Duration::ZERO);
    }
    let (mut now, mut in_order, mut tries) = (Duration::ZERO, BTreeMap::new(), 0_u64);
    while in_order.len() < 3_000 {
        while let Some(taken) = queue.take(now) {
            tries += 1;
            if now < s(10) {
                let chance = f64::from(u32::try_from(tries * 7_919 % 1_000).unwrap_or(0)) / 1_000.0;
                queue.retry(&taken.key, limiter, Moment { now, chance });
            } else {
                queue.done(&taken.key, now);
                limiter.forget(&taken.key);
                in_order.insert(taken.key, now);
            }
        }
        now = queue.next_due().map_or(now, |due| due.max(now));
    }
    (in_order, tries)
}

#[test]
fn operator_a3_after_an_outage_of_ten_seconds_the_last_of_3000_keys_is_in_order_within_as_long_and_a_later_failure_is_tried_again_at_once()
 {
    let mut usual = default_limiter();
    let (in_order, tries) = outage(&mut usual);
    let last = in_order.values().max().expect("all are in order");
    assert!(*last <= s(20), "the last key is in order after {last:?}");
    assert!(tries < 3_000 * 16, "{tries} tries: each key doubles its wait");
    let mut tenths: BTreeMap<u128, usize> = BTreeMap::new();
    in_order.values().for_each(|at| *tenths.entry(at.as_millis() / 100).or_default() += 1);
    let most = tenths.values().max().expect("all are in order");
    assert!(
        *most < 300,
        "keys that failed together are not tried together: {most} within a tenth of a second"
    );
    let later = usual.when(&7, Moment { now: s(30), chance: 0.0 });
    assert_eq!(later, ms(5), "nobody waits for the failures of others");
}

// RL-06: given step 1 s max 50 s, when backing off, then 0,1,2,4,8,16,32,50,50 s; Reset -> 0.
#[test]
fn rl_06_the_waits_of_a_key_double_up_to_the_longest_and_reset_ends_them() {
    let mut backoff = KeyBackoff::new(KeyBackoffPolicy { base: s(1), cap: s(50), jitter: 0.0 });
    let mut all = Vec::new();
    for now in 0..9 {
        all.push(backoff.wait(&"x"));
        backoff.next(&"x", Moment { now: s(now), chance: 0.3 });
    }
    assert_eq!(all, [0, 1, 2, 4, 8, 16, 32, 50, 50].map(s));
    backoff.reset(&"x");
    assert_eq!((backoff.wait(&"x"), backoff.len()), (s(0), 0));
    backoff.next(&"y", Moment { now: s(0), chance: 0.0 });
    backoff.reset(&"y");
    backoff.next(&"y", Moment { now: s(90), chance: 0.0 });
    backoff.forget_expired(s(101));
    assert_eq!(backoff.wait(&"y"), s(1), "a reset leaves nothing that ends a later wait");
}

// RL-08: given jitter 0.1, when stepping, then each delay in (2d, 2d+0.1d] or at max.
#[test]
fn rl_08_jitter_lengthens_each_wait_by_at_most_its_part() {
    for chance in [0.0, 0.25, 0.999_999, f64::NAN] {
        let mut backoff = KeyBackoff::new(KeyBackoffPolicy { base: s(1), cap: s(50), jitter: 0.1 });
        let mut before = backoff.next(&"x", Moment { now: s(0), chance });
        assert!((s(1)..=ms(1_100)).contains(&before));
        for now in 1..9 {
            let wait = backoff.next(&"x", Moment { now: s(now), chance });
            let least = before * 2;
            let is_within = wait > least || chance.is_nan();
            assert!(wait == s(50) || is_within && wait <= least + before / 10 + ms(1), "{before:?} {wait:?}");
            before = wait;
        }
        assert_eq!(before, s(50));
    }
}

// RL-09: given "in backoff since update", when time passes, then the window is measured from the entry's last
// update and expires after 2 x max.
// - a measured from the last update
// - b expires after 2 x max
#[test]
fn rl_09_a_key_is_left_alone_from_its_last_failure_on_and_forgotten_after_twice_the_longest_wait() {
    let policy = KeyBackoffPolicy { base: s(1), cap: s(10), jitter: 0.0 };
    let mut backoff = KeyBackoff::new(policy);
    let at = |now| Moment { now: s(now), chance: 0.0 };
    assert!(!backoff.is_backing_off(&"x", s(0)), "it has not failed");
    for now in 0..3 {
        backoff.next(&"x", at(now));
    }
    assert_eq!(backoff.wait(&"x"), s(4));
    let left_alone: Vec<u64> = (2..30).filter(|now| backoff.is_backing_off(&"x", s(*now))).collect();
    assert_eq!(left_alone, [2, 3, 4, 5], "4 s from the failure at 2 s");
    assert_eq!(backoff.next(&"x", at(22)), s(8), "after exactly twice the longest wait it is known");
    assert_eq!(backoff.next(&"x", at(43)), s(1), "after more it begins anew");
    assert_eq!(backoff.next(&"y", at(64)), s(1));
    assert_eq!(backoff.len(), 1, "the other key is not held any more");
}

// RL-10: given bucket qps 1 burst 3, when 4 immediate tries, then 3 ok; after 1 s one more.
// - a 3 ok; after 1 s one more
// - b of the longest interval nothing after the burst:
//   `rl_10_after_its_burst_a_bucket_of_the_longest_interval_gives_nothing_more`
#[test]
fn rl_10_a_bucket_gives_its_burst_at_once_and_then_one_token_a_second() {
    let mut bucket = Bucket::new(s(1), 3);
    let taken: Vec<bool> = [0, 0, 0, 0, 1, 1].map(|now| bucket.try_take(s(now))).into();
    assert_eq!(taken, [true, true, true, false, true, false]);
    let mut after_long = (0..5).filter(|_| bucket.try_take(s(100)));
    assert_eq!(after_long.by_ref().count(), 3, "it is never fuller than full");
}

#[test]
fn rl_10_after_its_burst_a_bucket_of_the_longest_interval_gives_nothing_more() {
    for burst in [1, 2, u32::MAX] {
        let mut bucket = Bucket::new(Duration::MAX, burst);
        let at_once = (0..5).filter(|_| bucket.try_take(s(0))).count();
        assert_eq!(at_once, usize::try_from(burst.min(5)).expect("small"));
        if burst < 5 {
            assert!(!bucket.try_take(s(u64::MAX / 2)));
            assert!(bucket.take(s(1)) > s(u64::MAX / 2));
            assert_eq!(bucket.take(s(1)), Duration::MAX, "two of them are longer than any duration");
        }
    }
    let mut unlimited = Bucket::new(Duration::ZERO, 1);
    assert!((0..5).all(|_| unlimited.try_take(s(0))));
}

// RL-11: given qps 0.0001 burst 1, when Wait is called twice with 1 s deadlines, then the first succeeds and
// the second fails early with an error.
#[test]
fn rl_11_a_wait_that_would_be_too_long_fails_early_and_takes_nothing() {
    let mut bucket = Bucket::new(s(10_000), 1);
    assert_eq!(bucket.take_within(s(1), s(0)), Ok(s(0)));
    let refused = bucket.take_within(s(1), s(0));
    assert_eq!(refused, Err(TooLong { wait: s(10_000) }));
    let text = refused.expect_err("it is too long").to_string();
    assert_eq!(text, "the next token comes in 10000s, which is later than allowed");
    assert_eq!(bucket.take_within(s(1), s(9_999)), Ok(s(1)), "the refused try took nothing");
}

// RL-12: given a rate of 1 per 1.031425 s and one try every 2 s, when tried 60 times, then every try succeeds
// (no precision drift).
#[test]
fn rl_12_a_rate_holds_exactly_for_as_long_as_it_is_used() {
    let interval = Duration::from_nanos(1_031_425_000);
    let mut bucket = Bucket::new(interval, 1);
    assert!((0..60).all(|at| bucket.try_take(s(2 * at))));
    let mut bucket = Bucket::new(interval, 1);
    assert!((0..100_000).all(|at| bucket.try_take(interval * at)));
    assert!(!bucket.try_take(interval * 100_000 - Duration::from_nanos(1)), "not a nanosecond earlier");
}
