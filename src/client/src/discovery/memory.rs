//! What a client knows of its server's resources, shared by its clones.
//!
//! 1. All callers that wait drive the one future that asks the server: a caller that is not polled stops no
//!    other. The last of them drops it.
//! 2. An answer serves for its time to live from the start of its request. An incomplete one serves shorter,
//!    from its arrival, because slow answers are the incomplete ones.
//! 3. An answer whose request began after a question answers it. Otherwise a name that is not found asks once
//!    more: a kind that exists when a question begins is found.
//! 4. Unknown names ask at most [`BURST`] times at once, then once every [`BETWEEN`].

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

#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) resources: Arc<ServerResources>,
    pub(crate) origin: KeptOrigin,
}

#[derive(Debug, Clone)]
pub(crate) struct Tagged {
    pub(crate) etag: String,
    pub(crate) groups: Vec<DiscoveredGroup>,
    pub(crate) failed: Vec<FailedGroupVersion>,
}

pub(crate) type TaggedRoots = [Option<Tagged>; 2];

/// How discovery of a client is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryStatus {
    /// How often the server was asked for everything that it serves.
    pub refreshes: u64,
    /// The requests that were sent for refreshes: two each time, and more if the server knows only the old
    /// form.
    pub requests: u64,
    /// How many of the requests were answered with 304: nothing has changed.
    pub unchanged: u64,
    /// How often a refresh failed.
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

type Answer = Result<Known, DiscoveryError>;
type Asking = Shared<BoxFuture<'static, Answer>>;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    state: Mutex<State>,
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

#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) order: u64,
    pub(crate) at: Instant,
    pub(crate) roots: TaggedRoots,
    #[cfg(feature = "disk-cache")]
    pub(crate) may_read_disk: bool,
}

#[derive(Debug)]
pub(crate) enum Next {
    Use(Known),
    Ask(Asking),
    /// Another question makes the request; its answer may serve this one.
    Wait(Asking),
    /// Too many unknown names: ask again after this time.
    HoldBack(Duration, Known),
}

impl Memory {
    pub(crate) fn question(&self) -> u64 {
        self.state().next()
    }

    /// A panic in `ask` is an error for all that wait.
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

    pub(crate) fn accept(&self, resources: ServerResources, roots: TaggedRoots, begun: &Begun) -> Known {
        let mut state = self.state();
        state.roots = roots;
        state.accept(resources, (begun.order, begun.at), Duration::ZERO)
    }

    #[cfg(feature = "disk-cache")]
    pub(crate) fn accept_from_disk(&self, resources: ServerResources, age: Duration) -> Known {
        let mut state = self.state();
        state.status.disk_hits += 1;
        state.accept(resources, (0, Instant::now()), age)
    }

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
        // Nothing under this lock can panic halfway through a change.
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

    /// `None` if it has ended or nobody waits for it.
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

/// By default. A later answer costs two requests; with ETags the answers have no body.
pub(crate) const TTL: Duration = Duration::from_secs(10 * 60);
pub(crate) const INCOMPLETE_TTL: Duration = Duration::from_secs(30);
pub(crate) const BURST: u32 = 8;
pub(crate) const BETWEEN: Duration = Duration::from_secs(2);

/// Questions, answers and invalidations have one counted order: a clock may stand still between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) order: u64,
    /// Only an answer whose request began after the question serves.
    pub(crate) newer: bool,
    pub(crate) ttl: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptOrigin {
    /// When its request began, in that order. 0 for a cache on disk: before every question.
    pub(crate) order: u64,
    pub(crate) at: Instant,
    /// Its age then. Zero, except for a cache on disk.
    pub(crate) age: Duration,
    /// Possibly long after `at`: a caller that is not polled reads no answer.
    pub(crate) arrived: Instant,
    pub(crate) is_incomplete: bool,
}

impl KeptOrigin {
    /// `invalidated` is the place of the last invalidation in the order.
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

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MissBudget {
    /// When the questions so far would have ended, with [`BETWEEN`] between them.
    spread_until: Option<Instant>,
}

impl MissBudget {
    /// Fails with the time until another one is allowed.
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
