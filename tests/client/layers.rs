//! What happens to single requests between `Client::send` and the server: retries, warnings, limits, deadlines, spans.
//!
//! Answers "do the layers work together, over a real connection?" Their tables stand beside their code; here each
//! promise is seen once by a server.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_informer::client::{Client, Config, Error, RequestOptions, TransportError, Warning};
use futures_util::future::join_all;
use http::{Method, Request};

use crate::harness::*;
use crate::logs;
use crate::paths::kubeconfig;
use crate::raw_server::*;

fn config(server: &RawServer) -> Config {
    Config::new(server.url()).unwrap()
}

fn client(server: &RawServer) -> Client {
    Client::new(config(server)).unwrap()
}

/// A server that answers every request with this.
async fn always(answer: String) -> RawServer {
    RawServer::start(move |mut connection: Connection| {
        let answer = answer.clone();
        async move {
            while connection.request().await.is_some() {
                connection.write(&answer).await;
            }
        }
    })
    .await
}

/// A server that gives back the head of each request.
async fn echo() -> RawServer {
    RawServer::start(|mut connection: Connection| async move {
        while let Some(head) = connection.request().await {
            connection.write(answer("200 OK", "", &head)).await;
        }
    })
    .await
}

async fn head_of(client: &Client, path: &str) -> String {
    let answer = client.request(Method::GET, path, None).await.unwrap();
    String::from_utf8(answer.into_body().to_vec()).unwrap().to_lowercase()
}

// REST-01: given 429/500/501/504 each with Retry-After 0, when POSTing 4000 bytes, then 4 retries, the full
// body resent each time, success.
// - a 4 retries and success
// - b the full body each time
#[tokio::test]
async fn rest_01_a_post_is_sent_again_with_its_whole_body_after_429_and_5xx_with_retry_after() {
    let refusals = ["429 Too Many Requests", "500 Oops", "501 Not Implemented", "504 Gateway Timeout"];
    let (seen, bodies) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (count, kept) = (Arc::clone(&seen), Arc::clone(&bodies));
    let server = RawServer::start(move |mut connection: Connection| {
        let (count, kept) = (Arc::clone(&count), Arc::clone(&kept));
        async move {
            while connection.request().await.is_some() {
                let body = connection.body(4000).await;
                kept.lock().unwrap().push(body);
                let next = match refusals.get(count.fetch_add(1, Ordering::SeqCst)) {
                    Some(status) => answer(status, "retry-after: 0\r\n", "{}"),
                    None => answer("201 Created", "", "{}"),
                };
                connection.write(next).await;
            }
        }
    })
    .await;
    let body = ("application/json", vec![b'x'; 4000]);
    let answer = client(&server).request(Method::POST, "/a", Some(body)).await.unwrap();
    assert_eq!((answer.status().as_u16(), seen.load(Ordering::SeqCst)), (201, 5));
    assert!(bodies.lock().unwrap().iter().all(|body| *body == "x".repeat(4000)));
    assert_eq!(server.accepted(), 1, "a refusal is read to its end, so that its connection is used again");
}

// REST-05: given max retries 0/1/5 and one 429, when requested, then fail/ok/ok; ten retries unless set, and
// a request may say otherwise.
// - a fail/ok/ok: `rest_05_no_retry_fails_and_one_or_five_succeed_after_one_429`
// - b ten unless set, and the request's own number wins
#[tokio::test]
async fn rest_05_the_settings_and_the_request_say_how_often_it_is_sent_again() {
    let seen = async |retries: Option<u32>, of_request: Option<u32>| {
        let count = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&count);
        let server = RawServer::start(move |mut connection: Connection| {
            let count = Arc::clone(&counting);
            async move {
                while connection.request().await.is_some() {
                    count.fetch_add(1, Ordering::SeqCst);
                    connection.write(answer("429 Too Many Requests", "retry-after: 0\r\n", "slow")).await;
                }
            }
        })
        .await;
        let config = retries.into_iter().fold(config(&server), Config::max_retries);
        let mut request = Request::get("/a").body(Vec::new()).unwrap();
        if let Some(retries) = of_request {
            request.extensions_mut().insert(RequestOptions::new().max_retries(retries));
        }
        let error = Client::new(config).unwrap().send(request).await.unwrap_err();
        assert!(matches!(&error, Error::Refused(status) if status.code == 429), "{error}");
        count.load(Ordering::SeqCst)
    };
    assert_eq!(seen(None, None).await, 11, "ten times unless set");
    assert_eq!(seen(Some(0), None).await, 1);
    assert_eq!(seen(Some(2), None).await, 3);
    assert_eq!(seen(Some(5), Some(1)).await, 2);
}

#[tokio::test]
async fn the_reflector_alone_decides_when_a_refused_list_is_asked_again() {
    let server = always(answer("429 Too Many Requests", "retry-after: 0\r\n", "slow down")).await;
    let error = local(async { list(&made(config_maps(&server.url())), latest()).await.unwrap_err() }).await;
    assert!(error.to_string().contains("slow down"), "{error}");
    assert_eq!(server.accepted(), 1);
}

// REST-09: given requests that are retried, concurrently, when sent, then bodies and URLs stay their own.
#[tokio::test]
async fn rest_09_concurrent_requests_that_are_sent_again_keep_their_own_body_and_url() {
    let refused = Arc::new(Mutex::new(BTreeSet::new()));
    let server = RawServer::start(move |mut connection: Connection| {
        let refused = Arc::clone(&refused);
        async move {
            while let Some(head) = connection.request().await {
                let body = connection.body(8).await;
                let path = head.split(' ').nth(1).unwrap();
                let next = match refused.lock().unwrap().insert(path.to_owned()) {
                    true => answer("503 Service Unavailable", "retry-after: 0\r\n", ""),
                    false => answer("200 OK", "", &format!("{path} {body}")),
                };
                connection.write(next).await;
            }
        }
    })
    .await;
    let client = client(&server);
    let ask = async |number: usize| {
        let (path, body) = (format!("/{number:04}"), format!("body{number:04}"));
        let sent = Some(("text/plain", body.clone().into_bytes()));
        let answer = client.request(Method::PUT, &path, sent).await.unwrap();
        assert_eq!(answer.into_body(), format!("{path} {body}"));
    };
    join_all((0..50).map(ask)).await;
}

// REST-11: given a limiter's wait longer than the deadline, when requested, then an error naming client-side
// limiting.
// - a an error at once that names the client's limit
#[tokio::test]
async fn rest_11_a_request_whose_turn_would_come_too_late_fails_at_once_and_names_the_client() {
    let server = echo().await;
    let limited = config(&server).rate_limit(1, 1).request_timeout(Duration::from_millis(900));
    let client = Client::new(limited).unwrap();
    head_of(&client, "/first").await;
    let error = client.request(Method::GET, "/second", None).await.unwrap_err();
    assert!(matches!(error, Error::Transport(TransportError::Limited { .. })), "{error}");
    assert!(error.to_string().contains("the client's rate limit"), "{error}");
}

#[tokio::test]
async fn no_more_requests_than_allowed_are_under_way_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (under_way, highest) = (Arc::clone(&now), Arc::clone(&most));
    let server = RawServer::start(move |mut connection: Connection| {
        let (now, most) = (Arc::clone(&under_way), Arc::clone(&highest));
        async move {
            while connection.request().await.is_some() {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                connection.write(answer("200 OK", "", "{}")).await;
            }
        }
    })
    .await;
    let client = Client::new(config(&server).max_in_flight(4)).unwrap();
    let answers = join_all((0..100).map(|_| client.request(Method::GET, "/a", None))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert!((2..=4).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    assert!(server.accepted() <= 4, "{}", server.accepted());
}

#[tokio::test]
async fn rest_13_warnings_reach_the_handler_and_are_logged_once_unless_there_is_one() {
    logs::keep();
    let warnings = "warning: 299 - \"seen-old is deprecated\"\r\nwarning: 199 - \"seen-of-a-proxy\"\r\n";
    let server = always(answer("200 OK", warnings, "{}")).await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    let handler =
        move |warning: &Warning| keep.lock().unwrap().push((warning.text.clone(), warning.path.clone()));
    let client = Client::new(config(&server).on_warning(handler)).unwrap();
    for _ in 0..2 {
        client.request(Method::GET, "/a?b=c", None).await.unwrap();
    }
    let one = ("seen-old is deprecated".to_owned(), "/a".to_owned());
    assert_eq!(*heard.lock().unwrap(), [one.clone(), one]);
    assert!(!logs::kept().contains("seen-old"), "the handler has it");
    let client = Client::new(config(&server)).unwrap();
    for _ in 0..3 {
        client.request(Method::GET, "/a", None).await.unwrap();
    }
    assert_eq!(logs::kept().matches("seen-old is deprecated").count(), 1);
    assert!(!logs::kept().contains("seen-of-a-proxy"));
}

#[tokio::test]
async fn each_request_has_a_span_with_verb_resource_status_and_audit_id_and_its_error_has_that_too() {
    logs::keep();
    let refused = answer("409 Conflict", "audit-id: seen-audit-7\r\n", "it is there");
    let server = always(refused).await;
    let path = "/apis/apps/v1/namespaces/a/deployments/seen-measured?dryRun=All";
    let error = client(&server).request(Method::PATCH, path, None).await.unwrap_err();
    assert!(error.to_string().contains("(Audit-ID seen-audit-7)"), "{error}");
    assert!(matches!(&error, Error::Refused(status) if status.audit_id() == Some("seen-audit-7")));
    let log = logs::kept();
    let span =
        log.lines().find(|line| line.starts_with("span request") && line.contains("seen-measured")).unwrap();
    assert!(span.contains("verb=\"patch\"") && span.contains("resource=\"deployments.apps\""), "{span}");
    assert!(!span.contains("dryRun"), "{span}");
    for recorded in
        ["record status=409", "record attempts=1", "record audit_id=seen-audit-7", "record milliseconds="]
    {
        assert!(log.contains(recorded), "{recorded}");
    }
}

#[tokio::test]
async fn a_request_names_the_program_and_accepts_compression_unless_configured() {
    let server = echo().await;
    let head = head_of(&client(&server), "/a").await;
    assert!(
        head.contains("user-agent: actix-informer/") && head.contains("accept-encoding: gzip\r\n"),
        "{head}"
    );
    let named = Client::new(config(&server).user_agent("shop-operator/1.2").disable_compression()).unwrap();
    let head = head_of(&named, "/a").await;
    assert!(head.contains("user-agent: shop-operator/1.2\r\n"), "{head}");
    assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
    assert!(matches!(Client::new(config(&server).user_agent("a\nb")), Err(Error::Unusable { .. })));
    let of_cluster = format!("{}\n    disable-compression: true", server.url());
    let loaded = Config::from_kubeconfig_text(&kubeconfig(&of_cluster, "    {}"), None).unwrap();
    let head = head_of(&Client::new(loaded).unwrap(), "/a").await;
    assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
}

#[tokio::test]
async fn a_request_ends_at_its_own_deadline_and_a_refusal_that_asks_to_wait_beyond_it_is_the_answer() {
    let silent = RawServer::start(|connection: Connection| connection.gone()).await;
    let mut request = Request::get("/a").body(Vec::new()).unwrap();
    request.extensions_mut().insert(RequestOptions::new().timeout(Duration::from_millis(50)));
    let error = client(&silent).send(request.clone()).await.unwrap_err();
    assert!(
        matches!(error, Error::Transport(TransportError::Timeout { what: "the request", .. })),
        "{error}"
    );
    let busy = always(answer("503 Service Unavailable", "retry-after: 60\r\n", "busy")).await;
    request.extensions_mut().insert(RequestOptions::new().timeout(Duration::from_secs(30)));
    let error = client(&busy).send(request).await.unwrap_err();
    assert!(matches!(&error, Error::Refused(status) if status.code == 503), "{error}");
}

// REST-32: given 503 with Retry-After from one host, when requesting, then that host's requests wait and
// others do not (there is no backoff of URLs without a wait that the server names: a client has one server).
#[tokio::test]
async fn rest_32_a_server_that_asks_to_wait_delays_no_request_to_another() {
    let busy = always(answer("503 Service Unavailable", "retry-after: 60\r\n", "busy")).await;
    let other = echo().await;
    let busy = client(&busy);
    let mut waits = Box::pin(busy.request(Method::GET, "/a", None));
    assert!(futures_util::poll!(&mut waits).is_pending());
    let other = client(&other);
    for _ in 0..10 {
        head_of(&other, "/a").await;
    }
    assert!(futures_util::poll!(&mut waits).is_pending());
}
