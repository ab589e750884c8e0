//! The trait that sends HTTP requests. `transport/awc.rs` and `transport/hyper.rs` send on connections of
//! `transport/connecting.rs`, `transport/kube.rs` uses a client of kube-rs, `transport/in_process.rs` calls a function.
//!
//! 1. One call is one request. It is sent again only if it is a GET whose reused connection was dead, or if it was not processed,
//!    as the server says over HTTP/2.
//! 2. A body that is cut off ends with an error, never with a clean end.
//! 3. Only making a connection has a deadline here; `layers/deadline.rs` has the others.
//! 4. Redirects are returned as answers.
//! 5. The `SendCheck` of a request is asked when the connection is ready, directly before the first byte, and again for each
//!    sending. A request whose first byte may have been written is under way. Over HTTP/2 it is asked when the request is given
//!    to a connection whose last write has not had to wait: the bytes of others may go first.
//! 6. A request for another protocol is sent once, on its own connection, which the answer 101 gives to the caller.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};

mod answer;
pub(crate) mod awc;
mod connecting;
#[cfg(feature = "http2")]
pub(crate) mod hyper;
#[cfg(feature = "testing")]
pub(crate) mod in_process;
#[cfg(feature = "kube")]
pub(crate) mod kube;

use super::error::TransportError;
use super::request::RequestKind;

/// After so many timeouts in a row, the connections of their kind of request are replaced.
const TIMEOUTS_UNTIL_REPLACED: u8 = 2;

/// A body as it arrives.
pub type Body = LocalBoxStream<'static, Result<Bytes, TransportError>>;

/// A connection that speaks another protocol now: bytes in both directions.
pub type Connection = Box<dyn Duplex>;

/// What a [`Connection`] can do.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The connection of an answer 101, attached to the answer until somebody takes it.
#[derive(Clone)]
pub(crate) struct Switched(Arc<Mutex<Option<Connection>>>);

impl Switched {
    pub(crate) fn attach<T>(answer: &mut Response<T>, connection: Connection) {
        answer.extensions_mut().insert(Self(Arc::new(Mutex::new(Some(connection)))));
    }

    pub(crate) fn take<T>(answer: &mut Response<T>) -> Option<Connection> {
        let Self(connection) = answer.extensions_mut().remove()?;
        connection.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Sends requests to one API server. Used by one thread only; the sources of a thread share it.
pub trait Transport {
    /// Sends one request; its URI is the path and query below the endpoint. Resolves when the head of the
    /// answer has come, with any status; the body is read from the answer. Dropping the future or the body
    /// cancels the request.
    fn send(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>>;

    /// The head of an answer did not come in time, and its request was dropped: its connection may be dead,
    /// and so may others be.
    fn timed_out(&self, _kind: RequestKind) {}

    /// An answer did not belong to its request. Other connections of the pool may be mixed up too, so they
    /// close.
    fn distrust(&self) {}
}

/// Does not block.
#[derive(Clone)]
pub(crate) struct SendCheck(Arc<dyn Fn() -> Result<(), TransportError> + Send + Sync>);

impl SendCheck {
    pub(crate) fn new(ask: impl Fn() -> Result<(), TransportError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        request.extensions().get().cloned()
    }

    pub(crate) fn ask_of<B>(request: &Request<B>) -> Result<(), TransportError> {
        request.extensions().get().map_or(Ok(()), Self::ask)
    }

    pub(crate) fn ask(&self) -> Result<(), TransportError> {
        (self.0)()
    }
}
