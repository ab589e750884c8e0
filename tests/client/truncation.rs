//! A body that is cut off never counts as a whole one, wherever and however it is cut.
//!
//! Answers "can half an answer be taken for all of it?" for every kind of framing, plain and over TLS, closed in order
//! or not, and for every byte of one answer.

use std::sync::Arc;

use informer_core::list_watch_error::{ErrorClass, ListWatchError};

use crate::harness::*;
use crate::raw_server::*;
use crate::tls::Authority;

fn page() -> String {
    list_of(&[config_map("one", 1), config_map("two", 2)], "9")
}

/// The ways to cut an answer: what is sent before the connection closes.
fn cuts() -> Vec<(&'static str, String)> {
    let page = page();
    let (half, rest) = page.split_at(page.len() / 2);
    vec![
        ("between two chunks", format!("{CHUNKED}{}", chunk(half))),
        ("inside a chunk", format!("{CHUNKED}{:x}\r\n{half}", page.len())),
        ("inside a chunk's size", format!("{CHUNKED}{}1", chunk(half))),
        (
            "before the end of its length",
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{half}", page.len()),
        ),
        ("right after the head", format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", page.len())),
        ("without any length", format!("HTTP/1.0 200 OK\r\n\r\n{half}")),
        ("in the head", format!("HTTP/1.1 200 OK\r\ncontent-le{}", &rest[..0])),
        ("without a body", "HTTP/1.1 200 OK\r\n\r\n".to_owned()),
    ]
}

fn check(error: ListWatchError, how: &str) {
    assert_eq!(error.class(), ErrorClass::Retry, "{how}: {error}");
    let typed = matches!(error, ListWatchError::Connection { .. } | ListWatchError::Protocol(_));
    assert!(typed, "{how}: {error}");
}

#[tokio::test]
async fn a_cut_list_is_an_error_in_every_way_of_cutting_plain_and_over_tls() {
    let authority = Authority::new();
    for orderly in [true, false] {
        for (how, sent) in cuts() {
            let sent = Arc::new(sent);
            let script = {
                let sent = Arc::clone(&sent);
                move |mut connection: Connection| {
                    let sent = Arc::clone(&sent);
                    async move {
                        connection.request().await;
                        connection.write(&*sent).await;
                        if orderly {
                            connection.close().await;
                        }
                    }
                }
            };
            let plain = RawServer::start(script.clone()).await;
            let error =
                local(async { list(&made(config_maps(&plain.url())), latest()).await.unwrap_err() }).await;
            check(error, how);
            let tls = RawServer::start_tls(authority.acceptor("127.0.0.1"), script).await;
            let source = authority.source(&tls.url());
            let error = local(async { list(&made(source), latest()).await.unwrap_err() }).await;
            check(error, how);
        }
    }
}

#[tokio::test]
async fn a_list_cut_at_any_byte_of_the_answer_is_an_error_until_its_body_has_ended() {
    let page = page();
    let whole = format!("{CHUNKED}{}{}{LAST_CHUNK}", chunk(&page[..40]), chunk(&page[40..]));
    let answers = Arc::new(whole.clone());
    let server = RawServer::start(move |mut connection: Connection| {
        let answers = Arc::clone(&answers);
        async move {
            connection.request().await;
            let end = connection.number.min(answers.len());
            connection.write(&answers.as_bytes()[..end]).await;
        }
    })
    .await;
    local(async {
        for end in 0..=whole.len() {
            // A fresh source: no pooled connection, so that the number of the connection is the cut.
            let answer = list(&made(config_maps(&server.url())), latest()).await;
            assert_eq!(answer.is_ok(), end == whole.len(), "cut at {end} of {}: {answer:?}", whole.len());
        }
    })
    .await;
    assert_eq!(server.accepted(), whole.len() + 1);
}

#[tokio::test]
async fn an_answer_in_two_pieces_is_the_same_wherever_it_is_divided() {
    let page = page();
    let whole = Arc::new(format!("{CHUNKED}{}{}{LAST_CHUNK}", chunk(&page[..200]), chunk(&page[200..])));
    let length = whole.len();
    let server = RawServer::start(move |mut connection: Connection| {
        let whole = Arc::clone(&whole);
        async move {
            connection.request().await;
            let (first, second) = whole.as_bytes().split_at(connection.number);
            connection.write(first).await;
            tokio::task::yield_now().await;
            connection.write(second).await;
        }
    })
    .await;
    local(async {
        for _ in 0..length {
            let page = list(&made(config_maps(&server.url())), latest()).await.unwrap();
            assert_eq!(
                (page.items, page.version.as_str()),
                (vec!["a/one@1".to_owned(), "a/two@2".into()], "9")
            );
        }
    })
    .await;
}

#[tokio::test]
async fn half_a_line_at_the_end_of_a_watch_is_discarded_and_a_cut_is_an_error_after_the_whole_lines() {
    let line = event("ADDED", &config_map("one", 1));
    let half = &line[..line.len() - 1];
    for (tail, clean) in [("", false), (LAST_CHUNK, true)] {
        let sent = format!("{CHUNKED}{}{}{tail}", chunk(&line), chunk(half));
        let server = RawServer::start(move |mut connection: Connection| {
            let sent = sent.clone();
            async move {
                connection.request().await;
                connection.write(sent).await;
            }
        })
        .await;
        let (received, end) =
            local(async { watch(&made(config_maps(&server.url())), from("1")).await }).await;
        assert_eq!(received, ["+a/one@1"]);
        assert_eq!(end.is_ok(), clean, "{end:?}");
    }
}
