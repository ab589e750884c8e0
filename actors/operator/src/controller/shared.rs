//! What the feeds, the workers and the handles of a controller share.
//!
//! 1. What is known of keys is in the queue, behind its short lock: several arbiters change it, and in a
//!    mailbox a panic could lose it. Each arrival, begin and end is one call: one cause leads to one
//!    reconcile. Last states are freed without the lock.
//! 2. No worker takes a key before every informer is synced. If this program does not lead, a worker puts its
//!    key back, and waits.
//! 3. After the shutdown nothing is added and no reconcile begins.
//! 4. A standby forgets keys of objects that are gone, so the objects bound what waits. A key whose object
//!    has left what is followed waits with its last state: only the next leader can act on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::controller::machine::{Arrival, Arrived, Kept, Reason, Writes};
use crate::queue::machine::Priority;
use futures_util::future::join_all;
use informer_core::meta::{Object, ObjectKey};
use informer_core::off_arbiter::Freeing;
use informer_core::path::{Hop, Mark};
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::ControllerEnd;
use super::status::{ControllerState, ControllerStatus, Counters};
use super::watched::Feeds;
use super::watched::Watched;
use crate::queue::{Added, NotDrained, WorkQueue};
use informer_actors::informer::{Body, Informer, InformerSync};
use informer_actors::inner::{Followed, drop_payload, within};
use informer_actors::runtime::Runtime;

const LEADER_POLL: Duration = Duration::from_secs(1);

/// `None` while not the leader.
pub(super) type Fence = Box<dyn Fn() -> Option<u64> + Send + Sync>;

pub(super) struct NotLeading;

pub(super) struct Limits {
    pub(super) workers: usize,
    pub(super) time_limit: Option<Duration>,
    pub(super) write_wait: Duration,
    pub(super) stop_grace: Duration,
    pub(super) ignores_own_writes: bool,
    /// The debounce time.
    pub(super) quiet: Duration,
}

pub(super) struct Shared<S: Body> {
    pub(super) name: Arc<str>,
    pub(super) runtime: Runtime,
    pub(super) primary: Informer<S>,
    /// The primary one is the first.
    pub(super) watched: Arc<[Box<dyn Watched>]>,
    pub(super) owned: Vec<usize>,
    pub(super) queue: WorkQueue<ObjectKey, Kept<S>>,
    pub(super) freeing: Freeing<Object<S>>,
    pub(super) counters: Counters,
    pub(super) fence: Option<Fence>,
    pub(super) limits: Limits,
    pub(super) lost: CancellationToken,
    pub(super) no_intake: CancellationToken,
    /// Reconciles are told to end.
    pub(super) stop: CancellationToken,
    pub(super) end: ControllerEnd,
    pub(super) has_begun: AtomicBool,
}

fn leads(fence: &Fence) -> Option<u64> {
    catch_unwind(AssertUnwindSafe(fence)).unwrap_or_else(|panic| {
        drop_payload(panic);
        None
    })
}

impl<S: Body> Shared<S> {
    pub(super) fn arrive(
        &self,
        key: &ObjectKey,
        arrival: Arrival<'_, S>,
        why: (Reason, Priority, Duration),
    ) -> Added {
        let is_unled = self.is_unled(key, &arrival);
        let Arrived { added, released, .. } = self.queue.with(|book, limiter, moment| {
            let is_over = is_unled && (matches!(arrival, Arrival::Gone(_)) || !book.keeps_left(key));
            let forgotten = is_over.then(|| book.handle_forgotten(key, limiter)).flatten();
            forgotten.unwrap_or_else(|| book.handle_arrival(key, arrival, why, moment.now))
        });
        // Most of what a reconcile makes adds no key: wake nobody.
        if added.is_some() {
            self.queue.tell();
        }
        let other = released.as_ref().map(Object::key).filter(|other| *other != key);
        if let Some(other) = other.filter(|other| !self.is_cached(other) && self.is_standby()) {
            let forgotten = self.queue.change(|book, limiter, _| book.handle_forgotten(other, limiter));
            self.free(forgotten.and_then(|forgotten| forgotten.released));
        }
        self.free(released);
        added.unwrap_or(Added::Merged)
    }

    /// Call it without the lock.
    pub(super) fn free(&self, released: Option<Object<S>>) {
        drop(released.map(|released| self.freeing.keep(released)));
    }

    pub(super) fn answered(&self, key: &ObjectKey, writes: &Writes) {
        if self.limits.ignores_own_writes {
            let is_owned = |informer| self.owned.contains(&informer);
            self.queue.with(|book, _, moment| book.handle_writes(key, writes, is_owned, moment.now));
        }
    }

    /// False if stopped before.
    pub(super) async fn synced(&self) -> bool {
        let all = join_all(self.watched.iter().map(|watched| watched.synced()));
        self.stop.run_until_cancelled(all).await.is_some()
    }

    pub(super) fn number(&self) -> Result<Option<u64>, NotLeading> {
        let Some(fence) = &self.fence else { return Ok(None) };
        leads(fence).map(Some).ok_or(NotLeading)
    }

    /// Forgets which failures were logged: another program reconciles now.
    pub(super) async fn leading(&self) {
        drop(self.queue.with(|book, _, _| std::mem::take(&mut book.tally.failing)));
        while self.number().is_err() && !self.is_draining() {
            let wait = within(LEADER_POLL, self.no_intake.cancelled());
            if self.stop.run_until_cancelled(wait).await.is_none() {
                return;
            }
        }
    }

    /// Whether a standby may forget the key. The leader reconciles it; a new leader knows as much as a
    /// program that starts.
    fn is_unled(&self, key: &ObjectKey, arrival: &Arrival<'_, S>) -> bool {
        let concerns_what_is_gone = match arrival {
            Arrival::Gone(_) => true,
            Arrival::Output | Arrival::Made { .. } | Arrival::Unmade { .. } => !self.is_cached(key),
            _ => false,
        };
        concerns_what_is_gone && self.is_standby()
    }

    fn is_standby(&self) -> bool {
        self.fence.is_some() && self.number().is_err()
    }

    fn is_cached(&self, key: &ObjectKey) -> bool {
        self.primary.cached(key).is_some()
    }

    pub(super) async fn drain(&self, feeds: &Feeds, limit: Duration) -> Result<(), NotDrained> {
        self.refuse(feeds);
        if !self.has_begun.load(Ordering::Acquire) {
            // Its informers are not synced: nothing can be reconciled.
            self.stop.cancel();
            self.queue.force_shut_down();
        }
        self.queue.drain(limit).await
    }

    pub(super) fn shut_down(&self, feeds: &Feeds) {
        self.refuse(feeds);
        self.stop.cancel();
        self.queue.force_shut_down();
    }

    fn refuse(&self, feeds: &Feeds) {
        self.no_intake.cancel();
        feeds.end();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.no_intake.is_cancelled()
    }

    pub(super) fn status(&self, feeds: &Feeds) -> ControllerStatus {
        let informers: Vec<_> = self.watched.iter().map(|watched| watched.any_informer().status()).collect();
        let not_synced = informers.iter().filter(|status| !status.synced).map(InformerSync::of);
        let stopped = informers.iter().filter(|status| status.stopped);
        let stopped = stopped.map(|status| format!("informer {:?}: it has stopped", status.name));
        let (last_failure, longest_running, kept, queue) = self.queue.with(|book, _, moment| {
            let longest = book.longest_running(moment.now);
            (book.tally.last_failure.clone(), longest, book.tally.figures, book.figures(moment.now))
        });
        ControllerStatus {
            name: Arc::clone(&self.name),
            state: self.state(),
            not_synced: not_synced.collect(),
            not_followed: stopped.chain(feeds.ended()).collect(),
            workers: self.counters.workers.load(Ordering::Relaxed),
            active: self.counters.active.load(Ordering::Relaxed),
            time_limit: self.limits.time_limit,
            counts: self.counters.read(),
            took: self.counters.took.with(|took| *took),
            writes_wait: self.counters.writes_wait.with(|wait| *wait),
            last_failure,
            longest_running,
            kept,
            queue,
        }
    }

    fn state(&self) -> ControllerState {
        if self.is_draining() && self.end.has_ended() {
            ControllerState::Ended
        } else if self.stop.is_cancelled() {
            ControllerState::Stopping
        } else if self.is_draining() {
            ControllerState::Draining
        } else if self.counters.workers.load(Ordering::Relaxed) == 0 {
            ControllerState::NoWorkers
        } else if !self.has_begun.load(Ordering::Acquire) {
            ControllerState::Syncing
        } else if self.fence.as_ref().is_some_and(|fence| leads(fence).is_none()) {
            ControllerState::NotLeading
        } else {
            ControllerState::Running
        }
    }
}

impl<S: Body> Shared<S> {
    pub(super) fn mark_work(&self, hop: Hop, key: &ObjectKey, how: Option<&'static str>) {
        let paths = self.runtime.paths();
        if paths.is_on() && paths.chooses_work(&self.name, key) {
            let mark = Mark::new(hop, Arc::clone(&self.name), key.clone());
            paths.note(how.into_iter().fold(mark, Mark::by));
        }
    }
}

impl<S: Body> Drop for Shared<S> {
    /// The queue may be dropped last in its actor, where no user code runs.
    fn drop(&mut self) {
        self.runtime.paths().forget_controller(&self.name);
        let lasts = self.queue.with(|book, _, _| book.handle_over());
        lasts.into_iter().for_each(|last| self.free(Some(last)));
    }
}

// After its reconcile a key is held back, as if processed, until the caches show its writes. At the limit a
// missing write is counted and logged, as a warning at most once in ten minutes for each informer.

pub(super) fn unseen<S: Body>(shared: &Shared<S>, mut writes: Writes) -> Writes {
    let left_out = writes.left_out();
    if left_out > 0 {
        shared.counters.writes_left_out.add(left_out);
    }
    writes.drop_seen(|informer, key, awaited| shared.watched[informer].is_seen(key, awaited));
    writes
}

pub(super) async fn settle<S: Body>(shared: &Arc<Shared<S>>, key: &ObjectKey, mut writes: Writes) {
    shared.counters.writes_waited.add(writes.len() as u64);
    let limit = shared.limits.write_wait;
    let (waiting, began) = (within(limit, seen(shared, &writes)), shared.runtime.now());
    if shared.stop.run_until_cancelled(waiting).await.is_none() {
        return;
    }
    let waited = shared.runtime.now().saturating_sub(began);
    shared.counters.writes_wait.with(|wait| wait.record(waited));
    writes.drop_seen(|informer, key, awaited| shared.watched[informer].is_seen(key, awaited));
    for ((informer, object), awaited) in writes {
        shared.counters.writes_not_seen.add(1);
        let told = shared.queue.with(|book, _, moment| book.handle_not_seen(informer, &object, moment.now));
        let informer = shared.watched[informer].any_informer();
        let (controller, informer, version, within) =
            (&shared.name, informer.name(), &awaited.version, Brief(limit));
        match told {
            Some(count) => {
                tracing::warn!(target: "actix_informer::controller", %controller, %key, informer, %object, %version, count, "controller {controller}: informer {informer:?} has not shown within {within} what the reconcile of {key} wrote to {object}, version {version}; {key} goes on without it ({count} writes since the last warning)");
            }
            None => {
                tracing::debug!(target: "actix_informer::controller", %controller, %key, informer, %object, %version, "controller {controller}: informer {informer:?} has not shown within {within} what the reconcile of {key} wrote to {object}, version {version}");
            }
        }
    }
}

/// When the newest is seen, mostly all are.
async fn seen<S: Body>(shared: &Shared<S>, writes: &Writes) {
    for (informer, object, awaited) in writes.newest_first() {
        let watched = &shared.watched[informer];
        if !watched.is_seen(object, awaited) {
            watched.seen(object.clone(), awaited.clone()).await;
        }
    }
}
