//! Panics of foreign code in a queue: the rate limiter, the order of keys and of lanes, the clone of a key.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use informer_core::reflector::Moment;

use super::{LONG, ms, queue};
use crate::queue::{Added, RateLimiter, WorkQueue};
use informer_actors::runtime::Runtime;

/// Panics at the nth of its calls.
struct Breaks {
    left: Arc<AtomicU32>,
}

impl Breaks {
    fn call(&self) {
        assert!(self.left.fetch_sub(1, Relaxed) != 1, "a limiter that panics");
    }
}

impl RateLimiter<u32> for Breaks {
    fn when(&mut self, _key: &u32, _moment: Moment) -> Duration {
        self.call();
        ms(5)
    }

    fn forget(&mut self, _key: &u32) {
        self.call();
    }

    fn failures(&self, _key: &u32) -> u32 {
        self.call();
        0
    }
}

#[test]
fn a_rate_limiter_that_panics_at_any_of_its_calls_loses_no_key_and_the_drain_ends() {
    for nth in 1..=7 {
        let limiter = Breaks { left: Arc::new(AtomicU32::new(nth)) };
        Runtime::simulated(7).run(|runtime| async move {
            let queue = WorkQueue::builder(&runtime, "keys").rate_limiter(limiter).start();
            queue.add(1);
            let next = async || queue.next().await.expect("the key comes again");
            assert!(next().await.retry().is_some());
            drop(next().await);
            let item = next().await;
            catch_unwind(AssertUnwindSafe(|| {
                let _item = item;
                panic!("a worker that panics");
            }))
            .expect_err("it panics");
            next().await.retry_after(ms(1));
            assert_eq!(next().await.failures(), 0);
            let item = next().await;
            queue.forget(&1);
            item.done();
            queue.drain(LONG).await.expect("all is done");
            assert_eq!((queue.limiter_panics(), queue.rebuilt()), (1, 0), "call {nth}");
        });
    }
}

#[test]
fn a_lane_order_that_panics_for_one_key_leaves_the_others_and_the_shutdown_as_they_are() {
    Runtime::simulated(7).run(|runtime| async move {
        let order = |one: &u32, other: &u32| {
            assert!(*one != 13 && *other != 13, "an order that panics");
            (one % 3).cmp(&(other % 3))
        };
        let queue = WorkQueue::builder(&runtime, "keys").lanes(order).start();
        for key in [13, 0, 1, 2, 13, 3] {
            let added = catch_unwind(AssertUnwindSafe(|| queue.add(key)));
            assert_eq!(added.ok(), (key != 13).then_some(Added::Accepted));
        }
        queue.shut_down();
        catch_unwind(AssertUnwindSafe(|| queue.add(13))).expect("it is refused unasked");
        let mut keys = Vec::new();
        while let Some(item) = queue.next().await {
            keys.push(*item.key());
            item.done();
        }
        assert_eq!((keys, queue.add(7)), (vec![0, 1, 2, 3], Added::Refused));
    });
}

static CLONES: AtomicU32 = AtomicU32::new(0);

/// A key whose next clones panic when they are told to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frail(u32);

impl Clone for Frail {
    fn clone(&self) -> Self {
        let left = CLONES.load(Relaxed);
        CLONES.store(left.saturating_sub(1), Relaxed);
        assert!(left == 0, "a clone that panics");
        Self(self.0)
    }
}

#[test]
fn a_panic_while_a_queue_is_built_anew_loses_no_key_and_no_shutdown() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        (0..3).for_each(|key| assert_eq!(queue.add(Frail(key)), Added::Accepted));
        queue.shut_down();
        CLONES.store(2, Relaxed);
        let take = || queue.shared.inside.with(|queue, _, moment| queue.take(moment.now).is_some());
        catch_unwind(AssertUnwindSafe(take)).expect_err("the clone for the worker");
        catch_unwind(AssertUnwindSafe(|| queue.len())).expect_err("the clone for the new queue");
        let mut keys = Vec::new();
        while let Some(item) = queue.next().await {
            keys.push(item.key().0);
            item.done();
        }
        keys.sort_unstable();
        assert_eq!((keys, queue.rebuilt(), queue.add(Frail(9))), (vec![0, 1, 2], 1, Added::Refused));
    });
}

/// A key whose order panics once when it is told to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fragile(u32);

impl PartialOrd for Fragile {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

static FUSE: AtomicU32 = AtomicU32::new(0);

impl Ord for Fragile {
    fn cmp(&self, other: &Self) -> Ordering {
        assert!(FUSE.swap(0, Relaxed) == 0, "an order that panics");
        self.0.cmp(&other.0)
    }
}

#[test]
fn a_panic_in_the_order_of_keys_loses_no_key_and_the_queue_goes_on() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        (0..3).for_each(|key| assert_eq!(queue.add(Fragile(key)), Added::Accepted));
        let item = queue.next().await.expect("a key");
        FUSE.store(1, Relaxed);
        catch_unwind(AssertUnwindSafe(|| queue.add(Fragile(9)))).expect_err("it panics");
        let others = [queue.next().await, queue.next().await].map(|item| {
            let item = item.expect("a key");
            let key = item.key().0;
            item.done();
            key
        });
        assert_eq!((item.key().0, others), (0, [1, 2]));
        FUSE.store(1, Relaxed);
        catch_unwind(AssertUnwindSafe(|| item.done())).expect_err("it panics");
        let item = queue.next().await.expect("the key is tried again");
        assert_eq!((item.key().0, queue.figures().processing), (0, 1));
        FUSE.store(1, Relaxed);
        drop(item);
        assert_eq!(queue.next().await.map(|item| item.key().0), Some(0), "a drop does not panic");
    });
}
