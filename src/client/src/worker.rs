//! Sends requests for callers that have no `LocalSet`.
//!
//! Answers "how does `Client::send` work in any async runtime?" Each client has one thread, on which its requests run
//! concurrently; one that is carried by a `Runtime`, as each client in process is, has none: a simulation has no thread
//! besides its own, and waits follow its clock. Informers do not use it. Invariants:
//! 1. The first request starts the thread; the thread ends when the last clone of the client is dropped.
//! 2. When a caller stops waiting, its request is cancelled; when it drops a streamed answer, that one is. What still
//!    runs at the end of the thread or the `Runtime` is dropped, and its caller gets an error.
//! 3. A streamed answer has the bound of `body.rs`, and ends cleanly only where its body did.
//!
//! The queue to the thread has no bound of its own: it holds at most one entry for each caller that waits. Read next:
//! `client.rs`.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{LocalBoxFuture, select};
use futures_util::{Stream, StreamExt};
use http::response::Parts;
use http::{HeaderMap, Method, Request, Response, Uri};
use informer_actors::runtime::Runtime;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};

use super::backend::Backend;
use super::body::{BodyReceiver, body_channel};
use super::body::{collect, length_of};
use super::config::limits::HEAD_DEADLINE;
use super::error::{Error, Refused, StreamError, TransportError, status};
use super::request::{RequestKind, SentCredentials, audit_id};
use super::transport::{Body, Connection, Transport};

/// The largest answer to a single request, in bytes.
const ANSWER_LIMIT: usize = 64 << 20;
/// The largest refusal of a streamed or upgraded request that is read, in bytes.
const REFUSAL_LIMIT: usize = 1 << 20;

type Answer<T> = Result<Response<T>, Error>;

/// What the thread does for a caller: it makes a future there, and polls it.
type Job = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// The body of an answer as it arrives, in any async runtime. A body that is cut off ends with an error.
///
/// Dropping it ends the request. What is not read is not read from the connection either: the server waits.
#[derive(Debug)]
#[must_use = "a body that is dropped ends its request"]
pub struct BodyStream {
    chunks: BodyReceiver,
    /// The thread that reads it lives as long as it does.
    _worker: Arc<Worker>,
}

impl Stream for BodyStream {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_next_unpin(context)
    }
}

/// The thread that sends requests, and the queue to it.
#[derive(Debug)]
pub(crate) struct Worker {
    backend: Arc<Backend>,
    thread: Arc<Thread>,
}

/// The thread and its queue. Its connections are those of the backend for which it was started.
#[derive(Debug)]
struct Thread {
    backend: Arc<Backend>,
    jobs: OnceLock<Option<mpsc::UnboundedSender<Job>>>,
}

impl Worker {
    pub(crate) fn new(backend: Arc<Backend>) -> Self {
        let thread = Thread { backend: Arc::clone(&backend), jobs: OnceLock::new() };
        Self { backend, thread: Arc::new(thread) }
    }

    /// Sends on a thread of `runtime`, in simulation on the only one there is. Sends nothing after its end.
    pub(crate) fn on(runtime: &Runtime, backend: Arc<Backend>) -> Self {
        let (jobs, queue) = mpsc::unbounded_channel();
        let served = Arc::clone(&backend);
        runtime.spawn_local(move || serve(served, queue));
        let thread = Thread { backend: Arc::clone(&backend), jobs: OnceLock::from(Some(jobs)) };
        Self { backend, thread: Arc::new(thread) }
    }

    /// Sends by another backend on the same thread.
    pub(crate) fn by(&self, backend: Arc<Backend>) -> Self {
        Self { backend, thread: Arc::clone(&self.thread) }
    }

    /// Sends a request and waits for the whole answer.
    pub(crate) async fn send(&self, mut request: Request<Bytes>) -> Answer<Bytes> {
        self.backend.begin(&mut request)?;
        self.run(|transport, mut done| async move {
            let sending = send(&*transport, request);
            if let Some(answer) = unless_unwanted(&mut done, sending).await {
                drop(done.send(answer));
            }
        })
        .await?
    }

    /// Sends a request whose answer lasts, and waits for its head.
    pub(crate) async fn stream(
        self: &Arc<Self>,
        mut request: Request<Bytes>,
        kind: RequestKind,
    ) -> Answer<BodyStream> {
        self.backend.begin(&mut request)?;
        let opened = self.run(move |transport, mut done| async move {
            let opening = open(&*transport, request, kind);
            match unless_unwanted(&mut done, opening).await {
                None => {}
                Some(Err(error)) => drop(done.send(Err(error))),
                Some(Ok(answer)) => {
                    let (head, body) = answer.into_parts();
                    let (sender, receiver) = body_channel();
                    if done.send(Ok(Response::from_parts(head, receiver))).is_ok() {
                        sender.forward(body).await;
                    }
                }
            }
        });
        Ok(opened.await??.map(|chunks| BodyStream { chunks, _worker: Arc::clone(self) }))
    }

    /// Sends a request that asks for another protocol. `serve` makes of the connection what the caller gets, and the work
    /// that serves it on the thread.
    pub(crate) async fn upgrade<T: Send + 'static, F: Future<Output = ()> + 'static>(
        &self,
        mut request: Request<Bytes>,
        serve: impl FnOnce(&HeaderMap, Connection) -> Result<(T, F), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.backend.begin(&mut request)?;
        self.run(move |transport, mut done| async move {
            let opening = switch(&*transport, request);
            match unless_unwanted(&mut done, opening).await.map(|opened| {
                let (headers, connection) = opened?;
                serve(&headers, connection)
            }) {
                None => {}
                Some(Err(error)) => drop(done.send(Err(error))),
                Some(Ok((made, work))) => match done.send(Ok(made)) {
                    Ok(()) => work.await,
                    // Nobody wants it: dropping the work closes its connection.
                    Err(_unwanted) => {}
                },
            }
        })
        .await?
    }

    /// An answer was not that of its request: the connections of single requests close.
    pub(crate) async fn distrust(&self) -> Result<(), Error> {
        self.run(|transport, done| async move {
            transport.distrust();
            done.send(()).unwrap_or_default();
        })
        .await
    }

    /// Waits, also where the caller's runtime has no timer.
    pub(crate) async fn sleep(&self, time: Duration) -> Result<(), Error> {
        self.run(move |_, mut done| async move {
            if unless_unwanted(&mut done, tokio::time::sleep(time)).await.is_some() {
                done.send(()).unwrap_or_default();
            }
        })
        .await
    }

    /// Runs what blocks where blocking is allowed.
    #[cfg(feature = "disk-cache")]
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.run(move |_, done| async move {
            if let Ok(made) = tokio::task::spawn_blocking(work).await {
                drop(done.send(made));
            }
        })
        .await
    }

    /// Runs what `work` makes on the thread, and waits for what it sends.
    async fn run<T: Send + 'static, F: Future<Output = ()> + 'static>(
        &self,
        work: impl FnOnce(Rc<dyn Transport>, oneshot::Sender<T>) -> F + Send + 'static,
    ) -> Result<T, Error> {
        let thread = &self.thread;
        let jobs = thread.jobs.get_or_init(|| start(Arc::clone(&thread.backend)));
        let (done, result) = oneshot::channel();
        let backend = Arc::clone(&self.backend);
        let job: Job = Box::new(move || Box::pin(work(backend.transport(), done)));
        jobs.as_ref().ok_or(Error::Stopped)?.send(job).map_err(|_| Error::Stopped)?;
        result.await.map_err(|_| Error::Stopped)
    }
}

/// What `work` gives, unless the caller stops waiting for it first.
async fn unless_unwanted<T, W>(done: &mut oneshot::Sender<T>, work: impl Future<Output = W>) -> Option<W> {
    tokio::select! {
        biased;
        () = done.closed() => None,
        value = work => Some(value),
    }
}

/// Starts the thread; `None` if the system cannot start one.
fn start(backend: Arc<Backend>) -> Option<mpsc::UnboundedSender<Job>> {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let (jobs, queue) = mpsc::unbounded_channel();
    let work = move || {
        LocalSet::new().block_on(&runtime, async {
            let serving = pin!(serve(backend, queue));
            select(serving, pin!(keep_a_timer())).await;
        });
    };
    std::thread::Builder::new().name("informer-client".to_owned()).spawn(work).ok()?;
    Some(jobs)
}

/// Keeps a timer that ends sooner than that of any request. Where a timer is the next to end, tokio wakes its thread for
/// it, by a system call and a turn for nothing: without this one, the deadline of each request that is alone would be.
async fn keep_a_timer() {
    loop {
        tokio::time::sleep(HEAD_DEADLINE / 2).await;
    }
}

/// Runs the jobs, all at once, until the last clone of the client is dropped; what still runs then is dropped, too.
async fn serve(backend: Arc<Backend>, mut queue: mpsc::UnboundedReceiver<Job>) {
    let (_connections, mut running) = (backend.transport(), JoinSet::new());
    loop {
        tokio::select! {
            biased;
            job = queue.recv() => match job {
                Some(job) => drop(running.spawn_local(job())),
                None => return,
            },
            // One that panicked has dropped what its caller waits for.
            Some(_ended) = running.join_next() => {}
        }
    }
}

/// Sends a request on this thread, and waits for the whole answer.
pub async fn send(transport: &dyn Transport, request: Request<Bytes>) -> Answer<Bytes> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let (head, body) = transport.send(request, RequestKind::Unary).await?.into_parts();
    let length = length_of(&head.headers);
    let bytes = collect(body, length, ANSWER_LIMIT).await?.ok_or(Error::TooLarge(ANSWER_LIMIT))?;
    if head.status.is_success() {
        return Ok(Response::from_parts(head, bytes));
    }
    Err(refused((method, &uri), &head, &bytes))
}

async fn open(transport: &dyn Transport, request: Request<Bytes>, kind: RequestKind) -> Answer<Body> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let (head, body) = transport.send(request, kind).await?.into_parts();
    if !head.status.is_success() {
        let bytes = collect(body, length_of(&head.headers), REFUSAL_LIMIT).await?.unwrap_or_default();
        return Err(refused((method, &uri), &head, &bytes));
    }
    Ok(Response::from_parts(head, body))
}

async fn switch(
    transport: &dyn Transport,
    request: Request<Bytes>,
) -> Result<(HeaderMap, Connection), Error> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let (answer, connection) = transport.upgrade(request).await?;
    let (head, body) = answer.into_parts();
    if let Some(connection) = connection {
        return Ok((head.headers, connection));
    }
    if head.status.is_success() {
        return Err(StreamError::Handshake("its answer is that of a request without a websocket").into());
    }
    let bytes = collect(body, length_of(&head.headers), REFUSAL_LIMIT).await?.unwrap_or_default();
    Err(refused((method, &uri), &head, &bytes))
}

fn refused((method, uri): (Method, &Uri), head: &Parts, body: &[u8]) -> Error {
    let audit_id = audit_id(&head.headers).map(str::to_owned);
    let credentials = head.extensions.get::<SentCredentials>().map(|sent| Arc::clone(&sent.0));
    let refused = Refused::new(method, uri.path(), status::of_parts(head, body));
    Error::Refused(Box::new(refused.audited(audit_id).sent_with(credentials)))
}
