//! Subscribers that join late, are slow, panic, or want to receive everything again.
//!
//! Answers "does each of them end with the true state, and does none of them harm another?"

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, AtomicResponse, Context, Handler, WrapFuture};
use actix_informer::prelude::*;
use actix_informer::testing::{Recorder, RecorderHandle};
use tokio::sync::Semaphore;

use crate::stage::{LONG, Pod, Stage, eventually, until};

pub(crate) async fn a_late_subscriber_receives_the_present_state_first(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 10).await;
    let pods = stage.pods().await;
    api.delete(namespace, "pod-00001").await;
    api.label(namespace, "pod-00002", "second").await;
    pods.agrees(api).await;
    let late = pods.watched().await;
    let received = late.received.lines();
    assert_eq!(received.len(), 9);
    assert!(received.iter().all(|line| line.starts_with("Added(InitialList) ")), "{received:?}");
    late.received.clear_lines();
    let changed = api.label(namespace, "pod-00003", "second").await;
    assert_eq!(late.next(1).await, [format!("Updated(Watch) {namespace}/pod-00003@{changed}")]);
    pods.agrees(api).await;
    late.agrees(&pods.informer).await;
}

/// An actor that handles one event for each permit.
struct Slow {
    received: RecorderHandle<Pod>,
    gate: Arc<Semaphore>,
}

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Notify<Pod>> for Slow {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, notify: Notify<Pod>, _ctx: &mut Context<Self>) -> Self::Result {
        let (gate, received) = (Arc::clone(&self.gate), self.received.clone());
        let work = async move {
            gate.acquire().await.expect("the gate stays open").forget();
            received.record(&notify);
        };
        AtomicResponse::new(Box::pin(work.into_actor(self)))
    }
}

pub(crate) async fn a_slow_subscriber_receives_the_newest_and_delays_nobody(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 3).await;
    let pods = stage.pods().await;
    let (received, gate) = (Recorder::new().1, Arc::new(Semaphore::new(0)));
    let slow = Slow { received: received.clone(), gate: Arc::clone(&gate) };
    let slow = pods.informer.subscribe(slow.start()).expect("the informer runs");
    let mut newest = None;
    for n in 0..50 {
        newest = Some(api.label(namespace, "pod-00001", &format!("turn-{n}")).await);
    }
    pods.agrees(api).await;
    assert!(received.is_empty() && !slow.status().synced, "it is stuck on its first event");
    until("what it missed is merged", || slow.status().coalesced >= 40).await;
    gate.add_permits(1_000);
    slow.synced_within(LONG).await.expect("it catches up");
    eventually("it is up to date", || received.agrees_with(&pods.informer.snapshot())).await;
    assert!(received.len() < 10, "{:?}", received.lines());
    let newest = newest.expect("something was written");
    assert_eq!(received.lines().last(), Some(&format!("Updated(Watch) {namespace}/pod-00001@{newest}")));
}

pub(crate) async fn a_panicking_subscriber_misses_only_the_event_it_panicked_on(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 20).await;
    let pods = stage.pods().await;
    let received = Recorder::new().1;
    let (received_by_closure, panics) = (received.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&panics);
    let clumsy = pods.informer.for_each(move |notify: Notify<Pod>| {
        let (received, panics) = (received_by_closure.clone(), Arc::clone(&counted));
        async move {
            received.record(&notify);
            if notify.key().name().ends_with('7') {
                panics.fetch_add(1, Ordering::Relaxed);
                // A panic that no hook prints.
                resume_unwind(Box::new("panics on purpose"));
            }
        }
    });
    let clumsy = clumsy.expect("the informer runs");
    clumsy.synced_within(LONG).await.expect("a panic does not keep it from being synced");
    assert_eq!(clumsy.status().panics, 2);
    api.label(namespace, "pod-00017", "second").await;
    api.delete(namespace, "pod-00018").await;
    api.create(namespace, "later").await;
    pods.agrees(api).await;
    eventually("it still received it", || received.agrees_with(&pods.informer.snapshot())).await;
    until("each panic is counted", || clumsy.status().panics == 3 && panics.load(Ordering::Relaxed) == 3)
        .await;
    assert_eq!(clumsy.ended(), None);
}

pub(crate) async fn a_resync_delivers_everything_again_and_changes_nothing(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 5).await;
    let pods = stage.pods().await;
    let options = SubscribeOptions::new().resync_every(Duration::from_secs(1));
    let again = pods.watched_with(options).await;
    again.received.clear_lines();
    let received = again.next(10).await;
    assert!(received.iter().all(|line| line.starts_with("Updated(Resync) ")), "{received:?}");
    let each = |n: usize| received.iter().filter(|line| line.contains(&format!("pod-{n:05}@"))).count();
    assert!((0..5).all(|n| each(n) >= 2), "{received:?}");
    again.agrees(&pods.informer).await;
    pods.agrees(api).await;
    let others = pods.first.received.lines();
    assert!(
        others.iter().all(|line| !line.contains("Resync")),
        "only the subscriber that asked receives it: {others:?}"
    );
    assert_eq!(pods.counters().relists, 0, "a resync sends no request");
}
