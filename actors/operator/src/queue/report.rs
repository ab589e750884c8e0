//! A work queue in the report of its runtime, and its stop when the runtime ends first.

use std::sync::Arc;

use crate::queue::machine::QueueFigures;
use tokio_util::sync::CancellationToken;

use super::content::Inside;
use super::{QueueKey, QueueNote};
use informer_actors::inner::Registrant;

/// How one work queue is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QueueReport {
    /// Its name: the one it was given, or that with a number, if a live queue of the runtime had it.
    pub name: Arc<str>,
    /// What is measured.
    pub figures: QueueFigures,
    /// How often its content was built again from its keys, after a panic in the order or the clone of keys.
    pub rebuilt: u64,
    /// How often its rate limiter has panicked.
    pub limiter_panics: u64,
}

pub(crate) struct RegisteredQueue {
    queue: Arc<dyn Reported>,
    stop: CancellationToken,
}

impl RegisteredQueue {
    pub(super) fn new<K: QueueKey, P: QueueNote>(
        inside: &Arc<Inside<K, P>>,
        stop: CancellationToken,
    ) -> Self {
        Self { queue: Arc::clone(inside) as _, stop }
    }

    pub(crate) fn report(&self) -> QueueReport {
        self.queue.report()
    }
}

impl Registrant for RegisteredQueue {
    fn stop(&self) {
        self.stop.cancel();
    }

    fn abandon(&self) {
        self.queue.end();
    }

    fn over(&self) -> CancellationToken {
        self.queue.over()
    }
}

/// Hides the type of the keys.
trait Reported: Send + Sync {
    fn report(&self) -> QueueReport;
    fn end(&self);
    fn over(&self) -> CancellationToken;
}

impl<K: QueueKey, P: QueueNote> Reported for Inside<K, P> {
    fn report(&self) -> QueueReport {
        QueueReport {
            name: Arc::clone(&self.name),
            figures: self.with(|queue, _, moment| queue.figures(moment.now)),
            rebuilt: self.content.rebuilt(),
            limiter_panics: self.with(|_, limiter, _| limiter.panics()),
        }
    }

    fn end(&self) {
        self.end();
    }

    fn over(&self) -> CancellationToken {
        self.over.clone()
    }
}
