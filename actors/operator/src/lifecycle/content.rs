//! What an operator knows of its parts, outside of its actor: it outlives a panic of the actor.
//!
//! Answers "which life of a part is told to stop, and what is decided next?". Parts tell what happened from any thread.
//! The lock is held for one call of the machine; no code of a part runs under it. Invariant:
//! 1. What is known of a life is there from its start to its end.
//! 2. A function or a future of a part is called, polled and dropped without the lock.
//!
//! Read next: `../operator.rs`, who is told; `lifecycle/machine.rs`, which decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::lifecycle::machine::{Action, Ended, Life, Lifecycle, PartId};
use informer_core::restart::Exit;
use tokio_util::sync::CancellationToken;

use informer_actors::inner::{Clock, RandomNumbers, locked};

pub(super) struct Content {
    clock: Clock,
    inner: Mutex<Inner>,
}

struct Inner {
    lifecycle: Lifecycle,
    chance: RandomNumbers,
    lives: BTreeMap<PartId, Living>,
}

/// Says what a part waits for.
pub(super) type WaitsFor = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What is known of one life of a part.
struct Living {
    number: u64,
    tokens: Tokens,
    /// Until it is ready.
    waits_for: Option<WaitsFor>,
    /// What outlives its future.
    rests: Vec<BoxFuture<'static, ()>>,
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
        Self { clock, inner: Mutex::new(Inner { lifecycle, chance, lives: BTreeMap::new() }) }
    }

    /// Reads or changes what is known of the parts.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Lifecycle, Duration) -> R) -> R {
        let now = self.clock.now();
        call(&mut locked(&self.inner).lifecycle, now)
    }

    /// Nothing of this life is left.
    pub(super) fn ended(&self, life: Life, exit: &Exit) -> Option<Ended> {
        let (left, ended) = {
            let mut inner = locked(&self.inner);
            let at = inner.chance.moment(&self.clock);
            let left = inner.living(life).is_some().then(|| inner.lives.remove(&life.part));
            (left, inner.lifecycle.handle_ended(life, exit, at))
        };
        drop(left);
        ended
    }

    /// Others may rely on this life.
    pub(super) fn ready(&self, life: Life) {
        let waited_for = {
            let (now, mut inner) = (self.clock.now(), locked(&self.inner));
            inner.lifecycle.handle_ready(life, now);
            inner.living(life).and_then(|living| living.waits_for.take())
        };
        drop(waited_for);
    }

    /// This life says what it waits for, until it is ready.
    pub(super) fn set_waits_for(&self, life: Life, waits_for: WaitsFor) {
        let mut waits_for = Some(waits_for);
        if let Some(living) = locked(&self.inner).living(life) {
            std::mem::swap(&mut living.waits_for, &mut waits_for);
        }
        drop(waits_for);
    }

    /// What this part waits for in its present life, if that says so.
    pub(super) fn waits_for(&self, part: PartId) -> Option<WaitsFor> {
        locked(&self.inner).lives.get(&part).and_then(|living| living.waits_for.clone())
    }

    /// The end of this life is reported when this is ready, too. A former life has none.
    pub(super) fn add_rest(&self, life: Life, rest: BoxFuture<'static, ()>) {
        let mut rest = Some(rest);
        if let Some(living) = locked(&self.inner).living(life) {
            living.rests.extend(rest.take());
        }
        drop(rest);
    }

    /// What outlives the future of this life; it is not kept any more.
    pub(super) fn take_rests(&self, life: Life) -> Vec<BoxFuture<'static, ()>> {
        locked(&self.inner).living(life).map(|living| std::mem::take(&mut living.rests)).unwrap_or_default()
    }

    /// What has to be done next; it is taken as done.
    pub(super) fn next(&self) -> Option<Step> {
        let now = self.clock.now();
        let mut inner = locked(&self.inner);
        let action = inner.lifecycle.next(now)?;
        match action {
            Action::Start(life) | Action::Close(life) => {
                let tokens = Tokens::default();
                if matches!(action, Action::Close(_)) {
                    tokens.stop.cancel();
                }
                inner.lives.insert(life.part, Living::new(life, tokens.clone()));
                Some(Step::Start(life, tokens))
            }
            Action::Drain(life) => Some(Step::Cancel(inner.tokens(life).stop)),
            Action::End(life) => Some(Step::Cancel(inner.tokens(life).kill)),
        }
    }

    /// Drops every part; nothing starts any more. What outlives the future of a part is kept for the task that ends it.
    pub(super) fn end(&self) {
        let kills: Vec<_> = {
            let mut inner = locked(&self.inner);
            inner.lifecycle.abandon(self.clock.now());
            inner.lives.values().map(|living| living.tokens.kill.clone()).collect()
        };
        kills.iter().for_each(CancellationToken::cancel);
    }

    pub(super) fn time_left(&self, part: PartId) -> Duration {
        self.with(|lifecycle, now| lifecycle.time_left(part, now))
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl Inner {
    /// What is known of this life, if it still is the present one.
    fn living(&mut self, life: Life) -> Option<&mut Living> {
        self.lives.get_mut(&life.part).filter(|living| living.number == life.number)
    }

    fn tokens(&mut self, life: Life) -> Tokens {
        self.living(life).map(|living| living.tokens.clone()).unwrap_or_default()
    }
}

impl Living {
    fn new(life: Life, tokens: Tokens) -> Self {
        Self { number: life.number, tokens, waits_for: None, rests: Vec::new() }
    }
}
