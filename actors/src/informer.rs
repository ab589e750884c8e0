//! The informer's handle: read, wait, subscribe, stop.
//!
//! Answers "what can be done with a running informer?" from any thread and any async main. Every clone, every
//! [`Lister`] and every `Subscription` is a reference; the informer stops when the last is dropped. Invariants:
//! 1. A handle never touches an actor's state: it reads what wiring keeps, or sends a message.
//! 2. Every wait ends: with what it waits for, at its deadline, or when the informer stops.
//! 3. `synced` is latched: once Ok, always Ok.
//!
//! Read next: `subscription.rs`, `lister.rs`; `wiring.rs` for what is behind it.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use informer_core::index::IndexSpec;
use informer_core::list_watch_error::ListWatchError;
use informer_core::reflector::SourceState;
use informer_core::snapshot::Snapshot;

use crate::callback::calling_seat;
use crate::lister::Lister;
use crate::mailbox::ask;
use crate::messages::{AddIndex, Body, Drain, Flush, IndexCall};
use crate::runtime::{NameClaim, Runtime, within};
use crate::seat::{EndReason, Seat};
use crate::status::{InformerStatus, StatusBoard};
use crate::subscription::{LEAST_PATIENCE, Roll, Unfinished};
use crate::wiring::{self, Family, InformerSpec};

/// A running informer. Cheap to clone; the last handle dropped stops it.
pub struct Informer<S: Body>(pub(crate) Arc<Running<S>>);

/// What every handle holds a reference to.
pub(crate) struct Running<S: Body> {
    pub(crate) family: Family<S>,
    pub(crate) roll: Roll,
    pub(crate) next_listener: AtomicU64,
    _claim: NameClaim,
}

/// Why an informer did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The name is empty.
    #[error("an informer's name must not be empty")]
    NoName,
    /// A live informer of this runtime has the name.
    #[error("the informer name {0:?} is taken")]
    NameTaken(String),
    /// It has no source.
    #[error("an informer needs at least one source")]
    NoSource,
    /// Two sources have one name.
    #[error("two sources are named {0:?}")]
    SourceTwice(String),
    /// Two indices have one name.
    #[error("two indices are named {0:?}")]
    IndexTwice(String),
    /// This field of [`Bounds`](informer_core::delta_fifo::Bounds) is zero: nothing could ever leave the queue.
    #[error("the queue bound `{0}` must be at least 1")]
    ZeroBound(&'static str),
}

/// Why waiting for an informer or a subscription did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// It has stopped, and what was awaited can no longer come.
    #[error("the informer has stopped{}", because(.reason))]
    Stopped {
        /// Why, if supervision gave up.
        reason: Option<Arc<str>>,
    },
    /// The deadline passed first.
    #[error("not synced after {waited:?}: {state:?}{}", last(.last_error))]
    Deadline {
        /// How long it was waited.
        waited: Duration,
        /// What the worst source is doing.
        state: SourceState,
        /// Its last error.
        last_error: Option<ListWatchError>,
    },
}

fn because(reason: &Option<Arc<str>>) -> String {
    reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}

fn last(error: &Option<ListWatchError>) -> String {
    error.as_ref().map(|error| format!("; last error: {error}")).unwrap_or_default()
}

/// Why an index was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddIndexError {
    /// The name is taken.
    #[error("an index named {0:?} exists")]
    Exists(String),
    /// The informer has stopped.
    #[error("the informer has stopped")]
    Stopped,
}

/// What a shutdown left undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Subscriptions that had not handled everything by the deadline, and streams that were not polled; and that in
    /// whose callback the shutdown was awaited.
    pub unfinished: Vec<Unfinished>,
    /// Whether something that had come from a source could not be applied: the pipeline was dead, or too slow.
    pub unapplied: bool,
    /// Whether something of the informer still ran at the end: an actor, or a callback that could not be cancelled.
    pub still_running: bool,
    /// Whether it was awaited inside a callback of one of the informer's own closures. It does not wait for that one,
    /// which still runs.
    pub own_callback: bool,
}

impl ShutdownReport {
    /// Whether everything came back in time.
    pub fn is_clean(&self) -> bool {
        self.unfinished.is_empty() && !self.unapplied && !self.still_running
    }
}

impl<S: Body> Informer<S> {
    /// Builds and starts an informer. Returns at once; nothing is listed yet.
    ///
    /// # Errors
    /// When the spec contradicts itself or its name is taken.
    pub fn start(runtime: &Runtime, spec: InformerSpec<S>) -> Result<Self, StartError> {
        check(&spec)?;
        let claim =
            runtime.claim_name(&spec.name).ok_or_else(|| StartError::NameTaken(spec.name.to_string()))?;
        let family = wiring::start(runtime, spec);
        let running = Arc::new(Running {
            family,
            roll: Roll::default(),
            next_listener: AtomicU64::new(0),
            _claim: claim,
        });
        running.watch_for_stop();
        Ok(Self(running))
    }

    /// How it is doing: states, counters, errors.
    pub fn status(&self) -> InformerStatus {
        self.0.family.shared.board.read()
    }

    /// What its worst source is doing.
    pub fn state(&self) -> SourceState {
        self.status().state()
    }

    /// The newest failure of its worst source, or of any.
    pub fn last_error(&self) -> Option<ListWatchError> {
        self.status().last_error().cloned()
    }

    /// Waits until the status satisfies `enough` and gives it.
    ///
    /// # Errors
    /// [`WaitError::Stopped`] if the informer stops before.
    pub async fn wait_until(
        &self,
        mut enough: impl FnMut(&InformerStatus) -> bool,
    ) -> Result<InformerStatus, WaitError> {
        let mut changes = self.0.family.shared.board.subscribe();
        let status = changes
            .wait_for(|status| status.stopped || enough(status))
            .await
            .map_err(|_| WaitError::Stopped { reason: None })?
            .clone();
        if status.stopped && !enough(&status) {
            Err(WaitError::Stopped { reason: status.failed })
        } else {
            Ok(status)
        }
    }

    /// Waits until the first list of every source is published. Latched.
    ///
    /// # Errors
    /// [`WaitError::Stopped`] if the informer stops before.
    pub async fn synced(&self) -> Result<(), WaitError> {
        self.wait_until(|status| status.synced).await.map(drop)
    }

    /// As [`Self::synced`], for at most `limit`.
    ///
    /// # Errors
    /// At the limit the state and the last error: the reason why it is not synced.
    pub async fn synced_within(&self, limit: Duration) -> Result<(), WaitError> {
        match within(limit, self.synced()).await {
            Some(result) => result,
            None => Err(self.deadline(limit)),
        }
    }

    pub(crate) fn deadline(&self, waited: Duration) -> WaitError {
        let status = self.status();
        WaitError::Deadline { waited, state: status.state(), last_error: status.last_error().cloned() }
    }

    /// A handle for reading the store.
    pub fn lister(&self) -> Lister<S> {
        Lister::new(Arc::clone(&self.0))
    }

    /// The newest published state; holds no reference to the informer.
    pub fn snapshot(&self) -> Snapshot<S> {
        self.0.family.shared.published.snapshot()
    }

    /// Adds a secondary index; it appears, complete, in one later snapshot.
    ///
    /// # Errors
    /// When the name is taken, which changes nothing, or the informer has stopped.
    pub async fn add_index(&self, spec: IndexSpec<S>) -> Result<(), AddIndexError> {
        let (name, call) = (spec.name.to_string(), IndexCall::new());
        loop {
            let add = AddIndex { spec: spec.clone(), call: call.clone() };
            match ask(&self.0.family.indexer, add).await {
                Ok(taken) => return taken.map_err(|_| AddIndexError::Exists(name)),
                Err(_) if self.status().stopped => return Err(AddIndexError::Stopped),
                // The Indexer died over it, or before: its successor is asked.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// The runtime that it runs on.
    pub fn runtime(&self) -> &Runtime {
        &self.0.family.shared.runtime
    }

    /// Stops: reads no more, applies what is queued, delivers what is owed until `limit`, ends every actor.
    /// Returns when nothing of it runs any more, callbacks included, or at the limit with what did not come back. Async
    /// calls that still run at the limit are cancelled: their futures are dropped. Blocking ones cannot be.
    ///
    /// It does not wait for streams that nobody polls, see [`Self::events`]; nor for the callback in which it is
    /// awaited itself, if that is one of the informer's own closures (the others are waited for).
    pub async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        self.0.shutdown(limit).await
    }
}

fn check<S>(spec: &InformerSpec<S>) -> Result<(), StartError> {
    if spec.name.is_empty() {
        return Err(StartError::NoName);
    }
    if spec.sources.is_empty() {
        return Err(StartError::NoSource);
    }
    if let Some(twice) = first_twice(spec.sources.iter().map(|source| source.id.as_str())) {
        return Err(StartError::SourceTwice(twice));
    }
    if let Some(bound) = spec.bounds.zero() {
        return Err(StartError::ZeroBound(bound));
    }
    first_twice(spec.indices.iter().map(|index| &*index.name))
        .map_or(Ok(()), |twice| Err(StartError::IndexTwice(twice)))
}

fn first_twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name)).map(str::to_owned)
}

impl<S: Body> Running<S> {
    /// A number for the next subscription.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_listener.fetch_add(1, Ordering::Relaxed)
    }

    /// When the informer stops, for whatever reason, its board says so and its subscriptions end.
    fn watch_for_stop(&self) {
        let (stop, hush) = (self.family.kin.stop.clone(), self.family.shared.hush.clone());
        let (board, roll, tasks) =
            (self.family.shared.board.clone(), self.roll.clone(), self.family.tasks.clone());
        let last_word = LastWord(board);
        self.family.arbiter.spawn(move || async move {
            stop.cancelled().await;
            hush.cancel();
            roll.end_all(&EndReason::InformerStopped);
            tasks.close();
            tasks.wait().await;
            drop(last_word);
        });
    }

    async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        let family = &self.family;
        family.shared.hush.cancel();
        let clock = &family.shared.runtime.0.clock;
        let deadline = clock.now().saturating_add(limit);
        // Its callback returns after this, so nothing here may wait for it.
        let caller = calling_seat(&family.kin.informer);
        let stopped = family.kin.stop.is_cancelled();
        let drained = stopped || within(limit, self.drained(caller.clone())).await.is_some();
        let mut unfinished = self.roll.owing();
        unfinished.extend(caller.clone());
        let unapplied = family.shared.handed.is_ahead_of(&family.shared.published.snapshot());
        family.kin.stop.cancel();
        family.tasks.close();
        self.roll.end_all(&EndReason::InformerStopped);
        let mut others = self.roll.present();
        others.retain(|seat| !caller.as_ref().is_some_and(|caller| caller.is(seat)));
        // Guards end within one turn of the stop; only a blocked arbiter keeps them.
        let mut over = pin!(join(self.ended(), join_all(others.iter().map(Seat::left))));
        let rest = deadline.saturating_sub(clock.now());
        let mut returned = drained && within(rest.max(LEAST_PATIENCE), &mut over).await.is_some();
        if !returned {
            unfinished.extend(others.iter().filter(|seat| seat.is_in_a_call()).cloned());
            others.iter().for_each(Seat::cancel_calls);
            returned = within(LEAST_PATIENCE, over).await.is_some();
        }
        ShutdownReport {
            unfinished: report(unfinished),
            unapplied,
            still_running: !returned || caller.is_some(),
            own_callback: caller.is_some(),
        }
    }

    /// Ends when all that was queued is applied and delivered.
    async fn drained(&self, caller: Option<Seat>) {
        // An error means that the actor has died meanwhile: its successor has nothing to wait for.
        let _closed = ask(&self.family.fifo, Flush).await;
        let listeners = self.family.shared.roster.all();
        join_all(listeners.into_iter().map(|listener| ask(&listener, Drain { inside: caller.clone() })))
            .await;
    }

    fn ended(&self) -> impl Future<Output = ()> + use<S> {
        let mut changes = self.family.shared.board.subscribe();
        async move { drop(changes.wait_for(|status| status.stopped).await) }
    }
}

/// What these had not done, each once.
fn report(seats: Vec<Seat>) -> Vec<Unfinished> {
    let mut once: Vec<Seat> = Vec::new();
    for seat in seats {
        if !once.iter().any(|known| known.is(&seat)) {
            once.push(seat);
        }
    }
    once.iter().map(Seat::unfinished).collect()
}

/// Says "stopped" when it is dropped: after the last task, or with the arbiter itself.
struct LastWord(StatusBoard);

impl Drop for LastWord {
    fn drop(&mut self) {
        self.0.update(|status| status.stopped = true);
    }
}

impl<S: Body> Drop for Running<S> {
    fn drop(&mut self) {
        self.family.kin.stop.cancel();
        self.family.shared.hush.cancel();
    }
}

impl<S: Body> Clone for Informer<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Body> fmt::Debug for Informer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status();
        f.debug_struct("Informer")
            .field("name", &status.name)
            .field("state", &status.state())
            .field("objects", &status.objects)
            .finish_non_exhaustive()
    }
}
