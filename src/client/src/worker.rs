//! Sends requests for callers in any async runtime. Informers do not use it.
//!
//! The requests of a client run concurrently on its thread, or on the `Runtime` that carries it: a simulation has no other
//! thread, and waits follow its clock.
//!
//! 1. The first request starts the thread. It ends with the last clone of the client and the last streamed body.
//! 2. A caller that stops waiting cancels its request. What still runs when the thread or the `Runtime` ends is dropped, and its
//!    caller gets an error.
//!
//! The queue needs no bound: it holds at most one entry for each caller that waits.

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
use super::transport::{Body, Connection, Switched, Transport};

/// Of an answer to a single request, in bytes.
const ANSWER_LIMIT: usize = 64 << 20;
/// Of the refusal of a streamed or upgraded request, in bytes.
const REFUSAL_LIMIT: usize = 1 << 20;

type Answer<T> = Result<Response<T>, Error>;

type Job = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// The body of an answer as it arrives, in any async runtime. A body that is cut off ends with an error.
///
/// Dropping it ends the request. What is not read is not read from the connection either: the server waits.
#[derive(Debug)]
#[must_use = "a body that is dropped ends its request"]
pub struct BodyStream {
    chunks: BodyReceiver,
    /// Reads the body.
    _worker: Arc<Worker>,
}

impl Stream for BodyStream {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_next_unpin(context)
    }
}

#[derive(Debug)]
pub(crate) struct Worker {
    backend: Arc<Backend>,
    thread: Arc<Thread>,
}

/// Uses the connections of the backend for which it was started.
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

    /// Sends nothing after the end of `runtime`.
    pub(crate) fn on(runtime: &Runtime, backend: Arc<Backend>) -> Self {
        let (jobs, queue) = mpsc::unbounded_channel();
        let served = Arc::clone(&backend);
        runtime.spawn_local(move || serve(served, queue));
        let thread = Thread { backend: Arc::clone(&backend), jobs: OnceLock::from(Some(jobs)) };
        Self { backend, thread: Arc::new(thread) }
    }

    pub(crate) fn by(&self, backend: Arc<Backend>) -> Self {
        Self { backend, thread: Arc::clone(&self.thread) }
    }

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

    /// `serve` returns what the caller gets, and the work that serves the connection on the thread.
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
                    // The caller is gone: dropping the work closes its connection.
                    Err(_unwanted) => {}
                },
            }
        })
        .await?
    }

    /// Closes the connections of single requests.
    pub(crate) async fn distrust(&self) -> Result<(), Error> {
        self.run(|transport, done| async move {
            transport.distrust();
            done.send(()).unwrap_or_default();
        })
        .await
    }

    pub(crate) async fn sleep(&self, time: Duration) -> Result<(), Error> {
        self.run(move |_, mut done| async move {
            if unless_unwanted(&mut done, tokio::time::sleep(time)).await.is_some() {
                done.send(()).unwrap_or_default();
            }
        })
        .await
    }

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

async fn unless_unwanted<T, W>(done: &mut oneshot::Sender<T>, work: impl Future<Output = W>) -> Option<W> {
    tokio::select! {
        biased;
        () = done.closed() => None,
        value = work => Some(value),
    }
}

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

/// Tokio wakes its thread by a system call for each new timer that ends before all others. This one ends before any
/// request's deadline, so no deadline is such a timer.
async fn keep_a_timer() {
    loop {
        tokio::time::sleep(HEAD_DEADLINE / 2).await;
    }
}

async fn serve(backend: Arc<Backend>, mut queue: mpsc::UnboundedReceiver<Job>) {
    let (_connections, mut running) = (backend.transport(), JoinSet::new());
    loop {
        tokio::select! {
            biased;
            job = queue.recv() => match job {
                Some(job) => drop(running.spawn_local(job())),
                None => return,
            },
            // A job that panicked has dropped its caller's sender.
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
    let mut answer = transport.send(request, RequestKind::Upgrade).await?;
    let connection = Switched::take(&mut answer);
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
