//! What the pipeline publishes over time: true snapshots, resyncs, several objects of one name, rewinds, joins at any
//! moment.

use std::collections::BTreeMap;
use std::time::Duration;

use informer_actors::informer::WaitError;
use informer_actors::subscription::SubscribeOptions;
use informer_actors::testing::RandomNumbers;
use informer_actors::testing::Site;
use informer_actors::testing::kill_at;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::ObjectKey;
use informer_core::reflector::SourceState;

use crate::world::{LONG, nothing, pass, run, run_with, settle, three, until};

fn resyncs(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.starts_with("Updated(Resync)")).count()
}

// REF-24: given a subscription with resync p, when p elapses, in Streaming as well as in Backoff, then it
// receives Updated{old = object, cause: Resync} for each object of the snapshot, and subscriptions that are
// not due receive nothing.
// - a in Streaming as well as in Backoff it receives Updated with cause Resync for each object
// - b old is the object itself:
//   `rf_09_a_resync_delivers_every_object_again_unless_a_change_of_it_is_delivered`
// - c subscriptions that are not due receive nothing
#[test]
fn ref_24_a_due_subscription_is_resynced_in_streaming_and_in_backoff_and_the_others_receive_nothing() {
    run(three, |world| async move {
        let due = world.watched_with(SubscribeOptions::new().resync_every(Duration::from_secs(10)));
        let other = world.watched();
        due.synced().await;
        pass(Duration::from_secs(11)).await;
        assert_eq!(resyncs(&due.received.lines()), 3);
        world.server.refuse((0..99).map(|_| ListWatchError::source("down")));
        world.server.end_watches(Some(ListWatchError::source("cut")));
        world.state(|state| matches!(state, SourceState::Backoff { .. })).await;
        pass(Duration::from_secs(10)).await;
        assert_eq!(resyncs(&due.received.lines()), 6);
        assert!(due.received.lines()[3..].iter().all(|line| line.starts_with("Updated(Resync)")));
        assert_eq!(other.received.len(), 3);
        due.agrees(&world).await;
    });
}

// REF-25: given no resync, when 24 h of simulated time pass, then no Notify has cause Resync.
#[test]
fn ref_25_without_a_resync_period_nothing_is_resynced_in_24_hours() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        pass(Duration::from_secs(24 * 3600)).await;
        assert_eq!(watched.received.len(), 3);
    });
}

// INF-22: given resync 1 s and a first list that takes 10 s, when run, then nothing is delivered before the
// InitialList events, nothing deadlocks, and resyncs follow.
// - a nothing is delivered before the InitialList events
// - b nothing deadlocks, and resyncs follow
#[test]
fn inf_22_nothing_is_resynced_before_the_initial_events_of_a_slow_first_list() {
    run(
        |server| {
            three(server);
            server.hold_lists(true);
        },
        |world| async move {
            let watched = world.watched_with(SubscribeOptions::new().resync_every(Duration::from_secs(1)));
            pass(Duration::from_secs(10)).await;
            assert!(watched.received.is_empty());
            world.server.hold_lists(false);
            watched.synced().await;
            pass(Duration::from_secs(5)).await;
            let lines = watched.received.lines();
            assert!(lines[..3].iter().all(|line| line.starts_with("Added(InitialList)")), "{lines:?}");
            assert!(resyncs(&lines) >= 12, "{lines:?}");
        },
    );
}

// INF-34: given delete and create under one name, seen by a relist or as one Modified with another uid on the
// watch, when applied, then Deleted{old, exact: false} and then Added{new}, never Updated, with cause Relist
// or Watch.
// - a by relist and by one Modified on the watch it is Deleted{old, exact: false} and then Added{new}, never
//   Updated
// - b with cause Relist or Watch
#[test]
fn inf_34_another_object_under_one_name_is_a_deletion_and_an_addition_by_relist_and_by_watch() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        world.streaming().await;
        let reborn = world.server.replace_life("a/one", "created again, seen as one event".to_owned());
        world.reaches(&reborn).await;
        assert_eq!(
            watched.lines(5).await[3..],
            ["Missed(Watch) a/one@2", &format!("Added(Watch) a/one@{reborn}")]
        );
        world.server.freeze_watches(true);
        world.server.delete("a/two");
        let relisted = world.server.apply("a/two", "created again in a gap".to_owned());
        world.server.compact();
        world.server.freeze_watches(false);
        world.agrees().await;
        assert_eq!(
            watched.lines(7).await[5..],
            ["Missed(Relist) a/two@3", &format!("Added(Relist) a/two@{relisted}")]
        );
        watched.agrees(&world).await;
    });
}

// INF-50: given a source whose objects have no uid, when a key comes again with another version, then
// Updated: identity is the key.
#[test]
fn inf_50_without_uids_the_key_is_the_identity() {
    run(
        |server| {
            server.without_uids();
            three(server);
        },
        |world| async move {
            let watched = world.watched();
            watched.synced().await;
            world.server.replace_life("a/one", "the same key without a uid".to_owned());
            world.agrees().await;
            assert_eq!(watched.lines(4).await[3], "Updated(Watch) a/one@5");
        },
    );
}

// REF-36: given etcd restored from an older copy, the connection lost with it, and a watch at the published
// version that is then accepted and silent while objects change, when it has reconnected, then one question
// (a list of a name that does not exist, version unset) is asked before anything else is delivered, its
// version is below the published one, the store is replaced by a list at "", the rewind is counted, and the
// snapshot's version is the server's; within 10 s of the reconnect on a real server.
// - a one question is asked before anything else is delivered:
//   `ref_36_after_a_reconnect_nothing_is_delivered_before_the_servers_version_is_known`
// - b a version below the published one has the store replaced by a list at "":
//   `ref_36_a_server_below_our_version_is_listed_at_its_latest_and_nothing_skipped`
// - c the rewind is counted, and the snapshot's version is the server's
// - d within 10 s of the reconnect on a real server: `ref_36_an_older_copy_of_etcd`
// REF-52: given a rewind and listed objects with the stored uid and version, when replaced, then each is
// decoded and stored anew and delivered as Updated with cause Rewind, vanished ones as Deleted, new ones as
// Added; a relist without a rewind delivers none of them.
// - a each is decoded and stored anew:
//   `ref_52_after_a_rewind_each_object_is_decoded_anew_although_uid_and_version_are_the_stored_ones`
// - b each is delivered as Updated with cause Rewind, vanished ones as Deleted, new ones as Added
// - c a restart of the group meanwhile changes nothing of that:
//   `ref_52_a_rewind_that_coincides_with_a_restart_of_the_group_is_still_delivered`
// - d a relist without a rewind delivers none of them:
//   `rf_03_what_a_relist_lacks_is_deleted_inexactly_and_what_is_unchanged_is_not_a_change`
#[test]
fn ref_36_and_ref_52_a_restored_server_is_noticed_and_everything_is_delivered_with_cause_rewind() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        world.streaming().await;
        let backup = world.server.backup();
        world.apply("a/one", "lost").await;
        world.apply("c/new", "lost too").await;
        world.delete("b/one").await;
        world.server.restore(&backup);
        let before = world.runtime.now();
        let rewound = world.informer.wait_until(|status| status.sources[0].counters.rewinds == 1).await;
        rewound.expect("it is noticed");
        assert!(world.runtime.now() - before < Duration::from_secs(10));
        until(|| world.content() == world.server.content()).await;
        assert_eq!(
            *world.informer.snapshot().versions().first().expect("one source"),
            world.server.version()
        );
        watched.agrees(&world).await;
        let lines = watched.received.lines();
        let mut received: Vec<&str> = lines[6..].iter().map(String::as_str).collect();
        received.sort_unstable();
        let expected = [
            "Added(Rewind) b/one@4",
            "Missed(Rewind) c/new@6",
            "Updated(Rewind) a/one@2",
            "Updated(Rewind) a/two@3",
        ];
        assert_eq!(received, expected);
        world.apply("a/one", "after").await;
        watched.agrees(&world).await;
    });
}

#[test]
fn ref_52_a_rewind_that_coincides_with_a_restart_of_the_group_is_still_delivered() {
    for site in [Site::DeltaFifoPush, Site::IndexerReplace, Site::IndexerPublished, Site::ProcessorChanges] {
        for nth in 1..12 {
            run_with(kill_at(site, nth), three, |world| async move {
                let watched = world.watched();
                watched.synced().await;
                world.streaming().await;
                let backup = world.server.backup();
                world.apply("a/one", "lost").await;
                world.apply("c/new", "lost too").await;
                world.server.restore(&backup);
                world.server.apply("a/one", "of an equal version".to_owned());
                until(|| world.content() == world.server.content()).await;
                let key = ObjectKey::namespaced("a", "one");
                // Equal versions prove nothing, so that the body is waited for.
                let body = || watched.received.last(&key).map(|one| one.body().clone());
                until(|| body().as_deref() == Some("of an equal version")).await;
                watched.agrees(&world).await;
                let (published, received) = (world.informer.snapshot(), watched.received.last(&key));
                let bodies =
                    [published.get(&key), received.as_ref()].map(|one| one.map(|one| one.body().clone()));
                assert_eq!(bodies[0].as_deref(), Some("of an equal version"), "published, {site:?} {nth}");
                assert_eq!(bodies[1].as_deref(), Some("of an equal version"), "received, {site:?} {nth}");
            });
        }
    }
}

// WL-23: given a relist by watch-list in which an object with the published uid and version comes again, when
// its end bookmark arrives, then it is not decoded and not delivered, and what was not sent is Deleted{exact:
// false, cause: Relist}.
// - a what has the published uid and version is not delivered
// - b nor is it decoded:
//   `ref_48_and_wl_23_a_relist_decodes_and_delivers_what_changed_and_keeps_every_other_object`
// - c what was not sent is Deleted{exact: false, cause: Relist}
#[test]
fn wl_23_a_relist_by_watch_list_delivers_only_what_changed_and_what_was_not_sent() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        world.streaming().await;
        world.server.freeze_watches(true);
        world.server.apply("a/one", "changed".to_owned());
        world.server.delete("b/one");
        world.server.compact();
        world.server.freeze_watches(false);
        world.agrees().await;
        let last = world.server.requests().into_iter().rfind(|line| line.starts_with("WATCH-LIST"));
        assert_eq!(last.as_deref(), Some("WATCH-LIST version=\"4\""));
        let mut lines = watched.lines(5).await.split_off(3);
        lines.sort();
        assert_eq!(lines, ["Missed(Relist) b/one@4", "Updated(Relist) a/one@5"]);
    });
}

// RF-16: given a busy Indexer or a stalled subscriber and the queue below its bounds, when the Reflector
// sends a Delta, then its ask is answered at once.
// - a beside a busy Indexer the ask is answered at once:
//   `rf_16_while_the_indexer_is_busy_every_delta_below_the_bounds_is_taken_at_once`
// - b beside a stalled subscriber too
#[test]
fn rf_16_below_the_bounds_a_stalled_subscriber_delays_neither_the_queue_nor_the_store() {
    run(nothing, |world| async move {
        let _stalled = world.informer.for_each(|_| std::future::pending::<()>()).expect("it runs");
        world.synced().await;
        world.streaming().await;
        let before = world.runtime.now();
        for n in 0..1000 {
            world.server.apply(&format!("a/{n}"), String::new());
        }
        world.agrees().await;
        assert_eq!(world.runtime.now(), before, "no time passed: nobody waited");
    });
}

// RF-24: given an ask for a batch or with a Delta outstanding, when the actor that owes the answer restarts,
// then the ask ends with an error at once and is asked again in the new epoch; when the informer stops, it
// ends.
// - a the ask ends with an error at once and is asked again in the new epoch
// - b an ask of an epoch that is over ends and takes no batch:
//   `rf_24_a_question_of_an_epoch_that_is_over_ends_and_takes_no_batch_from_who_asks_now`
// - c when the informer stops, it ends:
//   `ref_22_and_ref_34_in_every_state_a_stop_ends_the_informer_at_once_asks_no_more_and_publishes_no_half`
#[test]
fn rf_24_an_ask_whose_receiver_restarts_ends_and_is_asked_again_in_the_new_epoch() {
    for site in [Site::DeltaFifoPush, Site::DeltaFifoPop] {
        run_with(kill_at(site, 2), three, |world| async move {
            world.synced().await;
            world.apply("a/one", "during").await;
            world.apply("a/one", "after").await;
            assert_eq!(world.informer.status().restarts, 1);
            assert!(world.informer.shutdown(LONG).await.is_clean(), "and a stop ends what is open");
        });
    }
}

// RF-33: given interleaved writes on many keys, one source and `InOrder`, when every snapshot is recorded,
// then each equals the server's state at the snapshot's version (set-aside keys apart).
// - a each equals the server's state at the snapshot's version
#[test]
fn rf_33_every_snapshot_is_a_state_that_the_server_had() {
    run(nothing, |world| async move {
        world.synced().await;
        world.streaming().await;
        let mut chance = RandomNumbers::new(33, 0);
        let mut states = BTreeMap::from([(world.server.version(), world.server.content())]);
        let mut checked = 0;
        for _ in 0..2000 {
            let key = format!("a/{}", (chance.draw() * 20.0) as u32);
            if chance.draw() < 0.3 {
                world.server.delete(&key);
            } else {
                world.server.apply(&key, String::new());
            }
            states.insert(world.server.version(), world.server.content());
            if chance.draw() < 0.3 {
                tokio::task::yield_now().await;
                let snapshot = world.informer.snapshot();
                assert_eq!(
                    Some(&world.content()),
                    states.get(snapshot.versions().first().expect("one source"))
                );
                checked += 1;
            }
        }
        world.agrees().await;
        assert!(checked > 400);
    });
}

// INF-16: given 100 random concurrent create/update/delete, when drained, then each subscriber's events
// replay to the snapshot: no Deleted of what was not delivered, no Added of what is present, no Updated
// without it.
// - a each subscriber's events replay to the snapshot
// - b no Deleted of what was not delivered, no Added of what is present, no Updated without it
#[test]
fn inf_16_after_a_hundred_random_changes_each_subscribers_events_replay_to_the_snapshot() {
    run(three, |world| async move {
        let watched = world.watched();
        let mut chance = RandomNumbers::new(16, 0);
        for n in 0..100 {
            let key = format!("a/{}", (chance.draw() * 10.0) as u32);
            if chance.draw() < 0.3 {
                drop(world.server.delete(&key))
            } else {
                drop(world.server.apply(&key, n.to_string()))
            }
            if chance.draw() < 0.2 {
                settle().await;
            }
        }
        world.agrees().await;
        watched.synced().await;
        watched.agrees(&world).await;
    });
}

#[test]
fn inf_37_a_subscriber_that_joins_in_the_middle_of_a_replace_loses_nothing_and_receives_nothing_twice() {
    for turns in 0..60 {
        run(
            |server| (0..1000).for_each(|n| drop(server.apply(&format!("a/{n}"), "old".to_owned()))),
            |world| async move {
                world.synced().await;
                world.streaming().await;
                world.server.freeze_watches(true);
                (500..1500).for_each(|n| drop(world.server.apply(&format!("a/{n}"), "new".to_owned())));
                (0..100).for_each(|n| drop(world.server.delete(&format!("a/{n}"))));
                world.server.compact();
                world.server.freeze_watches(false);
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                let joiner = world.watched();
                world.agrees().await;
                joiner.synced().await;
                joiner.agrees(&world).await;
            },
        );
    }
}

// INF-41: given synced_within(d) in each of Listing, Backoff, Denied, Gone, and of a slow subscription in
// Streaming, when d passes unsynced, then it returns at d with that state and the last error, and names the
// actor or closure that blocks a thread.
// - a in Listing, Backoff, Denied and Gone it returns at d
// - b with that state and the last error
// - c a slow subscription in Streaming, too
// - d and the actor or closure that blocks a thread, if there is one:
//   `inf_47_an_async_closure_that_blocks_its_thread_is_named_in_the_status`
#[test]
fn inf_41_synced_within_reports_at_its_limit_what_the_informer_is_doing_and_why() {
    let limit = Duration::from_secs(7);
    let says = |error: Option<ListWatchError>, wanted: &'static str| {
        run(
            |server| {
                three(server);
                match error {
                    Some(error) => server.refuse((0..99).map(|_| error.clone())),
                    None => server.hold_lists(true),
                }
            },
            |world| async move {
                let why = world.informer.synced_within(limit).await.expect_err("it cannot sync");
                assert_eq!(world.runtime.now(), limit);
                let words = "informer \"texts\" is not synced after 7s: source \"default\": ";
                let why = why.to_string();
                // The wait is random within its bounds.
                let (shown, wait) = why.split_once("; it is asked again in ").unwrap_or((&why, ""));
                assert_eq!(shown, format!("{words}{wanted}"));
                assert_eq!(wait.ends_with('s'), !wanted.starts_with("listing"), "{why}");
            },
        );
    };
    says(None, "listing, 3 objects received");
    let cut = ListWatchError::source("the cable is cut");
    says(Some(cut), "failed 3 times in a row: source failed: the cable is cut");
    says(
        Some(ListWatchError::Denied("pods is forbidden".into())),
        "denied: pods is forbidden (3 times in a row)",
    );
    says(
        Some(ListWatchError::NotFound("no such kind".into())),
        "no such resource: no such kind (3 times in a row)",
    );
    run(three, |world| async move {
        let slow = world.informer.for_each(|_| std::future::pending::<()>()).expect("it runs");
        world.synced().await;
        let before = world.runtime.now();
        let why = slow.synced_within(limit).await.expect_err("it is stuck");
        assert_eq!(world.runtime.now() - before, limit);
        assert!(
            matches!(&why, WaitError::Deadline(why) if matches!(why.state, SourceState::Streaming)),
            "{why:?}"
        );
        let words = "subscription \"closure-0\" of informer \"texts\" is not synced after 7s: the informer is \
                     synced, its subscriber has not handled all initial events";
        assert_eq!(why.to_string(), words);
    });
}

#[test]
fn inf_51_what_is_sent_before_the_actors_have_run_is_handled_in_order() {
    run(three, |world| async move {
        // Nothing has been awaited since the informer was started: no actor has started yet.
        let early = [world.watched(), world.watched()];
        let index = informer_core::index::Index::<String>::new("early", |_| vec!["all".to_owned()]);
        world.informer.add_index(index).await.expect("the name is free");
        for watched in &early {
            watched.synced().await;
            assert_eq!(watched.received.len(), 3);
        }
        assert_eq!(world.informer.lister().by_index("early", "all").expect("it is there").len(), 3);
    });
}
