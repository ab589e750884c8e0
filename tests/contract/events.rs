//! Event recorders (REC-01 to REC-11) over the in-memory API server in the same simulation.
//!
//! What the recorder decides is tested beside its core (`actors/operator/src/events/machine/tests.rs`), the actor's deaths beside the
//! actor. Here stands what a server keeps, and what is logged.

use std::time::Duration;

use actix_informer::client::api::{ListParams, PostParams};
use actix_informer::client::{Api, Client};
use actix_informer::events::{DropReason, Emitted, EventText, EventType, Recorder, RecorderError};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Node, ObjectReference};
use k8s_openapi::api::events::v1::Event;
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, Resource};
use tracing::Level;

use crate::factory::{Cluster, run};
use crate::log::recorded;
use crate::world::{LONG, pass};

const MINUTE: Duration = Duration::from_secs(60);

fn recorder(cluster: &Cluster) -> Recorder {
    let builder = Recorder::builder(&cluster.client, &cluster.runtime, "price-operator").instance("one");
    builder.start().expect("valid names")
}

fn core_recorder(cluster: &Cluster) -> Recorder {
    let builder = Recorder::builder(&cluster.client, &cluster.runtime, "price-operator").core_v1();
    builder.start().expect("valid names")
}

/// A config map that is not on the server: nobody asks for it.
fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.namespace = Some("default".to_owned());
    map.metadata.uid = Some(format!("uid-of-{name}"));
    map
}

fn say(recorder: &Recorder, note: &str) -> Emitted {
    recorder.event(&map("prices"), EventType::Warning, EventText { reason: "Failed", action: "Read", note })
}

async fn sent(recorder: &Recorder) {
    recorder.flush(LONG).await.expect("all is sent");
}

async fn events(cluster: &Cluster) -> Vec<Event> {
    let events: Api<Event> = cluster.client.api();
    events.list(&ListParams::default()).await.expect("a list").items
}

/// Note and count of each event, in the order of their names.
async fn notes(cluster: &Cluster) -> Vec<(String, i32)> {
    let count = |event: &Event| event.series.as_ref().map_or(1, |series| series.count);
    events(cluster).await.iter().map(|event| (event.note.clone().unwrap_or_default(), count(event))).collect()
}

async fn core_events(cluster: &Cluster) -> Vec<CoreEvent> {
    let events: Api<CoreEvent> = cluster.client.api();
    events.list(&ListParams::default()).await.expect("a list").items
}

/// The verbs of the requests for events, without lists.
fn writes(cluster: &Cluster) -> Vec<String> {
    let requests = cluster.server.requests();
    let writes =
        requests.iter().filter(|request| request.resource.starts_with("events") && request.verb != "list");
    writes.map(|request| request.verb.clone()).collect()
}

// REC-01: given the same event twice, when correlated, then patch with count 2.
// - a patch with count 2
// - b repeats before the request is made are one request:
//   `rec_01_repeats_that_come_before_the_request_is_made_are_one_request`
#[test]
fn rec_01_the_same_event_twice_is_one_on_the_server_with_count_two() {
    run(|cluster| async move {
        let recorder = core_recorder(&cluster);
        say(&recorder, "no price");
        sent(&recorder).await;
        pass(MINUTE).await;
        say(&recorder, "no price");
        sent(&recorder).await;
        let events = core_events(&cluster).await;
        let [event] = &events[..] else { panic!("{events:?}") };
        assert_eq!((event.count, event.message.as_deref()), (Some(2), Some("no price")));
        let times =
            [&event.first_timestamp, &event.last_timestamp].map(|time| time.as_ref().expect("a time").0);
        assert_eq!(times[1].duration_since(times[0]).as_secs(), 60);
        assert_eq!(
            event.source.as_ref().and_then(|source| source.component.as_deref()),
            Some("price-operator")
        );
        assert_eq!(writes(&cluster), ["create", "patch"]);
    });
}

// REC-02: given 10 similar events with different messages within 600 s, when the tenth comes, then one
// aggregate event with a "combined" prefix; the next increments its count.
// - a the tenth is one aggregate event with the prefix
// - b the next increments its count
// - c a message that is told by itself already stays so:
//   `rec_02_a_note_that_is_known_is_told_by_itself_also_when_others_are_combined`
#[test]
fn rec_02_the_tenth_similar_event_is_combined_on_the_server_and_the_next_increments_its_count() {
    run(|cluster| async move {
        for recorder in [recorder(&cluster), core_recorder(&cluster)] {
            for n in 1..=11 {
                say(&recorder, &format!("price {n} is missing"));
                sent(&recorder).await;
                pass(Duration::from_secs(1)).await;
            }
        }
        let combined: Vec<_> = notes(&cluster)
            .await
            .into_iter()
            .filter(|(note, _)| note.starts_with("(combined from similar events): price 1"))
            .collect();
        assert_eq!(combined[0], ("(combined from similar events): price 10 is missing".to_owned(), 2));
        let core = core_events(&cluster).await.into_iter().find(|event| event.count == Some(2));
        assert_eq!(
            core.and_then(|event| event.message).as_deref(),
            Some("(combined from similar events): price 11 is missing")
        );
        assert_eq!((combined.len(), notes(&cluster).await.len()), (2, 20));
    });
}

// REC-05: given default spam key, when only the reason differs, then still spam; with a custom key, not.
// - a when only the reason differs, then still spam
// - b with a custom key, not
// - c 25 at once, and one more each 300 s:
//   `rec_05_after_25_events_an_object_has_one_each_five_minutes_whatever_their_reasons`
// - d a repeat without a token is counted:
//   `rec_05_a_repeat_without_a_token_is_counted_and_told_with_the_next_one`
#[test]
fn rec_05_only_a_key_of_its_own_tells_more_than_25_reasons_of_one_object() {
    run(|cluster| async move {
        let builder = || Recorder::builder(&cluster.client, &cluster.runtime, "price-operator");
        let by_reason = builder().spam_key(|event| event.reason.clone()).start().expect("valid names");
        for (recorder, expected) in [(recorder(&cluster), 25), (by_reason, 40)] {
            let emit = |n| {
                recorder.event(
                    &map("prices"),
                    EventType::Normal,
                    EventText { reason: &format!("Reason{n}"), action: "Read", note: "it" },
                )
            };
            let accepted = (0..40).map(emit).filter(|one| *one == Emitted::Accepted).count();
            assert_eq!(
                (accepted, recorder.figures().dropped(DropReason::Spam)),
                (expected, 40 - expected as u64)
            );
        }
    });
}

#[test]
fn rec_07_a_repeat_of_an_event_that_the_server_has_deleted_creates_it_anew_without_a_version() {
    run(|cluster| async move {
        for recorder in [recorder(&cluster), core_recorder(&cluster)] {
            say(&recorder, "no price");
            sent(&recorder).await;
            let found = events(&cluster).await.remove(0);
            let name = found.metadata.name.expect("a name");
            cluster.server.delete("events", "default", &name).expect("it is there");
            say(&recorder, "no price");
            sent(&recorder).await;
            let anew = events(&cluster).await.remove(0);
            let count = anew.series.map(|series| series.count).or(anew.deprecated_count);
            assert_eq!((anew.metadata.name.as_ref(), count), (Some(&name), Some(2)));
            cluster.server.delete("events", "default", &name).expect("it is there");
        }
        assert_eq!(writes(&cluster), ["create", "patch", "create", "create", "patch", "create"]);
    });
}

// REC-07: given patch answered 404, when updating, then create without RV; server errors are tried again a
// bounded number of times, other refusals are counted by their reason (changed: client-go tries without a
// test of it).
// - a patch answered 404, then create without RV:
//   `rec_07_a_patch_that_is_answered_404_is_followed_by_a_create_with_the_count`
// - b server errors are tried again a bounded number of times
// - c which refusals are tried again:
//   `rec_07_what_may_be_otherwise_later_is_tried_again_and_other_refusals_are_the_end`
// - d other refusals are counted by their reason
// - e nothing is created twice, whatever the server answers:
//   `rec_07_a_create_without_a_clear_answer_is_not_made_twice`
#[test]
fn rec_07_a_server_that_fails_is_tried_again_and_an_event_in_a_namespace_that_is_missing_is_given_up() {
    run(|cluster| async move {
        let recorder = recorder(&cluster);
        cluster.server.faults().fail_next(3, 500);
        say(&recorder, "no price");
        sent(&recorder).await;
        let mut elsewhere = map("prices");
        elsewhere.metadata.namespace = Some("nowhere".to_owned());
        recorder.event(
            &elsewhere,
            EventType::Normal,
            EventText { reason: "Read", action: "Read", note: "it" },
        );
        sent(&recorder).await;
        let figures = recorder.figures();
        assert_eq!((figures.created, figures.retries, figures.dropped(DropReason::Refused)), (1, 3, 1));
        assert_eq!((figures.refused["NotFound"], notes(&cluster).await.len()), (1, 1));
    });
}

// REC-08: given a full queue, when emitting, then the event is dropped without blocking; all earlier ones
// arrive.
// - a dropped without blocking, and counted
// - b all earlier ones arrive
// - c what is not told was dropped for a counted reason:
//   `with_small_bounds_what_is_not_told_was_dropped_for_a_counted_reason`
#[test]
fn rec_08_while_the_server_is_frozen_a_full_queue_drops_the_new_event_at_once() {
    run(|cluster| async move {
        let builder = Recorder::builder(&cluster.client, &cluster.runtime, "price-operator").queue(5);
        let recorder = builder.start().expect("valid names");
        cluster.server.faults().freeze_server(true);
        let before = cluster.runtime.now();
        let emitted: Vec<_> = (0..6).map(|n| say(&recorder, &format!("price {n}"))).collect();
        assert_eq!(emitted[4..], [Emitted::Accepted, Emitted::Dropped(DropReason::Full)]);
        assert_eq!(cluster.runtime.now(), before);
        pass(MINUTE).await;
        cluster.server.faults().freeze_server(false);
        sent(&recorder).await;
        let told: Vec<String> = notes(&cluster).await.into_iter().map(|(note, _)| note).collect();
        let expected: Vec<String> = (0..5).map(|n| format!("price {n}")).collect();
        let mut sorted = told.clone();
        sorted.sort();
        assert_eq!(sorted, expected, "and none is there twice, though answers were lost");
    });
}

// REC-09: given shutdown during emission, when raced, then no panic and every wait ends; what waits is sent
// within a limit, and what is left is named (changed: a recorder has no watchers).
// - a no panic and every wait ends:
//   `rec_09_when_the_runtime_ends_while_events_are_emitted_nothing_panics_and_every_wait_ends`
// - b what waits is sent
// - c what is left at the limit is named
// - d also without a shutdown, after the last handle:
//   `rec_09_what_waits_when_the_last_handle_is_dropped_is_still_sent_and_then_the_actor_ends`
// - e a refusal ends it, too: `rec_09_a_closed_recorder_gives_up_what_is_refused`
#[test]
fn rec_09_a_shutdown_sends_what_waits_within_its_limit_and_says_what_is_left() {
    run(|cluster| async move {
        let first = recorder(&cluster);
        say(&first, "no price");
        first.shutdown(MINUTE).await.expect("it is sent");
        assert_eq!(
            (notes(&cluster).await.len(), say(&first, "late")),
            (1, Emitted::Dropped(DropReason::Closed))
        );
        let second = recorder(&cluster);
        cluster.server.faults().freeze_server(true);
        say(&second, "no price");
        let before = cluster.runtime.now();
        let left = second.shutdown(10 * Duration::from_secs(1)).await.expect_err("nobody answers");
        assert_eq!((left.left, cluster.runtime.now() - before), (1, 10 * Duration::from_secs(1)));
    });
}

// REC-10: given an object without namespace, when emitting, then namespace is default.
#[test]
fn rec_10_the_event_of_an_object_without_namespace_is_in_default() {
    run(|cluster| async move {
        let mut node = Node::default();
        node.metadata.name = Some("one".to_owned());
        for recorder in [recorder(&cluster), core_recorder(&cluster)] {
            recorder.event(
                &node,
                EventType::Normal,
                EventText { reason: "Ready", action: "Check", note: "it is ready" },
            );
            sent(&recorder).await;
        }
        let found = events(&cluster).await;
        assert_eq!(found.len(), 2);
        for event in found {
            let regarding = event.regarding.expect("an object");
            assert_eq!((regarding.kind.as_deref(), regarding.namespace), (Some("Node"), None));
            assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        }
    });
}

// REC-11: given events.k8s.io and a repeat, when emitted, then a series with count 2; after 6 idle minutes it
// is finished; every 30 min heartbeat.
// - a a series with count 2
// - b after 6 idle minutes it is finished, and its count is told
// - c every 30 min heartbeat
// - d an event without repeats is finished, too:
//   `rec_11_an_event_without_repeats_is_forgotten_after_six_idle_minutes`
// - e the first repeat begins it also while the create is under way, and further ones are part of it:
//   `rec_11_the_first_repeat_of_a_create_under_way_begins_a_series_and_the_next_ones_are_part_of_that`
// - f one that gives way to another event is told if there is room, else counted as forgotten:
//   `rec_11_a_series_that_gives_way_is_told_if_there_is_room_for_it_beside_the_event_that_takes_its_place`
// - g one that is over while the queue is full waits for room:
//   `rec_11_a_series_that_is_over_while_the_queue_is_full_is_told_when_it_is_looked_at_again_a_minute_later`
#[test]
fn rec_11_a_repeat_begins_a_series_that_is_told_each_half_hour_and_after_six_idle_minutes() {
    run(|cluster| async move {
        let recorder = recorder(&cluster);
        let mut told = Vec::new();
        for minute in 0..=40 {
            say(&recorder, "no price");
            pass(MINUTE).await;
            let count = notes(&cluster).await[0].1;
            // A heartbeat comes at the full minute, before the repeat of that minute.
            if told.last().is_none_or(|(_, last)| *last != count) {
                told.push((minute, count));
            }
        }
        assert_eq!(told, [(0, 1), (1, 2), (31, 31)]);
        pass(4 * MINUTE).await;
        assert_eq!(notes(&cluster).await[0].1, 31);
        pass(2 * MINUTE).await;
        assert_eq!(notes(&cluster).await[0].1, 41, "six minutes after the last repeat");
        say(&recorder, "no price");
        sent(&recorder).await;
        assert_eq!(notes(&cluster).await.len(), 2, "another series");
    });
}

#[test]
fn an_event_is_about_typed_dynamic_and_cached_objects_and_references_and_names_a_related_one() {
    run(|cluster| async move {
        let recorder = recorder(&cluster);
        let made = cluster.client.api::<ConfigMap>().namespaced("default");
        let typed = made.create(&PostParams::default(), &map("prices")).await.expect("a new map");
        let resource = ApiResource::erase::<ConfigMap>(&());
        let dynamic: Api<DynamicObject> = cluster.client.dynamic_api(&resource).namespaced("default");
        let dynamic = dynamic.get("prices").await.expect("it is there");
        let maps = cluster.client.resource::<ConfigMap>().informer(&cluster.runtime).expect("a description");
        let maps = maps.start().expect("an informer");
        maps.synced().await.expect("it syncs");
        let cached = maps.lister().snapshot().iter().find(|map| map.key().name() == "prices").cloned();
        let reference: ObjectReference = typed.object_ref(&());
        recorder
            .about(&typed)
            .related(&reference)
            .event(EventType::Normal, EventText { reason: "Read", action: "Read", note: "typed" });
        recorder.event(
            &dynamic,
            EventType::Normal,
            EventText { reason: "Read", action: "Read", note: "dynamic" },
        );
        recorder.event(
            &cached.expect("it is cached"),
            EventType::Normal,
            EventText { reason: "Read", action: "Read", note: "cached" },
        );
        recorder.event(
            &reference,
            EventType::Normal,
            EventText { reason: "Read", action: "Read", note: "reference" },
        );
        sent(&recorder).await;
        let found = events(&cluster).await;
        let is_it = |regarding: Option<&ObjectReference>| {
            let plain =
                regarding.map(|regarding| ObjectReference { resource_version: None, ..regarding.clone() });
            plain.is_some_and(|plain| plain == reference)
        };
        assert!(found.iter().all(|event| is_it(event.regarding.as_ref())), "{found:#?}");
        let with_version =
            |event: &&Event| event.regarding.as_ref().is_some_and(|of| of.resource_version.is_some());
        let related = found.iter().filter(|event| is_it(event.related.as_ref())).count();
        assert_eq!((found.iter().filter(with_version).count(), related), (3, 1));
    });
}

#[test]
fn what_the_server_does_not_allow_is_counted_and_logged_once_in_ten_minutes_with_what_to_do() {
    recorded(|log| {
        run(|cluster| async move {
            let recorder = recorder(&cluster);
            cluster.server.faults().deny("create", "events.events.k8s.io");
            for n in 0..3 {
                say(&recorder, &format!("price {n}"));
                sent(&recorder).await;
            }
            let lines = log.texts(Level::WARN);
            let [line] = &lines[..] else { panic!("{lines:?}") };
            assert!(line.starts_with("WARN recorder price-operator: an event is dropped: cannot create the event Failed of ConfigMap default/prices: "), "{line}");
            assert!(line.contains("403"), "{line}");
            pass(10 * MINUTE).await;
            say(&recorder, "another price");
            sent(&recorder).await;
            assert!(log.texts(Level::WARN)[1].contains("(2 more since the last line)"));
            assert_eq!(recorder.figures().refused["Forbidden"], 4);
        });
    });
}

#[test]
fn a_recorder_whose_names_no_server_would_accept_is_not_started() {
    run(|cluster| async move {
        let builder = |name: &str| Recorder::builder(&cluster.client, &cluster.runtime, name);
        for name in ["", "two words", "a/b/c"] {
            let error = builder(name).start().expect_err("no name");
            assert_eq!(error, RecorderError::Controller(name.to_owned()));
        }
        assert!(builder("example.com/price-operator").start().is_ok());
        assert!(builder("price-operator").instance("a".repeat(129)).start().is_err());
    });
}

#[test]
fn two_recorders_at_the_same_moment_take_different_names() {
    run(|cluster| async move {
        let other = Client::in_process(&cluster.runtime, ApiServer::service(&cluster.server));
        let second =
            Recorder::builder(&other, &cluster.runtime, "other-operator").start().expect("valid names");
        let first = recorder(&cluster);
        for recorder in [&first, &second] {
            say(recorder, "no price");
        }
        sent(&first).await;
        sent(&second).await;
        assert_eq!(notes(&cluster).await.len(), 2);
    });
}
