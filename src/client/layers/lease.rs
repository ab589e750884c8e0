//! Refuses the requests of a leader whose lease has ended, up to their first byte.
//!
//! Answers "may this request still be sent?" for a client that `LeaderElection::guard` has made. Invariants:
//! 1. The clock is read when the request is handed to the transport, after every wait and retry of the other layers, and
//!    again when its connection is ready, last thing before its first byte: a process that was stopped before that sends
//!    nothing after its lease has ended, however long it took to connect.
//! 2. A refused request has reached nobody. One whose first byte may have been written is never refused: it goes on, and
//!    may arrive.
//! 3. The connections are those of the client that was guarded.
//!
//! Read next: `informer_actors::leader_election::Validity`, which is asked; `../transport/send_check.rs`, by whom.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Request, Response};
use informer_actors::leader_election::Validity;

use super::super::error::TransportError;
use super::super::transport::send_check::SendCheck;
use super::super::transport::{Body, RequestKind, Transport};
use super::Layers;

/// The transport of other layers, for as long as a lease lasts.
pub(super) struct WhileLeading {
    pub(super) layers: Rc<Layers>,
    pub(super) validity: Validity,
}

impl Transport for WhileLeading {
    fn send(
        &self,
        mut request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let (below, validity) = (Rc::clone(&self.layers.0.transport), self.validity.clone());
        Box::pin(async move {
            // Of a guarded client that is guarded once more both leases are asked.
            let above = SendCheck::of(&request);
            let check = SendCheck::new(move || {
                above.as_ref().map_or(Ok(()), SendCheck::ask)?;
                match validity.may_begin() {
                    true => Ok(()),
                    false => Err(TransportError::NotLeading { lease: Arc::clone(validity.lease()) }),
                }
            });
            // Without this a refused request could take a connection, which is closed over it.
            check.ask()?;
            request.extensions_mut().insert(check);
            below.send(request, kind).await
        })
    }

    fn timed_out(&self, kind: RequestKind) {
        self.layers.0.transport.timed_out(kind);
    }
}
