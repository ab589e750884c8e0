//! Filters of subscriptions: a subscriber is told of the objects that pass, and of the updates that it asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use informer_actors::informer::Lister;
use informer_actors::subscription::{
    ChangeFilter, Notify, SubscribeOptions, Subscriber, Subscription, Touched,
};
use informer_actors::testing::{Faults, Site, kill_at};
use informer_core::meta::{Object, ObjectKey, ResourceVersion};

use crate::log::recorded;
use crate::world::{LONG, World, pass, run, run_with, settle, three, until};

/// What a subscriber knows by what it was told.
type Known = Arc<Mutex<BTreeMap<ObjectKey, ResourceVersion>>>;

/// Half of all states pass.
fn passes(object: &Object<String>) -> bool {
    object.version().to_string().bytes().last().is_some_and(|digit| digit % 2 == 0)
}

fn even() -> SubscribeOptions<String> {
    SubscribeOptions::new().filter(passes)
}

fn passing(world: &World) -> BTreeMap<ObjectKey, ResourceVersion> {
    let snapshot = world.informer.snapshot();
    let passing = snapshot.iter().filter(|object| passes(object));
    passing.map(|object| (object.key().clone(), object.version().clone())).collect()
}

/// A closure that takes so long for each event, and fails on one that cannot be.
fn closure(world: &World, takes: Duration) -> (Subscription<String>, Known) {
    let known = Known::default();
    let told = Arc::clone(&known);
    let subscription = world.informer.subscribe_with(
        even(),
        Subscriber::each(move |notify: Notify<String>| {
            let mut known = told.lock().expect("no panic");
            let (key, subject) = (notify.key().clone(), notify.subject().version().clone());
            let before = match &notify {
                Notify::Deleted { .. } => known.remove(&key),
                _ => known.insert(key, subject),
            };
            assert_eq!(
                before.is_none(),
                matches!(notify, Notify::Added { .. }),
                "it follows what was told before"
            );
            assert!(matches!(notify, Notify::Deleted { .. }) || passes(notify.subject()));
            tokio::time::sleep(takes)
        }),
    );
    (subscription.expect("the informer runs"), known)
}

/// Looks up each key that it is sent, and keeps what passes.
struct Looks {
    texts: Lister<String>,
    known: Known,
}

impl Actor for Looks {
    type Context = Context<Self>;
}

impl Handler<Touched> for Looks {
    type Result = ();

    fn handle(&mut self, Touched { key, .. }: Touched, _ctx: &mut Context<Self>) {
        let mut known = self.known.lock().expect("no panic");
        match self.texts.get(&key).filter(passes) {
            Some(text) => drop(known.insert(key, text.version().clone())),
            None => drop(known.remove(&key)),
        }
    }
}

fn keys(world: &World) -> (Subscription<String>, Known) {
    let known = Known::default();
    let looks = Looks { texts: world.informer.lister(), known: Arc::clone(&known) };
    (
        world.informer.subscribe_with(even(), Subscriber::keys(looks.start())).expect("the informer runs"),
        known,
    )
}

async fn agrees(world: &World, (subscription, known): &(Subscription<String>, Known)) {
    subscription.synced_within(LONG).await.expect("it was told the first list");
    for _ in 0..10_000 {
        if *known.lock().expect("no panic") == passing(world) {
            break;
        }
        settle().await;
    }
    assert_eq!(*known.lock().expect("no panic"), passing(world));
    assert_eq!(subscription.status().panics, 0, "what was told contradicts itself");
}

/// A life with everything in it: a first list, live changes, a relist over a gap, late joiners, a rewind.
async fn live(world: &World) {
    let everybody = || [closure(world, Duration::ZERO), closure(world, Duration::from_secs(7)), keys(world)];
    let early = everybody();
    world.changes().await;
    let backup = world.server.backup();
    world.gap().await;
    let late = everybody();
    world.apply("e/1", "after").await;
    world.server.restore(&backup);
    world.server.apply("a/one", "in another life of the server".to_owned());
    world.server.end_watches(None);
    pass(Duration::from_secs(600)).await;
    world.agrees().await;
    for one in early.iter().chain(&late) {
        agrees(world, one).await;
    }
}

// LIS-35: given a subscription with a filter of objects, when anything happens (first list, late join, event,
// relist, rewind, resync, restart of the group, coalescing), then an object that begins to pass is told as
// Added, one that passes no more as Deleted{last: a state that passed, exact: false, cause: LeftFilter}, one
// that passes before and after as Updated, and no other at all; what was told replays to the objects that
// pass, for subscribers of keys, too; what the filter drops is nowhere in the backlog.
// - a the transitions are those of client-go's filtering handler:
//   `lis_35_an_object_that_begins_to_pass_is_added_and_one_that_passes_no_more_is_deleted_as_it_was_delivered`
// - b whatever happens, under every policy, what was told replays to the objects that pass:
//   `lis_35_whatever_happens_what_was_delivered_replays_to_the_objects_that_pass`
// - c so it does for an actor, a slow one and a subscriber of keys, with the group killed at any of its
//   messages
// - d what a filter drops is nowhere in the backlog, and counted:
//   `lis_35_what_a_filter_drops_is_nowhere_in_the_backlog`
// - e by labels: `lis_35_a_label_selector_filters_a_subscription`
#[test]
fn lis_35_whoever_filters_knows_the_objects_that_pass_also_after_relists_rewinds_and_restarts() {
    run(three, |world| async move { live(&world).await });
    for site in [Site::ProcessorChanges, Site::IndexerPublished, Site::DeltaFifoPop] {
        for nth in (1..12).step_by(2) {
            run_with(kill_at(site, nth), three, |world| async move { live(&world).await });
        }
    }
}

#[test]
fn lis_36_of_the_updates_only_those_are_delivered_that_change_the_value() {
    run_with(Faults::default(), three, |world| async move {
        let length = SubscribeOptions::new().changes(ChangeFilter::of(|text: &Object<String>| text.len()));
        let watched = world.watched_with(length.resync_every(Duration::from_secs(60)));
        watched.synced().await;
        watched.received.clear_lines();
        world.streaming().await;
        world.apply("a/one", "2").await;
        world.apply("a/one", "22").await;
        world.apply("a/one", "33").await;
        pass(Duration::from_secs(600)).await;
        world.delete("a/one").await;
        let lines = watched.lines(2).await;
        assert_eq!(lines, ["Updated(Watch) a/one@6", "Deleted(Watch) a/one@8"], "and no resync");
        assert!(watched.subscription.status().filtered >= 2);
    });
}

// LIS-37: given a filter that panics, when it is asked, then that counts as yes: the event is told; it is
// counted, logged with its key (the 1st, 2nd, 4th and so on), and the listener and all others go on.
// - a it counts as yes, and is reported with the key:
//   `lis_37_a_predicate_that_panics_counts_as_yes_and_is_reported_with_the_key`
// - b it is counted and logged, and others go on
#[test]
fn lis_37_a_filter_that_panics_loses_no_event_and_is_counted_and_logged() {
    recorded(|log| {
        run(three, |world| async move {
            let lost =
                SubscribeOptions::new().name("lost").filter(|text: &Object<String>| match text.len() {
                    0 => false,
                    1 => panic!("lost the way"),
                    _ => true,
                });
            let (unsure, other) = (world.watched_with(lost), world.watched());
            unsure.synced().await;
            world.changes().await;
            until(|| unsure.received.len() == other.received.len()).await;
            unsure.agrees(&world).await;
            let status = unsure.subscription.status();
            assert!(status.filter_panics >= 3 && status.panics == 0, "{status:?}");
            let lines = log.with("a filter of lost has panicked on ");
            let counts: Vec<_> = lines.iter().map(|line| line.field("count")).collect();
            assert_eq!(counts[..2], [Some("1"), Some("2")]);
            assert_eq!(lines[0].field("key"), Some("a/one"));
            assert!(lines[0].message.ends_with("which counts as yes (1 times so far): lost the way"));
        });
    });
}
