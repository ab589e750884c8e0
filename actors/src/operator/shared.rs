//! What the handles, the parts and the actor of an operator share.
//!
//! Answers "how does the actor learn that something has changed, and how does everybody else?". Invariants:
//! 1. At most one `Look` is in the mailbox, and one more for each restart. The actor takes the mark away before it looks.
//! 2. Whoever waits for a status is woken by each change.
//!
//! Read next: `content.rs`; `actor.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::Addr;
use informer_core::operator::{Lifecycle, PartId, Phase};
use tokio_util::sync::CancellationToken;

use super::actor::{Look, OperatorActor};
use super::content::{Content, WaitsFor};
use super::part::{Part, Stale};
use super::run::Executor;
use super::status::{OperatorStatus, PartStatus};
use crate::pipeline::signal::Signal;
use crate::runtime::Runtime;

/// A part with its phase and its name.
pub(super) struct Named {
    pub(super) phase: Phase,
    pub(super) name: Arc<str>,
    pub(super) part: Arc<dyn Part>,
    pub(super) stale_limit: Option<Duration>,
}

pub(super) struct Shared {
    pub(super) name: Arc<str>,
    pub(super) runtime: Runtime,
    /// In the order in which they start.
    pub(super) parts: Vec<Named>,
    pub(super) executor: Executor,
    pub(super) content: Content,
    pub(super) address: Addr<OperatorActor>,
    pub(super) changed: Signal,
    pub(super) is_told: AtomicBool,
    /// The parts were told to end what they hold.
    pub(super) has_ended: AtomicBool,
    /// Ends the actor.
    pub(super) stop: CancellationToken,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

impl Shared {
    /// Changes what is known of the parts, and tells the actor and whoever waits.
    pub(super) fn change<R>(&self, call: impl FnOnce(&mut Lifecycle, Duration) -> R) -> R {
        let result = self.content.with(call);
        self.tell();
        result
    }

    /// Tells the actor and whoever waits that something has changed.
    #[expect(
        clippy::disallowed_methods,
        reason = "bounded: one Look is in the mailbox at most, and one more for each restart"
    )]
    pub(super) fn tell(&self) {
        self.changed.raise();
        if !self.is_told.swap(true, Ordering::AcqRel) {
            self.address.do_send(Look);
        }
    }

    /// Drops every part, with what it holds, and ends the actor.
    pub(super) fn end(&self) {
        self.content.end();
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            self.parts.iter().for_each(Named::end);
        }
        self.stop.cancel();
        self.changed.raise();
    }

    pub(super) async fn wait_until(&self, mut enough: impl FnMut(&OperatorStatus) -> bool) -> OperatorStatus {
        loop {
            let seen = self.changed.count();
            let status = self.status();
            if enough(&status) || status.stage == super::Stage::Stopped {
                return status;
            }
            self.changed.since(seen).await;
        }
    }

    pub(super) fn status(&self) -> OperatorStatus {
        let (at, stage, leads, known) = self.content.with(|lifecycle, now| {
            let leads = lifecycle.has_election().then(|| lifecycle.leads());
            let history = |at: usize| lifecycle.history(PartId(at)).unwrap_or_default();
            let known: Vec<_> =
                lifecycle.states().enumerate().map(|(at, state)| (state, history(at))).collect();
            (now, lifecycle.stage(), leads, known)
        });
        let known = self.parts.iter().zip(known).enumerate();
        let parts = known.map(|(at, (named, (state, (since, restarts, last_error))))| {
            let is_missing = state == super::PartState::Starting;
            let missing = || named.missing(self.content.waits_for(PartId(at)));
            PartStatus {
                name: Arc::clone(&named.name),
                phase: named.phase,
                state,
                since,
                restarts,
                last_error,
                missing: is_missing.then(missing).flatten(),
                stale: (state == super::PartState::Ready).then(|| named.stale()).flatten(),
                stale_limit: named.stale_limit,
                unhealthy: (stage == super::Stage::Running).then(|| named.unhealthy()).flatten(),
            }
        });
        OperatorStatus { name: Arc::clone(&self.name), at, stage, leads, parts: parts.collect() }
    }
}

impl Named {
    fn missing(&self, waits_for: Option<WaitsFor>) -> Option<String> {
        let missing = || waits_for.map_or_else(|| self.part.missing(), |waits_for| waits_for());
        catch_unwind(AssertUnwindSafe(missing)).unwrap_or_else(|_| {
            Some("what it waits for is not known: it panicked when it was asked".to_owned())
        })
    }

    fn stale(&self) -> Option<Stale> {
        let stale = catch_unwind(AssertUnwindSafe(|| self.part.stale()));
        stale.unwrap_or_else(|_| {
            Some(Stale::new(Duration::MAX, "it panicked when it was asked how old its data is"))
        })
    }

    fn unhealthy(&self) -> Option<String> {
        let unhealthy = catch_unwind(AssertUnwindSafe(|| self.part.unhealthy()));
        unhealthy.unwrap_or_else(|_| Some("it panicked when it was asked for its health".to_owned()))
    }

    fn end(&self) {
        if catch_unwind(AssertUnwindSafe(|| self.part.end())).is_err() {
            tracing::error!(target: "actix_informer::operator", part = %self.name, "{} panicked when it was told to end what it holds", self.name);
        }
    }
}
