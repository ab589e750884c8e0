//! The status of a controller, with counters that only grow.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::controller::machine::{Failure, KeptFigures};
use crate::queue::machine::QueueFigures;
use informer_core::meta::ObjectKey;
use informer_core::timing::Timing;
use informer_core::words::Brief;

use informer_actors::informer::InformerSync;
use informer_actors::inner::Guarded;

/// How a controller is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// What it is doing.
    pub state: ControllerState,
    /// The informers that are not synced, each with its state and its last error. While there is one, no
    /// first reconcile begins.
    pub not_synced: Vec<InformerSync>,
    /// What the controller does not follow any more: informers that have stopped, by name, and subscriptions
    /// that have ended, with the reason. A change of their objects leads to no reconcile.
    pub not_followed: Vec<String>,
    /// The number of workers. If it is lower than requested after the start, what ran the others has ended.
    pub workers: usize,
    /// Reconciles that run now. A key that waits for its own writes occupies no worker.
    pub active: usize,
    /// How long one reconcile may take, if there is a limit.
    pub time_limit: Option<Duration>,
    /// The counters.
    pub counts: Counts,
    /// How long the reconciles took, from the call of the function to its end: without the wait in the queue
    /// and without the wait for own writes. A reconcile that hangs is not in it yet.
    pub took: Timing,
    /// How long keys waited after their reconcile, until the caches had shown what it wrote or the limit had
    /// passed. Keys that had not to wait are not counted.
    pub writes_wait: Timing,
    /// The last failure.
    pub last_failure: Option<Failure>,
    /// The key that has been reconciled for the longest time, and for how long.
    pub longest_running: Option<(ObjectKey, Duration)>,
    /// What is kept of keys between their reconciles.
    pub kept: KeptFigures,
    /// Its queue.
    pub queue: QueueFigures,
}

/// What a controller is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerState {
    /// It waits until its informers are synced.
    Syncing,
    /// It reconciles.
    Running,
    /// It is not the leader: keys wait.
    NotLeading,
    /// What ran its workers has ended, such as the program's tokio runtime: keys wait for ever.
    NoWorkers,
    /// It takes nothing new, and finishes what waits.
    Draining,
    /// It was shut down, and reconciles still run.
    Stopping,
    /// Nothing of it runs any more.
    Ended,
}

/// What a controller has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Reconciles that were begun.
    pub reconciles: u64,
    /// Of these: ended in order.
    pub succeeded: u64,
    /// Of those in order: asked to be run again after a time.
    pub requeued: u64,
    /// Of these: failed, by an error, also a terminal one, a panic or the time limit. What is both a panic and too late
    /// is one failure.
    pub failed: u64,
    /// Ended with an error that is tried again.
    pub errors: u64,
    /// Ended with a terminal error.
    pub terminal: u64,
    /// Panicked.
    pub panics: u64,
    /// Took longer than the time limit.
    pub timeouts: u64,
    /// Were cancelled by the stop, or by the end of what ran them.
    pub cancelled: u64,
    /// Own writes and removals that a cache had not shown when the reconcile ended: the key has waited.
    pub writes_waited: u64,
    /// Of these: not seen in time.
    pub writes_not_seen: u64,
    /// Writes of one reconcile beyond [`MOST_WRITES`](crate::controller::machine::MOST_WRITES): not awaited.
    pub writes_left_out: u64,
    /// Panics of functions that map objects to keys. The state that a function panicked over led to no key.
    pub map_panics: u64,
    /// Streams of keys that have ended.
    pub streams_ended: u64,
    /// How often a Listener that feeds the queue has failed and was started again. No key was lost.
    pub listeners_restarted: u64,
}

/// For the caches to show the writes.
const GRACE: Duration = Duration::from_secs(60);

/// A reconcile that has run for longer than this hangs, unless its controller has a longer time limit.
pub const HANGS_AFTER: Duration = Duration::from_secs(600);

impl ControllerStatus {
    /// Describes a reconcile that hangs: it has run for more than ten minutes, and longer than the time limit
    /// of its controller allows. Its key waits for it.
    ///
    /// A restart of the process ends it, and so does [`time_limit`](super::ControllerBuilder::time_limit).
    pub fn hangs(&self) -> Option<String> {
        let (key, time) = self.longest_running.as_ref()?;
        let limit = self.time_limit.unwrap_or_default().saturating_add(GRACE).max(HANGS_AFTER);
        (*time >= limit).then(|| {
            let (controller, time) = (&self.name, Brief(*time));
            format!("controller {controller}: the reconcile of {key} has not ended for {time}")
        })
    }
}

impl fmt::Display for ControllerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syncing => "waits until its informers are synced",
            Self::Running => "running",
            Self::NotLeading => "not the leader",
            Self::NoWorkers => "nothing runs its workers any more",
            Self::Draining => "draining",
            Self::Stopping => "stopping",
            Self::Ended => "ended",
        })
    }
}

impl fmt::Display for ControllerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { reconciles, failed, .. } = self.counts;
        let waiting: usize = self.queue.depth.iter().sum();
        write!(f, "controller {}: {}; {waiting} keys wait, ", self.name, self.state)?;
        write!(f, "{reconciles} reconciles, {failed} failed")?;
        for informer in &self.not_synced {
            write!(f, "; informer {:?} is not synced: {}", informer.name, informer.state)?;
        }
        self.not_followed.iter().try_for_each(|what| write!(f, "; it does not follow {what} any more"))?;
        if self.counts.map_panics > 0 {
            write!(f, "; {} panics of functions that map objects to keys", self.counts.map_panics)?;
        }
        self.hangs().iter().try_for_each(|what| write!(f, "; {what}"))?;
        match &self.last_failure {
            Some(Failure { key, why, .. }) => write!(f, "; last failure: {key}: {why}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) reconciles: Counter,
    /// Without `requeued`: an end adds to one counter only.
    pub(super) in_order: Counter,
    pub(super) requeued: Counter,
    pub(super) failed: Counter,
    pub(super) errors: Counter,
    pub(super) terminal: Counter,
    pub(super) panics: Counter,
    pub(super) timeouts: Counter,
    pub(super) cancelled: Counter,
    pub(super) writes_waited: Counter,
    pub(super) writes_not_seen: Counter,
    pub(super) writes_left_out: Counter,
    pub(super) map_panics: Counter,
    pub(super) streams_ended: Counter,
    pub(super) listeners_restarted: Counter,
    pub(super) workers: AtomicUsize,
    pub(super) active: AtomicUsize,
    pub(super) took: Guarded<Timing>,
    pub(super) writes_wait: Guarded<Timing>,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: u64) -> u64 {
        self.0.fetch_add(more, Ordering::Relaxed)
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn read(&self) -> Counts {
        let requeued = self.requeued.read();
        Counts {
            reconciles: self.reconciles.read(),
            succeeded: self.in_order.read() + requeued,
            requeued,
            failed: self.failed.read(),
            errors: self.errors.read(),
            terminal: self.terminal.read(),
            panics: self.panics.read(),
            timeouts: self.timeouts.read(),
            cancelled: self.cancelled.read(),
            writes_waited: self.writes_waited.read(),
            writes_not_seen: self.writes_not_seen.read(),
            writes_left_out: self.writes_left_out.read(),
            map_panics: self.map_panics.read(),
            streams_ended: self.streams_ended.read(),
            listeners_restarted: self.listeners_restarted.read(),
        }
    }
}
