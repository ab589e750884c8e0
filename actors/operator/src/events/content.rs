//! What a recorder holds, outside of its actor: it outlives a panic of the actor, and its runtime knows it.
//!
//! Answers "what is left to send, also after something has panicked, and what is logged or reported of it?". Invariants:
//! 1. The lock is held for one call of the machine, which calls no foreign code.
//! 2. If such a call panics, the next one finds the recorder marked. It is used on only if its check holds; else it begins
//!    anew, and what waited is counted as forgotten.
//! 3. A recorder is registered from its start until nothing of its actor exists any more; that keeps nothing running.
//!
//! Read next: `actor.rs`; `events/machine.rs`, which decides; `shared.rs`, which registers; `runtime/registry.rs`.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use crate::events::machine::{At, Figures, Recorder, WARN_EVERY};
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::EventSink;
use informer_actors::inner::{Clock, RandomNumbers, Registrant, locked};

/// What the actor has, too.
pub(super) struct Inside {
    pub(super) name: Arc<str>,
    pub(super) content: Content,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) is_told: AtomicBool,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

pub(super) struct Content {
    clock: Clock,
    inner: Mutex<Inner>,
}

struct Inner {
    recorder: Recorder,
    chance: RandomNumbers,
    /// A call was begun and has not returned.
    is_changing: bool,
}

impl Content {
    pub(super) fn new(recorder: Recorder, clock: Clock, chance: RandomNumbers) -> Self {
        Self { clock, inner: Mutex::new(Inner { recorder, chance, is_changing: false }) }
    }

    /// Calls the machine.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Recorder, At) -> R) -> R {
        let mut inner = locked(&self.inner);
        let Inner { recorder, chance, is_changing } = &mut *inner;
        if *is_changing && recorder.check().is_err() {
            let anew = recorder.emptied();
            *recorder = anew;
        }
        *is_changing = true;
        let wall = self.clock.wall_time().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let result = call(recorder, At { moment: chance.moment(&self.clock), wall });
        *is_changing = false;
        result
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl Inside {
    /// Logs a loss, if the machine says that it is to be logged.
    pub(super) fn warn(&self) {
        let Some(warning) = self.content.with(|recorder, _| recorder.take_warning()) else { return };
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
