//! What a client knows of its server's resources, shared by all its clones.
//!
//! Answers "is what is known still good for this question, is the server to be asked now, or is it asked already?" The
//! decisions read no clock: each function is given the time. Invariants:
//! 1. The server is asked once at a time. All callers that wait for an answer drive the one future that asks: one that is
//!    kept and not polled stops no other. They take its answer, if it is new enough for their question, or its error.
//! 2. That future is dropped with the last caller that waits for it, and leaves nothing behind: the next caller asks.
//! 3. What is known is replaced as a whole, never by an error, and never by what was found before it.
//! 4. What is known serves until it is older than its time to live, counted from when it was begun to be asked for. An
//!    incomplete answer lives shorter, since a group that did not answer may answer soon; that is counted from when it
//!    arrived, because it is the slow answers that are incomplete.
//! 5. An answer that was begun to be asked for after a question answers it, however long it took: no question asks twice.
//! 6. A name that is not found asks once more, unless what is known is such an answer; so a kind that exists when a
//!    question begins is found.
//! 7. Questions for names that do not exist ask at most [`BURST`] times at once, and once each [`BETWEEN`] for long.
//!
//! Read next: `fetch.rs`, which asks.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use informer_core::words::panic_text;
use tokio::time::Instant;

use super::error::DiscoveryError;
use super::model::{DiscoveredGroup, FailedGroupVersion, ServerResources};
use crate::warning::OnceInAWhile;

/// What is known, and since when.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) resources: Arc<ServerResources>,
    pub(crate) origin: KeptOrigin,
}

/// An answer to `/api` or `/apis` with the ETag by which the server recognizes it.
#[derive(Debug, Clone)]
pub(crate) struct Tagged {
    pub(crate) etag: String,
    pub(crate) groups: Vec<DiscoveredGroup>,
    pub(crate) failed: Vec<FailedGroupVersion>,
}

/// The answers to `/api` and `/apis`, where the server has tagged them.
pub(crate) type TaggedRoots = [Option<Tagged>; 2];

/// How discovery of a client is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryStatus {
    /// How often the server was asked for everything that it serves.
    pub refreshes: u64,
    /// The requests that were sent for that: two each time, and more where the server knows only the old form.
    pub requests: u64,
    /// How many of the requests were answered with 304: nothing has changed.
    pub unchanged: u64,
    /// How often asking failed.
    pub failures: u64,
    /// How often a name was not found in what was known, so that the server was asked again.
    pub misses: u64,
    /// How often the server was not asked again for such a name, because too many were not found shortly before.
    pub misses_held_back: u64,
    /// How often a cache on disk was used instead of the server.
    pub disk_hits: u64,
    /// How often a cache on disk could not be written.
    pub disk_failures: u64,
    /// Whether what is known came in the aggregated form.
    pub is_aggregated: bool,
    /// How many versions of groups could not be discovered the last time.
    pub failed: usize,
}

/// What asking gives.
type Answer = Result<Known, DiscoveryError>;
/// The one future that asks, shared by the callers that wait for it.
type Asking = Shared<BoxFuture<'static, Answer>>;

/// The shared state.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    state: Mutex<State>,
    /// What was told of what was asked.
    pub(super) told: OnceInAWhile,
}

#[derive(Debug, Default)]
struct State {
    order: u64,
    known: Option<Known>,
    /// Weak: only callers keep it alive.
    asking: Option<WeakShared<BoxFuture<'static, Answer>>>,
    invalidated: Option<u64>,
    budget: MissBudget,
    roots: TaggedRoots,
    status: DiscoveryStatus,
}

/// An asking that begins, and what it may compare with.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) order: u64,
    pub(crate) at: Instant,
    pub(crate) roots: TaggedRoots,
    /// Whether a cache on disk may answer.
    #[cfg(feature = "disk-cache")]
    pub(crate) may_read_disk: bool,
}

/// What follows for a question.
#[derive(Debug)]
pub(crate) enum Next {
    Use(Known),
    /// The server is asked for this question: what comes of it is its answer.
    Ask(Asking),
    /// The server is asked for another question: what comes of it may be an answer to this one.
    Wait(Asking),
    /// Too many names were not found: the server is asked again after this time.
    HoldBack(Duration, Known),
}

impl Memory {
    /// The place of a question that is asked now.
    pub(crate) fn question(&self) -> u64 {
        self.state().next()
    }

    /// What follows for a question. `ask` makes the future that asks; a panic in it is an error of all that wait for it.
    pub(crate) fn next<F>(self: &Arc<Self>, question: Question, ask: impl FnOnce(Begun) -> F) -> Next
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(known) = state.known_for(question, now) {
            return Next::Use(known);
        }
        if let Some(asking) = state.asking() {
            return Next::Wait(asking);
        }
        if question.newer
            && let Some(known) = state.known.clone()
        {
            if let Err(wait) = state.budget.take(now) {
                state.status.misses_held_back += 1;
                return Next::HoldBack(wait, known);
            }
            state.status.misses += 1;
        }
        let begun = Begun {
            // A cache on disk may be older than what is known or was invalidated.
            #[cfg(feature = "disk-cache")]
            may_read_disk: !question.newer && state.known.is_none() && state.invalidated.is_none(),
            order: state.next(),
            at: now,
            roots: state.roots.clone(),
        };
        let asking = counted(Arc::clone(self), ask(begun)).boxed().shared();
        state.asking = asking.downgrade();
        Next::Ask(asking)
    }

    /// Keeps an answer of the server.
    pub(crate) fn accept(&self, resources: ServerResources, roots: TaggedRoots, begun: &Begun) -> Known {
        let mut state = self.state();
        state.roots = roots;
        state.accept(resources, (begun.order, begun.at), Duration::ZERO)
    }

    /// Keeps what a cache on disk had, which is of this age.
    #[cfg(feature = "disk-cache")]
    pub(crate) fn accept_from_disk(&self, resources: ServerResources, age: Duration) -> Known {
        let mut state = self.state();
        state.status.disk_hits += 1;
        state.accept(resources, (0, Instant::now()), age)
    }

    /// What is known now does not answer any later question.
    pub(crate) fn invalidate(&self) {
        let mut state = self.state();
        state.invalidated = Some(state.next());
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut DiscoveryStatus)) {
        add(&mut self.state().status);
    }

    pub(crate) fn status(&self) -> DiscoveryStatus {
        self.state().status.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under this lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn known_for(&self, question: Question, now: Instant) -> Option<Known> {
        let known = self.known.as_ref()?;
        known.origin.answers(question, self.invalidated, now).then(|| known.clone())
    }

    /// The future that asks, unless it has ended or nobody waits for it.
    fn asking(&self) -> Option<Asking> {
        self.asking.as_ref()?.upgrade().filter(|asking| asking.peek().is_none())
    }

    fn accept(&mut self, resources: ServerResources, (order, at): (u64, Instant), age: Duration) -> Known {
        self.status.failed = resources.failed.len();
        let is_incomplete = !resources.failed.is_empty();
        let origin = KeptOrigin { order, at, age, arrived: Instant::now(), is_incomplete };
        let known = Known { resources: Arc::new(resources), origin };
        self.known = Some(known.clone());
        known
    }
}

/// Counts a failure; a panic is one.
async fn counted(memory: Arc<Memory>, asking: impl Future<Output = Answer>) -> Answer {
    let ended = AssertUnwindSafe(asking).catch_unwind().await;
    let answer = ended.unwrap_or_else(|panic| {
        tracing::error!(target: "actix_informer::client", panic = panic_text(&*panic), "discovery panicked");
        Err(DiscoveryError::Panicked(panic_text(&*panic).to_owned()))
    });
    if answer.is_err() {
        memory.count(|status| status.failures += 1);
    }
    answer
}

/// How long an answer serves in memory unless set otherwise. A later one costs two requests, which a server that knows
/// ETags answers with 304 and no body.
pub(crate) const TTL: Duration = Duration::from_secs(10 * 60);
/// How long an incomplete answer serves at most.
pub(crate) const INCOMPLETE_TTL: Duration = Duration::from_secs(30);
/// How often names that are not found may ask at once.
pub(crate) const BURST: u32 = 8;
/// How often they may ask for long.
pub(crate) const BETWEEN: Duration = Duration::from_secs(2);

/// What a question needs. Questions, answers and invalidations have one order, which is counted: a clock may stand still
/// between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    /// Its place in that order.
    pub(crate) order: u64,
    /// Whether only an answer will do that was begun to be asked for after it.
    pub(crate) newer: bool,
    /// How old another answer may be.
    pub(crate) ttl: Duration,
}

/// When and how what is known was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptOrigin {
    /// Its place in the order: when it was begun to be asked for. Of a cache on disk 0, before every question.
    pub(crate) order: u64,
    /// When it was begun to be asked for.
    pub(crate) at: Instant,
    /// How old it was then: nothing, but for a cache on disk.
    pub(crate) age: Duration,
    /// When it was there. That may be long after: a caller that is not polled asks, and reads no answer.
    pub(crate) arrived: Instant,
    /// Whether something could not be discovered.
    pub(crate) is_incomplete: bool,
}

impl KeptOrigin {
    /// Whether it answers a question; `invalidated` is the place of the last invalidation.
    pub(crate) fn answers(self, question: Question, invalidated: Option<u64>, now: Instant) -> bool {
        let is_valid = invalidated.is_none_or(|at| at < self.order);
        let is_newer = self.order > question.order;
        is_valid && (is_newer || (!question.newer && self.is_younger_than(question.ttl, now)))
    }

    fn is_younger_than(self, ttl: Duration, now: Instant) -> bool {
        let age = self.age.saturating_add(now.saturating_duration_since(self.at));
        let is_good = !self.is_incomplete || now.saturating_duration_since(self.arrived) < INCOMPLETE_TTL;
        age < ttl && is_good
    }
}

/// How many questions for unknown names may still ask.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MissBudget {
    /// When the questions so far would have been asked, one after another with [`BETWEEN`] between them.
    spread_until: Option<Instant>,
}

impl MissBudget {
    /// Takes one; if none is left, says how long until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let begins = self.spread_until.unwrap_or(now).max(now);
        let ahead = begins.saturating_duration_since(now);
        let most = BETWEEN * (BURST - 1);
        if ahead > most {
            return Err(ahead - most);
        }
        self.spread_until = Some(begins + BETWEEN);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
