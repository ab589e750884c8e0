//! The queue with its actor in simulated time: waits, drains, timers, and the actor's death at each of its messages.

mod panics;
mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, ActorContext, Context, Handler, ResponseFuture};
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::{Added, ExponentialPerKey, Priority, WorkItem, WorkQueue};
use crate::queue::Enqueue;
use informer_actors::informer::Informer;
use informer_actors::inner::{Faults, Site, locked, sleep};
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const LONG: Duration = Duration::from_secs(3_600);

fn queue<K: super::QueueKey>(runtime: &Runtime) -> WorkQueue<K> {
    let limiter = ExponentialPerKey::new(ms(5), Duration::from_secs(1_000));
    WorkQueue::builder(runtime, "keys").rate_limiter(limiter).start()
}

/// What workers did with each key: how often, and how many had one at the same time.
#[derive(Clone, Default)]
struct Work(Arc<Mutex<Noted>>);

/// The keys in hand, and how often each was worked on.
type Noted = (BTreeSet<u32>, BTreeMap<u32, u32>);

impl Work {
    /// Works on a key for as long as this.
    async fn on(&self, item: &WorkItem<u32>, time: Duration) {
        let key = *item.key();
        assert!(locked(&self.0).0.insert(key), "two workers have {key}");
        sleep(time).await;
        let mut work = locked(&self.0);
        work.0.remove(&key);
        *work.1.entry(key).or_default() += 1;
    }

    fn times(&self) -> BTreeMap<u32, u32> {
        locked(&self.0).1.clone()
    }
}

/// Workers until the queue is over: each takes a millisecond for a key, and fails once with key 3.
async fn work(queue: &WorkQueue<u32>, workers: usize, done: &Work) {
    let worker = || async {
        while let Some(item) = queue.next().await {
            if *item.key() == 3 && item.failures() == 0 {
                drop(item);
                continue;
            }
            done.on(&item, ms(1)).await;
            item.done();
        }
    };
    join_all((0..workers).map(|_| worker())).await;
}

#[test]
fn wq_01_fifty_producers_and_ten_workers_process_every_key_and_none_after_the_shutdown() {
    Runtime::simulated(7).run(|runtime| async move {
        let (queue, done) = (queue(&runtime), Work::default());
        let produce = async |producer: u32| {
            for number in 0..50 {
                assert_eq!(queue.add(producer * 50 + number), Added::Accepted);
                sleep(ms(1)).await;
            }
        };
        let produced = async {
            join_all((0..50).map(produce)).await;
            sleep(Duration::from_secs(1)).await;
            queue.shut_down();
            assert_eq!(queue.add(9_999), Added::Refused);
        };
        tokio::join!(produced, work(&queue, 10, &done));
        assert_eq!((queue.len(), queue.figures().processing), (0, 0));
        let times = done.times();
        assert_eq!((times.len(), times.values().max()), (2_500, Some(&1)));
        assert!(queue.next().await.is_none());
    });
}

#[test]
fn wq_05_a_drain_waits_until_what_is_processed_is_done() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        for key in ["foo", "bar"] {
            queue.add(key);
        }
        let (foo, bar) = (queue.next().await.expect("foo"), queue.next().await.expect("bar"));
        let mut drain = std::pin::pin!(queue.drain(LONG));
        assert!(drain.as_mut().now_or_never().is_none());
        foo.done();
        sleep(ms(10)).await;
        assert!(drain.as_mut().now_or_never().is_none());
        bar.done();
        assert_eq!(drain.await, Ok(()));
    });
}

#[test]
fn a_drain_that_takes_too_long_says_what_is_left() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        for key in ["foo", "bar"] {
            queue.add(key);
        }
        let _item = queue.next().await.expect("foo");
        let left = queue.drain(ms(10)).await.expect_err("it is not done");
        let text = "work queue keys: not drained: 1 keys wait, 1 are being processed";
        assert_eq!(left.to_string(), text);
        assert_eq!(queue.force_shut_down(), 1);
        assert!(queue.next().await.is_none());
    });
}

#[test]
fn wq_06_and_wq_07_a_shutdown_returns_at_once_and_ends_a_drain_that_waits() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        queue.add("foo");
        let _item = queue.next().await.expect("foo");
        let mut drain = std::pin::pin!(queue.drain(LONG));
        assert!(drain.as_mut().now_or_never().is_none());
        sleep(ms(10)).await;
        queue.shut_down();
        let before = runtime.now();
        assert_eq!(drain.await, Ok(()));
        assert_eq!((queue.next().await.is_none(), runtime.now()), (true, before));
    });
}

#[test]
fn a_drain_after_a_shutdown_waits_and_a_failure_after_it_gets_no_delay() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        queue.add("foo");
        let item = queue.next().await.expect("foo");
        queue.shut_down();
        let mut drain = std::pin::pin!(queue.drain(LONG));
        assert!(drain.as_mut().now_or_never().is_none());
        sleep(ms(10)).await;
        assert!(drain.as_mut().now_or_never().is_none());
        assert_eq!((queue.add_rate_limited("bar"), item.retry()), (None, None));
        assert_eq!((drain.await, queue.figures().retries, queue.figures().refused), (Ok(()), 0, 2));
    });
}

#[test]
fn wq_10_a_worker_that_waits_gets_a_delayed_key_when_it_is_due() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        let wait = async || {
            let item = queue.next().await.expect("a key");
            let key = *item.key();
            item.done();
            (key, runtime.now())
        };
        let start = runtime.now();
        queue.add_after("late", ms(1_000));
        let mut first = std::pin::pin!(wait());
        assert!(first.as_mut().now_or_never().is_none());
        sleep(ms(10)).await;
        queue.add_after("early", ms(40));
        assert_eq!(first.await, ("early", start + ms(50)), "the timer was set anew");
        assert_eq!(wait().await, ("late", start + ms(1_000)));
        sleep(LONG).await;
        assert!(queue.next().now_or_never().is_none() && queue.is_empty());
    });
}

#[test]
fn an_item_that_is_dropped_is_tried_again_later_and_a_wait_that_is_dropped_loses_no_key() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        let mut given_up = Box::pin(queue.next());
        assert!(given_up.as_mut().now_or_never().is_none());
        queue.add("foo");
        sleep(ms(1)).await;
        drop(given_up);
        let item = queue.next().await.expect("the key that nobody took");
        assert_eq!((item.failures(), queue.figures().retries), (0, 0), "it was nobody's failure");
        let start = runtime.now();
        drop(item);
        let item = queue.next().await.expect("it is tried again");
        assert_eq!((item.failures(), runtime.now()), (1, start + ms(5)));
        assert_eq!(item.retry(), Some(ms(10)));
        let item = queue.next().await.expect("and again");
        assert_eq!((item.failures(), runtime.now()), (2, start + ms(15)));
        item.retry_after(ms(100));
        let item = queue.next().await.expect("and later");
        assert_eq!((item.failures(), runtime.now()), (0, start + ms(115)));
        item.done();
        assert_eq!(queue.figures().processing, 0);
    });
}

/// Adds ten thousand keys in one message.
struct Burst(WorkQueue<u32>);

impl Actor for Burst {
    type Context = Context<Self>;

    fn started(&mut self, _ctx: &mut Context<Self>) {
        for key in 0..10_000 {
            self.0.add_after(key, ms(u64::from(key % 7)));
        }
    }
}

// WQ-19: given AddAfter bursts of > 1000, when called from an actor, then it never blocks.
#[test]
fn wq_19_a_burst_of_delayed_adds_from_an_actor_does_not_block_and_is_delivered_whole() {
    Runtime::simulated(7).run(|runtime| async move {
        let (queue, done) = (queue(&runtime), Work::default());
        let _actor = Burst(queue.clone()).start();
        sleep(ms(1)).await;
        assert_eq!(queue.figures().delayed + queue.len(), 10_000);
        let end = async {
            sleep(Duration::from_secs(60)).await;
            queue.shut_down();
        };
        tokio::join!(work(&queue, 20, &done), end);
        assert_eq!(done.times().len(), 10_000);
    });
}

/// Works on each item for three milliseconds.
struct Worker(Work);

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Handler<WorkItem<u32>> for Worker {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, item: WorkItem<u32>, _ctx: &mut Context<Self>) -> ResponseFuture<()> {
        let work = self.0.clone();
        Box::pin(async move {
            work.on(&item, ms(3)).await;
            item.done();
        })
    }
}

#[test]
fn an_actor_is_handed_as_many_items_at_once_as_it_was_said_to_take() {
    Runtime::simulated(7).run(|runtime| async move {
        let (queue, done) = (queue(&runtime), Work::default());
        (0..30).for_each(|key| assert_eq!(queue.add(key), Added::Accepted));
        let _handing = queue.hand_to(Worker(done.clone()).start(), 3);
        sleep(ms(1)).await;
        assert_eq!((queue.figures().processing, queue.len()), (3, 27));
        queue.drain(LONG).await.expect("all is done");
        assert_eq!((done.times().len(), runtime.now() < ms(40)), (30, true));
    });
}

#[test]
fn a_queue_ends_with_its_last_handle_when_what_hands_its_keys_over_is_dropped() {
    Runtime::simulated(7).run(|runtime| async move {
        let (queue, done) = (queue(&runtime), Work::default());
        let handing = queue.hand_to(Worker(done.clone()).start(), 3);
        (0..9).for_each(|key| assert_eq!(queue.add(key), Added::Accepted));
        sleep(ms(1)).await;
        drop(handing);
        sleep(ms(100)).await;
        assert_eq!((done.times().len(), queue.len(), queue.figures().processing), (3, 6, 0));
        let over = queue.shared.inside.over.clone();
        drop(queue);
        over.cancelled().await;
    });
}

/// Stops the worker.
struct Stop;

impl actix::Message for Stop {
    type Result = ();
}

impl Handler<Stop> for Worker {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

#[test]
fn a_key_that_is_taken_for_an_actor_that_has_stopped_waits_again_without_a_failure() {
    Runtime::simulated(7).run(|runtime| async move {
        let queue = queue(&runtime);
        let worker = Worker(Work::default()).start();
        let _handing = queue.hand_to(worker.clone(), 1);
        sleep(ms(1)).await;
        worker.send(Stop).await.expect("it runs");
        sleep(ms(1)).await;
        queue.add(7);
        sleep(ms(1)).await;
        assert_eq!((queue.len(), queue.figures().retries), (1, 0));
        assert_eq!(queue.next().await.map(|item| *item.key()), Some(7));
    });
}

#[test]
fn an_informer_feeds_the_queue_and_its_first_list_has_low_priority() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = Server::<String>::new();
        server.apply("a/1", "x".to_owned());
        let source = server.clone();
        let informer = Informer::builder(&runtime, "texts").source(move || source.clone());
        let informer = informer.start().expect("the spec is sound");
        let queue = WorkQueue::of_objects(&runtime, "texts").start();
        let subscription = informer.enqueue(&queue).expect("it runs");
        subscription.synced_within(LONG).await.expect("it syncs");
        let item = queue.next().await.expect("the first list");
        assert_eq!((item.key().to_string(), item.priority()), ("a/1".to_owned(), Priority::Low));
        item.done();
        server.apply("a/2", "y".to_owned());
        let item = queue.next().await.expect("a live event");
        assert_eq!((item.key().to_string(), item.priority()), ("a/2".to_owned(), Priority::Normal));
        item.done();
    });
}

/// Runs adds, work, a retry and a drain while the actor is killed at its nth visit of this site. Gives how often it came
/// there.
fn run_killed_at(site: Site, nth: u32) -> u32 {
    let visits = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&visits);
    let faults = Faults::new(move |here| {
        assert!(here != site || counted.fetch_add(1, Relaxed) + 1 != nth, "killed on purpose");
    });
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let (queue, done) = (queue(&runtime), Work::default());
        let produce = async {
            for key in 0..6 {
                queue.add(key);
                queue.add_after(key + 100, ms(3));
                sleep(ms(1)).await;
            }
            sleep(Duration::from_secs(20)).await;
            queue.drain(LONG).await.expect("it is drained");
        };
        tokio::join!(produce, work(&queue, 2, &done));
        let keys: Vec<u32> = done.times().into_keys().collect();
        let expected: Vec<u32> = (0..6).chain(100..106).collect();
        assert_eq!(keys, expected, "killed at visit {nth} of {site:?}");
        assert_eq!((queue.len(), queue.figures().processing, queue.rebuilt()), (0, 0, 0));
    });
    visits.load(Relaxed)
}

#[test]
fn a_queue_whose_actor_is_killed_at_any_of_its_messages_loses_no_key_and_hands_none_out_twice() {
    for site in [Site::WorkQueueStarted, Site::WorkQueueLook, Site::WorkQueueTaken] {
        let visits = run_killed_at(site, 0);
        assert!(visits > 0, "{site:?} is visited");
        for nth in 1..=visits {
            run_killed_at(site, nth);
        }
    }
}

#[test]
fn when_the_actor_is_given_up_every_wait_ends_and_adds_are_refused() {
    let faults = Faults::new(|site| assert!(site != Site::WorkQueueLook, "always"));
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let queue = queue(&runtime);
        queue.add("foo");
        let (item, drain) = tokio::join!(queue.next(), queue.drain(LONG));
        assert!(item.is_none());
        assert!(drain.is_err() && queue.is_empty());
        assert_eq!((queue.add("bar"), queue.figures().refused > 0), (Added::Refused, true));
    });
}
