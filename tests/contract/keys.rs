//! Subscribers of keys: one that looks up each key that it receives ends with the state of the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, Context, Handler, ResponseFuture};
use informer_actors::informer::Lister;
use informer_actors::subscription::{
    SubscribeError, SubscribeOptions, Subscriber, Subscription, Touched, WhenFull,
};
use informer_actors::testing::{Faults, Site, kill_at};
use informer_core::delta::Cause;
use informer_core::meta::{ObjectKey, ResourceVersion};

use crate::world::{LONG, World, nothing, pass, run, run_with, settle, three, until};

/// What a reconciler knows: the version of each key that it has looked up and found, and all that it was sent.
#[derive(Clone, Default)]
struct KnownObjects(Arc<Mutex<Looked>>);

#[derive(Default)]
struct Looked {
    found: BTreeMap<ObjectKey, ResourceVersion>,
    sent: Vec<Touched>,
}

impl KnownObjects {
    fn looked(&self) -> MutexGuard<'_, Looked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> Vec<String> {
        self.looked().sent.iter().map(|Touched { key, cause }| format!("{key} ({cause})")).collect()
    }

    /// Waits until it knows what the informer has.
    async fn agrees(&self, world: &World) {
        let content = || world.content().into_iter().collect::<BTreeMap<_, _>>();
        for _ in 0..10_000 {
            if self.looked().found == content() {
                return;
            }
            settle().await;
        }
        assert_eq!(self.looked().found, content(), "sent: {:?}", self.lines());
    }
}

/// Looks up each key that it is sent, and then takes its time.
struct Reconciler {
    texts: Lister<String>,
    known: KnownObjects,
    takes: Duration,
}

impl Actor for Reconciler {
    type Context = Context<Self>;
}

impl Handler<Touched> for Reconciler {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, touched: Touched, _ctx: &mut Context<Self>) -> ResponseFuture<()> {
        let mut looked = self.known.looked();
        match self.texts.get(&touched.key) {
            Some(text) => drop(looked.found.insert(touched.key.clone(), text.version().clone())),
            None => drop(looked.found.remove(&touched.key)),
        }
        looked.sent.push(touched);
        Box::pin(tokio::time::sleep(self.takes))
    }
}

/// A reconciler that takes so long for each key, one at a time.
fn reconciler(world: &World, takes: Duration) -> (Subscription<String>, KnownObjects) {
    let known = KnownObjects::default();
    let actor = Reconciler { texts: world.informer.lister(), known: known.clone(), takes };
    let options = SubscribeOptions::new().one_at_a_time();
    let subscription = world.informer.subscribe_with(options, Subscriber::keys(actor.start()));
    (subscription.expect("the informer runs"), known)
}

/// A life with everything in it: a first list, live changes, a relist over a gap, a rewind, late joiners.
async fn live(world: &World, takes: Duration) {
    let (early, knows) = reconciler(world, takes);
    world.changes().await;
    let backup = world.server.backup();
    world.gap().await;
    let (late, too) = reconciler(world, takes);
    world.apply("e/1", "after").await;
    world.server.restore(&backup);
    world.server.apply("a/one", "in another life of the server".to_owned());
    world.server.end_watches(None);
    pass(Duration::from_secs(600)).await;
    world.agrees().await;
    for (subscription, known) in [(&early, &knows), (&late, &too)] {
        subscription.synced_within(LONG).await.expect("it has looked at everything");
        known.agrees(world).await;
    }
}

#[test]
fn lis_34_who_looks_up_each_key_that_it_is_sent_knows_what_is_there_whatever_happens() {
    for takes in [Duration::ZERO, Duration::from_secs(7)] {
        run_with(Faults::default(), three, |world| async move { live(&world, takes).await });
        for site in [Site::ProcessorChanges, Site::IndexerPublished] {
            for nth in 1..12 {
                run_with(kill_at(site, nth), three, |world| async move { live(&world, takes).await });
            }
        }
    }
}

// LIS-34: given a subscriber of keys, when anything happens to an object (first list, late join, event,
// relist, rewind, restart of the group, resync), then its key is sent afterwards, also if the object came and
// went; a key waits once, what waits keeps no object alive, and a first list costs O(1).
// - a every touched key is sent afterwards, and waits once:
//   `lis_34_whatever_happens_every_touched_key_is_delivered_afterwards_and_waits_once`
// - b after lists, late joins, rewinds, restarts and resyncs:
//   `lis_34_a_late_join_a_resync_and_a_rewind_deliver_every_key_with_their_cause`
// - c who looks up what it is sent knows what is there:
//   `lis_34_who_looks_up_each_key_that_it_is_sent_knows_what_is_there_whatever_happens`
// - d also of an object that came and went
// - e what waits keeps no object alive:
//   `lis_34_what_waits_for_a_stalled_recipient_of_keys_keeps_no_object_alive`
// - f a first list costs O(1): `lis_34_a_first_list_costs_a_cursor_also_while_every_object_changes`
// - g it is resynced, and cannot ask for every event:
//   `lis_34_a_subscriber_of_keys_is_resynced_and_cannot_ask_for_every_event`
#[test]
fn lis_34_a_child_that_is_made_and_deleted_at_once_is_looked_up() {
    run(three, |world| async move {
        let (subscription, known) = reconciler(&world, Duration::ZERO);
        subscription.synced_within(LONG).await.expect("it has looked at everything");
        let first = ["a/one (InitialList)", "a/two (InitialList)", "b/one (InitialList)"];
        assert_eq!(known.lines(), first);
        world.streaming().await;
        world.server.apply("a/child", "of the operator".to_owned());
        world.server.delete("a/child").expect("somebody deletes it at once");
        until(|| known.lines().len() > first.len()).await;
        assert_eq!(known.lines()[3..], ["a/child (Watch)"]);
    });
}

#[test]
fn lis_34_a_slow_subscriber_of_keys_is_behind_on_keys_and_is_sent_each_once() {
    run(nothing, |world| async move {
        let (subscription, known) = reconciler(&world, Duration::from_secs(3_600));
        world.synced().await;
        for n in 0..30 {
            world.apply(&format!("a/{}", n % 3), &n.to_string()).await;
        }
        let status = subscription.status();
        assert!(status.depth <= 3 && status.coalesced > 20, "{status:?}");
        pass(Duration::from_secs(36_000)).await;
        known.agrees(&world).await;
        assert!(known.lines().len() <= 4, "{:?}", known.lines());
        assert!(known.looked().sent.iter().all(|touched| touched.cause == Cause::Watch));
    });
}

#[test]
fn lis_34_a_subscriber_of_keys_is_resynced_and_cannot_ask_for_every_event() {
    run(three, |world| async move {
        let known = KnownObjects::default();
        let actor =
            Reconciler { texts: world.informer.lister(), known: known.clone(), takes: Duration::ZERO };
        let recipient = actor.start().recipient();
        let every = SubscribeOptions::new().every(1 << 20, WhenFull::Restate);
        let refused = world
            .informer
            .subscribe_with(every, Subscriber::keys(recipient.clone()))
            .expect_err("keys coalesce");
        assert!(matches!(refused, SubscribeError::EveryKey { .. }), "{refused}");
        let options = SubscribeOptions::new().resync_every(Duration::from_secs(60));
        let subscription =
            world.informer.subscribe_with(options, Subscriber::keys(recipient)).expect("the informer runs");
        subscription.synced_within(LONG).await.expect("it has looked at everything");
        pass(Duration::from_secs(90)).await;
        let resynced = known.lines().iter().filter(|line| line.ends_with("(Resync)")).count();
        assert_eq!((known.lines().len(), resynced), (6, 3), "{:?}", known.lines());
    });
}
