//! A queue from its start to its end: its report, its workers, and what a shutdown ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use actix::Actor;
use futures_util::FutureExt;

use super::{LONG, Stop, Work, Worker, ms, queue};
use crate::queue::{Added, WorkQueue};
use crate::report::Reporting;
use informer_actors::inner::{Faults, Site, sleep};
use informer_actors::runtime::Runtime;

#[test]
fn wq_15_a_runtime_lists_its_queues_with_their_figures_until_they_end() {
    Runtime::simulated(7).run(|runtime| async move {
        let (first, second) = (queue(&runtime), queue(&runtime));
        first.add("foo");
        second.add_after(7_u32, ms(5));
        let item = first.next().await.expect("a key");
        let shown = |runtime: &Runtime| -> Vec<(String, u64, usize, usize)> {
            let queues = runtime.report().work_queues.into_iter();
            let figures = queues.map(|queue| {
                (queue.name.to_string(), queue.figures.adds, queue.figures.processing, queue.figures.delayed)
            });
            figures.collect()
        };
        assert_eq!(shown(&runtime), [("keys".to_owned(), 1, 1, 0), ("keys-2".to_owned(), 0, 0, 1)]);
        assert_eq!((first.name(), second.name()), ("keys", "keys-2"));
        item.done();
        drop((first, second));
        sleep(ms(1)).await;
        assert_eq!(shown(&runtime), []);
        assert_eq!(queue::<u8>(&runtime).name(), "keys", "the name is free again");
    });
}

#[tokio::test]
async fn a_queue_of_a_runtime_that_was_shut_down_refuses_keys_and_is_over() {
    let runtime = Runtime::threads().start().expect("threads can be started");
    let before = WorkQueue::builder(&runtime, "before").start();
    before.add("foo");
    runtime.clone().shutdown(LONG).await.expect("nothing blocks a thread");
    let after = WorkQueue::builder(&runtime, "after").start();
    for queue in [before, after] {
        assert_eq!((queue.next().await.is_none(), queue.add("bar")), (true, Added::Refused));
    }
    assert!(runtime.report().work_queues.is_empty());
}

// WQ-17: given shutdown, when waiting, then what the queue does by itself ends (changed: nothing refreshes
// the figures, they are computed when they are read; what a queue does by itself is to wake for delayed
// adds).
#[test]
fn wq_17_a_queue_that_is_shut_down_does_nothing_by_itself_any_more() {
    let looks = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&looks);
    let faults = Faults::new(move |site| {
        counted.fetch_add(u32::from(site == Site::WorkQueueLook), Relaxed);
    });
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let queue = queue(&runtime);
        queue.add("foo");
        let item = queue.next().await.expect("foo");
        queue.add("foo");
        queue.add_after("late", ms(1_000));
        let mut worker = std::pin::pin!(queue.next());
        assert!(worker.as_mut().now_or_never().is_none());
        sleep(ms(1)).await;
        queue.shut_down();
        sleep(ms(1)).await;
        let before = looks.load(Relaxed);
        sleep(LONG).await;
        assert_eq!(looks.load(Relaxed), before, "no timer runs for the key that was discarded");
        item.done();
        assert_eq!(worker.await.map(|item| *item.key()), Some("foo"), "what waits is handed out");
    });
}

#[test]
fn wq_18_each_of_many_keys_is_worked_on_once_by_as_many_workers_as_were_asked_for() {
    Runtime::simulated(7).run(|runtime| async move {
        for workers in [1_u32, 3, 10, 2_000] {
            let (queue, done) = (queue(&runtime), Work::default());
            (0..1_000).for_each(|key| assert_eq!(queue.add(key), Added::Accepted));
            let started = runtime.now();
            let _handing = queue.hand_to(Worker(done.clone()).start(), workers as usize);
            queue.drain(LONG).await.expect("all is done");
            assert_eq!(done.times(), (0..1_000).map(|key| (key, 1)).collect(), "{workers} workers");
            let rounds = 1_000_u32.div_ceil(workers);
            assert!(runtime.now() - started >= ms(3) * rounds, "at most {workers} at a time");
        }
    });
}

// WQ-18: given n pieces and w workers, when run, then each piece is executed once, by at most w at a time;
// cancel stops early (changed: the pieces are the keys of a queue, which hands them out one by one: there are
// no chunks).
// - a each piece is executed once, by at most w at a time:
//   `wq_18_each_of_many_keys_is_worked_on_once_by_as_many_workers_as_were_asked_for`
// - b cancel stops early
#[test]
fn wq_18_a_forced_shutdown_stops_the_work_early() {
    Runtime::simulated(7).run(|runtime| async move {
        let (queue, done) = (queue(&runtime), Work::default());
        (0..1_000).for_each(|key| assert_eq!(queue.add(key), Added::Accepted));
        let _handing = queue.hand_to(Worker(done.clone()).start(), 3);
        sleep(ms(10)).await;
        let discarded = queue.force_shut_down();
        queue.drain(LONG).await.expect("nothing waits");
        sleep(LONG).await;
        assert!(done.times().len() < 20, "{}", done.times().len());
        assert_eq!(done.times().len() + discarded, 1_000);
    });
}

#[test]
fn a_key_that_was_offered_to_an_actor_that_has_stopped_is_worked_on_by_another_one_also_in_a_drain() {
    Runtime::simulated(7).run(|runtime| async move {
        let (queue, done) = (queue(&runtime), Work::default());
        let (gone, alive) = (Worker(Work::default()).start(), Worker(done.clone()).start());
        let _handing = [queue.hand_to(gone.clone(), 1), queue.hand_to(alive, 1)];
        sleep(ms(1)).await;
        gone.send(Stop).await.expect("it runs");
        sleep(ms(1)).await;
        queue.add(7);
        queue.drain(LONG).await.expect("the other one does it");
        assert_eq!(done.times(), [(7, 1)].into());
    });
}

#[test]
fn a_drain_of_an_idle_queue_succeeds_at_a_limit_of_zero() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue::<u32>(&runtime);
        queue.drain(std::time::Duration::ZERO).await.expect("there is nothing to do");
        assert_eq!(queue.add(7), Added::Refused);
    });
}
