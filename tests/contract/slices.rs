//! A Replace in progress: what else runs between its slices, subscribers that join meanwhile, and a stop in the middle
//! of it.
//!
//! Answers "does a large relist delay anything?" by counting slices at the fault hook and acting between two of them.

use std::sync::Arc;
use std::time::Duration;

use informer_actors::subscription::{SubscribeOptions, WhenFull};
use informer_actors::testing::Server;
use informer_actors::testing::{Faults, Site};
use informer_core::index::Index;
use tokio::sync::watch;

use crate::world::{Watched, World, pass, run_with};

/// Counts visits of a site.
#[derive(Clone)]
struct Visits(Arc<watch::Sender<usize>>);

impl Visits {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    fn count(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    fn now(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits for this many visits; the waiting task runs before the next visit.
    async fn reach(&self, count: usize) {
        self.0.subscribe().wait_for(|now| *now >= count).await.expect("the sender is ours");
        assert_eq!(self.now(), count, "one in each turn");
    }
}

/// Counts the slices of Replaces, and the actors that have ended.
fn counting() -> (Faults, Visits, Visits) {
    let (slices, ends) = (Visits::new(), Visits::new());
    let (slice, end) = (slices.clone(), ends.clone());
    let faults = Faults::new(move |site| match site {
        Site::IndexerReplace => slice.count(),
        Site::Dropped => end.count(),
        _ => {}
    });
    (faults, slices, ends)
}

fn old_ones(server: &Server<String>) {
    (0..2_000).for_each(|n| drop(server.apply(&format!("a/{n:04}"), "old".to_owned())));
}

/// Changes half of the objects, adds as many, deletes some, all while the watch is down; returns when the
/// relist has done `slices`.
async fn in_the_middle_of_a_relist(world: &World, visits: &Visits, slices: usize) {
    world.synced().await;
    world.streaming().await;
    world.server.freeze_watches(true);
    (1_000..3_000).for_each(|n| drop(world.server.apply(&format!("a/{n:04}"), "new".to_owned())));
    (0..100).for_each(|n| drop(world.server.delete(&format!("a/{n:04}"))));
    world.server.compact();
    let before = visits.now();
    world.server.freeze_watches(false);
    visits.reach(before + slices).await;
}

/// Waits for a subscriber's first event, for some turns.
async fn received_something(joiner: &Watched) {
    for _ in 0..20 {
        if !joiner.received.is_empty() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn idx_21_other_messages_are_handled_between_the_slices_of_a_replace() {
    let (faults, slices, _) = counting();
    run_with(faults, old_ones, |world| async move {
        world.synced().await;
        let old = world.informer.snapshot();
        in_the_middle_of_a_relist(&world, &slices, 3).await;
        let asked = slices.now();
        let index = Index::<String>::new("asked-between", |object| vec![object.body().clone()]);
        world.informer.add_index(index).await.expect("the name is free");
        assert!(slices.now() <= asked + 2, "the Indexer answers after {} slices", slices.now() - asked);
        let joiner = world.watched();
        received_something(&joiner).await;
        assert!(
            !joiner.received.is_empty(),
            "the other actors answer too: {} slices later",
            slices.now() - asked
        );
        assert!(world.informer.snapshot().ptr_eq(&old), "and readers see the old state meanwhile");
        world.agrees().await;
        joiner.agrees(&world).await;
        assert!(slices.now() > asked + 10, "it was in the middle");
    });
}

#[test]
fn idx_21_a_stop_in_the_middle_of_a_replace_ends_at_once_and_publishes_nothing() {
    for slice in [1, 8, 15] {
        for dropped in [false, true] {
            let (faults, slices, ends) = counting();
            run_with(faults, old_ones, |world| async move {
                world.synced().await;
                let old = world.informer.snapshot();
                in_the_middle_of_a_relist(&world, &slices, slice).await;
                let (before, done) = (world.runtime.now(), slices.now());
                let World { informer, runtime, .. } = world;
                if dropped {
                    drop(informer);
                    pass(Duration::from_millis(100)).await;
                } else {
                    let report = informer.shutdown(Duration::ZERO).await;
                    assert!(report.unapplied && !report.still_running, "{report:?}");
                    assert!(informer.snapshot().ptr_eq(&old));
                }
                assert!(runtime.now() - before <= Duration::from_millis(100));
                assert_eq!(ends.now(), 5, "all actors have ended");
                assert!(slices.now() <= done + 1, "{} slices after the stop", slices.now() - done);
            });
        }
    }
}

// INF-37: given a Replace half applied, when a subscription joins, then it starts from the snapshot before
// and receives the Replace's differences after: nothing lost, nothing twice.
// - a at whatever moment it joins, nothing is lost and nothing is delivered twice:
//   `inf_37_a_subscriber_that_joins_in_the_middle_of_a_replace_loses_nothing_and_receives_nothing_twice`
// - b it starts from the snapshot before the Replace, and receives the Replace's differences after
#[test]
fn inf_37_a_subscriber_that_joins_in_mid_replace_starts_from_the_snapshot_before_it_and_receives_the_differences()
 {
    let (faults, slices, _) = counting();
    run_with(faults, old_ones, |world| async move {
        world.synced().await;
        let old = world.informer.snapshot();
        in_the_middle_of_a_relist(&world, &slices, 3).await;
        let everything = SubscribeOptions::new().every(usize::MAX, WhenFull::Disconnect);
        let joiner = world.watched_with(everything);
        received_something(&joiner).await;
        assert!(world.informer.snapshot().ptr_eq(&old), "it has joined before the publish");
        world.agrees().await;
        joiner.agrees(&world).await;
        let lines = joiner.received.lines();
        let (first, rest) = lines.split_at(2_000);
        let before: Vec<_> = old
            .iter()
            .map(|object| format!("Added(InitialList) {}@{}", object.key(), object.version()))
            .collect();
        assert_eq!(first, before, "the snapshot before the Replace");
        let count = |kind: &str| rest.iter().filter(|line| line.starts_with(kind)).count();
        let received =
            [count("Missed(Relist)"), count("Updated(Relist)"), count("Added(Relist)"), rest.len()];
        assert_eq!(received, [100, 1_000, 1_000, 2_100], "and its differences after it");
    });
}
