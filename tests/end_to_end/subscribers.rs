//! Subscribers that come late, are slow, panic, or want to be told again.
//!
//! Answers "does each of them end with the truth, and does none of them harm another?"

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, AtomicResponse, Context, Handler, WrapFuture};
use actix_informer::prelude::*;
use actix_informer::testing::{Recorder, RecorderHandle};
use tokio::sync::Semaphore;

use crate::stage::{LONG, Pod, Stage, eventually, until};

pub(crate) async fn a_late_subscriber_is_told_the_present_first(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 10).await;
    let pods = stage.pods().await;
    api.delete(namespace, "pod-00001").await;
    api.label(namespace, "pod-00002", "second").await;
    pods.agrees(api).await;
    let late = pods.watched().await;
    let told = late.told.lines();
    assert_eq!(told.len(), 9);
    assert!(told.iter().all(|line| line.starts_with("Added(InitialList) ")), "{told:?}");
    late.told.clear_lines();
    let changed = api.label(namespace, "pod-00003", "second").await;
    assert_eq!(late.next(1).await, [format!("Updated(Watch) {namespace}/pod-00003@{changed}")]);
    pods.agrees(api).await;
    late.agrees(&pods.informer).await;
}

/// An actor that handles one event for each permit.
struct Slow {
    told: RecorderHandle<Pod>,
    gate: Arc<Semaphore>,
}

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Notify<Pod>> for Slow {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, notify: Notify<Pod>, _ctx: &mut Context<Self>) -> Self::Result {
        let (gate, told) = (Arc::clone(&self.gate), self.told.clone());
        let work = async move {
            gate.acquire().await.expect("the gate stays").forget();
            told.record(&notify);
        };
        AtomicResponse::new(Box::pin(work.into_actor(self)))
    }
}

pub(crate) async fn a_slow_subscriber_is_told_the_newest_and_delays_nobody(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 3).await;
    let pods = stage.pods().await;
    let (told, gate) = (Recorder::new().1, Arc::new(Semaphore::new(0)));
    let slow = Slow { told: told.clone(), gate: Arc::clone(&gate) };
    let slow = pods.informer.subscribe(slow.start()).expect("the informer runs");
    let mut newest = None;
    for n in 0..50 {
        newest = Some(api.label(namespace, "pod-00001", &format!("turn-{n}")).await);
    }
    pods.agrees(api).await;
    assert!(told.is_empty() && !slow.status().synced, "it is stuck on its first event");
    until("what it missed is merged", || slow.status().coalesced >= 40).await;
    gate.add_permits(1_000);
    slow.synced_within(LONG).await.expect("it catches up");
    eventually("it is up to date", || told.agrees_with(&pods.informer.snapshot())).await;
    assert!(told.len() < 10, "{:?}", told.lines());
    let newest = newest.expect("something was written");
    assert_eq!(told.lines().last(), Some(&format!("Updated(Watch) {namespace}/pod-00001@{newest}")));
}

pub(crate) async fn a_panicking_subscriber_misses_only_what_it_panicked_on(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 20).await;
    let pods = stage.pods().await;
    let told = Recorder::new().1;
    let (told_by_closure, panics) = (told.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&panics);
    let clumsy = pods.informer.for_each(move |notify: Notify<Pod>| {
        let (told, panics) = (told_by_closure.clone(), Arc::clone(&counted));
        async move {
            told.record(&notify);
            if notify.key().name().ends_with('7') {
                panics.fetch_add(1, Ordering::Relaxed);
                // A panic that no hook prints.
                resume_unwind(Box::new("this one I cannot bear"));
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
    eventually("it was told all the same", || told.agrees_with(&pods.informer.snapshot())).await;
    until("each panic is counted", || clumsy.status().panics == 3 && panics.load(Ordering::Relaxed) == 3)
        .await;
    assert_eq!(clumsy.ended(), None);
}

pub(crate) async fn a_resync_tells_everything_again_and_changes_nothing(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 5).await;
    let pods = stage.pods().await;
    let options = SubscribeOptions::new().resync_every(Duration::from_secs(1));
    let again = pods.watched_with(options).await;
    again.told.clear_lines();
    let told = again.next(10).await;
    assert!(told.iter().all(|line| line.starts_with("Updated(Resync) ")), "{told:?}");
    let each = |n: usize| told.iter().filter(|line| line.contains(&format!("pod-{n:05}@"))).count();
    assert!((0..5).all(|n| each(n) >= 2), "{told:?}");
    again.agrees(&pods.informer).await;
    pods.agrees(api).await;
    let others = pods.first.told.lines();
    assert!(others.iter().all(|line| !line.contains("Resync")), "only who asked is told: {others:?}");
    assert_eq!(pods.counters().relists, 0, "a resync asks the server nothing");
}
