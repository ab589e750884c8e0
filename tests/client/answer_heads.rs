//! Heads of answers as servers and the proxies before them send them: interim answers, many headers, no length, an answer
//! before the request is whole.
//!
//! Answers "does each request get its own answer, and the whole of it?" by a server that writes each byte itself, on
//! connections that are used again and again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_informer::client::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use actix_informer::client::{Client, Config, Error, TransportError};
use http::Method;
use k8s_openapi::api::core::v1::Secret;

use crate::harness::*;
use crate::raw_server::*;
use crate::tls::Authority;

fn client(url: &str) -> Client {
    Client::new(Config::new(url).unwrap()).unwrap()
}

fn secrets(client: &Client) -> Api<Secret> {
    client.api::<Secret>().namespaced("a")
}

fn secret(name: &str) -> String {
    format!(r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"a"}}}}"#)
}

/// The name at the end of the path of a request.
fn asked_name(request: &str) -> &str {
    let path = request.split(' ').nth(1).unwrap();
    path.split('?').next().unwrap().rsplit('/').next().unwrap()
}

/// A server that writes these bytes before each answer, in pieces that end at the connection's `divided` byte.
async fn interim(before: String, tls: Option<&Authority>) -> RawServer {
    let script = move |mut connection: Connection| {
        let before = before.clone();
        async move {
            let mut divide = connection.number;
            while let Some(request) = connection.request().await {
                let sent = format!("{before}{}", answer("200 OK", "", &secret(asked_name(&request))));
                let (first, second) = sent.split_at(divide.min(sent.len()));
                connection.write(first).await;
                tokio::task::yield_now().await;
                connection.write(second).await;
                divide += 1;
            }
        }
    };
    match tls {
        None => RawServer::start(script).await,
        Some(authority) => RawServer::start_tls(authority.acceptor("127.0.0.1"), script).await,
    }
}

#[tokio::test]
async fn a_request_that_expects_100_continue_is_sent_without_waiting_for_it() {
    let server = RawServer::start(|mut connection: Connection| async move {
        let request = connection.request().await.unwrap();
        assert!(!request.to_lowercase().contains("expect"), "{request}");
        assert_eq!(connection.body(4).await, "body");
        connection.write(answer("200 OK", "", "{}")).await;
    })
    .await;
    let request = http::Request::post("/a").header("expect", "100-continue").body(b"body".to_vec()).unwrap();
    assert_eq!(client(&server.url()).send(request).await.unwrap().body(), "{}");
}

#[tokio::test]
async fn an_answer_of_http_1_0_without_a_body_is_whole() {
    for head in ["200 OK\r\nContent-Length: 0", "204 No Content"] {
        let server = RawServer::start(move |mut connection: Connection| async move {
            connection.request().await.unwrap();
            connection.write(format!("HTTP/1.0 {head}\r\n\r\n")).await;
        })
        .await;
        let request = http::Request::get("/a").body(Vec::new()).unwrap();
        assert_eq!(client(&server.url()).send(request).await.expect(head).body(), "");
    }
}

#[tokio::test]
async fn client_p2_a_secret_is_the_one_that_was_asked_for_behind_interim_answers_of_every_kind() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n";
    let several = format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n{hints}");
    let authority = Authority::new();
    for before in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n", hints, &several] {
        for tls in [None, Some(&authority)] {
            let server = interim(before.to_owned(), tls).await;
            let client = match tls {
                None => client(&server.url()),
                Some(authority) => {
                    let config = Config::new(server.url()).unwrap();
                    Client::new(config.certificate_authority(authority.pem())).unwrap()
                }
            };
            for name in ["alice", "bob", "carol", "dave", "erin"] {
                let found = secrets(&client).get(name).await.unwrap();
                assert_eq!(found.metadata.name.as_deref(), Some(name), "behind {before:?}");
            }
            assert_eq!(server.accepted(), 1, "the connection is used again");
        }
    }
}

#[tokio::test]
async fn client_p2_interim_answers_may_be_divided_at_any_byte() {
    let before = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\na: b\r\n\r\n".to_owned();
    let length = before.len() + 100;
    let server = interim(before, None).await;
    let client = client(&server.url());
    // One connection, whose answers are divided one byte later each time.
    for number in 0..length {
        let name = format!("of-{number}");
        let found = secrets(&client).get(&name).await.unwrap();
        assert_eq!(found.metadata.name, Some(name));
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn client_p2_an_interim_answer_and_then_the_end_is_a_broken_connection_and_101_is_no_answer() {
    for (sent, expected) in [
        ("HTTP/1.1 103 Early Hints\r\n\r\n", "connection broke before the head of the answer"),
        ("HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n", "the answer is not valid HTTP: 101"),
    ] {
        let server = RawServer::start(move |mut connection: Connection| async move {
            connection.request().await;
            connection.write(sent).await;
            if sent.contains("101") {
                connection.gone().await;
            }
        })
        .await;
        let mut config = Config::new(server.url()).unwrap();
        config = config.max_retries(0);
        let error = secrets(&Client::new(config).unwrap()).get("alice").await.unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

/// A server whose first connection gives each request the object of alice.
async fn mixed_up() -> RawServer {
    RawServer::start(|mut connection: Connection| async move {
        while let Some(request) = connection.request().await {
            let length = request.lines().find_map(|line| line.strip_prefix("content-length: "));
            let body = connection.body(length.map_or(0, |length| length.parse().unwrap())).await;
            let asked = if body.contains("\"bob\"") { "bob" } else { asked_name(&request) };
            let sent = if connection.number == 0 { "alice" } else { asked };
            connection.write(answer("200 OK", "", &secret(sent))).await;
        }
    })
    .await
}

#[tokio::test]
async fn client_p2_an_object_of_another_name_is_an_error_for_each_verb_and_its_connection_is_closed() {
    let mut bob = Secret::default();
    bob.metadata.name = Some("bob".to_owned());
    let (post, params) = (PostParams::default(), PatchParams::default());
    let merge = Patch::Merge(serde_json::json!({}));
    for verb in ["get", "create", "replace", "patch", "delete", "replace_status"] {
        let server = mixed_up().await;
        let secrets = secrets(&client(&server.url()));
        let error = match verb {
            "get" => secrets.get("bob").await.map(drop),
            "create" => secrets.create(&post, &bob).await.map(drop),
            "replace" => secrets.replace("bob", &post, &bob).await.map(drop),
            "patch" => secrets.patch("bob", &params, &merge).await.map(drop),
            "delete" => secrets.delete("bob", &DeleteParams::default()).await.map(drop),
            _ => secrets.replace_status("bob", &post, &bob).await.map(drop),
        };
        match error.unwrap_err() {
            Error::AnotherObject { asked, received, .. } => {
                assert_eq!((&*asked, &*received), ("a/bob", "a/alice"), "{verb}");
            }
            other => panic!("{verb}: {other}"),
        }
        assert_eq!(secrets.get("bob").await.unwrap().metadata.name.as_deref(), Some("bob"), "{verb}");
        assert_eq!(server.accepted(), 2, "{verb}: a new connection");
    }
    let server = mixed_up().await;
    let another_namespace = client(&server.url()).api::<Secret>().namespaced("b");
    let error = another_namespace.get("alice").await.unwrap_err();
    assert!(error.to_string().contains("\"a/alice\", where \"b/alice\" was asked for"), "{error}");
}

#[tokio::test]
async fn client_p8_a_201_with_a_hundred_warnings_is_a_success_and_each_warning_is_heard() {
    let server = RawServer::start(|mut connection: Connection| async move {
        while let Some(request) = connection.request().await {
            let length = request.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            connection.body(length.parse().unwrap()).await;
            let warnings: String = (0..100)
                .map(|number| format!("Warning: 299 - \"spec.a[{number}], \\\"b\\\": old\"\r\n"))
                .collect();
            connection.write(answer("201 Created", &warnings, &secret("bob"))).await;
        }
    })
    .await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    let config = Config::new(server.url()).unwrap();
    let config = config.on_warning(move |warning| keep.lock().unwrap().push(warning.text.clone()));
    let secrets = secrets(&Client::new(config).unwrap());
    let mut bob = Secret::default();
    bob.metadata.name = Some("bob".to_owned());
    for _ in 0..2 {
        secrets.create(&PostParams::default(), &bob).await.unwrap();
        let expected: Vec<_> = (0..100).map(|number| format!("spec.a[{number}], \"b\": old")).collect();
        assert_eq!(std::mem::take(&mut *heard.lock().unwrap()), expected);
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn client_p8_more_headers_than_can_be_read_are_called_so() {
    let server = RawServer::start(|mut connection: Connection| async move {
        connection.request().await;
        let headers: String = (0..300).map(|number| format!("x-{number}: a\r\n")).collect();
        connection.write(answer("200 OK", &headers, "{}")).await;
    })
    .await;
    let error = client(&server.url()).request(Method::GET, "/a", None).await.unwrap_err().to_string();
    assert!(error.contains("too large") && !error.contains("TLS"), "{error}");
}

/// A server that answers so, and then closes in order.
async fn closing(sent: Vec<u8>) -> RawServer {
    RawServer::start(move |mut connection: Connection| {
        let sent = sent.clone();
        async move {
            connection.request().await;
            connection.write(sent).await;
            connection.close().await;
        }
    })
    .await
}

#[tokio::test]
async fn client_p13_a_list_and_a_watch_that_end_with_their_connection_are_read_to_its_end() {
    let page = list_of(&[config_map("one", 1), config_map("two", 2)], "9");
    let events = event("ADDED", &config_map("three", 10));
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
    ] {
        let server = closing(format!("{head}{page}").into_bytes()).await;
        let found = local(list(&made(config_maps(&server.url())), latest())).await.unwrap();
        assert_eq!((found.items, &*found.version), (vec!["a/one@1".to_owned(), "a/two@2".into()], "9"));
        let server = closing(format!("{head}{events}").into_bytes()).await;
        let (found, end) = local(watch(&made(config_maps(&server.url())), from("9"))).await;
        assert_eq!(found, ["+a/three@10"], "{head:?}");
        end.unwrap();
    }
}

#[tokio::test]
async fn client_p13_a_packed_list_that_ends_with_its_connection_is_an_error_where_it_is_cut() {
    let page = list_of(&[config_map("one", 1), config_map("two", 2)], "9");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, page.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for missing in [0, 1, 8, packed.len() / 2] {
        let mut sent = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n".to_vec();
        sent.extend_from_slice(&packed[..packed.len() - missing]);
        let server = closing(sent).await;
        let found = local(list(&made(config_maps(&server.url())), latest())).await;
        assert_eq!(found.is_ok(), missing == 0, "without the last {missing} bytes: {found:?}");
    }
}

#[tokio::test]
async fn an_answer_beside_an_upgrade_header_is_read_whole_and_the_next_one_is_its_own() {
    let server = RawServer::start(|mut connection: Connection| async move {
        while let Some(request) = connection.request().await {
            let headers = "upgrade: websocket\r\nconnection: upgrade\r\n";
            let status = if request.contains("/refused") { "304 Not Modified" } else { "200 OK" };
            connection
                .write(answer(status, headers, if status.starts_with('2') { "whole" } else { "" }))
                .await;
        }
    })
    .await;
    let client = client(&server.url());
    for _ in 0..3 {
        let found = client.request(Method::GET, "/a", None).await.unwrap();
        assert_eq!(&found.body()[..], b"whole");
    }
}

#[tokio::test]
async fn a_413_that_comes_before_the_body_is_written_is_what_the_caller_receives() {
    let status =
        r#"{"kind":"Status","code":413,"reason":"RequestEntityTooLarge","message":"limit is 3145728"}"#;
    let authority = Authority::new();
    for reads_no_more in [true, false] {
        for tls in [None, Some(&authority)] {
            let script = move |mut connection: Connection| async move {
                connection.request().await;
                connection.write(answer("413 Request Entity Too Large", "", status)).await;
                if reads_no_more {
                    // As a server whose proxy has stopped reading, and which keeps the connection.
                    std::future::pending::<()>().await;
                }
            };
            let server = match tls {
                None => RawServer::start(script).await,
                Some(authority) => RawServer::start_tls(authority.acceptor("127.0.0.1"), script).await,
            };
            let mut config = Config::new(server.url()).unwrap();
            if let Some(authority) = tls {
                config = config.certificate_authority(authority.pem());
            }
            let client = Client::new(config).unwrap();
            let body = Some(("application/json", vec![b'x'; 24 << 20]));
            let sending = client.request(Method::POST, "/api/v1/namespaces/a/secrets", body);
            let error = tokio::time::timeout(Duration::from_secs(10), sending).await.unwrap().unwrap_err();
            let (is_tls, how) = (tls.is_some(), if reads_no_more { "stays" } else { "goes" });
            let refused = error.refused().unwrap_or_else(|| panic!("TLS {is_tls}, {how}: {error}"));
            assert_eq!((refused.code, &*refused.message), (413, "limit is 3145728"));
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_body_is_written_is_still_a_broken_one() {
    let server = RawServer::start(|mut connection: Connection| async move {
        connection.request().await;
    })
    .await;
    let body = Some(("application/json", vec![b'x'; 24 << 20]));
    let error = client(&server.url()).request(Method::POST, "/a", body).await.unwrap_err();
    assert!(matches!(error, Error::Transport(TransportError::Broken { .. })), "{error}");
}

#[tokio::test]
async fn client_p7_each_limit_of_a_connection_and_an_answer_can_be_set() {
    let silent = RawServer::start(|mut connection: Connection| async move {
        connection.some().await;
        connection.gone().await;
    })
    .await;
    let half = RawServer::start(|mut connection: Connection| async move {
        connection.request().await;
        connection.write(format!("{CHUNKED}{}", chunk("{"))).await;
        connection.gone().await;
    })
    .await;
    let (config, short) = (|url: &str| Config::new(url).unwrap(), Duration::from_millis(50));
    let secure = config(&silent.url().replace("http:", "https:")).accept_invalid_certificates();
    let through = config("http://127.0.0.1:1").proxy(silent.url()).unwrap();
    for (config, path, expected) in [
        (config(&silent.url()).head_limit(short), "/api/v1/nodes/one", "the head of the answer"),
        (config(&silent.url()).slow_head_limit(short), "/api/v1/nodes", "the head of the answer"),
        (config(&half.url()).read_limit(short), "/version", "a read of the body"),
        (secure.handshake_limit(short), "/version", "the TLS handshake"),
        (through.proxy_limit(short), "/version", "the answer of the proxy"),
    ] {
        let client = Client::new(config).unwrap();
        let asking = client.request(Method::GET, path, None);
        let error = tokio::time::timeout(Duration::from_secs(4), asking).await.expect(expected).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected) && text.contains("50ms"), "{expected}: {text}");
    }
}
