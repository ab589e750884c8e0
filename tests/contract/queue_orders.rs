//! FIFO and RF on the running pipeline, in both queue orders: what is published, and what its version says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::informer::InformerBuilder;
use informer_actors::informer::Lister;
use informer_actors::subscription::{SubscribeOptions, WhenFull};
use informer_actors::testing::RandomNumbers;
use informer_actors::testing::{Faults, Site};
use informer_core::delta_fifo::{Bounds, QueueOrder};

use crate::world::{LONG, Watched, World, nothing, pass, run_built, settle, three};

const BOTH: [QueueOrder; 2] = [QueueOrder::InOrder, QueueOrder::PerKey];

/// Every publish, as the store's version and its objects: `5: a/one@2 a/two@3`.
#[derive(Clone, Default)]
struct Publishes(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    lister: Option<Lister<String>>,
    lines: Vec<String>,
}

impl Publishes {
    fn faults(&self) -> Faults {
        let seen = Arc::clone(&self.0);
        Faults::new(move |site| {
            let mut seen = seen.lock().expect("no panic");
            if let (Site::IndexerPublished, Some(lister)) = (site, &seen.lister) {
                let snapshot = lister.snapshot();
                let version = snapshot.versions().first().map(ToString::to_string);
                let objects = snapshot.iter().map(|object| format!(" {}@{}", object.key(), object.version()));
                let line = format!("{}:{}", version.unwrap_or_default(), objects.collect::<String>());
                seen.lines.push(line);
            }
        })
    }

    fn begin(&self, world: &World) {
        self.0.lock().expect("no panic").lister = Some(world.informer.lister());
    }

    /// All publishes since the beginning. A lister that is kept would keep the informer running.
    fn end(&self) -> Vec<String> {
        let mut seen = self.0.lock().expect("no panic");
        seen.lister = None;
        std::mem::take(&mut seen.lines)
    }
}

/// Subscribes to every event.
fn every(informer: &World) -> Watched {
    informer.watched_with(SubscribeOptions::new().every(1 << 20, WhenFull::Disconnect))
}

/// Writes while the informer receives nothing, then delivers all writes at once.
async fn at_once(world: &World, writes: impl FnOnce(&World)) {
    world.streaming().await;
    world.server.freeze_watches(true);
    writes(world);
    world.server.freeze_watches(false);
    world.agrees().await;
}

fn small_batches(batch: usize) -> Bounds {
    Bounds { batch, ..Bounds::default() }
}

// FIFO-01: given Added(a,1), Modified(a,2), when popped, then one pop returns both parts of a, oldest first.
// - a one pop returns both parts of a, oldest first
// FIFO-02: given keys added a,b,a again, when popped, then order is a,b.
// - a order is a,b
#[test]
fn fifo_01_and_02_keys_are_published_in_order_of_first_arrival_with_all_their_parts() {
    let publishes = Publishes::default();
    let build =
        |builder: InformerBuilder<String>| builder.queue_order(QueueOrder::PerKey).bounds(small_batches(1));
    run_built(publishes.faults(), build, nothing, |world| async move {
        let watched = every(&world);
        watched.synced().await;
        world.streaming().await;
        publishes.begin(&world);
        at_once(&world, |world| {
            for key in ["a/x", "a/y", "a/x"] {
                world.server.apply(key, String::new());
            }
        })
        .await;
        assert_eq!(publishes.end(), ["1: a/x@4", "4: a/x@4 a/y@3"]);
        let received = watched.lines(3).await;
        assert_eq!(received, ["Added(Watch) a/x@2", "Updated(Watch) a/x@4", "Added(Watch) a/y@3"]);
        watched.agrees(&world).await;
    });
}

#[test]
fn fifo_04_a_key_that_is_added_and_deleted_while_it_waits_is_delivered_to_its_deletion() {
    let build =
        |builder: InformerBuilder<String>| builder.queue_order(QueueOrder::PerKey).bounds(small_batches(1));
    run_built(Faults::default(), build, three, |world| async move {
        let watched = every(&world);
        watched.synced().await;
        watched.received.clear_lines();
        at_once(&world, |world| {
            world.server.delete("a/one");
            world.server.apply("b/one", "x".to_owned());
            world.server.apply("a/one", "again".to_owned());
            world.server.delete("a/one");
        })
        .await;
        let expected = [
            "Deleted(Watch) a/one@5",
            "Added(Watch) a/one@7",
            "Deleted(Watch) a/one@8",
            "Updated(Watch) b/one@6",
        ];
        assert_eq!(watched.lines(4).await, expected);
        assert_eq!(world.informer.status().data.deleted_unknown, 0);
    });
}

#[test]
fn fifo_11_the_version_stays_until_the_queue_is_empty_and_a_wait_for_it_ends_then() {
    let publishes = Publishes::default();
    let build =
        |builder: InformerBuilder<String>| builder.queue_order(QueueOrder::PerKey).bounds(small_batches(1));
    run_built(publishes.faults(), build, three, |world| async move {
        world.synced().await;
        world.streaming().await;
        publishes.begin(&world);
        at_once(&world, |world| {
            for n in 0..50 {
                world.server.apply(&format!("c/{}", n % 10), n.to_string());
            }
            world.server.bookmark();
        })
        .await;
        let versions: Vec<String> = publishes
            .end()
            .iter()
            .map(|line| line.split(':').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(versions.len(), 10, "a publish for each key");
        assert!(versions[..9].iter().all(|version| version == "4"), "{versions:?}");
        assert_eq!(versions[9], "54");
    });
}

// FIFO-12: given parts of a and b queued and then a Replace, when popped, then nothing queued before the
// Replace comes after it, and after it the store equals the Replace.
// - a nothing queued before the Replace comes after it:
//   `fifo_12_a_replace_is_a_barrier_and_the_versions_before_it_are_its_own_source_s_no_more`
// - b after it the store equals the Replace
#[test]
fn fifo_12_after_a_relist_the_store_is_the_list_whatever_was_queued_before_it() {
    for queue_order in BOTH {
        let build =
            |builder: InformerBuilder<String>| builder.queue_order(queue_order).bounds(small_batches(1));
        run_built(Faults::default(), build, three, |world| async move {
            world.server.serve_watch_list(false);
            let watched = every(&world);
            watched.synced().await;
            world.streaming().await;
            for n in 0..30 {
                world.server.apply(&format!("a/{}", n % 7), n.to_string());
            }
            tokio::task::yield_now().await;
            world.server.end_watches(None);
            world.server.freeze_watches(true);
            for n in 0..7 {
                world.server.delete(&format!("a/{n}"));
            }
            world.server.apply("b/new", String::new());
            world.server.compact();
            world.server.freeze_watches(false);
            world.agrees().await;
            watched.agrees(&world).await;
            assert_eq!(world.informer.status().data.stale_parts, 0, "{queue_order:?}");
        });
    }
}

#[test]
fn rf_02_and_03_in_either_queue_order_a_deletion_of_an_unknown_key_is_counted_and_a_relist_finds_what_is_gone()
 {
    for queue_order in BOTH {
        let build = |builder: InformerBuilder<String>| builder.queue_order(queue_order);
        run_built(Faults::default(), build, three, |world| async move {
            world.synced().await;
            world.streaming().await;
            let watched = every(&world);
            watched.synced().await;
            watched.received.clear_lines();
            world.server.end_watches(None);
            world.server.delete("a/two");
            world.server.delete("b/one");
            world.server.compact();
            world.agrees().await;
            assert_eq!(watched.lines(2).await, ["Missed(Relist) a/two@3", "Missed(Relist) b/one@4"]);
            watched.agrees(&world).await;
        });
    }
}

// RF-09: given Added(a) queued before a Resync, in either discipline, when popped, then Added, then one
// Resync entry; a due subscription that keeps up receives Added a, then Updated{cause: Resync} for every
// object; one that is not due receives only Added a.
// - a popped, Added comes, then one Resync entry, in either discipline:
//   `rf_09_a_resync_keeps_its_place_as_one_entry`
// - b a due subscription receives Added a, then Updated{cause: Resync} for every object
// - c one that is not due receives only Added a
#[test]
fn rf_09_in_either_queue_order_a_resync_comes_behind_what_was_queued_before_it() {
    for queue_order in BOTH {
        let build = |builder: InformerBuilder<String>| builder.queue_order(queue_order);
        run_built(Faults::default(), build, three, |world| async move {
            let due = world.watched_with(
                SubscribeOptions::new()
                    .resync_every(Duration::from_secs(10))
                    .every(1 << 20, WhenFull::Disconnect),
            );
            let other = every(&world);
            due.synced().await;
            other.synced().await;
            world.server.apply("a/new", String::new());
            pass(Duration::from_secs(11)).await;
            let expected = [
                "Added(Watch) a/new@5",
                "Updated(Resync) a/new@5",
                "Updated(Resync) a/one@2",
                "Updated(Resync) a/two@3",
                "Updated(Resync) b/one@4",
            ];
            assert_eq!(due.received.lines()[3..], expected, "{queue_order:?}");
            assert_eq!(other.received.lines()[3..], expected[..1]);
        });
    }
}

// RF-10: given `InOrder` and `PerKey` fed the same history (list, add, update, delete, relist with changes),
// when drained, then the final snapshots are equal and the changes of each key replay to the same states; the
// order across keys and what compression leaves out may differ.
// - a the final snapshots are equal
// - b the changes of each key replay to the same states
#[test]
fn rf_10_both_queue_orders_end_in_one_state_and_each_key_goes_through_the_same_ones() {
    let build = |builder: InformerBuilder<String>| builder.bounds(small_batches(3));
    run_built(Faults::default(), build, three, |world| async move {
        let connected = world.server.clone();
        let by_key = Informer::builder(&world.runtime, "by key")
            .source(move || connected.clone())
            .queue_order(QueueOrder::PerKey)
            .bounds(small_batches(3))
            .start()
            .expect("the spec is valid");
        let options = || SubscribeOptions::new().every(1 << 20, WhenFull::Disconnect);
        let (recorder, received_by_key) = informer_actors::testing::Recorder::new();
        let subscription =
            by_key.subscribe_with(options(), actix::Actor::start(recorder)).expect("the informer runs");
        let in_order = world.watched_with(options());
        in_order.synced().await;
        subscription.synced_within(LONG).await.expect("it syncs");
        let mut chance = RandomNumbers::new(10, 0);
        for n in 0..600 {
            let key = format!("a/{}", (chance.draw() * 12.0) as u32);
            match (chance.draw() * 100.0) as u32 {
                0..30 => drop(world.server.delete(&key)),
                30..97 => drop(world.server.apply(&key, n.to_string())),
                _ => {
                    settle().await;
                    world.server.end_watches(None);
                    world.server.apply(&key, "unseen".to_owned());
                    world.server.compact();
                    pass(Duration::from_secs(60)).await;
                }
            }
        }
        let newest = world.server.apply("z/last", String::new());
        world.reaches(&newest).await;
        by_key.lister().wait_for(&newest, LONG).await.expect("it arrives");
        let count = in_order.received.len();
        crate::world::until(|| received_by_key.len() == count && in_order.received.len() == count).await;
        in_order.agrees(&world).await;
        assert_eq!(received_by_key.agrees_with(&world.informer.snapshot()), Ok(()));
        let by_keys = |mut lines: Vec<String>| {
            // A stable sort: each key keeps its own order.
            lines.sort_by_key(|line| line.split([' ', '@']).nth(1).map(str::to_owned));
            lines
        };
        assert_ne!(in_order.received.lines(), received_by_key.lines(), "the order across keys differs");
        assert_eq!(by_keys(in_order.received.lines()), by_keys(received_by_key.lines()));
    });
}

#[test]
fn a_group_restart_under_the_queue_order_per_key_never_goes_back_in_time() {
    for nth in [2, 5, 9, 14] {
        let build = |builder: InformerBuilder<String>| {
            builder.queue_order(QueueOrder::PerKey).bounds(small_batches(1))
        };
        let faults = informer_actors::testing::kill_at(Site::IndexerPublished, nth);
        run_built(faults, build, three, |world| async move {
            let watched = every(&world);
            watched.synced().await;
            at_once(&world, |world| {
                for n in 0..60 {
                    world.server.apply(&format!("c/{}", n % 20), n.to_string());
                }
            })
            .await;
            watched.agrees(&world).await;
            assert_eq!(world.informer.status().restarts, 1);
        });
    }
}
