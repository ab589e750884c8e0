//! The trait that sends HTTP requests, so that the HTTP client behind it can be replaced.
//!
//! Answers "what must an HTTP client do to send our requests?" It does not know Kubernetes: paths, selectors and
//! frames are made by its callers. There are three implementations: `transport/awc.rs`, which makes its own connections;
//! `transport/kube.rs`, a client of kube-rs; `transport/in_process.rs`, a function of this process. Invariants:
//! 1. One call is one request. Only a GET is sent twice, if its reused connection turned out to be dead.
//! 2. A body that is cut off ends with an error, never with a clean end.
//! 3. Making a connection has a deadline here. The others (the head, each read, a watch as a whole) are
//!    `layers/deadline.rs`'s.
//! 4. Redirects are not followed: they are returned as answers.
//! 5. A request that carries a `SendCheck` is begun only if that allows it, asked when the connection is ready, last thing
//!    before the first byte: only a transport knows when that is. It is asked anew for each sending, also when a request is
//!    sent again after its connection broke. A request whose first byte may have been written is under way.
//! 6. A request that asks for another protocol is sent on a connection of its own, once. With the answer 101 that
//!    connection becomes the caller's; any other answer is an answer like others.
//!
//! Read next: `transport/awc.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) mod awc;
#[cfg(feature = "testing")]
pub(crate) mod in_process;
#[cfg(feature = "kube")]
pub(crate) mod kube;

use super::error::TransportError;
use super::request::RequestKind;

/// A body as it arrives.
pub type Body = LocalBoxStream<'static, Result<Bytes, TransportError>>;

/// A connection that speaks another protocol now: bytes in both directions.
pub type Connection = Box<dyn Duplex>;

/// What a [`Connection`] can do.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The connection of an answer 101, attached to the answer, through all layers, until somebody takes it.
#[derive(Clone)]
pub(crate) struct Switched(Arc<Mutex<Option<Connection>>>);

impl Switched {
    /// Attaches the connection to its answer.
    pub(crate) fn attach<T>(answer: &mut Response<T>, connection: Connection) {
        answer.extensions_mut().insert(Self(Arc::new(Mutex::new(Some(connection)))));
    }

    fn take<T>(answer: &mut Response<T>) -> Option<Connection> {
        let Self(connection) = answer.extensions_mut().remove()?;
        connection.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An answer, and its connection if it is 101.
pub type Upgraded = (Response<Body>, Option<Connection>);

/// Sends requests to one API server. Used by one thread only; the sources of a thread share it.
pub trait Transport {
    /// Sends one request; its URI is the path and query below the endpoint. Resolves when the head of the answer has
    /// come, with any status; the body is read from the answer. Dropping the future or the body cancels the request.
    fn send(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>>;

    /// Sends a request that asks for another protocol, and resolves with the head of the answer. The connection is there
    /// if the answer is 101; else the answer says why not.
    fn upgrade(&self, request: Request<Bytes>) -> LocalBoxFuture<'static, Result<Upgraded, TransportError>> {
        let sending = self.send(request, RequestKind::Upgrade);
        Box::pin(async move {
            let mut answer = sending.await?;
            let connection = Switched::take(&mut answer);
            Ok((answer, connection))
        })
    }

    /// The head of an answer did not come in time, and its request was dropped: its connection may be dead, and so may
    /// others be.
    fn timed_out(&self, _kind: RequestKind) {}

    /// An answer was not that of its request: answers of other connections in the pool may not be either, so they close.
    fn distrust(&self) {}
}

/// Whether a request may still begin. Cheap to clone and to ask; it does not block.
#[derive(Clone)]
pub(crate) struct SendCheck(Arc<dyn Fn() -> Result<(), TransportError> + Send + Sync>);

impl SendCheck {
    /// A check by this function, which gives the error of a request that may not begin.
    pub(crate) fn new(ask: impl Fn() -> Result<(), TransportError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// The check that this request carries, if it has one.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        request.extensions().get().cloned()
    }

    /// Asks the check that this request carries. A request without one may begin.
    ///
    /// # Errors
    /// When the request may not begin.
    pub(crate) fn ask_of<B>(request: &Request<B>) -> Result<(), TransportError> {
        request.extensions().get().map_or(Ok(()), Self::ask)
    }

    /// Asks.
    ///
    /// # Errors
    /// When the request may not begin.
    pub(crate) fn ask(&self) -> Result<(), TransportError> {
        (self.0)()
    }
}
