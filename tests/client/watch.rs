//! Watches: what their lines deliver, and how a watch ends.
//!
//! Answers "what happens to each line, and which end has which meaning?" Parts are written as short texts
//! (`harness.rs`): `+` applied, `-` deleted, `!` undecodable, `=` bookmark.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt;
use informer_actors::list_watch::{KnownObjects, ListWatch};
use informer_core::list_watch_error::{ErrorClass, ListWatchError};
use informer_core::request::{AskedVersion, WatchRequest};
use tokio::sync::Notify;

use crate::harness::*;
use crate::raw_server::*;

/// Watches config maps at a server that sends these lines and ends in order.
async fn lines(text: String) -> (Vec<String>, Result<(), ListWatchError>) {
    let server = RawServer::start(move |mut connection: Connection| {
        let sent = format!("{CHUNKED}{}{LAST_CHUNK}", chunk(&text));
        async move {
            connection.request().await;
            connection.write(sent).await;
            connection.gone().await;
        }
    })
    .await;
    local(async { watch(&made(config_maps(&server.url()).frame_limit(4096)), from("1")).await }).await
}

const BOOKMARK: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"30","creationTimestamp":null},"spec":{"containers":null},"status":{}}"#;

#[tokio::test]
async fn ref_17_every_event_type_is_read_and_a_wrong_kind_is_undecodable() {
    let end = BOOKMARK
        .replace(r#""creationTimestamp":null"#, r#""annotations":{"k8s.io/initial-events-end":"true"}"#);
    let text = [
        event("ADDED", &config_map("one", 2)),
        event("MODIFIED", &config_map("one", 3)),
        event("DELETED", &config_map("one", 4)),
        event("ADDED", &config_map("wrong", 5).replace("ConfigMap", "Secret")),
        event("BOOKMARK", BOOKMARK),
        event("BOOKMARK", &end),
    ];
    let (received, ended) = lines(text.concat()).await;
    let wrong = "!a/wrong@5: wrong kind: v1 Secret, not v1 ConfigMap";
    assert_eq!(received, ["+a/one@2", "+a/one@3", "-a/one@4", wrong, "=30", "==30"]);
    assert!(ended.is_ok());
}

#[tokio::test]
async fn lines_in_another_form_have_the_same_meaning() {
    let object = config_map("one", 2);
    let text = format!(
        "{{ \"type\": \"ADDED\", \"object\": {object} }}\n\n{{\"object\":{object},\"type\":\"MODIFIED\"}}\r\n\
         {{\"type\":\"DELETED\",\"object\":{object},\"more\":{{\"metadata\":1}}}}\n"
    );
    let (received, ended) = lines(text).await;
    assert_eq!(received, ["+a/one@2", "+a/one@2", "-a/one@2"]);
    assert!(ended.is_ok());
}

// REF-45: given a frame over the size bound, or of an unknown event type, when its key can be read, then the
// object is set aside and fetched by GET; else it is as REF-44; memory stays within the bound.
// - a with a key, a frame over the size bound is set aside
// - b one of an unknown event type likewise
// - c what is set aside is fetched by GET:
//   `ref_41_an_undecodable_object_is_asked_for_after_1_min_and_then_at_gaps_of_1_to_10_min_for_hours`
// - d without a key either is as in REF-44:
//   `rest_15_and_ref_44_a_line_without_a_key_is_counted_and_one_relist_brings_what_it_hid`
// - e memory stays within the bound:
//   `ref_45_an_endless_line_holds_no_more_than_the_limit_and_leaves_nothing_allocated`
#[tokio::test]
async fn ref_32_43_45_what_does_not_decode_is_undecodable_under_its_key_and_the_watch_goes_on() {
    let broken = config_map("broken", 3).replace(r#""data":{"#, r#""data":"text","x":{"#);
    let large = config_map("large", 5).replace("é", &"x".repeat(5000));
    let text = [
        event("MODIFIED", &broken),
        event("DELETED", &broken),
        event("RENAMED", &config_map("odd", 4)),
        event("ADDED", &large),
        event("DELETED", &large),
        event("ADDED", &config_map("one", 6)),
    ];
    let (received, ended) = lines(text.concat()).await;
    assert!(received[0].starts_with("!a/broken@3: does not decode"), "{}", received[0]);
    assert!(received[1].starts_with("-!a/broken@3: does not decode"), "{}", received[1]);
    assert_eq!(received[2], "!a/odd@4: unknown event type \"RENAMED\"");
    assert!(
        received[3].starts_with("!a/large@5: the object has 51")
            && received[3].ends_with("bytes, more than the limit"),
        "{}",
        received[3]
    );
    assert!(received[4].starts_with("-!a/large@5"), "{}", received[4]);
    assert_eq!(received[5], "+a/one@6");
    assert!(ended.is_ok());
}

#[tokio::test]
async fn ref_44_a_line_that_names_no_object_ends_the_watch_after_the_lines_before_it() {
    let unnamed = config_map("x", 3).replace(r#""name":"x","#, "");
    let large = format!("\"{}\"", "x".repeat(5000));
    for unreadable in
        ["garbage\n".to_owned(), event("ADDED", &unnamed), event("ODD", "{}"), event("ADDED", &large)]
    {
        let text = format!(
            "{}{unreadable}{}",
            event("ADDED", &config_map("one", 2)),
            event("ADDED", &config_map("two", 4))
        );
        let (received, ended) = lines(text).await;
        assert_eq!(received, ["+a/one@2"]);
        assert!(matches!(ended, Err(ListWatchError::Unreadable(_))), "{unreadable}: {ended:?}");
    }
}

#[tokio::test]
async fn an_error_line_is_typed_as_the_http_answer_would_be_and_a_table_is_refused() {
    let status = |code: u16, reason: &str, details: &str| {
        event(
            "ERROR",
            &format!(r#"{{"kind":"Status","code":{code},"reason":"{reason}","message":"m"{details}}}"#),
        )
    };
    let wait = r#","details":{"retryAfterSeconds":3}"#;
    for (line, class) in [
        (status(410, "Expired", ""), ErrorClass::Relist),
        (status(410, "Gone", ""), ErrorClass::Relist),
        (status(429, "TooManyRequests", wait), ErrorClass::RetryAfter(Duration::from_secs(3))),
        (status(500, "InternalError", ""), ErrorClass::Retry),
        (event("ADDED", r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}"#), ErrorClass::Retry),
    ] {
        let (received, ended) = lines(format!("{}{line}", event("ADDED", &config_map("one", 2)))).await;
        assert_eq!((received, ended.unwrap_err().class()), (vec!["+a/one@2".to_owned()], class), "{line}");
    }
}

#[tokio::test]
async fn refused_watches_are_typed_and_only_a_watch_list_is_unsupported() {
    for (status, initial_events, class) in [
        ("410 Gone", false, ErrorClass::Relist),
        ("403 Forbidden", false, ErrorClass::Denied),
        ("422 Unprocessable Entity", true, ErrorClass::Unsupported),
        ("400 Bad Request", true, ErrorClass::Unsupported),
        ("400 Bad Request", false, ErrorClass::Retry),
    ] {
        let server = RawServer::start(move |mut connection: Connection| async move {
            connection.request().await;
            connection.write(answer(status, "", "words")).await;
            connection.gone().await;
        })
        .await;
        let request = WatchRequest { initial_events, ..from("1") };
        let (_, ended) = local(async { watch(&made(config_maps(&server.url())), request).await }).await;
        assert_eq!(ended.unwrap_err().class(), class, "{status}");
        assert_eq!(server.accepted(), 1, "one attempt");
    }
}

// REF-61: given a list or watch that the server refuses (401, 403, 404, 400 or 422, 405, 406, 415, 429, 5xx,
// 410, a redirect), when its error is read, in the state, in a wait that fails or in the log, then it names
// the path that was asked, without its query, and what to do: of a 403 the rule that RBAC lacks, of a 404 the
// CRD or the version that is not served, of a 401 the kind of the credentials, and no secret. (Changed from
// the path alone: who read it still had to find out what to do.)
// - a it names the path, without its query
// - b and what to do, class by class: `ref_61_each_refusal_names_the_path_and_what_to_do`
// - c in the state, in a wait that fails and in the log:
//   `ref_61_the_state_the_wait_and_the_log_say_the_same_of_each_refusal_and_what_to_do`
// - d long words of the server do not cut that off:
//   `ref_61_what_to_do_is_never_cut_off_by_long_words_of_the_server`
#[tokio::test]
async fn ref_61_a_resource_that_is_refused_or_missing_is_named_by_its_path_without_what_is_selected() {
    for (status, expected) in [
        ("404 Not Found", "no such resource: words, requested at /api/v1/namespaces/a/configmaps"),
        ("401 Unauthorized", "not authenticated: words, requested at /api/v1/namespaces/a/configmaps"),
        ("403 Forbidden", "denied: words, requested at /api/v1/namespaces/a/configmaps"),
        ("500 Oops", "server answered 500: words, requested at /api/v1/namespaces/a/configmaps"),
    ] {
        let server = RawServer::start(move |mut connection: Connection| async move {
            while connection.request().await.is_some() {
                connection.write(answer(status, "content-type: text/plain\r\n", "words")).await;
            }
        })
        .await;
        let selected = config_maps(&server.url()).namespace("a").labels("secret=yes");
        let asking = async {
            let source = made(selected);
            let listed = source.list(latest(), KnownObjects::nothing()).next().await;
            (listed.map(|part| part.map(drop)), watch(&source, from("1")).await.1)
        };
        let (listed, watched) = local(asking).await;
        for error in [listed.expect("an answer").unwrap_err(), watched.unwrap_err()] {
            let text = error.to_string();
            assert!(text.starts_with(expected) && !text.contains("secret"), "{text}");
        }
    }
}

// REST-08: given Forbidden or Unauthorized on watch open, with or without a Status body, when opened, then a
// typed error, one attempt.
// - a 401 and 403, with a Status body, with another and with none, are a typed error
// - b one attempt
#[tokio::test]
async fn rest_08_a_forbidden_watch_is_denied_in_one_attempt_with_and_without_a_status() {
    for (status, code, reason) in
        [("401 Unauthorized", 401, "Unauthorized"), ("403 Forbidden", 403, "Forbidden")]
    {
        let typed = format!(
            r#"{{"kind":"Status","status":"Failure","code":{code},"reason":"{reason}","message":"words"}}"#
        );
        for body in [&*typed, "words", ""] {
            let sent = answer(status, "", body);
            let server = RawServer::start(move |mut connection: Connection| {
                let sent = sent.clone();
                async move {
                    while connection.request().await.is_some() {
                        connection.write(&sent).await;
                    }
                }
            })
            .await;
            let asking = async { watch(&made(config_maps(&server.url())), from("1")).await };
            let (received, ended) = local(asking).await;
            let error = ended.unwrap_err();
            assert!(
                received.is_empty()
                    && matches!(error, ListWatchError::Denied(_) | ListWatchError::Unauthorized(_)),
                "{error}"
            );
            assert_eq!(server.accepted(), 1, "one attempt");
        }
    }
}

#[tokio::test]
async fn the_first_batch_comes_with_the_head_and_an_event_as_soon_as_its_line_is_there() {
    let go_on = Arc::new(Notify::new());
    let said = Arc::clone(&go_on);
    let server = RawServer::start(move |mut connection: Connection| {
        let said = Arc::clone(&said);
        async move {
            let request = connection.request().await.unwrap();
            assert!(request.contains("accept-encoding: identity"), "{request}");
            connection.write(CHUNKED).await;
            said.notified().await;
            let line = event("ADDED", &config_map("one", 2));
            connection.write(chunk(&line[..20])).await;
            connection.write(chunk(&line[20..])).await;
            connection.gone().await;
        }
    })
    .await;
    local(async {
        let mut batches = made(config_maps(&server.url())).watch(from("1"), KnownObjects::nothing());
        assert!(batches.next().await.unwrap().unwrap().is_empty());
        go_on.notify_one();
        let batch = batches.next().await.unwrap().unwrap();
        assert_eq!(batch.iter().map(text).collect::<Vec<_>>(), ["+a/one@2"]);
    })
    .await;
}

#[tokio::test]
async fn an_encoded_watch_is_refused_instead_of_being_cut_at_its_first_member() {
    let server = RawServer::start(|mut connection: Connection| async {
        connection.request().await;
        connection
            .write("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        connection.gone().await;
    })
    .await;
    let mut batches = made(config_maps(&server.url())).watch(from("1"), KnownObjects::nothing());
    let error = local(async { batches.next().await.unwrap().unwrap_err() }).await;
    assert!(matches!(&error, ListWatchError::Protocol(why) if why.contains("encoded")), "{error}");
}

#[tokio::test]
async fn a_refusal_of_a_watch_keeps_its_class_and_its_message_when_it_is_encoded() {
    let gzipped = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let too_old = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;
    for (head, encoding, body, class, words) in [
        ("410 Gone", "gzip", gzipped(too_old), ErrorClass::Relist, "too old"),
        ("410 Gone", "br", b"\x8b\x01\x80\xff".to_vec(), ErrorClass::Relist, "HTTP 410"),
        (
            "429 Too Many Requests\r\nretry-after: 7",
            "gzip",
            gzipped("<html>slow down</html>"),
            ErrorClass::RetryAfter(Duration::from_secs(7)),
            "slow down",
        ),
        ("403 Forbidden", "gzip", b"no gzip".to_vec(), ErrorClass::Denied, "HTTP 403"),
    ] {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {head}\r\ncontent-encoding: {encoding}\r\ncontent-length: {length}\r\n\r\n");
        let sent = [head.into_bytes(), body].concat();
        let server = RawServer::start(move |mut connection: Connection| {
            let sent = sent.clone();
            async move {
                connection.request().await;
                connection.write(sent).await;
                connection.gone().await;
            }
        })
        .await;
        let mut batches = made(config_maps(&server.url())).watch(from("1"), KnownObjects::nothing());
        let error = local(async { batches.next().await.unwrap().unwrap_err() }).await;
        assert_eq!(error.class(), class, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_watch_lasts_thirty_seconds_longer_than_it_was_asked_for_and_not_more() {
    let server = RawServer::start(|mut connection: Connection| async {
        connection.request().await;
        connection.write(CHUNKED).await;
        connection.gone().await;
    })
    .await;
    local(async {
        let request = WatchRequest {
            version: AskedVersion::Latest,
            timeout: Duration::from_secs(300),
            initial_events: false,
        };
        let began = tokio::time::Instant::now();
        let mut batches = made(config_maps(&server.url())).watch(request, KnownObjects::nothing());
        assert!(batches.next().await.unwrap().is_ok());
        tokio::time::pause();
        let error = batches.next().await.unwrap().unwrap_err();
        assert!(matches!(&error, ListWatchError::Timeout(why) if why.contains("330s")), "{error}");
        assert!(began.elapsed() >= Duration::from_secs(329));
    })
    .await;
}

#[tokio::test]
async fn dropping_a_watch_closes_its_connection() {
    let closed = Arc::new(Notify::new());
    let received = Arc::clone(&closed);
    let server = RawServer::start(move |mut connection: Connection| {
        let received = Arc::clone(&received);
        async move {
            connection.request().await;
            connection.write(CHUNKED).await;
            connection.gone().await;
            received.notify_one();
        }
    })
    .await;
    local(async {
        let mut batches = made(config_maps(&server.url())).watch(from("1"), KnownObjects::nothing());
        assert!(batches.next().await.unwrap().is_ok());
        drop(batches);
        closed.notified().await;
    })
    .await;
}

#[tokio::test]
async fn a_burst_is_decoded_on_the_pool_and_stays_in_order() {
    let filler = "x".repeat(8 << 10);
    let text: String = (0..300)
        .map(|n| event("ADDED", &config_map(&format!("n{n}"), n + 1).replace('é', &filler)))
        .collect();
    let server = RawServer::start(move |mut connection: Connection| {
        let sent = format!("{CHUNKED}{}{LAST_CHUNK}", chunk(&text));
        async move {
            connection.request().await;
            connection.write(sent).await;
            connection.gone().await;
        }
    })
    .await;
    let runtime = informer_actors::runtime::Runtime::threads().start().unwrap();
    let source =
        actix_informer::unstable::list_watches(config_maps(&server.url()), runtime.decode_pool()).unwrap();
    let (received, ended) = local(async { watch(&source(), from("1")).await }).await;
    assert_eq!(received, (0..300).map(|n| format!("+a/n{n}@{}", n + 1)).collect::<Vec<_>>());
    assert!(ended.is_ok());
}
