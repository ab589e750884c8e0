//! Lists: what a page contains, and which answers are not a page.
//!
//! Answers "which answers count as a list, and what happens to items that cannot be used?" The server sends the bytes
//! of one answer and keeps the connection open.

use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use actix_informer::client::{Client, Config, TransportError};
use actix_informer::representation::Typed;
use actix_informer::unstable::{self, Body, RequestKind, Transport};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use informer_actors::runtime::DecodePool;
use informer_core::list_watch_error::{ErrorClass, ListWatchError};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::Notify;

use crate::harness::*;
use crate::raw_server::*;

/// Asks for a page of config maps from a server that answers in this way.
async fn answered(sent: String) -> Result<Page, ListWatchError> {
    let server = RawServer::start(move |mut connection: Connection| {
        let sent = sent.clone();
        async move {
            connection.request().await;
            connection.write(sent).await;
            connection.gone().await;
        }
    })
    .await;
    local(async { list(&made(config_maps(&server.url())), latest()).await }).await
}

async fn page(body: &str) -> Result<Page, ListWatchError> {
    answered(answer("200 OK", "content-type: application/json\r\n", body)).await
}

#[tokio::test]
async fn a_page_brings_its_objects_its_version_and_where_the_next_begins() {
    let body = list_of(&[config_map("one", 1), config_map("two", 2)], "9").replace(
        r#""resourceVersion":"9""#,
        r#""resourceVersion":"9","continue":"more","remainingItemCount":5"#,
    );
    let page = page(&body).await.unwrap();
    assert_eq!(page.items, ["a/one@1", "a/two@2"]);
    assert_eq!((page.version.as_str(), page.token.as_deref()), ("9", Some("more")));
}

#[tokio::test]
async fn rf_23_items_that_do_not_decode_are_undecodable_and_items_without_a_name_are_counted() {
    let broken = config_map("broken", 3).replace(r#""data":{"#, r#""data":"text","x":{"#);
    let wrong = config_map("wrong", 4).replace("ConfigMap", "Secret");
    let nameless = r#"{"kind":"ConfigMap","metadata":{"resourceVersion":"5"}}"#.to_owned();
    let page = page(&list_of(&[config_map("one", 1), broken, wrong, nameless, config_map("two", 2)], "9"))
        .await
        .unwrap();
    assert_eq!(page.items.len(), 5);
    assert_eq!(&page.items[..2], ["a/one@1", "a/two@2"]);
    assert!(page.items[2].starts_with("!a/broken@3: does not decode"), "{}", page.items[2]);
    assert_eq!(page.items[3], "!a/wrong@4: wrong kind: v1 Secret, not v1 ConfigMap");
    assert!(page.items[4].starts_with("?no metadata.name"), "{}", page.items[4]);
}

// REF-46: given a decode chunk of 64 objects, one of which panics, when decoded, then the other 63 arrive in
// order and that one is set aside.
// - a the other 63 arrive in order
// - b that one is set aside
#[tokio::test]
async fn ref_46_if_one_object_of_a_chunk_panics_the_others_arrive_in_order_and_that_one_is_undecodable() {
    let items: Vec<_> = (0..64).map(|n| config_map(&format!("n{n}"), n + 1)).collect();
    let body = list_of(&items, "99");
    let server = RawServer::start(move |mut connection: Connection| {
        let sent = answer("200 OK", "", &body);
        async move {
            connection.request().await;
            connection.write(sent).await;
            connection.gone().await;
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let touchy = Typed::<ConfigMap>::new().transform(|map| {
        assert_ne!(map.metadata.name.as_deref(), Some("n17"), "not this one");
        Ok(map)
    });
    let source = client.resource::<ConfigMap>().keep_as(touchy);
    let page = local(async { list(&made(source), latest()).await.unwrap() }).await;
    let mut expected: Vec<_> = (0..64).filter(|n| *n != 17).map(|n| format!("a/n{n}@{}", n + 1)).collect();
    assert_eq!(page.items[..63], expected[..]);
    expected.clear();
    assert!(
        page.items[63].starts_with("!a/n17@18: decoding panicked") && page.items[63].contains("not this one")
    );
}

#[tokio::test]
async fn ref_21_a_table_is_refused_with_an_error_that_names_it() {
    let table =
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"rows":[]}"#;
    let error = page(table).await.unwrap_err();
    assert!(
        matches!(&error, ListWatchError::Protocol(why) if why.contains("Table is not supported")),
        "{error}"
    );
}

#[tokio::test]
async fn ref_49_a_list_without_a_live_version_is_refused_naming_the_text() {
    for (version, named) in [("abc", "\"abc\""), ("", "no resource version"), ("0", "\"0\"")] {
        let error = page(&list_of(&[], version)).await.unwrap_err();
        assert!(matches!(&error, ListWatchError::Protocol(why) if why.contains(named)), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_a_list_of_the_kind_is_refused() {
    let nameless = config_map("one", 1).replace(r#""kind":"ConfigMap","apiVersion":"v1","#, "");
    let other = list_of(&[nameless], "9").replace("ConfigMapList", "SecretList");
    for (body, named) in [
        (config_map("one", 1), "a ConfigMap is not a list"),
        (other, "a SecretList, not a ConfigMapList"),
        ("<html>".to_owned(), "invalid at byte 0"),
        (format!("{} trailing", list_of(&[], "9")), "more data after the end of the document"),
    ] {
        let error = page(&body).await.unwrap_err();
        assert!(matches!(&error, ListWatchError::Protocol(why) if why.contains(named)), "{error}");
    }
}

#[tokio::test]
async fn refusals_are_typed_whether_or_not_they_are_a_status() {
    let text = "content-type: text/plain\r\n";
    for (sent, class) in [
        (answer("410 Gone", text, "old"), ErrorClass::Relist),
        (
            answer("429 Too Many Requests", "retry-after: 7\r\n", "Too many requests"),
            ErrorClass::RetryAfter(std::time::Duration::from_secs(7)),
        ),
        (answer("429 Too Many Requests", text, "Too many requests"), ErrorClass::Retry),
        (answer("401 Unauthorized", text, "Unauthorized"), ErrorClass::Unauthorized),
        (answer("403 Forbidden", text, ""), ErrorClass::Denied),
        (answer("404 Not Found", text, "404 page not found"), ErrorClass::Gone),
        (answer("307 Temporary Redirect", "location: http://127.0.0.1:1/\r\n", ""), ErrorClass::Retry),
        (answer("503 Service Unavailable", text, ""), ErrorClass::Retry),
    ] {
        let error = answered(sent.clone()).await.unwrap_err();
        assert_eq!(error.class(), class, "{sent}: {error}");
    }
}

#[tokio::test]
async fn a_large_list_comes_in_order_through_the_pool_in_chunks() {
    let filler = "x".repeat(8 << 10);
    let items: Vec<_> = (0..500).map(|n| config_map(&format!("n{n}"), n + 1).replace("é", &filler)).collect();
    let body = list_of(&items, "999");
    let server = RawServer::start(move |mut connection: Connection| {
        let sent = answer("200 OK", "", &body);
        async move {
            connection.request().await;
            connection.write(sent).await;
            connection.gone().await;
        }
    })
    .await;
    let runtime = informer_actors::runtime::Runtime::threads().start().unwrap();
    let source = unstable::list_watches(config_maps(&server.url()), runtime.decode_pool()).unwrap();
    let page = local(async { list(&source(), latest()).await.unwrap() }).await;
    assert_eq!(page.items, (0..500).map(|n| format!("a/n{n}@{}", n + 1)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_body_that_falls_silent_is_given_up() {
    let sent = Arc::new(Notify::new());
    let tell = Arc::clone(&sent);
    let server = RawServer::start(move |mut connection: Connection| {
        let tell = Arc::clone(&tell);
        async move {
            connection.request().await;
            connection.write(format!("{CHUNKED}{}", chunk("{"))).await;
            tell.notify_one();
            connection.gone().await;
        }
    })
    .await;
    let error = local(async {
        let source = made(config_maps(&server.url()));
        let mut asking = Box::pin(list(&source, latest()));
        tokio::select! {
            biased;
            answer = &mut asking => panic!("nothing can be known yet: {answer:?}"),
            () = sent.notified() => {}
        }
        // All bytes that will ever come have come; from here on the clock jumps to the next deadline.
        tokio::time::pause();
        asking.await.unwrap_err()
    })
    .await;
    assert!(
        matches!(&error, ListWatchError::Timeout(what) if what.starts_with("a read of the body")),
        "{error}"
    );
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_gzip_list_is_read_and_one_that_is_cut_is_an_error_even_in_whole_chunks() {
    let items: Vec<_> = (0..200).map(|n| config_map(&format!("n{n}"), n + 1)).collect();
    let body = gzipped(&list_of(&items, "999"));
    for (sent, whole) in [(body.len(), true), (body.len() - 20, false), (body.len() / 2, false)] {
        let part = body[..sent].to_vec();
        let server = RawServer::start(move |mut connection: Connection| {
            let part = part.clone();
            async move {
                let request = connection.request().await.unwrap();
                assert!(request.contains("accept-encoding: gzip"), "{request}");
                let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";
                connection.write(format!("{head}{:x}\r\n", part.len())).await;
                connection.write(part).await;
                connection.write(format!("\r\n{LAST_CHUNK}")).await;
                connection.gone().await;
            }
        })
        .await;
        let answer = local(async { list(&made(config_maps(&server.url())), latest()).await }).await;
        assert_eq!(
            answer.as_ref().map(|page| page.items.len()).ok(),
            whole.then_some(200),
            "{sent}: {answer:?}"
        );
    }
}

/// One answer to every request, byte by byte.
async fn list_from(sent: Vec<u8>) -> Result<Page, ListWatchError> {
    let server = RawServer::start(move |mut connection: Connection| {
        let sent = sent.clone();
        async move {
            connection.request().await;
            connection.write(sent).await;
        }
    })
    .await;
    local(async { list(&made(config_maps(&server.url())), latest()).await }).await
}

// REST-38: given a list whose document has closed, when its body then ends with a wrong checksum or length,
// breaks, or does not end, then the list is refused and nothing of it is published.
// - a a wrong checksum or length in a gzip trailer refuses it
// - b so does an unmet Content-Length: `a_list_shorter_than_its_content_length_is_refused`
// - c and a cut before the end of the body:
//   `a_list_cut_at_any_byte_of_the_answer_is_an_error_until_its_body_has_ended`
// - d white space that trickles behind it does not keep it open:
//   `white_space_that_trickles_behind_a_list_does_not_keep_it_open`
#[tokio::test]
async fn rest_38_a_wrong_checksum_or_length_in_the_trailer_of_a_gzip_list_refuses_it() {
    let items: Vec<_> = (0..20).map(|n| config_map(&format!("n{n}"), n + 1)).collect();
    let body = gzipped(&list_of(&items, "999"));
    let answered = |body: &[u8], chunked: bool| {
        let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n";
        let (begin, end) = match chunked {
            true => (format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len()), "\r\n0\r\n\r\n"),
            false => (format!("content-length: {}\r\n\r\n", body.len()), ""),
        };
        list_from([head.as_bytes(), begin.as_bytes(), body, end.as_bytes()].concat())
    };
    for chunked in [true, false] {
        assert_eq!(answered(&body, chunked).await.unwrap().items.len(), 20);
        // The last eight bytes: the checksum, then the length.
        for at in body.len() - 8..body.len() {
            let mut wrong = body.clone();
            wrong[at] ^= 0x10;
            let answer = answered(&wrong, chunked).await;
            assert!(answer.is_err(), "byte {at} of {}: {answer:?}", body.len());
        }
        for missing in 1..=8 {
            let answer = answered(&body[..body.len() - missing], chunked).await;
            assert!(answer.is_err(), "{missing} bytes are missing: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_list_shorter_than_its_content_length_is_refused() {
    let body = list_of(&[config_map("one", 1)], "9");
    for missing in [1, 10] {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len() + missing);
        let error = list_from([head, body.clone()].concat().into_bytes()).await.unwrap_err();
        assert!(error.to_string().contains("cut off"), "{error}");
    }
}

#[tokio::test]
async fn white_space_that_trickles_behind_a_list_does_not_keep_it_open() {
    let body = list_of(&[config_map("one", 1)], "9");
    /// The document, followed by bytes of white space for as long as the client reads.
    struct Trickling(String);
    impl Transport for Trickling {
        fn send(
            &self,
            _request: Request<Bytes>,
            _kind: RequestKind,
        ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
            let document = futures_util::stream::iter([Ok(Bytes::from(self.0.clone()))]);
            let spaces = futures_util::stream::unfold((), |()| async {
                tokio::time::sleep(std::time::Duration::from_millis(900)).await;
                Some((Ok(Bytes::from_static(b" ")), ()))
            });
            let body = document.chain(spaces).boxed_local();
            async move { Ok(Response::new(body)) }.boxed_local()
        }
    }
    tokio::time::pause();
    let source = config_maps("http://nowhere.example");
    let over = move || -> Rc<dyn Transport> { Rc::new(Trickling(body.clone())) };
    let source = unstable::list_watches_over(source, DecodePool::inline(), over).unwrap()();
    let asked = tokio::time::timeout(std::time::Duration::from_secs(60), list(&source, latest())).await;
    let error = asked.expect("it is given up within a minute").unwrap_err();
    assert!(matches!(&error, ListWatchError::Timeout(_)), "{error}");
}

/// Answers every request with the path that was asked for, as the one object of a list.
struct Echo;

impl Transport for Echo {
    fn send(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        assert_eq!(kind, RequestKind::Unary);
        let body = list_of(&[config_map(&request.uri().path().replace('/', "."), 1)], "9");
        let chunks = futures_util::stream::iter([Ok(Bytes::from(body))]).boxed_local();
        async move { Ok(Response::new(chunks)) }.boxed_local()
    }
}

#[tokio::test]
async fn a_users_own_transport_carries_a_source_without_any_network() {
    let source = config_maps("http://nowhere.example").namespace("b");
    let source = unstable::list_watches_over(source, DecodePool::inline(), || Rc::new(Echo)).unwrap()();
    let page = list(&source, latest()).await.unwrap();
    assert_eq!(page.items, ["a/.api.v1.namespaces.b.configmaps@1"]);
}
