//! A recorder of events as a part of an operator: what waits is sent before the lease is given back.
//!
//! A client that is guarded by the lease sends nothing after its end, so a recorder of the leader's work is a part
//! between that work and the election ([`OperatorBuilder::events`](crate::lifecycle::OperatorBuilder::events)). Invariants:
//! 1. It is never missing: a server that takes no events delays no work.
//! 2. At its end it refuses events, and sends what waits, for as long as its phase may take.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};

use crate::events::kubernetes::Recorder;
use crate::lifecycle::{Part, PartContext, PartError};

impl Part for Recorder {
    fn name(&self) -> Arc<str> {
        format!("events of {}", self.controller()).into()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        let recorder = self.clone();
        async move {
            context.ready();
            let limit = context.stopping().await;
            // A little less, so that the report says how many events are left and why.
            Ok(recorder.shutdown(limit - limit / 10).await?)
        }
        .boxed()
    }
}
