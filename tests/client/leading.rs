//! The client of a leader while it connects: a request is refused until its first byte, and goes on behind it (LE-14).
//!
//! Answers "what does a server receive of a leader whose term ends while its request waits for a connection?". The lease
//! is kept by an API server; the work goes to a server of the test, whose TLS handshake waits until the test goes on.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix_informer::client::{Client, Config, Error, TransportError};
use actix_informer::leader_election::{LeaderElection, LeaseName};
use actix_informer::prelude::Runtime;
use bytes::Bytes;
use http::{Method, Response};
use http_body_util::Full;
use informer_apiserver::ApiServer;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tower::{BoxError, service_fn};

use crate::raw_server::{Connection, RawServer, answer};
use crate::tls::Authority;

const LONG: Duration = Duration::from_secs(60);

type Answered = Result<Response<Bytes>, Error>;

/// An election that leads, with the server that keeps its lease.
async fn leader() -> (LeaderElection, ApiServer) {
    let server = ApiServer::builder().seed(1).start().await.unwrap();
    (leader_for("operator", &server).await, server)
}

/// An election for the lease of this name that leads.
async fn leader_for(lease: &str, server: &ApiServer) -> LeaderElection {
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let runtime = Runtime::threads().start().unwrap();
    let election =
        LeaderElection::builder(&client, &runtime, LeaseName { namespace: "default", name: lease })
            .start()
            .unwrap();
    election.acquired().await.unwrap();
    election
}

fn ask(client: &Client) -> impl Future<Output = Answered> + Send + use<> {
    let client = client.clone();
    async move { client.request(Method::GET, "/work", None).await }
}

/// A write, which is not sent again when its connection breaks.
fn write(client: &Client) -> impl Future<Output = Answered> + Send + use<> {
    let client = client.clone();
    async move { client.request(Method::POST, "/work", Some(("application/json", b"{}".to_vec()))).await }
}

fn is_unclear(answer: &Answered) -> bool {
    matches!(answer, Err(Error::Transport(TransportError::Broken { .. })))
}

/// A server that answers one request on its first connection, and holds back the TLS handshake of later ones.
struct SlowServer {
    listener: TcpListener,
    authority: Authority,
}

impl SlowServer {
    async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener, authority: Authority::new() }
    }

    fn url(&self) -> String {
        format!("https://{}", self.listener.local_addr().unwrap())
    }

    async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// Answers one request, and closes.
    async fn answer_one(&self) {
        let mut stream = self.authority.acceptor("127.0.0.1").accept(self.accept().await).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let answer = answer("200 OK", "connection: close\r\n", "{}");
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await.unwrap();
        drop(tokio::io::AsyncWriteExt::shutdown(&mut stream).await);
    }

    /// Whether a byte comes through this connection after its handshake, before its end. Without a handshake none does.
    async fn gets_a_byte_of(&self, stream: TcpStream) -> bool {
        let accepted = self.authority.acceptor("127.0.0.1").accept(stream).await;
        let Ok(mut stream) = accepted else { return false };
        stream.read_u8().await.is_ok()
    }
}

/// The term ends while the second request of this client waits for its handshake.
async fn connects_beyond_the_term(client: Client, slow: SlowServer) {
    let (election, _server) = leader().await;
    let leading = election.guard(&client);
    let (first, ()) = tokio::join!(ask(&leading), slow.answer_one());
    assert_eq!(first.unwrap().status(), 200);
    let request = tokio::spawn(ask(&leading));
    let connection = slow.accept().await;
    election.shutdown(LONG).await.unwrap();
    assert!(!slow.gets_a_byte_of(connection).await, "not a byte of the request");
    let error = request.await.unwrap().unwrap_err();
    assert!(error.is_not_leading(), "{error}");
}

#[tokio::test]
async fn le_14_a_request_that_gets_its_connection_after_the_end_of_the_term_is_not_begun() {
    let slow = SlowServer::bind().await;
    let config = Config::new(slow.url()).unwrap().certificate_authority(slow.authority.pem());
    connects_beyond_the_term(Client::new(config).unwrap(), slow).await;
}

/// A client of kube-rs of which nothing is known yet.
fn over_kube(slow: &SlowServer) -> Client {
    let mut config = kube_client::Config::new(slow.url().parse().unwrap());
    config.accept_invalid_certs = true;
    Client::from_kube(kube_client::Client::try_from(config).unwrap(), Handle::current())
}

#[tokio::test]
async fn le_14_nor_is_one_over_a_kube_client() {
    let slow = SlowServer::bind().await;
    connects_beyond_the_term(over_kube(&slow), slow).await;
}

#[tokio::test]
async fn le_14_over_a_kube_client_that_has_answered_requests_without_a_guard_the_first_guarded_one_is_not_begun()
 {
    let slow = SlowServer::bind().await;
    let (client, (election, _server)) = (over_kube(&slow), leader().await);
    let (unguarded, ()) = tokio::join!(ask(&client), slow.answer_one());
    assert_eq!(unguarded.unwrap().status(), 200);
    let request = tokio::spawn(write(&election.guard(&client)));
    let connection = slow.accept().await;
    election.shutdown(LONG).await.unwrap();
    assert!(!slow.gets_a_byte_of(connection).await, "not a byte of the request");
    let error = request.await.unwrap().unwrap_err();
    assert!(error.is_not_leading(), "{error}");
}

#[tokio::test]
async fn le_14_over_a_kube_client_that_has_answered_nothing_it_is_not_begun_and_not_called_unsent() {
    let slow = SlowServer::bind().await;
    let (client, (election, _server)) = (over_kube(&slow), leader().await);
    let request = tokio::spawn(write(&election.guard(&client)));
    let connection = slow.accept().await;
    election.shutdown(LONG).await.unwrap();
    assert!(!slow.gets_a_byte_of(connection).await, "not a byte of the request");
    let answer = request.await.unwrap();
    assert!(is_unclear(&answer), "{answer:?}");
}

/// A request over a kube client that is a function. The term ends while the function has it; then the function answers.
async fn ends_while_a_function_has_it(has_answered_before: bool) -> Answered {
    let (came, mut come) = mpsc::channel::<()>(1);
    let go_on = Arc::new(Semaphore::new(0));
    let may_answer = Arc::clone(&go_on);
    let serve = move |_: http::Request<kube_client::client::Body>| {
        let (came, may_answer) = (came.clone(), Arc::clone(&may_answer));
        async move {
            came.send(()).await.unwrap();
            may_answer.acquire().await.unwrap().forget();
            Ok::<_, BoxError>(Response::new(Full::new(Bytes::from_static(b"{}"))))
        }
    };
    let client = Client::from_kube(kube_client::Client::new(service_fn(serve), "here"), Handle::current());
    let (election, _server) = leader().await;
    if has_answered_before {
        go_on.add_permits(1);
        ask(&client).await.unwrap();
        come.recv().await.unwrap();
    }
    let request = tokio::spawn(write(&election.guard(&client)));
    come.recv().await.unwrap();
    election.shutdown(LONG).await.unwrap();
    go_on.add_permits(1);
    request.await.unwrap()
}

#[tokio::test]
async fn le_14_a_request_over_a_kube_client_that_tells_nothing_of_connections_is_never_called_unsent() {
    let answer = ends_while_a_function_has_it(true).await;
    assert_eq!(answer.unwrap().body(), "{}", "it goes on");
    let answer = ends_while_a_function_has_it(false).await;
    assert!(is_unclear(&answer), "{answer:?}");
}

#[tokio::test]
async fn le_14_of_a_client_with_two_guards_each_lease_is_asked_for_at_the_first_byte() {
    let leases = ApiServer::builder().seed(1).start().await.unwrap();
    let slow = SlowServer::bind().await;
    let config = Config::new(slow.url()).unwrap().certificate_authority(slow.authority.pem());
    let client = Client::new(config).unwrap();
    for lost in ["outer", "inner"] {
        let outer = leader_for("outer", &leases).await;
        let inner = leader_for("inner", &leases).await;
        let leading = outer.guard(&inner.guard(&client));
        let (first, ()) = tokio::join!(ask(&leading), slow.answer_one());
        assert_eq!(first.unwrap().status(), 200, "both are held");
        let request = tokio::spawn(ask(&leading));
        let connection = slow.accept().await;
        let (ends, goes_on) = if lost == "outer" { (outer, inner) } else { (inner, outer) };
        ends.shutdown(LONG).await.unwrap();
        assert!(!slow.gets_a_byte_of(connection).await, "not a byte of the request");
        for refused in [request.await.unwrap(), ask(&leading).await] {
            let Err(Error::Transport(TransportError::NotLeading { lease })) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(*lease, *format!("default/{lost}"));
        }
        goes_on.shutdown(LONG).await.unwrap();
    }
}

/// A server that tells of each request, and answers when it is told to; then it closes or goes on.
async fn held() -> (RawServer, mpsc::Receiver<()>, mpsc::Sender<&'static str>) {
    let (came, come) = mpsc::channel(1);
    let (go_on, answers) = mpsc::channel::<&'static str>(1);
    let answers = Arc::new(tokio::sync::Mutex::new(answers));
    let server = RawServer::start(move |mut connection: Connection| {
        let (came, answers) = (came.clone(), Arc::clone(&answers));
        async move {
            while connection.request().await.is_some() {
                came.send(()).await.unwrap();
                match answers.lock().await.recv().await {
                    Some("") | None => return,
                    Some(body) => connection.write(answer("200 OK", "", body)).await,
                }
            }
        }
    })
    .await;
    (server, come, go_on)
}

async fn goes_on_beyond_the_term(make: impl Fn(&str) -> Client) {
    let (election, _server) = leader().await;
    let (server, mut come, go_on) = held().await;
    let leading = election.guard(&make(&server.url()));
    go_on.send("{}").await.unwrap();
    ask(&leading).await.unwrap();
    come.recv().await.unwrap();
    let request = tokio::spawn(ask(&leading));
    come.recv().await.unwrap();
    election.shutdown(LONG).await.unwrap();
    go_on.send("{\"arrived\":true}").await.unwrap();
    let answer = request.await.unwrap().unwrap();
    assert_eq!(answer.body(), "{\"arrived\":true}");
    assert!(ask(&leading).await.unwrap_err().is_not_leading());
}

#[tokio::test]
async fn le_14_a_request_that_was_begun_before_the_end_of_the_term_goes_on() {
    goes_on_beyond_the_term(|url| Client::new(Config::new(url).unwrap()).unwrap()).await;
    goes_on_beyond_the_term(|url| {
        let kube = kube_client::Client::try_from(kube_client::Config::new(url.parse().unwrap()));
        Client::from_kube(kube.unwrap(), Handle::current())
    })
    .await;
}

#[tokio::test]
async fn le_14_a_request_whose_connection_breaks_after_the_end_of_the_term_is_not_sent_again_nor_called_unsent()
 {
    let (election, _server) = leader().await;
    let (server, mut come, go_on) = held().await;
    let config = Config::new(server.url()).unwrap().max_retries(0);
    let leading = election.guard(&Client::new(config).unwrap());
    go_on.send("{}").await.unwrap();
    ask(&leading).await.unwrap();
    come.recv().await.unwrap();
    let request = tokio::spawn(ask(&leading)); // on the same connection
    come.recv().await.unwrap();
    election.shutdown(LONG).await.unwrap();
    go_on.send("").await.unwrap(); // the connection is closed without an answer
    let error = request.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Transport(TransportError::Broken { .. })), "it may have arrived: {error}");
    assert!(come.try_recv().is_err(), "it came once");
}

/// A leader's client looks a name up, and one without a guard waits for the same answer. The lease ends over it.
#[tokio::test]
async fn a_client_without_a_guard_looks_up_anew_what_the_lease_has_kept_a_guarded_one_from_asking() {
    let (came, mut come) = mpsc::channel(1);
    let server = RawServer::start(move |mut connection: Connection| {
        let came = came.clone();
        async move {
            while connection.request().await.is_some() {
                let refused = match came.try_send(()) {
                    Ok(()) => answer("429 Too Many Requests", "retry-after: 2\r\n", "{}"),
                    Err(_) => answer("403 Forbidden", "", "{}"),
                };
                connection.write(refused).await;
            }
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let (election, _leases) = leader().await;
    let leading = election.guard(&client);
    let leaders = tokio::spawn(async move { leading.resource_named("pods").await });
    while come.is_empty() {
        tokio::task::yield_now().await;
    }
    let (other, ()) = tokio::join!(client.resource_named("pods"), async {
        election.shutdown(LONG).await.unwrap();
    });
    let refused = leaders.await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("does not lead"), "{refused}");
    let own = other.unwrap_err().to_string();
    assert!(own.contains("403"), "it has asked itself: {own}");
    come.close();
}

#[tokio::test]
async fn an_election_does_not_wait_behind_the_rate_limit_of_its_client() {
    let server = ApiServer::builder().seed(1).start().await.unwrap();
    let client = Client::new(Config::new(server.url()).unwrap().rate_limit(1, 1)).unwrap();
    let waiting: Vec<_> = (0..1000).map(|_| tokio::spawn(ask(&client))).collect();
    tokio::task::yield_now().await; // each has its turn now, the last one in a thousand seconds
    let runtime = Runtime::threads().start().unwrap();
    let election =
        LeaderElection::builder(&client, &runtime, LeaseName { namespace: "default", name: "operator" })
            .start()
            .unwrap();
    tokio::time::timeout(LONG, election.acquired()).await.expect("not in a thousand seconds").unwrap();
    waiting.iter().for_each(|request| request.abort());
}
