//! What an operator knows of its parts, outside of the actor, so that it outlives its panic. Parts report
//! from any thread.
//!
//! 1. Functions and futures of a part are called, polled and dropped without the lock.
//! 2. A life of which nothing is known after a panic has failed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::lifecycle::machine::{Action, Life, Lifecycle, PartEnded, PartId};
use informer_core::reflector::Moment;
use informer_core::restart::Exit;
use tokio_util::sync::CancellationToken;

use super::Shared;
use informer_actors::inner::Machine;

pub(super) struct Content {
    lifecycle: Lifecycle,
    lives: BTreeMap<PartId, Living>,
}

pub(super) type WaitsFor = Arc<dyn Fn() -> Option<String> + Send + Sync>;

struct Living {
    number: u64,
    tokens: Tokens,
    /// Until it is ready.
    waits_for: Option<WaitsFor>,
    /// What outlives its future.
    rests: Vec<BoxFuture<'static, ()>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Tokens {
    /// To end what it has begun.
    pub(super) stop: CancellationToken,
    /// To drop its future.
    pub(super) kill: CancellationToken,
}

pub(super) enum Step {
    Start(Life, Tokens),
    Cancel(CancellationToken),
}

impl Machine for Content {
    fn is_sound(&self) -> bool {
        self.lifecycle.lives().all(|life| self.knows(life))
    }

    fn rebuild(&mut self, at: Moment) {
        let unknown: Vec<_> = self.lifecycle.lives().filter(|life| !self.knows(*life)).collect();
        for life in unknown {
            self.lifecycle.handle_ended(
                life,
                &Exit::Panicked("nothing is known of it after a panic".into()),
                at,
            );
        }
    }
}

impl Content {
    pub(super) fn new(lifecycle: Lifecycle) -> Self {
        Self { lifecycle, lives: BTreeMap::new() }
    }

    fn knows(&self, life: Life) -> bool {
        self.lives.get(&life.part).is_some_and(|living| living.number == life.number)
    }

    /// `None` for a former life.
    fn living(&mut self, life: Life) -> Option<&mut Living> {
        self.lives.get_mut(&life.part).filter(|living| living.number == life.number)
    }

    fn tokens(&mut self, life: Life) -> Tokens {
        self.living(life).map(|living| living.tokens.clone()).unwrap_or_default()
    }

    fn next(&mut self, now: Duration) -> Option<Step> {
        let action = self.lifecycle.next(now)?;
        match action {
            Action::Start(life) | Action::Close(life) => {
                let tokens = Tokens::default();
                if matches!(action, Action::Close(_)) {
                    tokens.stop.cancel();
                }
                self.lives.insert(life.part, Living::new(life, tokens.clone()));
                Some(Step::Start(life, tokens))
            }
            Action::Drain(life) => Some(Step::Cancel(self.tokens(life).stop)),
            Action::End(life) => Some(Step::Cancel(self.tokens(life).kill)),
        }
    }
}

impl Shared {
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Lifecycle, Duration) -> R) -> R {
        self.content.with(|content, at| call(&mut content.lifecycle, at.now))
    }

    /// What is returned counts as done.
    pub(super) fn next(&self) -> Option<Step> {
        self.content.with(|content, at| content.next(at.now))
    }

    pub(super) fn ended(&self, life: Life, exit: &Exit) -> Option<PartEnded> {
        let (_left, ended) = self.content.with(|content, at| {
            let left = content.knows(life).then(|| content.lives.remove(&life.part));
            (left, content.lifecycle.handle_ended(life, exit, at))
        });
        ended
    }

    pub(super) fn ready(&self, life: Life) {
        let _waited_for = self.content.with(|content, at| {
            content.lifecycle.handle_ready(life, at.now);
            content.living(life).and_then(|living| living.waits_for.take())
        });
    }

    pub(super) fn set_waits_for(&self, life: Life, waits_for: WaitsFor) {
        let mut waits_for = Some(waits_for);
        self.content.with(|content, _| {
            if let Some(living) = content.living(life) {
                std::mem::swap(&mut living.waits_for, &mut waits_for);
            }
        });
    }

    pub(super) fn waits_for(&self, part: PartId) -> Option<WaitsFor> {
        self.content.with(|content, _| content.lives.get(&part).and_then(|living| living.waits_for.clone()))
    }

    /// Dropped for a former life.
    pub(super) fn add_rest(&self, life: Life, rest: BoxFuture<'static, ()>) {
        let mut rest = Some(rest);
        self.content.with(|content, _| {
            if let Some(living) = content.living(life) {
                living.rests.extend(rest.take());
            }
        });
    }

    pub(super) fn take_rests(&self, life: Life) -> Vec<BoxFuture<'static, ()>> {
        self.content
            .with(|content, _| content.living(life).map(|living| std::mem::take(&mut living.rests)))
            .unwrap_or_default()
    }

    /// What outlives a future stays with the task that ends it.
    pub(super) fn kill_all(&self) {
        let kills: Vec<_> = self.content.with(|content, at| {
            content.lifecycle.abandon(at.now);
            content.lives.values().map(|living| living.tokens.kill.clone()).collect()
        });
        kills.iter().for_each(CancellationToken::cancel);
    }
}

impl Living {
    fn new(life: Life, tokens: Tokens) -> Self {
        Self { number: life.number, tokens, waits_for: None, rests: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::machine::{DrainLimits, PartState, Phase};

    #[test]
    fn a_life_of_which_nothing_is_known_after_a_panic_has_failed_and_the_part_starts_again() {
        let (phases, policy) = ([Phase::Caches, Phase::Work], Lifecycle::PATIENT);
        let mut content = Content::new(Lifecycle::new(&phases, DrainLimits::default(), policy));
        let at = Moment { now: Duration::ZERO, chance: 0.0 };
        let Some(Step::Start(known, _)) = content.next(at.now) else { panic!("the cache starts") };
        content.lifecycle.handle_ready(known, at.now);
        // As a panic between the two steps of a start leaves it.
        assert!(matches!(content.lifecycle.next(at.now), Some(Action::Start(_))), "the work starts");
        assert!(!content.is_sound());
        content.rebuild(at);
        assert!(content.is_sound());
        let states: Vec<_> = content.lifecycle.states().collect();
        assert!(matches!(states[..], [PartState::Ready, PartState::Backoff { .. }]), "{states:?}");
    }
}
