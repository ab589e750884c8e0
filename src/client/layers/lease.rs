//! Refuses the requests of a leader whose lease has ended, last thing before the transport.
//!
//! Answers "may this request still be sent?" for a client that `LeaderElection::guard` has made. Invariants:
//! 1. The clock is read when the request is handed to the transport, after every wait and retry of the other layers: a
//!    process that was stopped anywhere before sends nothing after its lease has ended.
//! 2. A refused request has reached nobody. One that was handed over before may still arrive.
//! 3. The connections are those of the client that was guarded.
//!
//! Read next: `informer_actors::leader_election::Validity`, which is asked.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Request, Response};
use informer_actors::leader_election::Validity;

use super::super::error::TransportError;
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
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let (below, validity) = (Rc::clone(&self.layers.0.transport), self.validity.clone());
        Box::pin(async move {
            if !validity.may_begin() {
                return Err(TransportError::NotLeading { lease: Arc::clone(validity.lease()) });
            }
            below.send(request, kind).await
        })
    }

    fn timed_out(&self, kind: RequestKind) {
        self.layers.0.transport.timed_out(kind);
    }
}
