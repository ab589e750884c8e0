//! An operator in the report of its runtime, and its end when the runtime ends first.
//!
//! Answers "which operators run here?". An operator is registered until nothing of its actor exists any more. Read next:
//! `start.rs`, which registers; `runtime/registry.rs`.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::OperatorStatus;
use super::shared::Shared;
use crate::runtime::Registrant;

/// An operator as its runtime knows it.
pub(crate) struct RegisteredOperator(Arc<Shared>);

impl RegisteredOperator {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::clone(shared))
    }

    /// How it is doing.
    pub(crate) fn status(&self) -> OperatorStatus {
        self.0.status()
    }
}

impl Registrant for RegisteredOperator {
    fn stop(&self) {
        self.0.end();
    }

    fn abandon(&self) {
        self.0.end();
        self.0.over.cancel();
    }

    fn over(&self) -> CancellationToken {
        self.0.over.clone()
    }
}
