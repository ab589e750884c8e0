//! What a recorder holds, outside of its actor, so that it outlives its panic. The machine calls no foreign
//! code. A recorder that is not sound after a panic starts empty, and what waited is counted as forgotten.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::events::machine::{At, RecorderFigures, RecorderMachine, WARN_EVERY};
use informer_core::reflector::Moment;
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::EventSink;
use informer_actors::inner::{Locked, Machine, Registrant};

pub(super) struct Inside {
    pub(super) name: Arc<str>,
    pub(super) content: Locked<RecorderMachine>,
    pub(super) sink: Arc<dyn EventSink>,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

impl Machine for RecorderMachine {
    fn is_sound(&self) -> bool {
        self.check().is_ok()
    }

    fn rebuild(&mut self, _: Moment) {
        *self = self.emptied();
    }
}

impl Inside {
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut RecorderMachine, At) -> R) -> R {
        self.content.with(|recorder, moment| {
            let wall = self.content.clock().wall_time().duration_since(UNIX_EPOCH);
            call(recorder, At { moment, wall: wall.unwrap_or(Duration::ZERO) })
        })
    }

    pub(super) fn warn(&self) {
        let Some(warning) = self.with(|recorder, _| recorder.take_warning()) else { return };
        let (recorder, why, quiet) = (&self.name, &warning.why, Brief(WARN_EVERY));
        let others = match warning.others {
            0 => String::new(),
            others => format!(" ({others} more since the last line)"),
        };
        tracing::warn!(target: "actix_informer::events", %recorder, "recorder {recorder}: an event is dropped: {why}{others}; others are counted, and logged after {quiet} at the earliest");
    }
}

/// How one event recorder is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecorderReport {
    /// Its name: the one it was given, or that with a number, if a live recorder of the runtime had it.
    pub name: Arc<str>,
    /// What is measured.
    pub figures: RecorderFigures,
}

pub(crate) struct RegisteredRecorder {
    pub(super) inside: Arc<Inside>,
    pub(super) stop: CancellationToken,
}

impl RegisteredRecorder {
    pub(crate) fn report(&self) -> RecorderReport {
        let figures = self.inside.with(|recorder, _| recorder.figures());
        RecorderReport { name: Arc::clone(&self.inside.name), figures }
    }
}

impl Registrant for RegisteredRecorder {
    fn stop(&self) {
        self.stop.cancel();
    }

    fn abandon(&self) {
        self.inside.with(|recorder, _| recorder.close());
        self.inside.over.cancel();
    }

    fn over(&self) -> CancellationToken {
        self.inside.over.clone()
    }
}
