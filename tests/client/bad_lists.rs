//! Answers that are not lists, received by an informer.
//!
//! Answers "is any part of such an answer ever published?" For each there is a typed error, counted; the store stays
//! as it was, before the first list and after it; the next good list is accepted.

use informer_actors::runtime::Runtime;
use informer_core::list_watch_error::{ErrorClass, ListWatchError};
use informer_core::reflector::SourceState;

use crate::harness::*;
use crate::raw_server::*;
use crate::scripted::*;

fn ok(body: &str) -> String {
    answer("200 OK", "content-type: application/json\r\n", body)
}

fn plain(status: &str, headers: &str, words: &str) -> String {
    answer(status, &format!("content-type: text/plain\r\n{headers}"), words)
}

fn broken() -> Vec<(&'static str, String, &'static str)> {
    let items = [object("one@1"), object("two@2")];
    let list = list_of(&items, "9");
    let (open, close) = (items[0].strip_suffix('}').unwrap(), format!("{}}}", items[1]));
    let quoted = r#"{"metadata":{"name":"one","resourceVersion":"1","x":"y},{"metadata":{"name":z"}}"#;
    let nameless = items[0].replace(r#""kind":"ConfigMap","apiVersion":"v1","#, "");
    let half = &list[..list.len() / 2];
    vec![
        ("a truncated document in a whole answer", ok(half), "before its document closes"),
        ("an answer that breaks off", format!("{CHUNKED}{}", chunk(half)), "cut off"),
        ("nothing", ok(""), "ends after 0 bytes"),
        ("garbage", ok("garbage"), "invalid at byte 0"),
        ("a page of HTML", ok("<html>sign in</html>"), "invalid at byte 0"),
        ("a bare array", ok("[]"), "invalid at byte 0"),
        ("null", ok("null"), "invalid at byte 0"),
        ("two documents", ok(&format!("{list}{list}")), "more data after the end of the document"),
        (
            "an item of garbage",
            ok(&list_of(&["tru".to_owned(), object("two@2")], "9")),
            "an item is not JSON",
        ),
        (
            "an item that swallows the next",
            ok(&list_of(&[open.to_owned(), close], "9")),
            "an item is not JSON",
        ),
        ("quotes that swallow an item", ok(&list_of(&[quoted.to_owned()], "9")), "an item is not JSON"),
        (
            "items that are no list",
            ok(&list.replace(r#""items":["#, r#""items":nope,"x":["#)),
            "items is neither an array nor null",
        ),
        ("items that are an object", ok(r#"{"kind":"ConfigMapList","items":{}}"#), "unexpected character"),
        ("a Status", ok(r#"{"kind":"Status","apiVersion":"v1","code":500}"#), "a Status is not a list"),
        ("one object", ok(&items[0]), "a ConfigMap is not a list"),
        (
            "a list of another kind, whose items have none",
            ok(&list_of(&[nameless], "9").replace("ConfigMapList", "SecretList")),
            "wrong kind: a SecretList, not a ConfigMapList",
        ),
        ("a Table", ok(&list.replace("ConfigMapList", "Table")), "a Table is not supported"),
        ("a list without a version", ok(&list_of(&items, "")), "has no resource version"),
        ("a version that is no number", ok(&list_of(&items, "abc")), "\"abc\""),
        ("an answer that is not HTTP", "SSH-2.0-OpenSSH\r\n\r\n".to_owned(), "not valid HTTP"),
    ]
}

fn refused() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("500 in plain text", plain("500 Internal Server Error", "", "oh no"), "answered 500: oh no"),
        ("502 as a page", plain("502 Bad Gateway", "", "<html>bad gateway</html>"), "502: <html>bad"),
        ("503 without words", plain("503 Service Unavailable", "", ""), "HTTP 503 without a message"),
        (
            "500 with half a Status",
            plain("500 Oops", "", r#"{"kind":"Status","mess"#),
            r#"500: {"kind":"Sta"#,
        ),
        (
            "401 in plain text",
            plain("401 Unauthorized", "", "Unauthorized"),
            "not authenticated: Unauthorized",
        ),
        ("404 in plain text", plain("404 Not Found", "", "404 page not found"), "no such resource: 404 page"),
        ("410 in plain text", plain("410 Gone", "", "too old"), "expired: too old"),
        ("429 in plain text", plain("429 Too Many Requests", "", "slow down"), "overloaded: slow down"),
        ("a redirect", answer("302 Found", "location: http://127.0.0.1:1/\r\n", ""), "answered 302"),
    ]
}

/// Sends each bad answer twice: as the first list, and as a relist.
async fn is_refused_and_survived(runtime: &Runtime, what: &str, bad: &str, named: &str) {
    let api = Scripted::start(bad).await;
    let maps = follows(config_maps(&api.url()), runtime).start().unwrap();
    let status = reached(&maps, |status| status.sources[0].counters.failures >= 2).await;
    let error = status.last_error().unwrap().to_string();
    assert!(error.contains(named), "{what}: {error}");
    assert!(!matches!(status.state(), SourceState::Streaming | SourceState::Starting), "{what}");
    assert_eq!((status.synced, status.objects, held(&maps).len()), (false, 0, 0), "{what}");

    api.list(good_list(&["one@1", "two@2"], 9));
    reached(&maps, |status| status.synced).await;
    assert_eq!(held(&maps), ["one@1", "two@2"], "{what}");

    let before = maps.status().sources[0].counters.failures;
    api.list(bad);
    api.bytes(event("ERROR", r#"{"kind":"Status","code":410,"reason":"Expired","message":"old"}"#));
    reached(&maps, |status| status.sources[0].counters.failures >= before + 2).await;
    assert_eq!(held(&maps), ["one@1", "two@2"], "{what}: nothing counts as deleted");
    api.list(good_list(&["one@1", "three@12"], 12));
    published(&maps, 12).await;
    assert_eq!(held(&maps), ["one@1", "three@12"], "{what}");
    assert_eq!(maps.status().restarts, 0, "{what}");
    ends(maps).await;
}

// REF-21: given a LIST answered with a meta.k8s.io Table, when listing, then nothing is published and the
// state is Backoff with a typed error saying that a Table is not supported.
// - a nothing is published
// - b the state is Backoff: `ref_21_an_answer_that_is_not_a_list_is_a_typed_failure`
// - c the error is typed and says that a Table is not supported
// REF-49: given a list whose version is not a decimal number, when received, then nothing is published and
// the state is Backoff with a typed error naming the text.
// - a nothing is published
// - b the state is Backoff: `ref_21_an_answer_that_is_not_a_list_is_a_typed_failure`
// - c the error is typed and names the text:
//   `ref_49_a_list_without_a_live_version_is_refused_naming_the_text`
#[tokio::test]
async fn ref_21_and_ref_49_nothing_of_an_answer_that_is_not_a_list_is_published_and_the_store_stays_as_it_was()
 {
    let runtime = threads();
    for (what, bad, named) in broken() {
        is_refused_and_survived(&runtime, what, &bad, named).await;
    }
}

#[tokio::test]
async fn a_refusal_in_plain_text_is_typed_counted_and_survived() {
    let runtime = threads();
    for (what, bad, named) in refused() {
        is_refused_and_survived(&runtime, what, &bad, named).await;
    }
}

#[tokio::test]
async fn an_absurd_retry_after_is_a_wait_of_five_minutes_and_does_not_end_the_reflector() {
    let runtime = threads();
    let absurd = plain("429 Too Many Requests", "retry-after: 18446744073709551615\r\n", "never again");
    let api = Scripted::start(absurd).await;
    let maps = follows(config_maps(&api.url()), &runtime).start().unwrap();
    let status = reached(&maps, |status| status.sources[0].counters.overloaded == 1).await;
    let longest = ErrorClass::RetryAfter(std::time::Duration::from_secs(5 * 60));
    assert_eq!(status.last_error().map(ListWatchError::class), Some(longest));
    assert_eq!(status.restarts, 0);
    ends(maps).await;
}

#[tokio::test]
async fn a_list_cut_anywhere_in_whole_answers_publishes_nothing_until_one_is_whole() {
    let runtime = threads();
    let items: Vec<_> = (1..=15).map(|n| object(&format!("map-{n:02}@{n}"))).collect();
    let body = list_of(&items, "20");
    assert!(body.len() > 2000, "{}", body.len());
    let cuts: Vec<_> = (0..body.len()).step_by(17).collect();
    let cut = |end: &usize| ok(&body[..body.floor_char_boundary(*end)]);
    let api = Scripted::start(cut(&0)).await;
    cuts[1..].iter().for_each(|end| api.list(cut(end)));
    api.list(ok(&body));
    let maps = follows(config_maps(&api.url()), &runtime).start().unwrap();
    let first = reached(&maps, |status| status.objects > 0 || status.synced).await;
    assert_eq!((first.objects, first.sources[0].counters.failures), (15, cuts.len() as u64));

    for end in &cuts {
        api.list(cut(end));
    }
    let names: Vec<_> = (2..=15).map(|n| format!("map-{n:02}@{n}")).collect();
    api.list(good_list(&names.iter().map(String::as_str).collect::<Vec<_>>(), 30));
    api.bytes(event("ERROR", r#"{"kind":"Status","code":410,"reason":"Expired","message":"old"}"#));
    let second = reached(&maps, |status| status.objects != 15).await;
    assert_eq!((second.objects, second.sources[0].counters.failures), (14, 2 * cuts.len() as u64));
    assert_eq!(held(&maps), names);
    ends(maps).await;
}

// RF-23: given a decode or transform error for one object of a Replace, when applied, then it is set aside
// (REF-32), a key with a last good version is not delivered as Deleted, all others are stored, and the
// informer syncs.
// - a what does not decode is set aside, and the informer syncs
// - b what a transform refuses too:
//   `ref_32_and_rf_23_what_a_transform_refuses_in_a_watch_or_a_list_is_undecodable_with_its_error`
// - c a key with a last good version is not delivered as Deleted:
//   `rf_23_what_is_undecodable_in_a_list_keeps_its_last_good_version_and_is_not_deleted`
// - d all others are stored
#[tokio::test]
async fn rf_23_items_that_cannot_be_read_are_marked_or_counted_and_the_informer_syncs() {
    let runtime = threads();
    let unreadable = |name: &str| object(name).replace(r#""data":{"#, r#""data":"text","x":{"#);
    let api = Scripted::start(good_list(&["one@1", "two@2"], 9)).await;
    let source = config_maps(&api.url()).frame_limit(2048);
    let maps = follows(source, &runtime).start().unwrap();
    reached(&maps, |status| status.synced).await;
    let items = [
        unreadable("one@11"),
        object("wrong@12").replace("ConfigMap", "Secret"),
        object("large@13").replace('é', &"x".repeat(3000)),
        object("x@15").replace(r#""name":"x","#, ""),
        "7".to_owned(),
        object("four@14"),
    ];
    api.list(ok(&list_of(&items, "20")));
    api.bytes(event("ERROR", r#"{"kind":"Status","code":410,"reason":"Gone","message":"old"}"#));
    published(&maps, 20).await;
    assert_eq!(held(&maps), ["four@14", "one@1"], "the last good version stays, what is not listed goes");
    let snapshot = maps.snapshot();
    let mut undecodable: Vec<_> =
        snapshot.undecodable().map(|undecodable| undecodable.key.name().to_owned()).collect();
    undecodable.sort();
    assert_eq!(undecodable, ["large", "one", "wrong"]);
    let status = maps.status();
    assert_eq!((status.sources[0].counters.unreadable, status.sources[0].counters.failures), (2, 0));
    ends(maps).await;
}
