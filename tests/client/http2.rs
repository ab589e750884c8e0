//! Requests over HTTP/2: who shares a connection, and what a server may do to a stream.
//!
//! Answers "what does a client promise that sends over HTTP/2?" The other suites run over it too, with
//! `INFORMER_TEST_HTTP2` in their environment (`.ci/long`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::client::{BodyStream, Client, Error, TransportError};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use h2::Reason;
use http::{Method, Request};
use informer_actors::list_watch::{KnownObjects, ListWatch};
use informer_core::list_watch_error::ListWatchError;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::Semaphore;

use crate::harness::*;
use server::{Asked, GO_AWAY, GOAWAY, Http2Server, RST_STREAM, SETTINGS, Then, by_frames, frame};

mod connections;
mod server;

async fn open(client: &Client, path: &str) -> Result<BodyStream, Error> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    Ok(client.stream(request, Duration::MAX).await?.into_body())
}

async fn first(body: &mut BodyStream) -> Bytes {
    body.next().await.expect("a chunk").expect("it is whole")
}

/// Sends a byte, and goes on when the test says so.
fn held(
    may_end: &Arc<Semaphore>,
) -> impl Fn(Asked) -> futures_util::future::BoxFuture<'static, ()> + Clone + use<> {
    let may_end = Arc::clone(may_end);
    move |mut asked: Asked| {
        let may_end = Arc::clone(&may_end);
        Box::pin(async move {
            let mut body = asked.begin();
            body.send_data("a".into(), false).unwrap();
            drop(may_end.acquire().await);
            body.send_data("b".into(), true).unwrap();
        })
    }
}

#[tokio::test]
async fn a_thousand_streams_that_begin_at_once_share_a_dozen_connections() {
    let may_end = Arc::new(Semaphore::new(0));
    let server = Http2Server::start(None, held(&may_end)).await;
    // The default holds back more than 500 requests at once.
    let client = Client::new(server.config().max_in_flight(2_000).rate_limit(10_000, 10_000)).unwrap();
    let mut bodies = join_all((0..1_000).map(|_| open(&client, "/watch"))).await;
    for body in &mut bodies {
        assert_eq!(first(body.as_mut().unwrap()).await, "a");
    }
    let connections = server.connections();
    assert!((10..=12).contains(&connections), "{connections}");
    assert_eq!(server.most_streams(), 100);
    may_end.add_permits(1_000);
    for body in bodies {
        assert_eq!(first(&mut body.unwrap()).await, "b");
    }
    first(&mut open(&client, "/watch").await.unwrap()).await;
    assert_eq!(server.connections(), connections, "they are used again");
}

#[tokio::test]
async fn no_stream_waits_for_another_where_the_server_allows_few_on_a_connection() {
    let may_end = Arc::new(Semaphore::new(0));
    let server = Http2Server::start(Some(7), held(&may_end)).await;
    let client = server.client();
    let bodies = join_all((0..20).map(|_| open(&client, "/watch"))).await;
    for body in bodies {
        assert_eq!(first(&mut body.unwrap()).await, "a");
    }
    assert!(server.most_streams() <= 7, "{}", server.most_streams());
    assert!((3..=4).contains(&server.connections()), "{}", server.connections());
}

/// What the client lets a server send on one stream before it reads.
const WINDOW: usize = 1 << 20;

#[tokio::test]
async fn a_server_that_goes_away_keeps_its_streams_and_gets_no_new_ones() {
    let may_end = Arc::new(Semaphore::new(0));
    let server = Http2Server::start(None, held(&may_end)).await;
    // Each unary request would make another connection of its own kind.
    let client = server.client();
    let mut first_of_all = open(&client, "/watch").await.unwrap();
    assert_eq!(first(&mut first_of_all).await, "a");
    drop(open(&client, GO_AWAY).await.unwrap());
    let mut later = join_all((0..20).map(|_| open(&client, "/watch"))).await;
    for body in &mut later {
        assert_eq!(first(body.as_mut().unwrap()).await, "a");
    }
    assert_eq!(server.connections(), 2);
    may_end.add_permits(100);
    assert_eq!(first(&mut first_of_all).await, "b");
    assert!(first_of_all.next().await.is_none(), "it has ended in order");
}

#[tokio::test]
async fn a_limit_of_streams_that_comes_later_counts_for_the_next_request() {
    const MAX_CONCURRENT_STREAMS: u8 = 3;
    let begun = [
        frame(SETTINGS, 0, 0, &[0, MAX_CONCURRENT_STREAMS, 0, 0, 0, 1]),
        frame(1, 4, 1, &[0x88]),
        frame(0, 0, 1, b"a"),
    ];
    let (server, authority) = by_frames(Then::Silence, move |_| begun.concat()).await;
    let client = Client::new(authority.config(&server.url()).http2()).unwrap();
    let mut bodies = Vec::new();
    for connections in [1, 2] {
        bodies.push(open(&client, "/watch").await.unwrap());
        assert_eq!(first(bodies.last_mut().unwrap()).await, "a");
        assert_eq!(server.accepted(), connections);
    }
}

#[tokio::test]
async fn when_three_hundred_lists_time_out_together_the_next_one_has_another_connection() {
    let (came, answers) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, may_answer) = (Arc::clone(&came), Arc::clone(&answers));
    let server = Http2Server::start(None, move |mut asked: Asked| {
        let (came, answers) = (Arc::clone(&count), Arc::clone(&may_answer));
        async move {
            came.fetch_add(1, Ordering::SeqCst);
            match answers.load(Ordering::SeqCst) {
                true => asked.begin().send_data(list_of(&[], "9").into(), true).unwrap(),
                false => std::future::pending().await,
            }
        }
    })
    .await;
    let source = Client::new(server.config().max_in_flight(1_000)).unwrap().resource::<ConfigMap>();
    let source = made(source);
    local(async {
        let all_there = async {
            while came.load(Ordering::SeqCst) < 300 {
                tokio::task::yield_now().await;
            }
            tokio::time::pause();
        };
        let (lists, ()) = tokio::join!(join_all((0..300).map(|_| list(&source, latest()))), all_there);
        assert!(lists.iter().all(|list| matches!(list, Err(ListWatchError::Timeout(_)))), "{:?}", lists[0]);
        tokio::time::resume();
        answers.store(true, Ordering::SeqCst);
        let before = server.connections();
        assert_eq!(list(&source, latest()).await.unwrap().version, "9");
        assert_eq!(server.connections(), before + 1);
    })
    .await;
}

#[tokio::test]
async fn streams_that_nobody_reads_delay_no_other_on_their_connection() {
    let filled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&filled);
    let server = Http2Server::start(None, move |mut asked: Asked| {
        let filled = Arc::clone(&count);
        async move {
            let mut body = asked.begin();
            if asked.path() == "/prompt" {
                body.send_data("now".into(), true).unwrap();
                return;
            }
            let mut left = WINDOW;
            while left > 0 {
                body.reserve_capacity(left);
                let capacity = std::future::poll_fn(|context| body.poll_capacity(context));
                let room = capacity.await.unwrap().unwrap();
                body.send_data(vec![b'x'; room].into(), false).unwrap();
                left -= room;
            }
            filled.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
    })
    .await;
    let client = server.client();
    let stalled = join_all((0..99).map(|_| open(&client, "/stalled"))).await;
    let stalled: Vec<_> = stalled.into_iter().map(Result::unwrap).collect();
    let all = async {
        while filled.load(Ordering::SeqCst) < stalled.len() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("all windows are full");
    let mut prompt = open(&client, "/prompt").await.unwrap();
    assert_eq!(first(&mut prompt).await, "now");
    assert_eq!(server.connections(), 1);
}

/// The answer to a request of this method, and how often it came to the server.
async fn sent(
    method: Method,
    then: Then,
    answers: impl Fn(usize) -> Vec<u8> + Clone + Send + 'static,
) -> (Result<String, Error>, usize) {
    let (server, authority) = by_frames(then, answers).await;
    let config = authority.config(&server.url()).http2().max_retries(0);
    let answer = Client::new(config).unwrap().request(method, "/a", None).await;
    (answer.map(|answer| String::from_utf8(answer.into_body().to_vec()).unwrap()), server.accepted())
}

/// HEADERS with `:status: 200` from the static table, and DATA that ends the stream.
fn answered() -> Vec<u8> {
    [frame(1, 4, 1, &[0x88]), frame(0, 1, 1, b"done")].concat()
}

/// Then the connection's end.
fn goes_away(last_stream: u32, reason: Reason) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last_stream.to_be_bytes(), u32::from(reason).to_be_bytes()].concat())
}

#[tokio::test]
async fn what_the_server_says_that_it_has_not_processed_is_sent_again_whatever_its_method() {
    for method in [Method::GET, Method::POST] {
        let away = |number| if number == 0 { goes_away(0, Reason::NO_ERROR) } else { answered() };
        let (answer, times) = sent(method.clone(), Then::Silence, away).await;
        assert_eq!((answer.unwrap(), times), ("done".to_owned(), 2), "{method}");
    }
    // A refused stream leaves its connection as it is; the server of this test answers once on each.
    let refused = |number: usize| match number {
        0 => [
            frame(RST_STREAM, 0, 1, &u32::from(Reason::REFUSED_STREAM).to_be_bytes()),
            goes_away(1, Reason::NO_ERROR),
        ]
        .concat(),
        _ => answered(),
    };
    let (answer, times) = sent(Method::POST, Then::Silence, refused).await;
    assert_eq!((answer.unwrap(), times), ("done".to_owned(), 2));
}

#[tokio::test]
async fn what_is_refused_again_and_again_is_an_error_after_three_times() {
    let (answer, times) = sent(Method::POST, Then::Silence, |_| goes_away(0, Reason::NO_ERROR)).await;
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Transport(TransportError::Broken { .. })), "{error}");
    assert_eq!(times, 3);
}

#[tokio::test]
async fn what_the_server_may_have_processed_is_not_sent_again() {
    let reset = frame(RST_STREAM, 0, 1, &u32::from(Reason::INTERNAL_ERROR).to_be_bytes());
    let away = goes_away(1, Reason::INTERNAL_ERROR);
    for (frames, then) in [(reset, Then::Silence), (away, Then::End), (Vec::new(), Then::End)] {
        let (answer, times) = sent(Method::POST, then, move |_| frames.clone()).await;
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::Transport(TransportError::Broken { .. })), "{error}");
        assert_eq!(times, 1);
    }
}

/// What is read of an answer that is ended like this after its first bytes.
async fn ended_by(method: Method, end: Vec<u8>) -> Result<String, Error> {
    let begun = [frame(1, 4, 1, &[0x88]), frame(0, 0, 1, b"some"), end].concat();
    sent(method, Then::Silence, move |_| begun.clone()).await.0
}

#[tokio::test]
async fn a_body_that_is_reset_is_cut_off_whatever_the_method_and_the_reason() {
    for (method, reason) in [
        (Method::GET, Reason::NO_ERROR),
        (Method::POST, Reason::NO_ERROR),
        (Method::GET, Reason::CANCEL),
        (Method::GET, Reason::INTERNAL_ERROR),
    ] {
        let reset = frame(RST_STREAM, 0, 1, &u32::from(reason).to_be_bytes());
        let error = ended_by(method, reset).await.unwrap_err();
        let is_cut =
            matches!(error, Error::Transport(TransportError::Truncated | TransportError::Broken { .. }));
        assert!(is_cut, "{reason:?}: {error}");
    }
}

#[tokio::test]
async fn an_answer_that_has_ended_is_whole_though_the_server_wants_no_more_of_the_request() {
    let reset = frame(RST_STREAM, 0, 1, &u32::from(Reason::NO_ERROR).to_be_bytes());
    let body = ended_by(Method::POST, [frame(0, 1, 1, b" more"), reset].concat()).await.unwrap();
    assert_eq!(body, "some more");
}

#[tokio::test]
async fn a_body_whose_connection_ends_is_cut_off() {
    for method in [Method::GET, Method::POST] {
        let begun = [frame(1, 4, 1, &[0x88]), frame(0, 0, 1, b"some")].concat();
        let error = sent(method, Then::End, move |_| begun.clone()).await.0.unwrap_err();
        assert!(matches!(error, Error::Transport(TransportError::Truncated)), "{error}");
    }
}

#[tokio::test]
async fn the_rest_of_a_connection_goes_on_when_one_stream_is_dropped() {
    let may_end = Arc::new(Semaphore::new(0));
    let server = Http2Server::start(None, held(&may_end)).await;
    let client = server.client();
    let (dropped, mut kept) = (open(&client, "/a").await.unwrap(), open(&client, "/b").await.unwrap());
    assert_eq!(first(&mut kept).await, "a");
    drop(dropped);
    may_end.add_permits(2);
    assert_eq!(first(&mut kept).await, "b");
    assert!(kept.next().await.is_none(), "it has ended in order");
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_gives_no_sign_of_life_loses_its_streams() {
    let (silent, authority) =
        by_frames(Then::Silence, |_| [frame(1, 4, 1, &[0x88]), frame(0, 0, 1, b"a")].concat()).await;
    let source = Client::new(authority.config(&silent.url()).http2()).unwrap().resource::<ConfigMap>();
    local(async move {
        let began = tokio::time::Instant::now();
        let source = made(source);
        let ended = tokio::time::timeout(Duration::from_secs(45), watch(&source, from("7"))).await;
        assert!(ended.expect("it ends").1.is_err());
        assert!(began.elapsed() >= Duration::from_secs(40), "{:?}", began.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_does_not_join_a_connection_that_has_fallen_silent() {
    let (silent, authority) =
        by_frames(Then::Silence, |_| [frame(1, 4, 1, &[0x88]), frame(0, 0, 1, b"a")].concat()).await;
    let client = Client::new(authority.config(&silent.url()).http2()).unwrap();
    let source = made(client.resource::<ConfigMap>());
    local(async move {
        let mut first = source.watch(from("7"), KnownObjects::nothing());
        assert!(first.next().await.unwrap().is_ok(), "it is open");
        for (seconds, connections) in [(14, 1), (2, 2)] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            let mut another = source.watch(from("7"), KnownObjects::nothing());
            // The server answers the first stream of a connection only.
            let _ = tokio::time::timeout(Duration::from_millis(100), another.next()).await;
            assert_eq!(silent.accepted(), connections, "after {seconds} s more");
        }
    })
    .await;
}
