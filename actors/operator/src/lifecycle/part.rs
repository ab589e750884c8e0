//! A part: a future that reports when it is ready, and ends what it has begun when told to stop.
//!
//! 1. A part has one future at a time. After a failure the operator waits, and requests another.
//! 2. The drop of the future ends the part at once, except for what [`PartContext::outlives`] adds.
//! 3. A part that was ready once stays ready unless [`Part::unready_when_stale_for`] is set: old data can be
//!    read, and taking all replicas out of a service helps nobody.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::lifecycle::machine::Life;
use futures_util::future::{BoxFuture, FutureExt};
use tokio_util::sync::CancellationToken;

use super::{OperatorView, Shared};
use informer_actors::runtime::Runtime;
pub use informer_actors::status::Stale;

/// A part of an operator.
pub trait Part: Send + Sync + 'static {
    /// Its name, for status, readiness and logs. Called once.
    fn name(&self) -> Arc<str>;

    /// Starts it. The future calls [`PartContext::ready`] when others may rely on it, and goes on. When
    /// [`PartContext::stopping`] is ready, it takes nothing new, ends what it has begun, and returns. If it
    /// returns earlier without an error, its work is done. An earlier error or a panic is a failure: the part
    /// is started again after a growing wait. It must not block its thread.
    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>>;

    /// What it waits for while it is not ready. Called for each status, from any thread; it must not block. A
    /// function that was set by [`PartContext::waits_for`] has precedence.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Why the process should be restarted although the part runs, or waits for its start: a liveness probe
    /// then fails. An unreachable server is no reason, since a restart does not reach it either. An election
    /// fails if its actor was given up, or is stuck and has not ended a term. Called for each status, from
    /// any thread; it must not block.
    fn unhealthy(&self) -> Option<String> {
        None
    }

    /// Whether its data is out of date although it is ready: an informer that is refused after its first
    /// list, an election whose requests fail. The status shows it, with the reason; the part counts as ready,
    /// unless a limit is set. Called for each status, from any thread; it must not block.
    fn stale(&self) -> Option<Stale> {
        None
    }

    /// How long it may be stale before it counts as not ready; `None` for no limit. Called once.
    fn stale_limit(&self) -> Option<Duration> {
        None
    }

    /// Makes this part count as not ready while it has been stale for longer than this.
    ///
    /// ```
    /// # #[cfg(feature = "testing")] {
    /// # use actix_informer::informer::Informer;
    /// # use actix_informer::operator::{Operator, Part};
    /// # use actix_informer::runtime::Runtime;
    /// # use actix_informer::testing::Server;
    /// # use std::time::Duration;
    /// # Runtime::simulated(1).run(|runtime| async move {
    /// # let server = Server::<String>::new();
    /// # let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).declare().unwrap();
    /// let texts = texts.unready_when_stale_for(Duration::from_secs(300));
    /// let operator = Operator::builder(&runtime).cache(texts).start();
    /// # drop(operator); }); }
    /// ```
    fn unready_when_stale_for(self, limit: Duration) -> StaleLimit<Self>
    where
        Self: Sized,
    {
        StaleLimit { part: self, limit }
    }

    /// Whether it holds something while it does not run, as a candidate that takes part in an election from
    /// its own start. A drain then starts it in the turn of its phase, with a context that is stopping
    /// already, so that it ends what it holds. Called once.
    fn holds(&self) -> bool {
        false
    }

    /// Ends what it holds outside of its futures, at once and without waiting. Called once, when the operator
    /// has ended: after its drain, or when every part is dropped at once. It must not block.
    fn end(&self) {}
}

/// A part with a limit, by [`Part::unready_when_stale_for`].
pub struct StaleLimit<P> {
    part: P,
    limit: Duration,
}

impl<P: Part> Part for StaleLimit<P> {
    fn name(&self) -> Arc<str> {
        self.part.name()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        self.part.run(context)
    }

    fn missing(&self) -> Option<String> {
        self.part.missing()
    }

    fn unhealthy(&self) -> Option<String> {
        self.part.unhealthy()
    }

    fn stale(&self) -> Option<Stale> {
        self.part.stale()
    }

    fn stale_limit(&self) -> Option<Duration> {
        Some(self.limit)
    }

    fn holds(&self) -> bool {
        self.part.holds()
    }

    fn end(&self) {
        self.part.end();
    }
}

informer_core::debug_as!([P] StaleLimit<P>, self, limit = self.limit);

/// Why a part has failed: any error, as a text with its causes. `?` makes it from errors; it is no error
/// itself.
#[derive(Clone, PartialEq, Eq)]
pub struct PartError(pub(super) Arc<str>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for PartError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = error.into();
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let inner_text = inner.to_string();
            if !text.contains(&inner_text) {
                text = format!("{text}: {inner_text}");
            }
            cause = inner.source();
        }
        Self(text.into())
    }
}

impl fmt::Debug for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How one life of a part communicates with its operator. Cheap to clone.
#[derive(Clone)]
pub struct PartContext {
    pub(super) shared: Arc<Shared>,
    pub(super) life: Life,
    pub(super) stop: CancellationToken,
}

impl PartContext {
    /// Reports that others may rely on the part from now on. Further calls change nothing.
    pub fn ready(&self) {
        self.shared.ready(self.life);
        self.shared.tell();
    }

    /// Until this life is ready, the status shows what this function returns. It is called for each status
    /// from any thread and must not block. It replaces a former function, and is dropped when the life is
    /// ready or has ended.
    pub fn waits_for(&self, missing: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.shared.set_waits_for(self.life, Arc::new(missing));
    }

    /// Adds something of this life that continues when its future has ended or was dropped. The end of the
    /// life is reported when this future is ready, which is polled from then on. Until then the part is not
    /// started again, and no earlier phase is told to end, for at most a second after the part's time to
    /// drain. Leader's work that continues after that keeps the lease from being released: it runs out.
    pub fn outlives(&self, rest: impl Future<Output = ()> + Send + 'static) {
        self.shared.add_rest(self.life, rest.boxed());
    }

    /// An election reports whether this process leads: the leader's work starts, or is dropped at once.
    /// Ignored from a part of another phase.
    pub fn leads(&self, leads: bool) {
        self.shared.change(|lifecycle, _| lifecycle.handle_leading(self.life, leads));
    }

    /// Whether something of the leader's work runs, or was abandoned while it ran.
    pub fn has_leaders_work(&self) -> bool {
        self.shared.with(|lifecycle, _| lifecycle.has_leaders_work())
    }

    /// Waits until nothing of the leader's work runs, including what continues after its future was dropped,
    /// however long that takes. A part that calls [`Self::leads`] waits for this before it leads again, as a
    /// `LeaderElection` does.
    pub async fn leaders_work_ended(&self) {
        self.shared.changed.until(|| (!self.has_leaders_work()).then_some(())).await;
    }

    /// Waits until the part has to end what it has begun, and returns the time that it has for this.
    pub async fn stopping(&self) -> Duration {
        self.stop.cancelled().await;
        self.shared.with(|lifecycle, now| lifecycle.time_left(self.life.part, now))
    }

    /// Whether the part has to end what it has begun.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// The operator, as probes see it.
    pub fn operator(&self) -> OperatorView {
        OperatorView(Arc::clone(&self.shared))
    }

    /// The runtime of the operator.
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }
}

informer_core::debug_as!(PartContext, self, life = self.life);

/// A part made of a function, by [`task`].
pub struct Task<F> {
    name: Arc<str>,
    run: F,
}

/// A part of this name that calls this function for each of its lives. [`Part::run`] describes its future.
pub fn task<F, R>(name: impl Into<Arc<str>>, run: F) -> Task<F>
where
    F: Fn(PartContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), PartError>> + Send + 'static,
{
    Task { name: name.into(), run }
}

impl<F, R> Part for Task<F>
where
    F: Fn(PartContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), PartError>> + Send + 'static,
{
    fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        (self.run)(context).boxed()
    }
}

informer_core::debug_as!([F] Task<F>, self, name = self.name);
