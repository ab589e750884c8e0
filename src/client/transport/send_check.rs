//! What is asked last, before the first byte of a request is written: whether the request may still begin.
//!
//! Answers "may this request be sent now, although it has waited for its connection?". It travels in the extensions of the
//! request, because only a transport knows when the connection is there. Invariants:
//! 1. A transport asks it when the connection is ready, and writes no byte of the request if the answer is no.
//! 2. It is asked anew for each sending: also when a request is sent again after its connection broke.
//! 3. A request whose first byte may have been written is not asked about any more: it is under way.
//!
//! Read next: `../layers/lease.rs`, which makes it; `awc/attempt.rs`, which asks it.

use std::sync::Arc;

use http::Request;

use super::super::error::TransportError;

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
