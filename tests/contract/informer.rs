//! INF on the running pipeline: joining, leaving, causes, states, stopping.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::Actor;
use informer_actors::informer::WaitForError;
use informer_actors::informer::{Informer, StartError, WaitError};
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::EndReason;
use informer_actors::subscription::{SubscribeError, SubscribeOptions};
use informer_actors::testing::Faults;
use informer_actors::testing::{Recorder, Server};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::reflector::{ReflectorConfig, SourceState};

use crate::world::{LONG, nothing, pass, run, settle, three, until};

// INF-01: given two subscriptions made before the first list, when it arrives, then both receive Added{cause:
// InitialList} once for each object.
// - a both receive Added{cause: InitialList}
// - b once for each object
#[test]
fn inf_01_subscriptions_made_before_the_first_list_each_receive_every_object_once() {
    run(three, |world| async move {
        let (first, second) = (world.watched(), world.watched());
        first.synced().await;
        second.synced().await;
        for watched in [first, second] {
            let mut lines = watched.received.lines();
            lines.sort();
            let expected =
                ["Added(InitialList) a/one@2", "Added(InitialList) a/two@3", "Added(InitialList) b/one@4"];
            assert_eq!(lines, expected);
        }
    });
}

// INF-02: given a synced informer, when a subscription is added, then it receives Added{cause: InitialList}
// for the whole snapshot, then later events; nothing lost, nothing twice.
// - a it receives Added{cause: InitialList} for the whole snapshot
// - b then later events
// - c nothing lost, nothing twice
#[test]
fn inf_02_a_late_subscriber_receives_the_snapshot_and_then_what_follows() {
    run(three, |world| async move {
        world.synced().await;
        let late = world.watched();
        late.synced().await;
        assert_eq!(late.received.len(), 3);
        late.received.clear_lines();
        world.apply("a/one", "x").await;
        world.delete("a/two").await;
        assert_eq!(late.lines(2).await, ["Updated(Watch) a/one@5", "Deleted(Watch) a/two@6"]);
        late.agrees(&world).await;
    });
}

// INF-03: given a stopped informer, when subscribing, then a typed SubscribeError.
// - a it is a typed SubscribeError
// - b also after the end of the `Runtime`: `inf_54_every_wait_ends_when_the_runtime_is_shut_down_first`
#[test]
fn inf_03_subscribing_to_a_stopped_informer_is_a_typed_error() {
    run(nothing, |world| async move {
        assert!(world.informer.shutdown(LONG).await.is_clean());
        let refused = world.informer.subscribe(Recorder::<String>::new().0.start());
        assert_eq!(refused.err(), Some(SubscribeError::Stopped { informer: "texts".into() }));
    });
}

// INF-04: given a stopped informer, when a subscription is dropped or shut down, then it returns at once
// without error.
// - a shut down, it returns without error
// - b at once, and so does a drop:
//   `inf_04_dropping_or_shutting_down_a_subscription_of_a_stopped_informer_takes_no_time`
#[test]
fn inf_04_a_subscription_of_a_stopped_informer_is_shut_down_at_once_without_error() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        assert!(world.informer.shutdown(LONG).await.is_clean());
        assert_eq!(watched.subscription.ended(), Some(EndReason::InformerStopped));
        assert_eq!(watched.subscription.shutdown(LONG).await, Ok(()));
    });
}

// INF-05: given a running informer, when a subscription is dropped, then no further callback starts and
// nothing more is sent (a subscribed actor may still handle the window already in its mailbox); others are
// unaffected.
// - a no further call of a blocking closure starts:
//   `inf_25_dropping_a_subscription_whose_callback_is_blocked_returns_at_once_and_frees_it_after_its_return`
// - b nor of an async closure:
//   `inf_05_no_further_call_of_an_async_closure_starts_after_its_subscription_is_dropped`
// - c a subscribed actor is sent nothing behind the window in its mailbox:
//   `inf_05_a_subscribed_actor_receives_nothing_after_the_window_in_its_mailbox_once_its_subscription_is_dropped`
// - d others are unaffected
#[test]
fn inf_05_a_dropped_subscription_receives_nothing_more_and_the_others_are_unaffected() {
    run(three, |world| async move {
        let (leaving, staying) = (world.watched(), world.watched());
        leaving.synced().await;
        staying.synced().await;
        drop(leaving.subscription);
        settle().await;
        world.apply("a/one", "x").await;
        assert_eq!(staying.lines(4).await.len(), 4);
        assert_eq!(leaving.received.len(), 3);
    });
}

// INF-09: given an informer that lists, streams, loses its server and stops, when its state is awaited, then
// Listing, Streaming, Backoff are seen in that order, and after the stop every wait ends with Err.
// - a Listing, Streaming and Backoff are seen in that order
// - b after the stop a wait for a state ends with Err
// - c so does every other wait, also after the end of the `Runtime`:
//   `inf_54_every_wait_ends_when_the_informer_is_shut_down_first_and_the_runtime_afterwards`
#[test]
fn inf_09_states_are_seen_in_order_and_after_the_stop_every_wait_ends() {
    run(
        |server| {
            three(server);
            server.hold_lists(true);
        },
        |world| async move {
            world.state(|state| matches!(state, SourceState::Listing { .. })).await;
            world.server.hold_lists(false);
            world.streaming().await;
            let down = || ListWatchError::source("the server is down");
            world.server.refuse((0..3).map(|_| down()));
            world.server.end_watches(Some(down()));
            let state = world.state(|state| matches!(state, SourceState::Backoff { attempts: 2, .. })).await;
            assert!(format!("{state:?}").contains("the server is down"));
            let waiting = world.informer.clone();
            let wait = actix_rt::spawn(async move { waiting.wait_until(|_| false).await });
            settle().await;
            world.informer.shutdown(LONG).await;
            assert!(matches!(wait.await.expect("no panic"), Err(WaitError::Stopped { .. })));
            assert!(matches!(world.informer.state(), SourceState::Stopped));
        },
    );
}

// INF-15: given a delete missed while disconnected, when relisted, then Deleted{last: the stored object,
// exact: false, cause: Relist}.
#[test]
fn inf_15_a_delete_missed_while_disconnected_is_delivered_as_a_tombstone() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        world.streaming().await;
        watched.received.clear_lines();
        world.server.freeze_watches(true);
        world.server.delete("a/two");
        world.server.compact();
        world.server.freeze_watches(false);
        world.server.end_watches(None);
        assert_eq!(watched.lines(1).await, ["Missed(Relist) a/two@3"]);
        world.agrees().await;
        watched.agrees(&world).await;
    });
}

// INF-19: given no resync, when a relist returns the same uids and versions, then no subscriber receives
// anything.
#[test]
fn inf_19_a_relist_of_unchanged_objects_notifies_nobody() {
    run(three, |world| async move {
        let watched = world.watched();
        watched.synced().await;
        world.streaming().await;
        let before = world.informer.snapshot();
        world.server.compact();
        world.server.end_watches(Some(ListWatchError::Expired("gone".into())));
        world.informer.wait_until(|status| status.relists() == 1).await.expect("it relists");
        world.streaming().await;
        world.apply("c/new", "4").await;
        assert_eq!(watched.lines(4).await[3..], ["Added(Watch) c/new@5"]);
        let after = world.informer.snapshot();
        assert!(before.iter().all(|old| after.get(old.key()).is_some_and(|new| new.ptr_eq(old))));
    });
}

// INF-20: given subscriptions asking for resync never, each 1 min, 55 s and 5 s, when 121 s of simulated time
// pass, then they receive 0, 2, 2, 24 resyncs: each in its own period.
// - a they receive 0, 2, 2 and 24 resyncs
#[test]
fn inf_20_each_subscription_is_resynced_in_its_own_period() {
    run(three, |world| async move {
        let every = |seconds| SubscribeOptions::new().resync_every(Duration::from_secs(seconds));
        let all = [
            world.watched(),
            world.watched_with(every(60)),
            world.watched_with(every(55)),
            world.watched_with(every(5)),
        ];
        for watched in &all {
            watched.synced().await;
        }
        pass(Duration::from_secs(121)).await;
        let resyncs = all.each_ref().map(|watched| {
            watched.received.lines().iter().filter(|line| line.starts_with("Updated(Resync)")).count() / 3
        });
        assert_eq!(resyncs, [0, 2, 2, 24]);
    });
}

// INF-31: given an informer name that is empty or held by a running informer of the same `Runtime`, when an
// informer is started, then an empty name is an error and a taken one gets a number (`pods`, `pods-2`); a
// name is free again at the stop of its informer, whoever keeps handles of it, and two informers of one kind
// run on one `Runtime`.
// - a an empty name is an error
// - b a taken name gets a number
// - c at the stop it is free, whoever keeps handles of it, and with the last handle
// - d a builder may set another name: `inf_31_an_informer_has_the_name_that_its_builder_gives`
// - e two informers of one kind, by namespace, representation or cluster, run on one `Runtime`:
//   `inf_31_two_informers_of_one_kind_run_on_one_runtime`
#[test]
fn inf_31_a_taken_name_gets_a_number_and_a_name_is_free_again_when_its_informer_is_stopped() {
    Runtime::simulated(1).run(|runtime| async move {
        let start = |name: &str| Informer::<String>::builder(&runtime, name).source(Server::new).start();
        assert_eq!(start("").err(), Some(StartError::NoName));
        let all =
            ["pods", "pods", "pods", "pods-2"].map(|name| start(name).expect("a taken name is not an error"));
        assert_eq!(all.each_ref().map(Informer::name), ["pods", "pods-2", "pods-3", "pods-2-2"]);
        assert_eq!(&*all[1].status().name, "pods-2", "its status shows it too");
        let [first, second, third, _other] = all;
        let (kept, events) = (first.lister(), second.events().expect("it runs"));
        assert!(first.shutdown(LONG).await.is_clean());
        let again = start("pods").expect("it starts");
        assert_eq!(again.name(), "pods", "free at the stop, although old handles are kept");
        drop((second, events));
        assert_eq!(start("pods").expect("it starts").name(), "pods-2", "free with the last handle");
        drop((kept, first));
        assert_eq!(
            start("pods").expect("it starts").name(),
            "pods-2",
            "the informer that stopped first frees nothing more"
        );
        drop(third);
    });
}

#[test]
fn inf_31_an_informer_has_the_name_that_its_builder_gives() {
    Runtime::simulated(1).run(|runtime| async move {
        let web = Informer::<String>::builder(&runtime, "pods-web").source(Server::new).start();
        assert_eq!(web.expect("it starts").name(), "pods-web");
    });
}

// INF-33: given LIST or WATCH Forbidden, when waiting with synced_within(5 s), then it returns state Denied
// and the typed error; it is asked again as a missing kind is (REF-35) with logs as there, other informers
// are untouched, and once allowed it syncs by itself.
// - a synced_within returns state Denied and the typed error
// - b a refused LIST or WATCH is asked again soon
// - c so is a refused watch-list: `inf_33_ref_35_a_refused_watch_list_is_asked_again_as_such`
// - d with logs as in REF-35:
//   `inf_33_and_ref_35_a_source_that_is_refused_for_hours_is_logged_on_entering_and_at_most_each_ten_minutes`
// - e other informers are untouched: `a_kind_that_is_refused_degrades_alone_and_reports_why`
// - f once allowed it syncs by itself
#[test]
fn inf_33_a_refused_informer_reports_denied_asks_again_and_recovers_by_itself() {
    run(
        |server| {
            three(server);
            server.refuse((0..3).map(|_| ListWatchError::Denied("pods is forbidden".into())));
        },
        |world| async move {
            let why = world.informer.synced_within(Duration::from_secs(5)).await.expect_err("it is refused");
            let WaitError::Deadline(why) = why else { panic!("not a deadline: {why}") };
            assert!(matches!(why.state, SourceState::Denied { .. }), "{:?}", why.state);
            assert!(why.last_error.expect("an error").to_string().contains("forbidden"));
            let before = world.runtime.now();
            world.synced().await;
            let late = (world.runtime.now() - before).as_secs();
            assert!(
                (2..10).contains(&late),
                "asked again after 1, 2 and 4 s, and up to twice that: {late} s"
            );
            world.agrees().await;
        },
    );
}

// INF-35: given a first list, a watch event, a relist with changes, a resync and a late join, when delivered,
// then the causes are InitialList, Watch, Relist, Resync, InitialList; a Deleted by watch has exact: true and
// the deletion's version.
// - a the causes are InitialList, Watch, Relist, Resync, InitialList
// - b a Deleted by watch has exact: true and the deletion's version:
//   `inf_02_a_late_subscriber_receives_the_snapshot_and_then_what_follows`
#[test]
fn inf_35_every_event_carries_its_cause() {
    run(three, |world| async move {
        let watched = world.watched_with(SubscribeOptions::new().resync_every(Duration::from_secs(600)));
        watched.synced().await;
        world.streaming().await;
        world.apply("a/one", "x").await;
        world.server.freeze_watches(true);
        world.server.apply("a/two", "y".to_owned());
        world.server.compact();
        world.server.freeze_watches(false);
        world.server.end_watches(None);
        world.agrees().await;
        pass(Duration::from_secs(600)).await;
        let late = world.watched();
        late.synced().await;
        let causes: Vec<_> =
            watched.received.lines().iter().map(|line| line[..line.find(')').unwrap()].to_owned()).collect();
        let mut expected = vec!["Added(InitialList"; 3];
        expected.extend([
            "Updated(Watch",
            "Updated(Relist",
            "Updated(Resync",
            "Updated(Resync",
            "Updated(Resync",
        ]);
        assert_eq!(causes, expected);
        assert!(late.received.lines().iter().all(|line| line.starts_with("Added(InitialList)")));
    });
}

// INF-36: given an informer of two namespaces as two sources, when one has listed, then synced() is pending;
// when both have, Ok, also for subscriptions and whichever of them is empty or lists last; when one is
// Denied, the other's objects are served and followed, and the error names the source.
// - a when one has listed, synced() is pending
// - b when both have, Ok
// - c also for subscriptions, whichever of them is empty or lists last:
//   `inf_36_a_subscription_of_several_sources_syncs_whichever_of_them_is_empty`
// - d when one is Denied, the other's objects are served and followed:
//   `inf_36_while_one_source_is_denied_the_others_objects_are_served_and_the_error_names_the_source`
// - e and the error names the source:
//   `inf_36_while_one_source_is_denied_the_others_objects_are_served_and_the_error_names_the_source`
#[test]
fn inf_36_two_sources_are_one_informer_that_is_synced_when_both_are() {
    Runtime::simulated(1).run(|runtime| async move {
        let sources = ["a", "b"].map(|name| Server::named(SourceId::new(name)));
        sources[0].apply("a/x", "1".to_owned());
        sources[1].apply("b/x", "2".to_owned());
        sources[1].hold_lists(true);
        let spec = |server: &Server<String>, name: &str| {
            SourceSpec::new(SourceId::new(name), server.connect(), ReflectorConfig::new("texts"))
        };
        let informer = Informer::builder(&runtime, "both")
            .source_with(spec(&sources[0], "a"))
            .source_with(spec(&sources[1], "b"))
            .start()
            .expect("the spec is valid");
        let (recorder, received) = Recorder::new();
        let subscription = informer.subscribe(recorder.start()).expect("it runs");
        assert!(informer.synced_within(Duration::from_secs(5)).await.is_err(), "b has not listed");
        assert_eq!(received.lines(), ["Added(InitialList) a/x@2"], "a's objects are served meanwhile");
        assert!(!subscription.status().synced);
        sources[1].hold_lists(false);
        informer.synced_within(LONG).await.expect("both have listed");
        subscription.synced_within(LONG).await.expect("both are delivered");
        let version = sources[1].apply("b/y", "3".to_owned());
        let lister = informer.lister();
        let which = lister.wait_for(&version, LONG).await.expect_err("which source?");
        assert!(matches!(which, WaitForError::SeveralSources { .. }));
        let words = "informer \"both\" has several sources (a, b): use wait_for_write or wait_for_source";
        assert_eq!(which.to_string(), words);
        let unknown = lister.wait_for_source(&SourceId::new("c"), &version, LONG).await.expect_err("no such");
        assert_eq!(unknown.to_string(), "informer \"both\" has no source named \"c\"");
        lister.wait_for_source(&SourceId::new("b"), &version, LONG).await.expect("it arrives");
        assert_eq!(received.len(), 3);
        // A relist of source a that lacks a/x removes it, and leaves b's objects alone.
        sources[0].freeze_watches(true);
        sources[0].delete("a/x");
        sources[0].compact();
        sources[0].freeze_watches(false);
        sources[0].end_watches(None);
        until(|| received.len() == 4).await;
        assert_eq!(received.lines()[3], "Missed(Relist) a/x@2");
        assert_eq!(informer.snapshot().len(), 2);
        received.agrees_with(&informer.snapshot()).expect("the events replay to the store");
    });
}

// INF-39: given `Informer`, `Lister` and `Subscription` handles, when the last of them is dropped, then the
// informer stops within 100 ms and its store is freed; a `Snapshot` kept still reads and keeps nothing
// running.
// - a each handle keeps it running
// - b when the last is dropped, whichever it is, the informer stops within 100 ms:
//   `inf_39_when_the_last_handle_is_dropped_whichever_it_is_the_informer_ends_and_its_store_is_freed`
// - c and its store is freed:
//   `inf_39_when_the_last_handle_is_dropped_whichever_it_is_the_informer_ends_and_its_store_is_freed`
// - d a `Snapshot` kept still reads
// - e and keeps nothing running
#[test]
fn inf_39_the_last_handle_dropped_stops_the_informer_and_a_kept_snapshot_still_reads() {
    run(three, |world| async move {
        world.synced().await;
        let lister = world.informer.lister();
        let snapshot = world.informer.snapshot();
        let probe = snapshot.iter().next().expect("an object").clone();
        drop(world.informer);
        pass(Duration::from_millis(100)).await;
        let requests = world.server.requests().len();
        let version = world.server.apply("a/one", "still followed".to_owned());
        assert!(lister.wait_for(&version, LONG).await.is_ok(), "the lister is a handle too");
        drop(lister);
        pass(Duration::from_secs(3600)).await;
        assert_eq!(world.server.requests().len(), requests, "no further request");
        assert_eq!(snapshot.len(), 3);
        assert_eq!(probe.body(), "1");
    });
}

// INF-40: given synced(), when the informer is Denied for an hour and then allowed, then it stays pending and
// ends Ok; afterwards it is Ok at once for ever; when the informer stops before, Err.
// - a it stays pending for an hour of Denied and ends Ok
// - b afterwards it is Ok at once for ever
// - c when the informer stops before, Err:
//   `inf_40_a_wait_for_the_first_list_ends_with_an_error_when_the_informer_stops_before`
#[test]
fn inf_40_synced_stays_pending_through_an_hour_of_refusal_and_is_latched_afterwards() {
    run(
        |server| {
            three(server);
            server.refuse((0..130).map(|_| ListWatchError::Denied("no".into())));
        },
        |world| async move {
            let start = world.runtime.now();
            world.informer.synced().await.expect("it syncs at last");
            assert!(world.runtime.now() - start > Duration::from_secs(3600));
            world.server.refuse((0..9).map(|_| ListWatchError::Denied("no".into())));
            world.server.end_watches(None);
            world.state(|state| matches!(state, SourceState::Denied { .. })).await;
            let before = world.runtime.now();
            world.informer.synced().await.expect("latched");
            assert_eq!(world.runtime.now(), before, "at once");
        },
    );
}

// INF-49: given `Runtime::simulated(seed)` twice with one seed and one script, when the traces of requests,
// messages and events are compared, then they are equal; another seed may differ; `threads()` runs the same
// wiring.
// - a the traces of requests, messages and events are equal
// - b another seed may differ
// - c `threads()` runs the same wiring:
//   `inf_48_informers_run_in_any_async_main_and_two_runtimes_do_not_affect_each_other`
#[test]
fn inf_49_one_seed_and_one_script_give_one_trace() {
    let trace = |seed: u64| {
        let sites = Arc::new(Mutex::new(Vec::new()));
        let visited = Arc::clone(&sites);
        // Each message between the pipeline's actors passes a site.
        let noted = Faults::new(move |site| visited.lock().expect("no panic").push(site));
        Runtime::simulation(seed).faults(noted).build().run(|runtime| async move {
            let server = Server::new();
            three(&server);
            server.refuse((0..4).map(|_| ListWatchError::source("down")));
            let connected = server.clone();
            let informer = Informer::builder(&runtime, "texts")
                .source(move || connected.clone())
                .start()
                .expect("the spec is valid");
            let (recorder, received) = Recorder::new();
            let _subscription = informer.subscribe(recorder.start()).expect("it runs");
            informer.synced().await.expect("it syncs");
            server.apply("c/x", "5".to_owned());
            pass(Duration::from_secs(600)).await;
            let messages = std::mem::take(&mut *sites.lock().expect("no panic"));
            let last = informer.status().sources[0].last_frame_at;
            (server.requests(), messages, received.lines(), runtime.now(), last)
        })
    };
    let traced = trace(5);
    assert_eq!(traced, trace(5));
    assert!(traced.1.len() > 20, "{:?}", traced.1);
    assert_ne!(traced.4, trace(6).4, "the waits are drawn from the seed");
}
