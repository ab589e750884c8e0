//! Supervision on the running pipeline: each actor is killed in mid-message, and the promises of the design hold.
//!
//! The fault hook panics inside the actor at a named site. After each panic the store must equal the server's content,
//! and a subscriber that was there all the time must have received exactly the true events.

use std::time::Duration;

use informer_actors::informer::WaitError;
use informer_actors::subscription::EndReason;
use informer_actors::testing::Site;
use informer_actors::testing::{kill_at, kill_every};
use informer_core::reflector::SourceState;

use crate::world::{LONG, World, pass, run, run_with, settle, three};

/// A scenario with everything in it: a first list, live changes, a gap with a missed delete, a relist, a late
/// joiner.
pub(crate) async fn live(world: &World) {
    let watched = world.watched();
    world.changes().await;
    world.gap().await;
    let late = world.watched();
    world.apply("e/1", "after").await;
    for subscriber in [&watched, &late] {
        subscriber.synced().await;
        subscriber.agrees(world).await;
    }
}

/// Kills at the first, second, ... visit of `site`, as often as a run visits it, in one run each.
pub(crate) fn killed_at_every_visit(site: Site, restarts: u64) {
    for nth in 1..40 {
        let mut visited = true;
        run_with(kill_at(site, nth), three, |world| async move {
            live(&world).await;
            let status = world.informer.status();
            assert!(status.failed.is_none(), "{status:?}");
            assert!(status.restarts <= restarts, "visit {nth} of {site:?}: {} restarts", status.restarts);
        });
        run_with(kill_at(site, nth), three, |world| {
            let visited = &mut visited;
            async move {
                live(&world).await;
                *visited = world.informer.status().restarts > 0;
            }
        });
        if !visited {
            assert!(nth > 1, "{site:?} was never visited: the test proves nothing");
            return;
        }
    }
}

#[test]
fn inf_42_a_reflector_killed_while_it_starts_or_receives_is_restarted_alone() {
    killed_at_every_visit(Site::ReflectorStarted, 1);
    killed_at_every_visit(Site::ReflectorReceived, 1);
}

// INF-43: given DeltaFifo, Indexer or Processor killed at any message, also between a publish and its
// `Changes`, when the group is back in a new epoch, then each subscriber receives exactly the diff since the
// snapshot it last took (cause Relist): no Added twice, nothing lost, nothing for unchanged objects; readers
// never stop.
// - a a DeltaFifo killed at any message: nothing lost, no Added twice, nothing for unchanged objects
// - b an Indexer: in the same way: `inf_43_an_indexer_killed_at_any_message_costs_nobody_an_event`
// - c also between a publish and its `Changes`:
//   `inf_43_an_indexer_killed_between_a_publish_and_its_changes_costs_nobody_an_event`
// - d a Processor: in the same way: `inf_43_a_processor_killed_at_any_message_costs_nobody_an_event`
// - e what it receives is the diff since the snapshot it last took, cause Relist:
//   `inf_43_after_a_restart_only_true_differences_are_delivered`
// - f also to a subscription with `Every`:
//   `inf_43_a_subscriber_to_every_event_receives_what_a_group_restart_left_out`
// - g readers never stop:
//   `idx_23_readers_are_answered_from_the_last_published_frame_while_the_indexer_is_down`
#[test]
fn inf_43_a_delta_fifo_killed_at_any_message_costs_nobody_an_event() {
    killed_at_every_visit(Site::DeltaFifoPush, 1);
    killed_at_every_visit(Site::DeltaFifoPop, 1);
}

#[test]
fn inf_43_an_indexer_killed_at_any_message_costs_nobody_an_event() {
    killed_at_every_visit(Site::IndexerStarted, 1);
    killed_at_every_visit(Site::IndexerApply, 1);
    killed_at_every_visit(Site::IndexerReplace, 1);
}

#[test]
fn inf_43_an_indexer_killed_between_a_publish_and_its_changes_costs_nobody_an_event() {
    killed_at_every_visit(Site::IndexerPublished, 1);
}

#[test]
fn inf_43_a_processor_killed_at_any_message_costs_nobody_an_event() {
    killed_at_every_visit(Site::ProcessorChanges, 1);
    killed_at_every_visit(Site::ProcessorFannedOut, 1);
}

// INF-42: given the Reflector killed in mid-message, when it restarts, then it alone restarts: address and
// queued messages survive, subscribers receive only true differences, restarts rise by one.
// - a it alone restarts
// - b address and queued messages survive:
//   `inf_42_an_actor_killed_in_mid_message_keeps_its_address_and_the_messages_behind_it`
// - c subscribers receive only true differences
// - d restarts rise by one
#[test]
fn inf_42_a_restarted_reflector_asks_at_the_version_it_had_reached_and_delivers_only_true_differences() {
    run_with(kill_at(Site::ReflectorReceived, 8), three, |world| async move {
        let watched = world.watched();
        world.synced().await;
        watched.synced().await;
        while world.informer.status().restarts == 0 {
            world.server.apply("a/one", "live".to_owned());
            settle().await;
        }
        world.agrees().await;
        watched.agrees(&world).await;
        let relist =
            world.server.requests().into_iter().skip(1).find(|line| !line.starts_with("WATCH version"));
        let relist = relist.expect("it lists again");
        assert!(
            !relist.contains("version=\"\"") && !relist.contains("version=\"0\""),
            "time travel: {relist}"
        );
        let source = &world.informer.status().sources[0];
        assert_eq!((source.restarts, world.informer.status().restarts), (1, 1));
    });
}

// INF-53: given a Listener killed in mid-message, when it ends, then its subscription ends with a reason and
// no other subscription or publish notices.
// - a its subscription ends with a reason
// - b no other subscription or publish notices
#[test]
fn inf_53_a_listener_killed_in_mid_message_ends_its_subscription_with_a_reason_and_nothing_else() {
    run_with(kill_at(Site::ListenerChanges, 3), three, |world| async move {
        world.synced().await;
        let (first, second) = (world.watched(), world.watched());
        first.synced().await;
        second.synced().await;
        world.apply("a/one", "x").await;
        world.apply("a/one", "y").await;
        world.apply("a/one", "z").await;
        settle().await;
        let ended: Vec<_> =
            [&first, &second].iter().filter_map(|watched| watched.subscription.ended()).collect();
        assert!(
            matches!(ended.as_slice(), [EndReason::ListenerFailed(why)] if why.contains("killed")),
            "{ended:?}"
        );
        let survivor = if first.subscription.ended().is_some() { second } else { first };
        survivor.agrees(&world).await;
        assert_eq!(world.informer.status().restarts, 0);
    });
}

#[test]
fn a_supervisor_killed_over_a_question_is_asked_again() {
    let faults = informer_actors::testing::Faults::new({
        let (reflector, supervisor) = (kill_once(Site::ReflectorReceived), kill_once(Site::SupervisorExited));
        move |site| {
            reflector(site);
            supervisor(site);
        }
    });
    run_with(faults, three, |world| async move {
        live(&world).await;
        assert_eq!(world.informer.status().restarts, 1);
    });
}

fn kill_once(site: Site) -> impl Fn(Site) + Send + Sync {
    let done = std::sync::atomic::AtomicBool::new(false);
    move |here| {
        let first = here == site && !done.swap(true, std::sync::atomic::Ordering::Relaxed);
        assert!(!first, "killed at {site:?}");
    }
}

#[test]
fn inf_45_a_group_that_panics_again_and_again_is_given_up_state_and_waits_show_it_and_readers_are_served() {
    run_with(kill_every(Site::IndexerApply, 2, u32::MAX), three, |world| async move {
        world.synced().await;
        let watched = world.watched();
        let kept = world.informer.lister();
        while !world.informer.status().stopped {
            world.server.apply("a/one", "again".to_owned());
            pass(Duration::from_secs(1)).await;
        }
        let status = world.informer.status();
        assert!(status.failed.as_ref().is_some_and(|why| why.contains("indexer")), "{status:?}");
        assert_eq!(status.restarts, 5);
        assert!(matches!(world.informer.state(), SourceState::Stopped));
        assert_eq!(watched.subscription.end().await, EndReason::InformerStopped);
        assert_eq!(kept.list().len(), 3, "the last published store is still read");
        let wait = kept.wait_for(&"999".parse().expect("a version"), LONG).await;
        assert!(wait.is_err());
        assert!(matches!(
            world.informer.wait_until(|_| false).await,
            Err(WaitError::Stopped { reason: Some(_), .. })
        ));
    });
}

// IDX-23: given an Indexer that was killed and is not yet restarted, when get, list, by_index and snapshot
// are called, then they answer from the last published frame.
// - a get, list, by_index and snapshot answer from the last published frame
// - b the next life goes on from that frame
#[test]
fn idx_23_readers_are_answered_from_the_last_published_frame_while_the_indexer_is_down() {
    run_with(kill_at(Site::IndexerApply, 2), three, |world| async move {
        world.synced().await;
        let lister = world.informer.lister();
        world.server.apply("a/one", "lethal".to_owned());
        settle().await;
        assert_eq!(world.informer.status().restarts, 1, "stopped, and waiting out its backoff");
        assert_eq!(lister.list().len(), 3);
        assert_eq!(lister.by_index("body", "2").expect("the index exists").len(), 1);
        assert_eq!(
            lister.get(&"a/one".parse().expect("a key")).map(|one| one.body().clone()),
            Some("1".into())
        );
        assert_eq!(lister.snapshot().len(), 3);
        world.agrees().await;
    });
}

#[test]
fn inf_44_a_restarted_group_waits_out_its_backoff() {
    run_with(kill_at(Site::IndexerApply, 2), three, |world| async move {
        world.synced().await;
        let before = world.runtime.now();
        world.apply("a/one", "lethal").await;
        let took = world.runtime.now() - before;
        assert!(took >= Duration::from_millis(800) && took <= Duration::from_millis(3300), "{took:?}");
    });
}

#[test]
fn inf_10_after_a_shutdown_no_part_of_the_informer_asks_or_delivers_any_more() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        assert!(world.informer.shutdown(LONG).await.is_clean());
        let requests = world.server.requests().len();
        world.server.apply("a/one", "unheard".to_owned());
        pass(Duration::from_secs(3600)).await;
        assert_eq!(world.server.requests().len(), requests);
        assert_eq!(watched.received.len(), 3);
    });
}

#[test]
fn ref_29_a_sources_counters_go_on_where_a_crashed_reflector_left_them() {
    run_with(kill_at(Site::ReflectorReceived, 4), three, |world| async move {
        live(&world).await;
        world.streaming().await;
        let source = world.informer.status().sources[0].clone();
        assert_eq!(source.restarts, 1, "it crashed once");
        let requests = world.server.requests();
        let watches = requests.iter().filter(|request| request.starts_with("WATCH")).count();
        assert_eq!(source.counters.watches, watches as u64, "{requests:?}");
    });
}
