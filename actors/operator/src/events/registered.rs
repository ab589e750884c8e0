//! A recorder in the report of its runtime, and its end when the runtime ends first.
//!
//! Answers "which recorders run here, and how many events wait?". Invariant:
//! 1. A recorder is registered from its start until nothing of its actor exists any more; that keeps nothing running.
//!
//! Read next: `shared.rs`, which registers; `runtime/registry.rs`.

use std::sync::Arc;

use crate::events::machine::Figures;
use tokio_util::sync::CancellationToken;

use super::content::Inside;
use informer_actors::inner::Registrant;

/// How one event recorder is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecorderReport {
    /// Its name: the one it was given, or that with a number, if a live recorder of the runtime had it.
    pub name: Arc<str>,
    /// What is measured.
    pub figures: Figures,
}

/// A recorder as its runtime knows it.
pub(crate) struct RegisteredRecorder {
    pub(super) inside: Arc<Inside>,
    /// Ends the actor.
    pub(super) stop: CancellationToken,
}

impl RegisteredRecorder {
    /// How it is doing.
    pub(crate) fn report(&self) -> RecorderReport {
        let figures = self.inside.content.with(|recorder, _| recorder.figures());
        RecorderReport { name: Arc::clone(&self.inside.name), figures }
    }
}

impl Registrant for RegisteredRecorder {
    fn stop(&self) {
        self.stop.cancel();
    }

    fn abandon(&self) {
        self.inside.content.with(|recorder, _| recorder.close());
        self.inside.over.cancel();
    }

    fn over(&self) -> CancellationToken {
        self.inside.over.clone()
    }
}
