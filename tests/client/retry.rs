//! Broken connections: what is sent twice, what is not, and what is given up.
//!
//! Answers "when may the transport act on its own?" The servers count their connections, so a second attempt is
//! visible.

use actix_informer::client::{Client, Config, Error, TransportError};
use http::Method;
use informer_core::list_watch_error::ListWatchError;

use crate::harness::*;
use crate::raw_server::*;

/// Answers once on each connection and closes it when the next request has come.
async fn answers_once(mut connection: Connection) {
    connection.request().await;
    connection.write(answer("200 OK", "", &list_of(&[], "9"))).await;
    connection.request().await;
}

#[tokio::test]
async fn a_get_on_a_pooled_connection_that_broke_is_sent_again_at_once() {
    let server = RawServer::start(answers_once).await;
    local(async {
        let source = made(config_maps(&server.url()));
        for _ in 0..4 {
            assert_eq!(list(&source, latest()).await.unwrap().version, "9");
        }
    })
    .await;
    assert_eq!(server.accepted(), 4);
}

#[tokio::test]
async fn a_post_on_a_pooled_connection_that_broke_is_not_sent_again() {
    let server = RawServer::start(answers_once).await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    client.request(Method::GET, "/first", None).await.unwrap();
    let error = client.request(Method::POST, "/second", None).await.unwrap_err();
    assert!(matches!(error, Error::Transport(TransportError::Broken { .. })), "{error}");
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_fresh_connection_that_breaks_is_not_tried_again() {
    let server = RawServer::start(|mut connection: Connection| async move {
        connection.request().await;
    })
    .await;
    let error = local(async { list(&made(config_maps(&server.url())), latest()).await.unwrap_err() }).await;
    assert!(matches!(error, ListWatchError::Connection { .. }), "{error}");
    assert_eq!(server.accepted(), 1);
}

// REST-04: given connection refused, when requested, then never retried by the client layer.
// - a never retried
#[tokio::test]
async fn rest_04_a_refused_connection_is_not_tried_again_and_its_error_names_the_address() {
    let server = RawServer::start(|connection: Connection| connection.gone()).await;
    let url = server.url();
    drop(server);
    tokio::task::yield_now().await;
    let error = local(async { list(&made(config_maps(&url)), latest()).await.unwrap_err() }).await;
    assert!(error.to_string().contains("cannot connect to 127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn a_connection_is_used_again_when_the_list_was_read_to_its_end() {
    let server = RawServer::start(|mut connection: Connection| async move {
        while connection.request().await.is_some() {
            let body = list_of(&[config_map("one", 1)], "9");
            connection.write(format!("{CHUNKED}{}", chunk(&body))).await;
            connection.write(LAST_CHUNK).await;
        }
    })
    .await;
    local(async {
        let source = made(config_maps(&server.url()));
        for _ in 0..3 {
            list(&source, latest()).await.unwrap();
        }
    })
    .await;
    assert_eq!(server.accepted(), 1);
}

// REST-16: given connections whose peer no longer answers, when requests continue, then they time out and a
// new connection is made (HTTP/1.1: there is no ping; two timeouts in a row throw the pooled connections
// away).
#[tokio::test]
async fn rest_16_a_head_that_does_not_come_is_given_up_and_two_in_a_row_empty_the_pool() {
    // The first three connections answer once, so that they are pooled, and are silent from then on.
    let server = RawServer::start(|mut connection: Connection| async move {
        let mut answers = if connection.number < 3 { 1 } else { usize::MAX };
        while connection.request().await.is_some() {
            if answers > 0 {
                answers -= 1;
                connection.write(answer("200 OK", "", &list_of(&[], "9"))).await;
            }
        }
    })
    .await;
    local(async {
        let source = made(config_maps(&server.url()));
        // Three connections at once, all pooled afterwards, all silent from then on.
        let ask = || list(&source, latest());
        let (one, two, three) = tokio::join!(ask(), ask(), ask());
        assert!(one.is_ok() && two.is_ok() && three.is_ok());
        tokio::time::pause();
        for _ in 0..2 {
            let error = ask().await.unwrap_err();
            assert!(matches!(&error, ListWatchError::Timeout(_)), "{error}");
        }
        tokio::time::resume();
        assert_eq!(ask().await.unwrap().version, "9", "the third silent connection was thrown away");
    })
    .await;
    assert_eq!(server.accepted(), 4);
}
