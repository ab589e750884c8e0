//! The end of an informer, told exactly once to everything that waits for it, and its report.
//!
//! 1. An informer ends by its shutdown, with its last handle, its runtime, arbiter or simulation, or when supervision
//!    gives up.
//! 2. [`EndNotice`] is dropped when all its tasks have ended, also when the arbiter drops them. Only then the
//!    status shows the stop.
//! 3. Nothing here waits, or keeps the informer or its runtime alive.
//! 4. A report sends no message: it works when a thread is blocked.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use tokio_util::sync::CancellationToken;

use crate::pipeline::board::StatusBoard;
use crate::pipeline::listener_roster::Subscriptions;
use crate::pipeline::published::Listing;
use crate::pipeline::status::InformerStatus;
use crate::pipeline::subscription_state::{EndReason, SubscriptionState, SubscriptionStatus};
use crate::runtime::sizes::{InformerMemory, MemoryReport};
use crate::runtime::{Paths, Registrant, Registration};

pub(crate) struct Ending {
    pub(crate) stop: CancellationToken,
    pub(crate) stop_reading: CancellationToken,
    pub(crate) board: StatusBoard,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) registration: Registration,
    paths: Paths,
    /// Cancelled when a blocked thread keeps it after the shutdown of its runtime.
    abandoned: CancellationToken,
    /// Cancelled when all its tasks have ended.
    pub(crate) over: CancellationToken,
    by_runtime: AtomicBool,
    at_end: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// How a handle is found; the handles know the type.
    handle: OnceLock<Box<dyn Any + Send + Sync>>,
    objects: Weak<dyn Listing>,
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
        (registration, paths): (Registration, Paths),
        objects: Weak<dyn Listing>,
    ) -> Arc<Self> {
        Arc::new(Self {
            stop,
            stop_reading,
            board,
            subscriptions: Subscriptions::default(),
            registration,
            paths,
            abandoned: CancellationToken::new(),
            over: CancellationToken::new(),
            by_runtime: AtomicBool::new(false),
            at_end: OnceLock::new(),
            handle: OnceLock::new(),
            objects,
        })
    }

    /// Stops the actors, ends the subscriptions and frees the name, once.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.stop_reading.cancel();
        self.subscriptions.end_all(&EndReason::InformerStopped);
        self.registration.release_name();
    }

    /// Once.
    pub(crate) fn at_end(&self, done: impl Fn() + Send + Sync + 'static) {
        self.at_end.get_or_init(|| Box::new(done));
    }

    pub(crate) fn list(&self, handle: Box<dyn Any + Send + Sync>) {
        self.handle.get_or_init(|| handle);
    }

    pub(crate) fn listed(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.handle.get().map(|handle| &**handle)
    }

    /// Ends when a wait for this informer is useless: a blocked thread keeps a part of it.
    pub(crate) async fn abandoned(&self) {
        self.abandoned.cancelled().await;
    }

    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        let runtime = || self.by_runtime.load(Ordering::Acquire).then(|| "its runtime was shut down".into());
        self.board.read().failed.or_else(runtime)
    }

    pub(crate) fn report(&self) -> InformerReport {
        InformerReport { status: self.board.read(), subscriptions: self.subscriptions() }
    }

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

pub(crate) struct EndNotice(pub(crate) Arc<Ending>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.0.end();
        self.0.board.stop();
        self.0.at_end.get().into_iter().for_each(|done| done());
        tracing::debug!(target: "actix_informer::informer", informer = %self.0.registration.name(), "the informer has stopped");
        self.0.over.cancel();
        self.0.paths.forget_informer(self.0.registration.name());
        self.0.registration.unlist();
    }
}

/// The objects of the informer of this name among what is registered.
pub fn objects_of(registrants: &[Arc<dyn Any + Send + Sync>], informer: &str) -> Option<Arc<dyn Listing>> {
    let mut endings =
        registrants.iter().filter_map(|registrant| Arc::clone(registrant).downcast::<Ending>().ok());
    endings.find(|ending| **ending.registration.name() == *informer)?.objects.upgrade()
}

/// What the caches of the informers among what is registered hold.
pub fn memory_of(registrants: &[Arc<dyn Any + Send + Sync>]) -> MemoryReport {
    let endings =
        registrants.iter().filter_map(|registrant| Arc::clone(registrant).downcast::<Ending>().ok());
    let mut informers: Vec<InformerMemory> = endings.map(|ending| ending.board.memory()).collect();
    informers.sort_by_key(|informer| std::cmp::Reverse(informer.bytes()));
    MemoryReport { informers }
}

/// The reports of the informers among what is registered, in the same order.
pub fn informer_reports(registrants: &[Arc<dyn Any + Send + Sync>]) -> Vec<InformerReport> {
    let endings =
        registrants.iter().filter_map(|registrant| Arc::clone(registrant).downcast::<Ending>().ok());
    endings.map(|ending| ending.report()).collect()
}
