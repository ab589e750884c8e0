//! Lines that are not events, received by an informer.
//!
//! Answers "what does one bad line cost?" Each stands between two good lines in an open watch: it is counted as
//! undecodable under its key, or counted and followed by one relist, or it is a failure; the objects around it are
//! there, the object it was about is not lost, and the informer still follows.

use actix_informer::client::Client;
use actix_informer::representation::Typed;
use futures_util::StreamExt;
use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::Notify;
use informer_core::list_watch_error::ListWatchError;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::discovery::ApiResource;

use crate::harness::*;
use crate::scripted::*;

/// A map that has been synced with one and two, and has received three.
async fn following(runtime: &Runtime) -> (Scripted, Informer<ConfigMap>) {
    let api = Scripted::start(good_list(&["one@1", "two@2"], 9)).await;
    let source = config_maps(&api.url()).frame_limit(4096);
    let maps = follows(source, runtime).start().unwrap();
    reached(&maps, |status| status.synced).await;
    api.bytes(added("three@10"));
    published(&maps, 10).await;
    (api, maps)
}

/// The informer still follows.
async fn follows_on(api: &Scripted, maps: Informer<ConfigMap>, what: &str) {
    api.bytes(added("five@50"));
    published(&maps, 50).await;
    assert!(held(&maps).contains(&"five@50".to_owned()), "{what}");
    assert_eq!(maps.status().restarts, 0, "{what}");
    ends(maps).await;
}

/// Sends the line between good ones, with the true state in the next list; returns the result.
async fn met(runtime: &Runtime, line: &[u8]) -> (Scripted, Informer<ConfigMap>) {
    let (api, maps) = following(runtime).await;
    api.list(good_list(&["one@1", "two@2", "three@10", "lost@11", "four@12"], 13));
    api.bytes([line, added("four@12").as_bytes()].concat());
    (api, maps)
}

const ALL: [&str; 5] = ["four@12", "lost@11", "one@1", "three@10", "two@2"];

// REF-17: given Added, Modified, Deleted, an object of the wrong kind and a bookmark, when consumed, then the
// snapshot holds exactly the expected set, the wrong one is set aside under its key, and the source's version
// is the bookmark's.
// - a the snapshot holds exactly the expected set
// - b the wrong one is set aside under its key
// - c the source's version is the bookmark's
#[tokio::test]
async fn ref_17_events_of_every_type_leave_the_expected_set_the_wrong_kind_aside_and_the_bookmarks_version() {
    let runtime = threads();
    let (api, maps) = following(&runtime).await;
    let lines = [
        added("four@11"),
        event("MODIFIED", &object("one@12")),
        event("DELETED", &object("two@13")),
        event("ADDED", &object("wrong@14").replace("ConfigMap", "Secret")),
        event("BOOKMARK", r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"30"}}"#),
    ];
    api.bytes(lines.concat());
    published(&maps, 30).await;
    assert_eq!(held(&maps), ["four@11", "one@12", "three@10"]);
    let snapshot = maps.snapshot();
    let undecodable: Vec<_> = snapshot.undecodable().map(|undecodable| undecodable.key.to_string()).collect();
    assert_eq!(
        (undecodable, snapshot.versions().first().expect("one source").to_string()),
        (vec!["a/wrong".to_owned()], "30".to_owned())
    );
    ends(maps).await;
}

#[tokio::test]
async fn ref_32_and_rf_23_what_a_transform_refuses_in_a_watch_or_a_list_is_undecodable_with_its_error() {
    let runtime = threads();
    let api = Scripted::start(good_list(&["one@1", "two@2"], 9)).await;
    let choosy = Typed::<ConfigMap>::new().transform(|map| match map.metadata.resource_version.as_deref() {
        Some("11" | "21") => Err("the transform refuses it".into()),
        _ => Ok(map),
    });
    let maps = follows(config_maps(&api.url()).keep_as(choosy), &runtime).start().unwrap();
    reached(&maps, |status| status.synced).await;
    api.bytes([event("MODIFIED", &object("one@11")), added("three@12")].concat());
    published(&maps, 12).await;
    let refused = || {
        let snapshot = maps.snapshot();
        let received: Vec<_> = snapshot
            .undecodable()
            .map(|undecodable| format!("{} {}", undecodable.key, undecodable.error))
            .collect();
        received.join(", ")
    };
    assert_eq!(held(&maps), ["one@1", "three@12", "two@2"]);
    assert!(
        refused().starts_with("a/one") && refused().contains("the transform refuses it"),
        "{}",
        refused()
    );
    assert_eq!((maps.status().undecodable, maps.status().relists()), (1, 0));
    api.list(good_list(&["one@11", "two@21", "four@22"], 30));
    api.bytes(event("ERROR", r#"{"kind":"Status","code":410,"reason":"Expired","message":"old"}"#));
    published(&maps, 30).await;
    assert_eq!(held(&maps), ["four@22", "one@1", "two@2"], "the last good versions stay");
    assert!(refused().contains("a/one") && refused().contains("a/two"), "{}", refused());
    ends(maps).await;
}

// REF-44: given a frame whose key cannot be read (garbage JSON, no name), when received, then it is counted
// and the source relists once; items of that list without a key are counted, the others are published, it
// streams on, and no second relist follows for that cause.
// - a it is counted and the source relists once
// - b items of that list without a key are counted, the others are published:
//   `ref_44_an_unreadable_frame_relists_once_and_not_in_a_loop`
// - c it streams on, and no second relist follows
#[tokio::test]
async fn rest_15_and_ref_44_a_line_without_a_key_is_counted_and_one_relist_brings_what_it_hid() {
    let runtime = threads();
    let lost = added("lost@11");
    let cut = &lost.trim_end()[..lost.len() - 9];
    for (what, line) in [
        ("garbage", "garbage\n".to_owned()),
        ("an empty object", "{}\n".to_owned()),
        ("a page of HTML", "<html>bad gateway</html>\n".to_owned()),
        ("no name", lost.replace(r#""name":"lost","#, "")),
        ("an empty name", lost.replace(r#""name":"lost""#, r#""name":"""#)),
        ("a name that is not a text", lost.replace(r#""name":"lost""#, r#""name":7"#)),
        ("no version", lost.replace(r#","resourceVersion":"11""#, "")),
        ("a version that is not a number", lost.replace(r#""11""#, r#""11a""#)),
        ("metadata that is not an object", event("ADDED", r#"{"kind":"ConfigMap","metadata":null}"#)),
        ("an object that is a number", event("ADDED", "7")),
        ("an event without an object", "{\"type\":\"ADDED\"}\n".to_owned()),
        ("an event without a type", format!("{{\"object\":{}}}\n", object("lost@11"))),
        ("an unknown type without a name", event("RENAMED", "{}")),
        ("a Status as an object", event("ADDED", r#"{"kind":"Status","code":500,"metadata":{}}"#)),
        ("a Status in place of an event", "{\"kind\":\"Status\",\"code\":500}\n".to_owned()),
        ("an object in place of an event", format!("{}\n", object("lost@11"))),
        ("a line above the bound without a name", format!("\"{}\"\n", "x".repeat(5000))),
        ("half a line with a newline", format!("{cut}\n")),
        ("an event that has lost its newline", lost.trim_end().to_owned()),
        ("an unknown event that has lost its newline", lost.trim_end().replace("ADDED", "RENAMED")),
    ] {
        let (api, maps) = met(&runtime, line.as_bytes()).await;
        published(&maps, 13).await;
        assert_eq!(held(&maps), ALL, "{what}");
        let status = reached(&maps, |status| status.objects == ALL.len()).await;
        let counters = &status.sources[0].counters;
        let counted = (counters.unreadable, counters.relists_by.unreadable, counters.relists);
        assert_eq!((counted, counters.failures, status.undecodable), ((1, 1, 1), 0, 0), "{what}");
        assert_eq!(api.asked().iter().filter(|asked| asked.starts_with("LIST")).count(), 2, "{what}");
        follows_on(&api, maps, what).await;
    }
}

// REST-15: given an unknown watch event type or a broken frame, when decoding, then a typed, counted error
// and what REF-44 or REF-45 says.
// - a a broken line is counted, and what it hid is listed:
//   `rest_15_and_ref_44_a_line_without_a_key_is_counted_and_one_relist_brings_what_it_hid`
// - b an unknown event type with a key is set aside alone
#[tokio::test]
async fn rest_15_and_ref_32_and_ref_45_a_line_with_a_key_is_undecodable_alone_and_nothing_relists() {
    let runtime = threads();
    let lost = added("lost@11");
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let mut no_text = lost.clone().into_bytes();
    let at = lost.find('é').unwrap();
    no_text[at] = 0xff;
    for (what, line, named) in [
        ("a field of another type", lost.replace(r#""data":{"#, r#""data":"text","x":{"#).into(), "decode"),
        ("a wrong kind", lost.replace("ConfigMap", "Secret").into(), "wrong kind: v1 Secret"),
        ("a wrong version of the kind", lost.replace(r#":"v1""#, r#":"v2""#).into(), "wrong kind: v2 Conf"),
        ("an unknown type", lost.replace("ADDED", "RENAMED").into(), "unknown event type \"RENAMED\""),
        ("more than the bound", lost.replace('é', &"x".repeat(5000)).into(), "more than the limit"),
        ("nesting beyond any object", lost.replace(r#""é\n]}""#, &deep).into(), "does not decode"),
        ("bytes that are not a text", no_text, "invalid utf-8"),
    ] {
        let line: Vec<u8> = line;
        let (api, maps) = met(&runtime, &line).await;
        published(&maps, 12).await;
        reached(&maps, |status| status.undecodable == 1).await;
        assert_eq!(held(&maps), ["four@12", "one@1", "three@10", "two@2"], "{what}");
        let snapshot = maps.snapshot();
        let undecodable: Vec<_> = snapshot.undecodable().collect();
        assert_eq!(
            (undecodable.len(), undecodable[0].key.name(), undecodable[0].version.to_string()),
            (1, "lost", "11".into())
        );
        assert!(undecodable[0].error.contains(named), "{what}: {}", undecodable[0].error);
        let status = maps.status();
        let counters = &status.sources[0].counters;
        assert_eq!((status.data.undecodable, counters.relists, counters.failures), (1, 0, 0), "{what}");
        api.bytes(added("lost@30"));
        published(&maps, 30).await;
        assert_eq!(maps.snapshot().undecodable().count(), 0, "{what}: a good version ends the mark");
        follows_on(&api, maps, what).await;
    }
}

#[tokio::test]
async fn an_error_event_or_an_unreadable_bookmark_is_one_failure_of_its_type_and_a_relist() {
    let runtime = threads();
    let status = |more: &str| event("ERROR", &format!(r#"{{"kind":"Status","message":"words"{more}}}"#));
    for (what, line, named) in [
        ("a Status", status(r#","code":500,"reason":"InternalError""#), "answered 500 InternalError: words"),
        ("a Status without a code", status(""), "answered 500: words"),
        ("a Status with a code of 70000", status(r#","code":70000"#), "answered 500: words"),
        ("a text", event("ERROR", "\"words\""), "answered 500: an error event without a Status"),
        ("null", event("ERROR", "null"), "answered 500: an error event without a Status"),
        ("an object", event("ERROR", &object("lost@11")), "answered 500"),
        ("a Table", event("ADDED", r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1"}"#), "a Table is not"),
        (
            "a bookmark without a version",
            event("BOOKMARK", r#"{"metadata":{}}"#),
            "a bookmark cannot be read",
        ),
        (
            "a bookmark with a version of letters",
            event("BOOKMARK", r#"{"metadata":{"resourceVersion":"x"}}"#),
            "a bookmark cannot be read",
        ),
    ] {
        let (api, maps) = met(&runtime, line.as_bytes()).await;
        published(&maps, 13).await;
        assert_eq!(held(&maps), ALL, "{what}");
        let status = maps.status();
        let counters = &status.sources[0].counters;
        assert_eq!((counters.failures, counters.relists, counters.unreadable), (1, 1, 0), "{what}");
        let error = status.last_error().unwrap().to_string();
        assert!(error.contains(named), "{what}: {error}");
        follows_on(&api, maps, what).await;
    }
}

#[tokio::test]
async fn ref_43_a_deletion_that_does_not_decode_deletes_what_is_stored_and_is_reported_as_not_exact() {
    let runtime = threads();
    let (api, maps) = following(&runtime).await;
    let mut events = maps.events().unwrap();
    for _ in 0..3 {
        assert!(matches!(events.next().await, Some(Notify::Added { .. })));
    }
    let two = object("two@11").replace(r#""data":{"#, r#""data":"text","x":{"#);
    api.bytes(event("DELETED", &two));
    published(&maps, 11).await;
    let Some(Notify::Deleted { last, exact: false, .. }) = events.next().await else {
        panic!("delivered as Deleted, not exact")
    };
    assert_eq!((last.key().name(), last.version().to_string()), ("two", "2".to_owned()));
    assert_eq!((held(&maps), maps.status().undecodable), (vec!["one@1".to_owned(), "three@10".into()], 0));
    drop(events);
    follows_on(&api, maps, "a deletion").await;
}

// REF-16: given a watch that brought a frame and then ends or is cut in mid-frame, when handled, then no
// failure is counted, the backoff is reset, a partial frame is discarded, and the next watch starts at once
// at the last whole frame's version, at most one connect a second.
// - a no failure is counted:
//   `ref_16_a_stream_that_brought_a_frame_and_ends_or_is_cut_is_opened_again_at_once`
// - b the backoff is reset: `ref_16_a_stream_that_brought_a_frame_resets_the_backoff`
// - c a partial frame is discarded
// - d the next watch starts at once at the last whole frame's version
// - e there is at most one connect a second: `ref_16_a_watch_is_not_opened_twice_within_a_second`
// REF-18: given list version 10 and frames Added 10, Modified 20, Bookmark 30, Deleted 40, when the stream is
// cut after each, then the next watch asks from 10, 20, 30, 40.
// - a after each kind of frame the next watch asks from its version:
//   `ref_18_the_next_watch_asks_from_the_last_frame_of_any_kind`
// - b a real stream that is cut likewise
#[tokio::test]
async fn ref_16_and_ref_18_a_watch_cut_anywhere_continues_after_its_last_whole_line() {
    let runtime = threads();
    let (api, maps) = following(&runtime).await;
    let mut events = maps.events().unwrap();
    for _ in 0..3 {
        assert!(matches!(events.next().await, Some(Notify::Added { .. })));
    }
    let line = |n: usize| added(&format!("map-{n:03}@{n}"));
    // Each watch brings one whole line and a part of the next, one byte longer each time.
    let length = line(100).len();
    for n in 0..length {
        let both = format!("{}{}", line(100 + n), &line(101 + n).replace('é', "ee")[..n]);
        api.say(Said::Cut(both.into_bytes()));
        published(&maps, 100 + n as u64).await;
    }
    for n in 0..length {
        let Some(Notify::Added { object, .. }) = events.next().await else { panic!("only added") };
        assert_eq!(object.key().name(), format!("map-{:03}", 100 + n));
    }
    let status = maps.status();
    let counters = &status.sources[0].counters;
    assert_eq!((status.objects, counters.lists, counters.unreadable), (3 + length, 1, 0));
    let asked = api.asked();
    let watches: Vec<_> = asked.iter().filter_map(|asked| asked.strip_prefix("WATCH ")).collect();
    assert_eq!(watches[..3], ["9", "100", "101"]);
    drop(events);
    api.bytes(added("five@5000"));
    published(&maps, 5000).await;
    ends(maps).await;
}

#[tokio::test]
async fn a_watch_that_answers_with_a_document_that_never_ends_its_line_delivers_nothing() {
    let runtime = threads();
    let (api, maps) = following(&runtime).await;
    api.bytes(added("lost@11").trim_end());
    api.say(Said::End);
    // The next watch begins after the last whole line, and brings the cut one again.
    api.bytes([added("lost@11"), added("four@12")].concat());
    published(&maps, 12).await;
    assert_eq!(held(&maps), ALL);
    let asked = api.asked();
    assert_eq!(asked.iter().filter(|asked| *asked == "WATCH 10").count(), 1, "{asked:?}");
    assert_eq!(maps.status().sources[0].counters.failures, 0);
    follows_on(&api, maps, "half a line").await;
}

// REF-19: given a dynamic or metadata informer of one kind, when an object of another kind arrives by list or
// watch, then it is set aside with reason wrong kind and everything else goes on.
// - a it is set aside with reason wrong kind, dynamic or metadata, by list or by watch
// - b everything else goes on
#[tokio::test]
async fn ref_19_another_kind_in_a_list_or_watch_of_a_dynamic_or_metadata_informer_is_undecodable() {
    let runtime = threads();
    let wrong = |item: &str| object(item).replace("ConfigMap", "Secret");
    let partial = |json: String| {
        json.replace(r#""kind":"ConfigMap","apiVersion":"v1""#, PARTIAL)
            .replace("ConfigMapList", PARTIAL_LIST)
    };
    let page = list_of(&[object("one@1"), wrong("listed@2")], "9");
    let lines = [added("two@10"), event("ADDED", &wrong("watched@11")), added("three@12")].concat();
    let ok = |body: &str| crate::raw_server::answer("200 OK", "", body);

    let api = Scripted::start(ok(&page)).await;
    let client = Client::new(actix_informer::client::Config::new(api.url()).unwrap()).unwrap();
    let dynamic = client.dynamic(&ApiResource::erase::<ConfigMap>(&()));
    check_kinds(&api, follows(dynamic, &runtime).start().unwrap(), &lines, "v1 Secret, not v1 ConfigMap")
        .await;

    let api = Scripted::start(ok(&partial(page))).await;
    let client = Client::new(actix_informer::client::Config::new(api.url()).unwrap()).unwrap();
    let metadata = follows(client.metadata::<ConfigMap>(), &runtime).start().unwrap();
    check_kinds(&api, metadata, &partial(lines), "not meta.k8s.io/v1 PartialObjectMetadata").await;
}

const PARTIAL: &str = r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#;
const PARTIAL_LIST: &str = "PartialObjectMetadataList";

async fn check_kinds<S: Send + Sync + 'static>(
    api: &Scripted,
    informer: Informer<S>,
    lines: &str,
    named: &str,
) {
    reached(&informer, |status| status.synced).await;
    assert_eq!(held(&informer), ["one@1"]);
    api.bytes(lines);
    published(&informer, 12).await;
    assert_eq!(held(&informer), ["one@1", "three@12", "two@10"]);
    let snapshot = informer.snapshot();
    let mut undecodable: Vec<_> = snapshot.undecodable().collect();
    undecodable.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(
        undecodable.iter().map(|undecodable| undecodable.key.name()).collect::<Vec<_>>(),
        ["listed", "watched"]
    );
    assert!(
        undecodable
            .iter()
            .all(|undecodable| undecodable.error.contains("wrong kind") && undecodable.error.contains(named))
    );
    let counters = informer.status().sources[0].counters.clone();
    assert_eq!((counters.failures, counters.relists, counters.unreadable), (0, 0, 0));
    ends(informer).await;
}

#[tokio::test]
async fn an_error_event_that_denies_or_misses_the_kind_is_typed_counted_and_asked_again() {
    let runtime = threads();
    let api = Scripted::start(good_list(&["one@1"], 9)).await;
    let kept = config_maps(&api.url()).keep_as(Typed::<ConfigMap>::new());
    let maps = follows(kept, &runtime).start().unwrap();
    reached(&maps, |status| status.synced).await;
    let error =
        |code: u16| event("ERROR", &format!(r#"{{"kind":"Status","code":{code},"message":"words"}}"#));
    api.bytes(error(403));
    let status = reached(&maps, |status| status.sources[0].counters.denied == 1).await;
    assert!(matches!(status.last_error(), Some(ListWatchError::Denied(_))));
    api.watched(2).await;
    api.bytes(error(404));
    let status = reached(&maps, |status| status.sources[0].counters.gone == 1).await;
    assert!(matches!(status.last_error(), Some(ListWatchError::NotFound(_))));
    assert_eq!(held(&maps), ["one@1"], "it goes on serving");
    api.watched(3).await;
    api.bytes(added("two@10"));
    published(&maps, 10).await;
    assert_eq!(held(&maps), ["one@1", "two@10"]);
    ends(maps).await;
}
