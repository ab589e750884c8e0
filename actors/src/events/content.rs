//! What a recorder holds, outside of its actor: it outlives a panic of the actor.
//!
//! Answers "what is left to send after something has panicked?". Invariants:
//! 1. The lock is held for one call of the core, which calls no foreign code.
//! 2. If such a call panics, the next one finds the recorder marked. It is used on only if its check holds; else it begins
//!    anew, and what waited is counted as forgotten.
//!
//! Read next: `actor.rs`; `informer_core::events`, which decides.

use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use informer_core::events::{At, Recorder};

use crate::runtime::locked::locked;
use crate::runtime::{Clock, RandomNumbers};

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

    /// Calls the core.
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
