//! Refuses the requests of a leader whose term has ended, up to their first byte.
//!
//! Answers "may this request still be sent?" for a client that `LeaderElection::guard` or `Client::for_term` has made.
//! Invariants:
//! 1. A request belongs to the term that lasts when its caller begins it, on the caller's thread. It is refused when that term
//!    has ended, also if the next one has begun.
//! 2. The clock is read when the request is handed to the transport, after every wait and retry of the other layers, and
//!    again when its connection is ready, last thing before its first byte: a process that was stopped before that sends
//!    nothing after its lease has ended, however long it took to connect.
//! 3. A refused request has reached nobody. One whose first byte may have been written is never refused: it goes on, and
//!    may arrive.
//! 4. The connections are those of the client that was guarded.
//!
//! Who knows the lease is asked by a trait, [`SendGuard`]: the client knows no election. Read next: `../transport.rs`,
//! by whom it is asked.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Request, Response};

use super::super::error::TransportError;
use super::super::request::RequestKind;
use super::super::transport::{Body, SendCheck, Transport};

/// Says whether requests of a client may begin. Asking is cheap and does not block.
pub trait SendGuard: Send + Sync {
    /// The lease that has to be held, as `namespace/name`.
    fn lease(&self) -> &Arc<str>;

    /// The same for the term that lasts now: it says no when that has ended, also if the next one has begun. `None` if nothing
    /// may begin now.
    fn bound(&self) -> Option<Arc<dyn SendGuard>>;

    /// Whether a request may begin now, by a clock that also runs while the machine is suspended.
    fn may_begin(&self) -> bool;
}

/// The guards of a client, the newest one first. Each is asked.
#[derive(Clone, Default)]
pub(crate) struct Guards(Vec<Arc<dyn SendGuard>>);

/// A transport that is given nothing that may not begin.
struct Asking(Rc<dyn Transport>);

impl Guards {
    /// These guards after one more.
    pub(crate) fn and(&self, guard: Arc<dyn SendGuard>) -> Self {
        Self(std::iter::once(guard).chain(self.0.iter().cloned()).collect())
    }

    /// The same transport, which asks what [`Self::begin`] has added to a request.
    pub(super) fn before(&self, transport: Rc<dyn Transport>) -> Rc<dyn Transport> {
        if self.0.is_empty() { transport } else { Rc::new(Asking(transport)) }
    }

    /// A request begins: from here on it belongs to the terms that last now. A check that it carries already is
    /// asked before these guards.
    ///
    /// # Errors
    /// When a lease is not held.
    pub(crate) fn begin(&self, request: &mut Request<Bytes>) -> Result<(), TransportError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let before = SendCheck::of(request);
        let bound = |guard: &Arc<dyn SendGuard>| guard.bound().ok_or_else(|| refused(&**guard));
        let terms: Vec<_> = self.0.iter().map(bound).collect::<Result<_, _>>()?;
        request.extensions_mut().insert(SendCheck::new(move || {
            before.as_ref().map_or(Ok(()), SendCheck::ask)?;
            terms.iter().find(|term| !term.may_begin()).map_or(Ok(()), |ended| Err(refused(&**ended)))
        }));
        Ok(())
    }
}

fn refused(guard: &dyn SendGuard) -> TransportError {
    TransportError::NotLeading { lease: Arc::clone(guard.lease()) }
}

impl Transport for Asking {
    fn send(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let below = Rc::clone(&self.0);
        Box::pin(async move {
            // Without this a refused request could take a connection, which is closed over it.
            SendCheck::ask_of(&request)?;
            below.send(request, kind).await
        })
    }

    fn timed_out(&self, kind: RequestKind) {
        self.0.timed_out(kind);
    }

    fn distrust(&self) {
        self.0.distrust();
    }
}
