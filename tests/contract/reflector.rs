//! REF and WL on the running pipeline: the order of requests, backoff, recovery, back-pressure.
//!
//! The machine's own decisions are tested, scenario by scenario, beside it in informer-core; here the actor, its
//! session, the queue and the store work together.

use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::testing::Site;
use informer_actors::testing::{Server, kill_at};
use informer_core::list_watch_error::ListWatchError;
use informer_core::reflector::SourceState;

use crate::world::{LONG, pass, run, run_with, three};

#[test]
fn wl_01_and_wl_02_a_fresh_informer_syncs_by_one_watch_with_initial_events_and_no_list() {
    run(three, |world| async move {
        let watched = world.watched();
        world.synced().await;
        assert_eq!(
            (world.informer.snapshot().len(), world.server.version()),
            (3, world.informer.snapshot().versions().first().expect("one source").clone())
        );
        let mut received = watched.lines(3).await;
        received.sort();
        let expected = ["a/one@2", "a/two@3", "b/one@4"].map(|object| format!("Added(InitialList) {object}"));
        assert_eq!(received, expected);
        world.streaming().await;
        world.apply("a/one", "on the same stream").await;
        assert_eq!(world.server.requests(), ["WATCH-LIST version=\"\""]);
    });
}

#[test]
fn ref_01_a_source_without_watch_list_is_listed_at_zero_and_watched_at_the_lists_version() {
    run(
        |server| {
            three(server);
            server.serve_watch_list(false);
        },
        |world| async move {
            world.synced().await;
            world.streaming().await;
            let requests = world.server.requests();
            let expected = ["WATCH-LIST version=\"\"", "LIST version=\"0\" limit=500", "WATCH version=\"4\""];
            assert_eq!(requests, expected);
            assert_eq!(world.informer.status().sources[0].counters.failures, 0);
        },
    );
}

#[test]
fn ref_02_and_ref_38_a_watch_ended_by_410_relists_at_the_published_version_at_once() {
    run(
        |server| {
            three(server);
            server.serve_watch_list(false);
        },
        |world| async move {
            world.synced().await;
            world.streaming().await;
            let before = world.runtime.now();
            world.server.end_watches(Some(ListWatchError::Expired("too old resource version: 4 (9)".into())));
            world.informer.wait_until(|status| status.relists() == 1).await.expect("it relists");
            world.streaming().await;
            assert_eq!(world.server.requests()[3], "LIST version=\"4\"");
            assert!(world.runtime.now() - before < Duration::from_millis(100), "without a wait");
        },
    );
}

#[test]
fn ref_38_the_store_is_served_while_it_relists() {
    run(three, |world| async move {
        world.synced().await;
        world.streaming().await;
        world.server.hold_lists(true);
        world.server.end_watches(Some(ListWatchError::Expired("too old resource version: 4 (9)".into())));
        world.state(|state| matches!(state, SourceState::Listing { received: 3 })).await;
        let late = world.watched();
        late.synced().await;
        assert_eq!((world.informer.lister().list().len(), late.received.len()), (3, 3));
        world.server.hold_lists(false);
        world.streaming().await;
    });
}

#[test]
fn ref_29_a_wait_for_the_state_sees_each_failed_list_with_its_typed_error() {
    let overloaded = || ListWatchError::Overloaded { message: "slow down".into(), retry_after: None };
    run(
        |server| {
            server.serve_watch_list(false);
            let unsupported = ListWatchError::WatchListUnsupported("it lists".into());
            server.refuse([unsupported, ListWatchError::source("down"), overloaded()]);
            server.refuse([ListWatchError::Denied("no".into()), ListWatchError::NotFound("no kind".into())]);
        },
        |world| async move {
            type Expected = (fn(&SourceState) -> bool, fn(&ListWatchError) -> bool);
            let each: [Expected; 4] = [
                (
                    |state| matches!(state, SourceState::Backoff { attempts: 1, .. }),
                    |error| matches!(error, ListWatchError::Source { .. }),
                ),
                (
                    |state| matches!(state, SourceState::Backoff { attempts: 2, .. }),
                    |error| matches!(error, ListWatchError::Overloaded { .. }),
                ),
                (
                    |state| matches!(state, SourceState::Denied { error: ListWatchError::Denied(_), .. }),
                    |error| matches!(error, ListWatchError::Denied(_)),
                ),
                (
                    |state| matches!(state, SourceState::Gone { error: ListWatchError::NotFound(_), .. }),
                    |error| matches!(error, ListWatchError::NotFound(_)),
                ),
            ];
            for (failures, (state, error)) in (1..).zip(each) {
                world.state(state).await;
                let status = world.informer.status();
                assert_eq!(status.sources[0].counters.failures, failures);
                assert!(status.last_error().is_some_and(error), "{:?}", status.last_error());
            }
            let counters = world.informer.status().sources[0].counters.clone();
            assert_eq!((counters.overloaded, counters.denied, counters.gone), (1, 1, 1));
            world.synced().await;
        },
    );
}

#[test]
fn wl_06_after_a_restart_of_its_reflector_a_source_is_asked_for_a_watch_list_again() {
    let prepare = |server: &Server<String>| {
        three(server);
        server.serve_watch_list(false);
    };
    run_with(kill_at(Site::ReflectorReceived, 12), prepare, |world| async move {
        world.synced().await;
        let watch_lists = || {
            let requests = world.server.requests();
            requests.iter().filter(|line| line.starts_with("WATCH-LIST")).count()
        };
        while world.informer.status().restarts == 0 {
            assert_eq!(watch_lists(), 1, "once after each start");
            world.server.end_watches(Some(ListWatchError::Expired("too old".into())));
            pass(Duration::from_secs(2)).await;
        }
        world.apply("a/one", "after").await;
        assert_eq!(watch_lists(), 2);
        assert_eq!(world.informer.status().sources[0].counters.failures, 0);
    });
}

#[test]
fn wl_03_without_the_end_bookmark_nothing_is_published_or_delivered_and_synced_is_pending() {
    run(
        |server| {
            three(server);
            server.hold_lists(true);
        },
        |world| async move {
            let watched = world.watched();
            world.state(|state| matches!(state, SourceState::Listing { received: 3 })).await;
            assert!(world.informer.synced_within(Duration::from_secs(60)).await.is_err());
            assert!(world.informer.snapshot().is_empty() && world.informer.snapshot().versions().is_empty());
            assert!(watched.received.is_empty());
            assert!(matches!(world.informer.state(), SourceState::Listing { received: 3 }));
        },
    );
}

#[test]
fn ref_10_refused_connects_wait_longer_and_longer_and_the_list_count_stays() {
    run(three, |world| async move {
        world.synced().await;
        world.streaming().await;
        world.server.refuse((0..8).map(|_| ListWatchError::source("connection refused")));
        let start = world.runtime.now();
        world.server.end_watches(Some(ListWatchError::source("cut")));
        for attempt in 2..=9 {
            world.state(move |state| matches!(state, SourceState::Backoff { attempts, .. } if *attempts == attempt)).await;
        }
        world.streaming().await;
        let took = (world.runtime.now() - start).as_secs_f64();
        let least = 0.8 + 1.6 + 3.2 + 6.4 + 12.8 + 25.6 + 30.0 + 30.0;
        assert!(took >= least && took <= 2.0 * least + 62.0, "{took}");
        world.agrees().await;
    });
}

#[test]
fn ref_16_a_watch_that_brought_something_and_ends_is_reopened_at_its_last_version_without_a_failure() {
    run(three, |world| async move {
        world.synced().await;
        world.streaming().await;
        let version = world.apply("a/one", "x").await;
        world.server.end_watches(None);
        world.apply("a/one", "y").await;
        let requests = world.server.requests();
        assert!(requests.contains(&format!("WATCH version=\"{version}\"")), "{requests:?}");
        assert_eq!(world.informer.status().sources[0].counters.failures, 0);
    });
}

#[test]
fn ref_35_a_missing_kind_is_gone_the_store_is_served_and_it_recovers_by_itself() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        world.streaming().await;
        world.server.refuse((0..20).map(|_| ListWatchError::NotFound("no such kind".into())));
        world.server.delete("a/two");
        world.server.compact();
        world.server.end_watches(None);
        world.state(|state| matches!(state, SourceState::Gone { .. })).await;
        assert_eq!(world.informer.lister().list().len(), 3);
        let added = world.server.apply("c/new", "created meanwhile".to_owned());
        assert!(matches!(world.informer.state(), SourceState::Gone { .. }));
        world.agrees().await;
        watched.agrees(&world).await;
        let mut received = watched.received.lines().split_off(3);
        received.sort();
        assert_eq!(received, [format!("Added(Relist) c/new@{added}"), "Missed(Relist) a/two@3".to_owned()]);
    });
}

#[test]
fn ref_39_a_silent_watch_is_renewed_after_30_60_and_then_each_90_seconds_and_nothing_is_lost() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        world.streaming().await;
        let renewals = || world.informer.status().sources[0].counters.renewals;
        pass(Duration::from_secs(35)).await;
        assert_eq!(renewals(), 1);
        pass(Duration::from_secs(60)).await;
        assert_eq!(renewals(), 2);
        pass(Duration::from_secs(90)).await;
        assert_eq!(renewals(), 3);
        world.apply("a/one", "x").await;
        pass(Duration::from_secs(35)).await;
        assert_eq!(renewals(), 4, "an event sets it back to 30 s");
        watched.agrees(&world).await;
        assert_eq!(watched.received.len(), 4);
    });
}

#[test]
fn ref_47_a_hundred_informers_list_under_the_budget_of_their_runtime_and_all_sync() {
    Runtime::simulation(3).lists_at_once(4).start_jitter(Duration::from_millis(100)).build().run(
        |runtime| async move {
            let server = Server::new();
            three(&server);
            server.hold_lists(true);
            let informers: Vec<_> = (0..100)
                .map(|n| {
                    let connected = server.clone();
                    Informer::builder(&runtime, format!("texts-{n}"))
                        .source(move || connected.clone())
                        .start()
                        .expect("the spec is valid")
                })
                .collect();
            pass(Duration::from_secs(1)).await;
            assert_eq!(server.requests().len(), 4, "the others wait for a permit");
            server.hold_lists(false);
            for informer in &informers {
                informer.synced_within(LONG).await.expect("each syncs");
            }
        },
    );
}

#[test]
fn ref_50_in_backoff_for_an_hour_everything_is_served_and_the_staleness_is_visible() {
    run(three, |world| async move {
        world.synced().await;
        let last = world.informer.status().sources[0].last_frame_at.expect("a frame came");
        world.server.refuse((0..1000).map(|_| ListWatchError::source("down")));
        world.server.end_watches(Some(ListWatchError::source("cut")));
        pass(Duration::from_secs(3600)).await;
        assert!(matches!(world.informer.state(), SourceState::Backoff { .. }));
        assert_eq!(world.informer.lister().list().len(), 3);
        let late = world.watched();
        late.synced().await;
        assert_eq!(late.received.len(), 3);
        let stale =
            world.runtime.now() - world.informer.status().sources[0].last_frame_at.expect("a frame came");
        assert!(stale >= Duration::from_secs(3600) && world.runtime.now() - last >= stale);
    });
}
