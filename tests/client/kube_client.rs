//! The client over one of kube-rs: the same answers, bounds and deadlines as over connections of this crate.
//!
//! Answers "does a kube-rs operator that takes an informer of ours keep its own requests, and does the informer lose
//! anything?" Some kube clients here are a tower service of the test, so that what they do is exactly known; whole
//! informers over the real one are in `tests/end_to_end/over_kube.rs`.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::client::{Client, Config, Error, TransportError};
use actix_informer::prelude::Runtime;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use informer_apiserver::ApiServer;
use informer_core::list_watch_error::ListWatchError;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::client::{AuthError, Body};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tower::{BoxError, service_fn};

use crate::harness::{from, latest, list, local, made, watch};
use crate::raw_server::{Connection, RawServer, answer};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn over(kube: kube_client::Client) -> Client {
    Client::from_kube(kube, Handle::current())
}

fn connected_to(url: &str) -> kube_client::Client {
    kube_client::Client::try_from(kube_client::Config::new(url.parse().unwrap())).unwrap()
}

/// A kube client whose server is this function.
fn served<F, B>(serve: impl Fn(Request<Body>) -> F + Send + Clone + 'static) -> kube_client::Client
where
    F: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    kube_client::Client::new(service_fn(serve), "here")
}

#[tokio::test]
async fn answers_and_refusals_over_a_kube_client_are_those_of_the_own_transport() {
    let server = ApiServer::builder().seed(1).start().await.unwrap();
    let own = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let kube = over(connected_to(&server.url()));
    assert_eq!(kube.default_namespace(), "default");
    let map = json!({"metadata": {"name": "a"}}).to_string();
    let made =
        kube.request(Method::POST, MAPS, Some(("application/json", map.clone().into()))).await.unwrap();
    assert_eq!(made.status(), 201);
    let conflict = Some(("application/json", map.into_bytes()));
    for (method, path, body, code) in [
        (Method::GET, format!("{MAPS}/a"), None, 200),
        (Method::GET, format!("{MAPS}?limit=1"), None, 200),
        (Method::GET, format!("{MAPS}/nobody"), None, 404),
        (Method::POST, MAPS.to_owned(), conflict, 409),
        (Method::DELETE, MAPS.to_owned() + "/a", Some(("text/plain", b"?".to_vec())), 415),
        (Method::GET, "/nowhere".to_owned(), None, 404),
    ] {
        let told = |answer: Result<Response<Bytes>, Error>| match answer {
            Ok(answer) => (answer.status().as_u16(), String::from_utf8(answer.body().to_vec()).unwrap()),
            Err(Error::Refused(refused)) => (refused.code, format!("{refused:?}")),
            Err(other) => panic!("{method} {path}: {other}"),
        };
        let ours = told(own.request(method.clone(), &path, body.clone()).await);
        assert_eq!(told(kube.request(method.clone(), &path, body).await), ours, "{method} {path}");
        assert_eq!(ours.0, code, "{method} {path}");
    }
}

#[tokio::test]
async fn the_end_of_our_runtime_leaves_the_programs_own_requests_on_its_connection_alone() {
    let (go_on, going_on) = mpsc::channel::<()>(1);
    let going_on = Arc::new(tokio::sync::Mutex::new(going_on));
    let (log_begun, mut begun) = mpsc::channel::<usize>(1);
    let server = RawServer::start(move |mut connection: Connection| {
        let (going_on, log_begun) = (Arc::clone(&going_on), log_begun.clone());
        async move {
            while let Some(head) = connection.request().await {
                if !head.starts_with("GET /log") {
                    connection.write(answer("403 Forbidden", "", "{}")).await;
                    continue;
                }
                let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
                connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                connection.write(chunk("before")).await;
                log_begun.send(connection.number).await.unwrap();
                going_on.lock().await.recv().await.unwrap();
                connection.write(chunk("after") + "0\r\n\r\n").await;
            }
        }
    })
    .await;
    let kube = connected_to(&server.url());
    let runtime = Runtime::threads().start().unwrap();
    let maps = over(kube.clone()).resource::<ConfigMap>().informer(&runtime).unwrap().start().unwrap();
    // The informer's connection is idle now, and the program's request takes it.
    maps.wait_until(|status| status.sources[0].counters.denied > 0).await.unwrap();
    let own = Request::get("/log").body(Body::empty()).unwrap();
    let mut own = kube.send(own).await.unwrap().into_body();
    assert_eq!(begun.recv().await, Some(0), "it is the informer's connection");
    drop(maps);
    runtime.shutdown(Duration::from_secs(60)).await.unwrap();
    go_on.send(()).await.unwrap();
    let mut received = Vec::new();
    while let Some(frame) = own.frame().await {
        received.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    assert_eq!(received, b"beforeafter");
}

#[tokio::test]
async fn a_body_that_is_not_read_here_is_not_read_from_the_kube_client() {
    const WHOLE: usize = 10_000;
    // One channel to the client's thread and one to the caller, of 8 chunks each, and what is on its way.
    const BOUND: usize = 2 * 8 + 2;
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let kube = served(move |_| {
        let counted = Arc::clone(&counted);
        let chunks = stream::iter(0..WHOLE).map(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok::<_, io::Error>(http_body::Frame::data(Bytes::from_static(b"0123456789abcdef")))
        });
        async { Ok(Response::new(StreamBody::new(chunks))) }
    });
    let client = over(kube);
    let request = Request::get("/log").body(Vec::new()).unwrap();
    let mut body = client.stream(request, Duration::MAX).await.unwrap().into_body();
    let filled = |least: usize| {
        let read = Arc::clone(&read);
        async move {
            while read.load(Ordering::SeqCst) < least {
                tokio::task::yield_now().await;
            }
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            read.load(Ordering::SeqCst)
        }
    };
    let before = filled(BOUND / 2).await;
    assert!(before <= BOUND, "{before} chunks were read for nobody");
    for _ in 0..100 {
        body.next().await.unwrap().unwrap();
    }
    let after = filled(100 + BOUND / 2).await;
    assert!(after <= 100 + BOUND, "{after} chunks were read for 100");
    let rest = body.filter(|chunk| futures_util::future::ready(chunk.is_ok())).count().await;
    assert_eq!(rest, WHOLE - 100, "nothing is lost");
}

/// Says when it is dropped.
struct Noted(Option<oneshot::Sender<()>>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.take().map(|sender| sender.send(()));
    }
}

#[tokio::test]
async fn dropping_an_answer_or_its_body_here_ends_the_request_there() {
    let (begun, mut began) = mpsc::unbounded_channel();
    let kube = served(move |request: Request<Body>| {
        let (noted, dropped) = oneshot::channel();
        let noted = Noted(Some(noted));
        begun.send(dropped).unwrap();
        async move {
            if request.uri().path() == "/head" {
                let _held = noted;
                return pending().await;
            }
            let silent = stream::once(async { Ok::<_, io::Error>(http_body::Frame::data(Bytes::from("x"))) });
            let silent = silent.chain(stream::poll_fn(move |_| {
                let _held = &noted;
                std::task::Poll::Pending
            }));
            Ok(Response::new(StreamBody::new(silent)))
        }
    });
    let client = over(kube);
    let unanswered = tokio::spawn({
        let client = client.clone();
        async move { client.request(Method::GET, "/head", None).await.map(drop) }
    });
    let dropped = began.recv().await.unwrap();
    unanswered.abort();
    dropped.await.unwrap();
    let request = Request::get("/body").body(Vec::new()).unwrap();
    let mut body = client.stream(request, Duration::MAX).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "x");
    drop(body);
    began.recv().await.unwrap().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn over_a_kube_client_the_head_a_read_and_a_whole_watch_have_the_deadlines_of_any_client() {
    local(async {
        let silent = over(served(|_| pending::<Result<Response<Full<Bytes>>, BoxError>>()));
        let asked = tokio::time::Instant::now();
        let late = list(&made(silent.resource::<ConfigMap>()), latest()).await.unwrap_err();
        assert!(matches!(late, ListWatchError::Timeout(_)), "{late}");
        assert_eq!(asked.elapsed(), Duration::from_secs(65));

        let opened = over(served(|_| async {
            let body = StreamBody::new(stream::pending::<io::Result<http_body::Frame<Bytes>>>());
            Ok(Response::new(body))
        }));
        let source = made(opened.resource::<ConfigMap>());
        let asked = tokio::time::Instant::now();
        let late = list(&source, latest()).await.unwrap_err();
        assert!(matches!(late, ListWatchError::Timeout(_)), "{late}");
        assert_eq!(asked.elapsed(), Duration::from_secs(30));
        let asked = tokio::time::Instant::now();
        let late = watch(&source, from("1")).await.1.unwrap_err();
        assert!(matches!(late, ListWatchError::Timeout(_)), "{late}");
        assert_eq!(asked.elapsed(), Duration::from_secs(300 + 30));
    })
    .await;
}

/// What a request fails with whose kube client fails like this.
async fn failure(fail: impl Fn() -> BoxError + Send + Sync + Clone + 'static) -> TransportError {
    let client = over(served(move |_| {
        let error = fail();
        async { Err::<Response<Full<Bytes>>, _>(error) }
    }));
    // A GET would be sent again.
    match client.request(Method::POST, MAPS, None).await {
        Err(Error::Transport(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_error_of_a_kube_client_keeps_its_causes_and_shows_no_secret_of_a_plugin() {
    let refused = failure(|| io::Error::from(io::ErrorKind::ConnectionRefused).into()).await;
    assert!(
        matches!(&refused, TransportError::Connect { source, .. }
        if source.kind() == io::ErrorKind::ConnectionRefused),
        "{refused}"
    );
    let reset = failure(|| io::Error::new(io::ErrorKind::ConnectionReset, "by the peer").into()).await;
    assert!(matches!(reset, TransportError::Broken { .. }));
    assert!(ListWatchError::from(reset).with_causes().to_string().contains("by the peer"));

    use std::os::unix::process::ExitStatusExt;
    let plugin = failure(|| {
        let status = std::process::ExitStatus::from_raw(1 << 8);
        let out = std::process::Output { status, stdout: b"s3cret".to_vec(), stderr: b"s3cret".to_vec() };
        let failed = AuthError::AuthExecRun { cmd: "aws --token s3cret".to_owned(), out: Box::new(out) };
        Box::new(kube_client::Error::Auth(failed))
    })
    .await;
    assert!(matches!(plugin, TransportError::Credentials(_)), "{plugin}");
    let (text, debug) = (plugin.to_string(), format!("{plugin:?}"));
    assert!(text.contains("\"aws\"") && text.contains("exit status: 1"), "{text}");
    assert!(!text.contains("s3cret") && !debug.contains("s3cret"), "{debug}");
}

#[tokio::test]
async fn a_body_that_is_cut_off_or_left_encoded_is_an_error_over_a_kube_client() {
    let server = RawServer::start(|mut connection: Connection| async move {
        let head = connection.request().await.unwrap();
        let encoding = if head.starts_with("GET /gzip") { "Content-Encoding: gzip\r\n" } else { "" };
        connection.write(format!("HTTP/1.1 200 OK\r\n{encoding}Content-Length: 10\r\n\r\nhalf")).await;
    })
    .await;
    let client = over(connected_to(&server.url()));
    for (path, expected) in [("/cut", "cut off"), ("/gzip", "does not decode it")] {
        let failed = client.request(Method::GET, path, None).await.unwrap_err().to_string();
        assert!(failed.contains(expected), "{path}: {failed}");
    }
}

#[tokio::test]
async fn without_the_runtime_that_polls_it_a_kube_client_sends_nothing_and_the_error_says_so() {
    let kube = served(|_| async { Ok(Response::new(Full::new(Bytes::new()))) });
    let ended = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let client = Client::from_kube(kube, ended.handle().clone());
    ended.shutdown_background();
    let failed = client.request(Method::GET, MAPS, None).await.unwrap_err().to_string();
    assert!(failed.contains("the tokio runtime that was named"), "{failed}");
}

#[test]
fn a_client_that_is_carried_by_a_simulation_waits_for_retries_and_conditions_on_its_clock() {
    Runtime::simulated(7).run(|runtime| async move {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let kube = served(move |request: Request<Body>| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            async move {
                let is_list = request.uri().query().is_some_and(|query| query.contains("fieldSelector"));
                let (code, body) = match (number, is_list) {
                    (0, _) => (429, "later"),
                    (_, true) => (200, r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#),
                    _ => (200, r#"{"metadata":{"name":"a"}}"#),
                };
                let answer = Response::builder().status(code).header("retry-after", "60");
                Ok(answer.body(Full::new(Bytes::from_static(body.as_bytes())))?)
            }
        });
        let maps = over(kube).carried_by(&runtime).api::<ConfigMap>().namespaced("default");
        let began = runtime.now();
        maps.get("a").await.unwrap();
        let minute = Duration::from_secs(60);
        assert_eq!((asked.load(Ordering::SeqCst), runtime.now() - began), (2, minute));
        let began = runtime.now();
        let late = maps.until("a", actix_informer::client::api::conditions::present(), 60 * minute).await;
        assert!(late.unwrap_err().to_string().contains("last seen: the object was not there"));
        assert_eq!(runtime.now() - began, 60 * minute);
    });
}
