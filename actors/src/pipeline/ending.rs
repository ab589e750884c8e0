//! What the runtime has of an informer: its report, and its end, which is told exactly once to everything that waits for it.
//!
//! Answers "how is it doing, with its sources, its queue and its subscriptions, and how does every wait end when it ends?". An
//! informer ends by its own shutdown, with its last handle, when supervision gives up on it, or with its runtime, its
//! arbiter or its simulation. Invariants:
//! 1. [`Ending::end`] stops its actors, ends its subscriptions and frees its name; further calls do nothing.
//! 2. [`EndNotice`] is dropped when all tasks of the informer have ended, also when its arbiter drops them. Only then
//!    its status shows that it has stopped.
//! 3. Nothing here waits, and nothing here keeps the informer or its runtime alive.
//! 4. A report is a copy of the status: no message is sent, so it also works when a thread is blocked. A subscription is
//!    listed until no actor runs for it.
//!
//! Read next: `informer.rs`, which waits; `runtime/registry.rs`, through which a runtime ends its informers; `status.rs`.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::pipeline::board::StatusBoard;
use crate::pipeline::listener_roster::Subscriptions;
use crate::pipeline::status::InformerStatus;
use crate::pipeline::subscription_state::{EndReason, SubscriptionState, SubscriptionStatus};
use crate::runtime::{Registrant, Registration};

/// Everything that takes part in the end of one informer.
pub(crate) struct Ending {
    /// Ends its actors.
    pub(crate) stop: CancellationToken,
    /// Ends the reading of its sources.
    pub(crate) stop_reading: CancellationToken,
    pub(crate) board: StatusBoard,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) registration: Registration,
    /// Cancelled when a blocked thread keeps it although its runtime was shut down.
    abandoned: CancellationToken,
    /// Cancelled when all of its tasks have ended.
    pub(crate) over: CancellationToken,
    by_runtime: AtomicBool,
    /// How a handle of it is found: the handles know what it is.
    handle: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// How one informer and everything on it is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerReport {
    /// The informer with its sources and its queue.
    pub status: InformerStatus,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionStatus>,
}

impl Ending {
    pub(crate) fn new(
        (stop, stop_reading): (CancellationToken, CancellationToken),
        board: StatusBoard,
        registration: Registration,
    ) -> Arc<Self> {
        Arc::new(Self {
            stop,
            stop_reading,
            board,
            subscriptions: Subscriptions::default(),
            registration,
            abandoned: CancellationToken::new(),
            over: CancellationToken::new(),
            by_runtime: AtomicBool::new(false),
            handle: OnceLock::new(),
        })
    }

    /// Ends the informer: no actor or callback of it starts any more.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.stop_reading.cancel();
        self.subscriptions.end_all(&EndReason::InformerStopped);
        self.registration.release_name();
    }

    /// Keeps how a handle is found; the first one given stays.
    pub(crate) fn list(&self, handle: Box<dyn Any + Send + Sync>) {
        self.handle.get_or_init(|| handle);
    }

    /// How a handle is found, once the informer has started.
    pub(crate) fn listed(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.handle.get().map(|handle| &**handle)
    }

    /// Waits until waiting for this informer is useless, because a blocked thread keeps a part of it.
    pub(crate) async fn abandoned(&self) {
        self.abandoned.cancelled().await;
    }

    /// Why it has stopped, if that is known.
    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        let runtime = || self.by_runtime.load(Ordering::Acquire).then(|| "its runtime was shut down".into());
        self.board.read().failed.or_else(runtime)
    }

    /// How the informer is doing.
    pub(crate) fn report(&self) -> InformerReport {
        InformerReport { status: self.board.read(), subscriptions: self.subscriptions() }
    }

    /// How its subscriptions are doing.
    pub(crate) fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        self.subscriptions.present().iter().map(SubscriptionState::read).collect()
    }
}

impl Registrant for Ending {
    fn stop(&self) {
        let first = !self.stop.is_cancelled();
        self.by_runtime.fetch_or(first, Ordering::AcqRel);
        self.end();
    }

    fn abandon(&self) {
        self.abandoned.cancel();
    }

    fn over(&self) -> CancellationToken {
        self.over.clone()
    }
}

/// Reports by its drop that all tasks of the informer have ended: after the last task, or with the arbiter.
pub(crate) struct EndNotice(pub(crate) Arc<Ending>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.0.end();
        self.0.board.stop();
        tracing::debug!(target: "actix_informer::informer", informer = %self.0.registration.name(), "the informer has stopped");
        self.0.over.cancel();
        self.0.registration.unlist();
    }
}

/// The reports of the informers among what is registered, in the same order.
pub fn informer_reports(registrants: &[Arc<dyn Any + Send + Sync>]) -> Vec<InformerReport> {
    let endings =
        registrants.iter().filter_map(|registrant| Arc::clone(registrant).downcast::<Ending>().ok());
    endings.map(|ending| ending.report()).collect()
}
