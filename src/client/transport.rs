//! The hole through which requests leave: one trait, so that the HTTP client behind it can be exchanged.
//!
//! Answers "what must something do to carry our requests?" It knows nothing of Kubernetes; paths, selectors and
//! frames are above it. The one implementation is `transport/awc.rs`. Invariants:
//! 1. One call is one request. The only thing sent twice is a GET whose reused connection turned out to be dead.
//! 2. A body that is cut off ends with an error, never with a clean end.
//! 3. Every wait has a deadline of our own: connecting, the head, each read, and the whole of a watch.
//! 4. Redirects are answers, not instructions.
//!
//! Read next: `transport/awc.rs`.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use http::{HeaderValue, Request, Response};

pub(crate) mod awc;

pub use super::error::TransportError;

/// A body as it arrives.
pub type Body = LocalBoxStream<'static, Result<Bytes, TransportError>>;

/// How long the head of an answer may take.
pub const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// How long the body of a single answer may be silent.
pub const READ_DEADLINE: Duration = Duration::from_secs(30);

/// The Authorization header of a request that was refused, with the answer: the server may have repeated it, and what
/// is told of the refusal must not. In the extensions of the answer, which no Debug shows.
#[derive(Clone)]
pub(crate) struct SentAuthorization(pub(crate) HeaderValue);

/// Which kind of request it is: they share no connections and differ in deadlines and encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lane {
    /// One answer: gzip is welcome, each read has [`READ_DEADLINE`].
    Unary,
    /// A stream that may be silent: no gzip, and an end after this time at the latest.
    Watch {
        /// From the request to the last byte.
        total: Duration,
    },
}

/// Carries requests to one API server. Lives on one thread; made anew for each arbiter.
pub trait Transport {
    /// Sends one request; its URI is the path and query below the endpoint. Resolves with the head of the answer,
    /// whatever its status. Dropping the future or the body ends the request.
    fn send(
        &self,
        request: Request<Bytes>,
        lane: Lane,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>>;
}
