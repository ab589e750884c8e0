//! What an operator knows of its parts, outside of its actor: it outlives a panic of the actor.
//!
//! Answers "which life of a part is told to stop, and what is decided next?". Parts tell what happened from any thread.
//! The lock is held for one call of the core; no code of a part runs under it. Invariant:
//! 1. The tokens of a life are there from its start to its end.
//!
//! Read next: `shared.rs`, who is told; `informer_core::operator`, which decides.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use informer_core::operator::{Action, Ended, Life, Lifecycle, PartId};
use informer_core::restart::Exit;
use tokio_util::sync::CancellationToken;

use crate::runtime::locked::locked;
use crate::runtime::{Clock, RandomNumbers};

pub(super) struct Content {
    clock: Clock,
    inner: Mutex<Inner>,
}

struct Inner {
    lifecycle: Lifecycle,
    chance: RandomNumbers,
    tokens: BTreeMap<PartId, Tokens>,
}

/// How one life of a part is ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokens {
    /// It is told to end what it has begun.
    pub(super) stop: CancellationToken,
    /// Its future is dropped.
    pub(super) kill: CancellationToken,
}

/// What the actor has to do.
pub(super) enum Step {
    Start(Life, Tokens),
    Cancel(CancellationToken),
}

impl Content {
    pub(super) fn new(lifecycle: Lifecycle, (clock, chance): (Clock, RandomNumbers)) -> Self {
        Self { clock, inner: Mutex::new(Inner { lifecycle, chance, tokens: BTreeMap::new() }) }
    }

    /// Reads or changes what is known of the parts.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Lifecycle, Duration) -> R) -> R {
        let now = self.clock.now();
        call(&mut locked(&self.inner).lifecycle, now)
    }

    /// Nothing of this life is left.
    pub(super) fn ended(&self, life: Life, exit: &Exit) -> Option<Ended> {
        let mut inner = locked(&self.inner);
        let at = inner.chance.moment(&self.clock);
        inner.tokens.remove(&life.part);
        inner.lifecycle.handle_ended(life, exit, at)
    }

    /// What has to be done next; it is taken as done.
    pub(super) fn next(&self) -> Option<Step> {
        let now = self.clock.now();
        let mut inner = locked(&self.inner);
        let action = inner.lifecycle.next(now)?;
        match action {
            Action::Start(life) => {
                let tokens = Tokens::default();
                inner.tokens.insert(life.part, tokens.clone());
                Some(Step::Start(life, tokens))
            }
            Action::Drain(life) => {
                Some(Step::Cancel(inner.tokens.entry(life.part).or_default().stop.clone()))
            }
            Action::End(life) => Some(Step::Cancel(inner.tokens.entry(life.part).or_default().kill.clone())),
            _ => None,
        }
    }

    /// Drops every part; nothing starts any more.
    pub(super) fn end(&self) {
        let tokens = {
            let mut inner = locked(&self.inner);
            inner.lifecycle.abandon(self.clock.now());
            std::mem::take(&mut inner.tokens)
        };
        tokens.values().for_each(|tokens| tokens.kill.cancel());
    }

    pub(super) fn time_left(&self, part: PartId) -> Duration {
        self.with(|lifecycle, now| lifecycle.time_left(part, now))
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }
}
