//! The network between the processes of a world and its server.
//!
//! 1. A request that was sent takes effect, whatever becomes of its process, unless it is lost or refused on its way.
//! 2. Requests take effect one after the other, each in a millisecond of its own: whoever waits for changes sees the state after
//!    each one.
//! 3. A process whose link is cut reaches nobody. Its watches are closed.
//! 4. The link of a user is without delays and faults.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{LocalBoxStream, StreamExt};
use futures_util::{FutureExt, Stream};
use http::{Method, Request, Response, StatusCode, header};
use informer_actors::runtime::Runtime;
use informer_apiserver::ApiServer;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};

use super::trace::{Line, Trace, What};
use super::weather::{Fate, Weather};

/// Pieces of an answer that wait for their reader.
const PIECES: usize = 16;
/// Between two requests that take effect.
const TURN: Duration = Duration::from_millis(1);
/// A leader renews its lease all the time.
const LEASES: &str = "/apis/coordination.k8s.io/";

type Served = Response<LocalBoxStream<'static, io::Result<Bytes>>>;
type Serve = Rc<dyn Fn(Request<Bytes>) -> LocalBoxFuture<'static, io::Result<Served>>>;
type Answer = io::Result<Response<Pieces>>;

pub(super) struct Network {
    pub(super) weather: RefCell<Weather>,
    pub(super) trace: RefCell<Trace>,
    pub(super) server: ApiServer,
    clock: Runtime,
    serve: Serve,
    /// One entry for each request under way: bounded by the callers that wait.
    sent: mpsc::UnboundedSender<Sent>,
    requests: Cell<u64>,
    /// Requests that may write and are not answered yet, without those for leases.
    writes: Cell<usize>,
    /// When the last request took effect.
    last_turn: Cell<Duration>,
    /// Lines that the trace has had.
    lines: Cell<u64>,
    told: Notify,
}

/// The way of one process to the server.
#[derive(Clone)]
pub(super) struct Link {
    who: Arc<str>,
    /// Has delays and faults.
    is_remote: bool,
    cut: Arc<AtomicBool>,
    sent: mpsc::UnboundedSender<Sent>,
}

struct Sent {
    link: Link,
    request: Request<Bytes>,
    answer: oneshot::Sender<Answer>,
}

pub(super) struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

impl Network {
    /// Its work is spawned where this is called.
    pub(super) fn start(server: ApiServer, clock: Runtime, weather: Weather) -> Rc<Self> {
        let (sent, queue) = mpsc::unbounded_channel();
        let service = server.service();
        let serve: Serve = Rc::new(move |request| {
            let answering = service(request);
            async move { Ok(answering.await?.map(|body| body.boxed_local())) }.boxed_local()
        });
        let network = Rc::new(Self {
            weather: RefCell::new(weather),
            trace: RefCell::default(),
            server,
            clock,
            serve,
            sent,
            requests: Cell::new(0),
            writes: Cell::new(0),
            last_turn: Cell::new(Duration::ZERO),
            lines: Cell::new(0),
            told: Notify::new(),
        });
        actix_rt::spawn(carry_all(Rc::downgrade(&network), queue));
        network
    }

    pub(super) fn link(&self, who: &str, is_remote: bool) -> Link {
        Link { who: who.into(), is_remote, cut: Arc::default(), sent: self.sent.clone() }
    }

    pub(super) fn note(&self, who: &Arc<str>, what: What) {
        let line = Line { at: self.clock.now(), who: Arc::clone(who), what };
        self.trace.borrow_mut().push(line);
        self.lines.set(self.lines.get() + 1);
        self.told.notify_waiters();
    }

    pub(super) fn writes(&self) -> usize {
        self.writes.get()
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines.get()
    }

    pub(super) async fn more_than(&self, lines: u64) {
        while self.lines.get() <= lines {
            self.told.notified().await;
        }
    }

    /// Changes the object at this path, if there is one, as somebody else would.
    fn overtake(&self, path: &str) {
        let Some(object) = Place::of(path) else { return };
        let patch = json!({"metadata": {"annotations": {"world/touched": self.requests.get().to_string()}}});
        let touched = self.server.merge_patch(&object.resource, object.namespace, object.name, &patch);
        if touched.is_ok() {
            self.note(&"somebody".into(), What::Happened(format!("changes {path}")));
        }
    }

    /// Waits for a millisecond of its own.
    async fn turn(&self) {
        let at = (self.last_turn.get() + TURN).max(self.clock.now());
        self.last_turn.set(at);
        tokio::time::sleep(at.saturating_sub(self.clock.now())).await;
    }
}

impl Link {
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    pub(super) fn service(
        &self,
    ) -> impl Fn(Request<Bytes>) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync + use<> {
        let link = self.clone();
        move |request| {
            let (answer, answered) = oneshot::channel();
            let sent = Sent { link: link.clone(), request, answer };
            let refused = link.cut.load(Ordering::Relaxed) || link.sent.send(sent).is_err();
            Box::pin(async move {
                if refused {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                answered.await.unwrap_or_else(|_| Err(io::ErrorKind::ConnectionReset.into()))
            })
        }
    }
}

/// All at once, until the world ends.
async fn carry_all(network: std::rc::Weak<Network>, mut queue: mpsc::UnboundedReceiver<Sent>) {
    while let Some(sent) = queue.recv().await {
        let Some(network) = network.upgrade() else { return };
        let number = network.requests.get();
        network.requests.set(number + 1);
        actix_rt::spawn(carry(network, sent, number));
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    /// As `deployments.apps`.
    resource: String,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Place<'a> {
    /// Also of a path of a subresource.
    fn of(path: &'a str) -> Option<Self> {
        let mut steps = path.trim_start_matches('/').split('/');
        let group = match steps.next()? {
            "api" => "",
            _ => steps.next()?,
        };
        let _version = steps.next()?;
        let (mut plural, mut name, mut namespace) = (steps.next()?, steps.next()?, "");
        if let ("namespaces", Some(inside)) = (plural, steps.next()) {
            (namespace, plural, name) = (name, inside, steps.next()?);
        }
        let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        Some(Self { resource, namespace, name })
    }
}

/// For the trace.
struct Told {
    number: u64,
    sent: Duration,
    who: Arc<str>,
    method: String,
    path: String,
}

impl Told {
    fn of(Sent { link, request, .. }: &Sent, number: u64, sent: Duration) -> Self {
        let (method, path) = (request.method().to_string(), request.uri().to_string());
        Self { number, sent, who: Arc::clone(&link.who), method, path }
    }

    fn note(&self, network: &Network, outcome: String) {
        let (number, sent) = (self.number, self.sent);
        let (method, path) = (self.method.clone(), self.path.clone());
        network.note(&self.who, What::Request { number, sent, method, path, outcome });
    }
}

async fn carry(network: Rc<Network>, sent: Sent, number: u64) {
    let told = Told::of(&sent, number, network.clock.now());
    let is_write = sent.request.method() != Method::GET && !told.path.starts_with(LEASES);
    let writes = usize::from(is_write);
    network.writes.set(network.writes.get() + writes);
    let Sent { link, request, answer } = sent;
    let answered = if link.is_remote {
        let updates = matches!(*request.method(), Method::PUT | Method::PATCH);
        let journey = network.weather.borrow_mut().journey(updates);
        tokio::time::sleep(journey.there).await;
        let answered = handled(&network, request, journey.fate, &told).await;
        tokio::time::sleep(journey.back).await;
        answered
    } else {
        handled(&network, request, Fate::Fine, &told).await
    };
    network.writes.set(network.writes.get() - writes);
    let (head, body) = match answered {
        Ok(answered) => answered.into_parts(),
        Err(error) => return answer.send(Err(error)).unwrap_or_default(),
    };
    let (pieces, received) = mpsc::channel(PIECES);
    // Dropping the body closes the watch of a process that is gone.
    if answer.send(Ok(Response::from_parts(head, Pieces(received)))).is_ok() {
        let lags = link.is_remote && is_endless(&told.path);
        deliver(&network, (&told, lags), body, &pieces).await;
    }
}

async fn handled(network: &Network, request: Request<Bytes>, fate: Fate, told: &Told) -> io::Result<Served> {
    match fate {
        Fate::Lost => {
            told.note(network, "lost on its way".to_owned());
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Fate::Refused(code) => {
            told.note(network, format!("{code}, on its way"));
            return refusal(code);
        }
        Fate::Overtaken => network.overtake(request.uri().path()),
        Fate::Fine | Fate::AnswerLost => {}
    }
    network.turn().await;
    let answered = (network.serve)(request).await;
    let outcome = match &answered {
        Ok(answered) => answered.status().as_u16().to_string(),
        Err(error) => error.to_string(),
    };
    if fate == Fate::AnswerLost {
        told.note(network, format!("{outcome}, and the answer is lost"));
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    told.note(network, outcome);
    answered
}

/// Piece by piece, until either side ends.
async fn deliver(
    network: &Network,
    (told, lags): (&Told, bool),
    mut body: LocalBoxStream<'static, io::Result<Bytes>>,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
) {
    loop {
        let piece = tokio::select! {
            biased;
            () = pieces.closed() => return,
            piece = body.next() => piece,
        };
        let Some(piece) = piece else { return };
        if lags {
            let lag = network.weather.borrow_mut().lag();
            tokio::time::sleep(lag).await;
            if let Ok(bytes) = &piece {
                let what = What::Watched { number: told.number, bytes: bytes.clone() };
                network.note(&told.who, what);
            }
        }
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

fn is_endless(path: &str) -> bool {
    ["watch=", "follow="].iter().any(|member| path.contains(member))
}

/// As a proxy in front of the server answers.
fn refusal(code: u16) -> io::Result<Served> {
    let message = "the world of this test refuses the request";
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message,
    });
    let body = futures_util::stream::iter([Ok(status.to_string().into())]).boxed_local();
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let answer = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    answer.body(body).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_which_object_is_meant() {
        let of = |path| Place::of(path).map(|place| (place.resource, place.namespace, place.name));
        let maps = "/api/v1/namespaces/x/configmaps";
        let one = format!("{maps}/y");
        assert_eq!(of(&one), Some(("configmaps".to_owned(), "x", "y")));
        let sites = "/apis/example.org/v1/namespaces/x/websites/y/status";
        assert_eq!(of(sites), Some(("websites.example.org".to_owned(), "x", "y")));
        assert_eq!(of("/api/v1/nodes/a/status"), Some(("nodes".to_owned(), "", "a")));
        assert_eq!(of("/api/v1/namespaces/x"), Some(("namespaces".to_owned(), "", "x")));
        assert_eq!((of(maps), of("/version")), (None, None));
    }
}
