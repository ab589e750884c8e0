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

// WL-02: given Added a, b, then a bookmark annotated initial-events-end="true" at version 3, when consumed,
// then one snapshot {a, b} at version 3 is published, Added{cause: InitialList} is delivered for both, the
// informer is synced, and the same stream goes on.
// - a one snapshot {a, b} at version 3 is published
// - b Added{cause: InitialList} is delivered for both
// - c the informer is synced, and the same stream goes on
// - d the bookmark of a server is read: `wl_02_a_watch_list_brings_the_initial_events_and_their_end_bookmark`
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

// REF-01: given a fresh reflector whose source cannot watch-list, when it starts, then the first LIST carries
// version "0" and limit 500, and the WATCH carries the list's version, bookmarks allowed and a timeout.
// - a the first LIST carries version "0" and limit 500
// - b the WATCH carries the list's version
// - c bookmarks are allowed and a timeout is asked for:
//   `wl_17_selectors_stand_in_every_request_and_a_name_joins_the_fields`
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

// REF-02: given a list published at version 10, when the reflector relists, then the request carries "10",
// not "0".
// - a a relist carries "10"
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

// REF-29: given lists that fail, when each fails, then the failure counter of its class rises by one, and
// state and last error hold the typed error; awaiting a change of state sees each.
// - a the failure counter of its class rises by one: `ref_29_each_failed_list_is_counted_by_its_class`
// - b state and last error hold the typed error
// - c awaiting a change of state sees each
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

// WL-03: given Added frames and no annotated bookmark, when the stream goes on, then nothing is published or
// delivered, the state is Listing, and synced() is pending.
// - a nothing is published or delivered
// - b the state is Listing
// - c synced() is pending
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

// REF-35: given 404 on LIST or WATCH of a missing CRD, when it persists, then the state is Gone with the
// reason and the time of the next try, the store goes on serving, it is asked again after 1, 2, 4, 8 and then
// each 15 s, each wait up to twice as long and none above 30 s, and once it has been missing for ten minutes
// each 30 to 60 s, and there is one log line on entering and at most one each 10 min; when the CRD is back it
// recovers by itself: Deleted{exact: false, cause: Relist} for what is gone, Added for what is new. (Changed
// from "every 30 to 60 s": an operator is often installed seconds before its CRD, and stood still for a
// minute.)
// - a the state is Gone after 404 on LIST, WATCH, watch-list or the rewind question, with the reason and the
//   time of the next try: `ref_35_a_kind_that_comes_and_goes_while_it_is_watched_is_asked_for_soon_each_time`
// - b the store goes on serving
// - c it is asked again after 1, 2, 4, 8 and then each 15 s, each wait up to twice as long and none above 30
//   s: `ref_35_a_kind_that_is_missing_is_asked_for_after_1_2_4_to_30_seconds_with_one_request_each`
// - d after ten minutes each 30 to 60 s:
//   `ref_35_after_ten_minutes_a_missing_kind_is_asked_for_each_30_to_60_seconds`
// - e a kind that goes again while it is watched is asked for soon again, one whose watch is refused at once
//   each time is not: `ref_35_a_kind_that_comes_and_goes_while_it_is_watched_is_asked_for_soon_each_time`
// - f there is one log line on entering and at most one each 10 min:
//   `inf_33_and_ref_35_a_source_that_is_refused_for_hours_is_logged_on_entering_and_at_most_each_ten_minutes`
// - g when the CRD is back subscribers receive Deleted{exact: false, cause: Relist} for what is gone and
//   Added for what is new
// - h on both servers a kind that is defined late, deleted and defined again is followed within seconds:
//   `ref_35_a_missing_kind_is_gone_until_it_is_defined`
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

// REF-39: given a watch that is silent but healthy, when 30 s pass, then a second watch is opened at the last
// version and takes over once its head has arrived, the first is closed, nothing is lost or delivered twice;
// with nothing new the next renewals come after 60 s and then each 90 s; an object or bookmark sets it back
// to 30 s.
// - a when 30 s pass, a second watch is opened at the last version, takes over once its head has arrived, and
//   the first is closed: `ref_39_a_silent_watch_is_renewed_after_30_then_60_then_each_90_seconds`
// - b nothing is lost or delivered twice
// - c the next renewals come after 60 s and then each 90 s
// - d an object or bookmark sets it back to 30 s:
//   `ref_39_an_object_or_bookmark_resets_the_silence_to_30_seconds`
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

// REF-47: given 100 informers of one `Runtime` that start or relist at one moment, when run on simulated
// time, then at most the list budget of lists are in flight, the starts are spread, and all sync.
// - a at most the list budget of lists are in flight, when all start and when all relist:
//   `ref_47_never_more_lists_than_the_budget_are_in_flight_whether_all_start_or_all_relist`
// - b the starts are spread:
//   `ref_47_a_hundred_informers_that_start_at_one_moment_begin_spread_over_the_start_jitter`
// - c all sync
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

// REF-50: given a reflector in Backoff for an hour, when read, then lister, snapshots and subscriptions serve
// what they have, and the time since the last frame or bookmark is visible.
// - a lister, snapshots and subscriptions serve what they have
// - b the time since the last frame or bookmark is visible
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
