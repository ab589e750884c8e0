//! The server as a service of this process: one call is one request, without a socket.
//!
//! Answers: how does a request of this process reach the handlers, and how does its answer get back? Nothing is decided
//! here: the handlers are those of HTTP. Invariants:
//! 1. All work is done where the answer and its body are polled, on that thread and by that runtime's timers.
//! 2. While the server is stopped a call fails as a refused connection, and what was under way fails as a reset one.
//! 3. A request for a websocket carries the end of a pipe in its extensions; the answer's body is the other direction.
//! 4. A request without credentials has those of the kubeconfig.
//!
//! Next: `http/mod.rs` answers it.
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use actix_http::error::PayloadError;
use actix_web::body::{BoxBody, MessageBody as _};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::test::TestRequest;
use actix_web::{FromRequest as _, HttpResponse, web};
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{LocalBoxStream, StreamExt as _, unfold};
use http::{Request, Response, header};
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio_util::sync::CancellationToken;

use crate::door::Door;
use crate::http::handle;
use crate::server::ApiServer;
use crate::world::World;

/// So much is read at once.
const PIECE: usize = 4096;

/// The extension of a request for a websocket: the end of a pipe from which its rest is read.
type Rest = Arc<Mutex<Option<DuplexStream>>>;

/// A body as it is made.
type Body = LocalBoxStream<'static, io::Result<Bytes>>;
type Answer = LocalBoxFuture<'static, io::Result<Response<Body>>>;

impl ApiServer {
    /// The server as a function from a request, whose URI is path and query, to its answer: for a client in the same
    /// process. With [`Builder::in_process`](crate::Builder::in_process) it is the only way in.
    ///
    /// The caller's runtime does the work, while it polls the answer and its body; dropping them ends the request. The
    /// function may be sent to any thread, what it gives stays there. It holds no handle: when the server is stopped or
    /// dropped, each call fails like a refused connection, and open watches fail like a reset one.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use informer_apiserver::ApiServer;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = ApiServer::builder().in_process(std::time::SystemTime::UNIX_EPOCH).seed(1).start().await?;
    /// let ask = server.service();
    /// let answer = ask(http::Request::get("/api/v1/namespaces/default").body(Bytes::new())?).await?;
    /// assert_eq!(answer.status(), 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn service(&self) -> impl Fn(Request<Bytes>) -> Answer + Clone + Send + Sync + 'static + use<> {
        let (world, door) = self.shared();
        move |request| Box::pin(answer(Arc::clone(&world), Arc::clone(&door), request))
    }
}

async fn answer(world: Arc<World>, door: Arc<Door>, request: Request<Bytes>) -> io::Result<Response<Body>> {
    let closing = door.closing().ok_or(io::ErrorKind::ConnectionRefused)?;
    let rest = request.extensions().get::<Rest>().cloned();
    let request = read(&world, request)?;
    let sent = rest.and_then(|rest| rest.lock().unwrap_or_else(PoisonError::into_inner).take());
    let (request, mut payload) = request.to_http_parts();
    if let Some(sent) = sent {
        payload = actix_http::Payload::Stream { payload: Box::pin(received(sent)) };
    }
    let payload = web::Payload::from_request(&request, &mut payload).await;
    let payload = payload.map_err(|error| io::Error::other(error.to_string()))?;
    let answered = tokio::select! {
        biased;
        () = closing.cancelled() => return Err(io::ErrorKind::ConnectionReset.into()),
        answered = handle(request, payload, web::Data::from(world)) => answered,
    };
    written(answered, closing)
}

/// What a client sends behind the head of a request for a websocket.
fn received(sent: DuplexStream) -> impl Stream<Item = Result<Bytes, PayloadError>> {
    unfold(sent, |mut sent| async move {
        let mut piece = BytesMut::with_capacity(PIECE);
        match sent.read_buf(&mut piece).await {
            Ok(length) if length > 0 => Some((Ok(piece.freeze()), sent)),
            _ => None,
        }
    })
}

/// The request as the handlers take it, as if it had come over a connection without a peer.
fn read(world: &World, request: Request<Bytes>) -> io::Result<TestRequest> {
    let invalid =
        |error: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
    let (head, body) = request.into_parts();
    let method = head.method.as_str().parse().map_err(|error| invalid(&error))?;
    let mut read = TestRequest::with_uri(&head.uri.to_string()).method(method).set_payload(body);
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_ref()).map_err(|error| invalid(&error))?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|error| invalid(&error))?;
        read = read.append_header((name, value));
    }
    let has_credentials = head.headers.contains_key(header::AUTHORIZATION);
    let token = world.access.tokens.first().filter(|_| !has_credentials);
    Ok(match token {
        Some(known) => read.append_header(("Authorization", format!("Bearer {}", known.token))),
        None => read,
    })
}

/// The answer in the types of the caller.
fn written(answer: HttpResponse, closing: CancellationToken) -> io::Result<Response<Body>> {
    let (head, body) = answer.into_parts();
    let mut written = Response::builder().status(head.status().as_u16());
    if head.status().as_u16() == 101 {
        // Over a socket the codec writes it.
        written = written.header(header::CONNECTION, "upgrade");
    }
    for (name, value) in head.headers() {
        written = written.header(name.as_str(), value.as_bytes());
    }
    let body = unfold(Some((body, closing)), |rest| async move {
        let (mut body, closing) = rest?;
        let read = tokio::select! {
            biased;
            () = closing.cancelled() => Some(Err(io::ErrorKind::ConnectionReset.into())),
            read = next(&mut body) => read,
        };
        let read = read?;
        let rest = read.is_ok().then_some((body, closing));
        Some((read, rest))
    });
    written.body(body.boxed_local()).map_err(io::Error::other)
}

async fn next(body: &mut BoxBody) -> Option<io::Result<Bytes>> {
    let read = poll_fn(|context| Pin::new(&mut *body).poll_next(context)).await?;
    Some(read.map_err(|error| match error.downcast::<io::Error>() {
        Ok(error) => *error,
        Err(error) => io::Error::other(error.to_string()),
    }))
}
