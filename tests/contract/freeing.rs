//! What is freed, when and on which thread; and that an informer that has ended leaves nothing behind.
//!
//! Answers "does the machinery release what it no longer needs?" with `Fed`, a source that keeps no objects itself.

use std::any::Any;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use actix::Actor;
use futures_util::StreamExt;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::Subscriber;
use informer_actors::testing::Recorder;
use informer_actors::testing::{Faults, Site};

use crate::blocking::{Gate, Held, on_threads};
use crate::fed::{Fed, version};
use crate::off_arbiter::comes_true;
use crate::threads::{LIMIT, start};
use crate::world::{LONG, pass, run, settle, three};

/// A body that reports on which thread it was dropped.
struct Dropped(mpsc::Sender<String>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        // At the end of a test the receiver is gone.
        let _heard = self.0.send(name);
    }
}

/// Waits until 4,000 of 5,000 replaced objects have been dropped, and returns the threads. A subscriber may
/// hold the others.
async fn where_replaced_objects_are_dropped(has_subscribers: bool) -> Vec<String> {
    let runtime = start();
    let (received, drops) = mpsc::channel();
    let fed = Fed::new(250, move || Dropped(received.clone()));
    let informer = fed.informer(&runtime, "freed");
    let subscribers = has_subscribers.then(|| {
        [
            informer.for_each(|_| ready(())),
            informer.subscribe(Subscriber::blocking(|_| std::thread::yield_now())),
        ]
    });
    fed.watched().await;
    for round in 1..=20 {
        let newest = fed.update_all(round * 250);
        informer.lister().wait_for(&newest, LIMIT).await.expect("it arrives");
    }
    let names = (0..4_000).map(|_| drops.recv_timeout(LIMIT).expect("it is dropped")).collect();
    drop(subscribers);
    names
}

#[test]
fn idx_22_replaced_objects_are_dropped_on_a_thread_of_their_own_and_never_on_the_pipelines_arbiter() {
    on_threads(async {
        let names = where_replaced_objects_are_dropped(false).await;
        assert!(names.iter().all(|name| name == "informer-free"), "{:?}", names.first());
        let names = where_replaced_objects_are_dropped(true).await;
        assert!(!names.iter().any(|name| name == "informer-0"), "an object was dropped on the arbiter");
    });
}

#[test]
fn inf_39_when_the_last_handle_is_dropped_whichever_it_is_the_informer_ends_and_its_store_is_freed() {
    for last in ["informer", "lister", "subscription"] {
        Runtime::simulated(7).run(|runtime| async move {
            let alive = Arc::new(());
            let body = Arc::clone(&alive);
            let fed = Fed::new(10, move || Arc::clone(&body));
            let informer = fed.informer(&runtime, "kept");
            informer.synced_within(LONG).await.expect("it syncs");
            let objects = || Arc::strong_count(&alive) - 2;
            let lister = informer.lister();
            let subscription = informer.for_each(|_| ready(())).expect("it runs");
            subscription.synced_within(LONG).await.expect("it syncs");
            let snapshot = informer.snapshot();
            let handle: Box<dyn Any> = match last {
                "informer" => {
                    drop((lister, subscription));
                    Box::new(informer)
                }
                "lister" => {
                    drop((informer, subscription));
                    Box::new(lister)
                }
                _ => {
                    drop((informer, lister));
                    Box::new(subscription)
                }
            };
            pass(Duration::from_secs(3600)).await;
            assert_eq!((fed.open(), objects()), (2, 10), "{last}: a source, a watch and the store");
            drop(handle);
            pass(Duration::from_millis(100)).await;
            assert_eq!(fed.open(), 0, "{last}: it has ended");
            assert_eq!((snapshot.len(), objects()), (10, 10), "{last}: the snapshot still reads");
            drop(snapshot);
            assert_eq!(objects(), 0, "{last}: nothing else held the store");
        });
    }
}

#[test]
fn inf_10_when_a_shutdown_returns_no_actor_no_closure_and_no_request_of_the_informer_remains() {
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ended);
    let faults = Faults::new(move |site| {
        counted.fetch_add(usize::from(site == Site::Dropped), Ordering::Relaxed);
    });
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let fed = Fed::new(3, String::new);
        let informer = fed.informer(&runtime, "ends");
        let owned = Arc::new(());
        let (a, b) = (Arc::clone(&owned), Arc::clone(&owned));
        let subscriptions = [
            informer.for_each(move |_| {
                let _kept = &a;
                ready(())
            }),
            informer.subscribe(Subscriber::blocking(move |_| {
                let _kept = &b;
            })),
            informer.subscribe(Recorder::new().0.start()),
        ];
        let subscriptions = subscriptions.map(|subscription| subscription.expect("it runs"));
        for subscription in &subscriptions {
            subscription.synced_within(LONG).await.expect("it syncs");
        }
        assert_eq!((fed.open(), Arc::strong_count(&owned)), (2, 3));
        assert_eq!(ended.load(Ordering::Relaxed), 0);
        assert!(informer.shutdown(LONG).await.is_clean());
        assert_eq!(ended.load(Ordering::Relaxed), 5 + 3, "the pipeline's actors and three listeners");
        assert_eq!((fed.open(), Arc::strong_count(&owned)), (0, 1), "requests and closures");
        drop(subscriptions);
    });
}

#[test]
fn lst_08_a_wait_that_is_dropped_keeps_nothing_running() {
    Runtime::simulated(7).run(|runtime| async move {
        let fed = Fed::new(3, String::new);
        let informer = fed.informer(&runtime, "waited-for");
        informer.synced_within(LONG).await.expect("it syncs");
        let lister = informer.lister();
        let wait = actix_rt::spawn(async move { lister.wait_for(&version(999), LONG).await });
        settle().await;
        drop(informer);
        pass(Duration::from_millis(100)).await;
        assert_ne!(fed.open(), 0, "the wait holds a lister");
        wait.abort();
        pass(Duration::from_millis(100)).await;
        assert_eq!(fed.open(), 0);
    });
}

#[test]
fn lis_15_for_a_stream_that_is_dropped_no_events_wait_any_more() {
    for is_dropped in [false, true] {
        run(three, |world| async move {
            let mut events = world.informer.events().expect("it runs");
            assert!(events.next().await.is_some());
            world.apply("a/one", "owed to the stream").await;
            assert_eq!(events.subscription().status().depth, 1);
            let mut kept = Some(events);
            if is_dropped {
                kept = None;
            }
            settle().await;
            let before = world.runtime.now();
            let report = world.informer.shutdown(Duration::from_secs(5)).await;
            let took = world.runtime.now() - before;
            let expected = if is_dropped { (0, 0) } else { (1, 1) };
            assert_eq!((report.unfinished.len(), took.as_secs()), expected, "{report:?}");
            drop(kept);
        });
    }
}

/// A body that is counted while it exists. The freeing thread waits for the gate before it drops one.
struct Counted(Arc<AtomicUsize>, Held);

impl Drop for Counted {
    fn drop(&mut self) {
        if std::thread::current().name().is_some_and(|name| name.ends_with("-free")) {
            self.1.wait();
        }
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn informer_14_while_the_freeing_thread_does_not_run_no_more_objects_exist_than_its_bound_allows() {
    const OBJECTS: u64 = 10_000;
    const ROUND: u64 = 25;
    // Replaced objects wait in lists of 25, each of 2,500 bytes and 4 KiB for itself, up to 1 MiB.
    const LISTS: u64 = (1 << 20) / (2_500 + (4 << 10)) + 1;
    // Beside these: the store, the objects that replace others, those that are replaced, and what the thread has.
    const MOST: u64 = OBJECTS + ROUND * (LISTS + 3);
    on_threads(async {
        let (runtime, (gate, held), exist) = (start(), Gate::new(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&exist);
        let fed = Fed::new(OBJECTS, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Counted(Arc::clone(&counted), held.clone())
        });
        let informer = fed.informer(&runtime, "bounded");
        fed.watched().await;
        for first in (0..OBJECTS).step_by(ROUND as usize) {
            let newest = fed.update(first..first + ROUND, OBJECTS + first);
            informer.lister().wait_for(&newest, LIMIT).await.expect("it arrives");
            let exist = exist.load(Ordering::Relaxed);
            assert!(exist as u64 <= MOST, "{exist} after {first} changes");
        }
        drop(gate);
        comes_true("all is free", || exist.load(Ordering::Relaxed) as u64 == OBJECTS).await;
    });
}
