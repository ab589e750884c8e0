//! REF and WL on the running pipeline: requests in their order, backoff, recovery, back-pressure.
//!
//! What the machine decides alone is tested, scenario by scenario, beside it in informer-core; here the actor, its
//! session, the queue and the store do it together.

use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::list_watch_error::ListWatchError;
use informer_core::reflector::SourceState;

use crate::world::{LONG, nothing, pass, run, settle, three};

#[test]
fn wl_01_and_wl_02_a_fresh_informer_syncs_by_one_watch_with_initial_events_and_no_list() {
    run(three, |world| async move {
        world.synced().await;
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
fn ref_10_refused_connects_wait_ever_longer_and_the_list_count_stays() {
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
fn ref_22_a_stop_in_any_state_ends_requests_and_publishes_nothing_half_listed() {
    run(
        |server| {
            three(server);
            server.hold_lists(true);
        },
        |world| async move {
            world.state(|state| matches!(state, SourceState::Listing { .. })).await;
            world.informer.shutdown(LONG).await;
            let requests = world.server.requests().len();
            world.server.hold_lists(false);
            pass(Duration::from_secs(600)).await;
            assert_eq!(world.server.requests().len(), requests);
            assert!(world.informer.snapshot().is_empty() && world.informer.snapshot().versions().is_empty());
            assert_eq!(world.informer.status().sources[0].counters.failures, 0);
        },
    );
}

#[test]
fn ref_34_from_listing_streaming_backoff_and_denied_a_stop_ends_the_informer_within_100_ms() {
    let stops_in = |prepare: fn(&Server<String>), wanted: fn(&SourceState) -> bool| {
        run(prepare, |world| async move {
            world.state(wanted).await;
            let before = world.runtime.now();
            assert!(world.informer.shutdown(LONG).await.is_clean());
            assert!(world.runtime.now() - before <= Duration::from_millis(100));
        });
    };
    stops_in(|server| server.hold_lists(true), |state| matches!(state, SourceState::Listing { .. }));
    stops_in(three, |state| matches!(state, SourceState::Streaming));
    stops_in(
        |server| server.refuse((0..99).map(|_| ListWatchError::source("down"))),
        |state| matches!(state, SourceState::Backoff { attempts: 4, .. }),
    );
    stops_in(
        |server| server.refuse((0..99).map(|_| ListWatchError::Denied("no".into()))),
        |state| matches!(state, SourceState::Denied { .. }),
    );
    stops_in(
        |server| server.refuse((0..99).map(|_| ListWatchError::NotFound("no".into()))),
        |state| matches!(state, SourceState::Gone { .. }),
    );
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
        world.agrees().await;
        watched.agrees(&world).await;
        assert_eq!(watched.told.lines()[3], "Missed(Relist) a/two@3");
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
        assert_eq!(watched.told.len(), 4);
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
                        .expect("the spec is sound")
                })
                .collect();
            pass(Duration::from_secs(1)).await;
            assert_eq!(server.requests().len(), 4, "the rest wait for their turn");
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
        assert_eq!(late.told.len(), 3);
        let stale =
            world.runtime.now() - world.informer.status().sources[0].last_frame_at.expect("a frame came");
        assert!(stale >= Duration::from_secs(3600) && world.runtime.now() - last >= stale);
    });
}

#[test]
fn rf_17_when_the_queue_is_full_the_reflector_reads_no_more_and_nothing_is_lost() {
    // The Indexer cannot go on while it waits out a restart; the queue in front of it fills.
    run(nothing, |world| async move {
        world.synced().await;
        world.streaming().await;
        for n in 0..20_000 {
            world.server.apply(&format!("a/{}", n % 7), n.to_string());
            if n % 1000 == 0 {
                settle().await;
            }
        }
        world.agrees().await;
    });
}
