//! An informer without the type of its objects: informers of many kinds fit into one list.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::reflector::SourceState;

use crate::informer::{Informer, ReviveError, ShutdownReport, Synced, WaitError};
use crate::observed::Observed;
use crate::pipeline::ending::Ending;
use crate::pipeline::messages::Body;
use crate::pipeline::status::{InformerStatus, Stale};
use crate::pipeline::subscription_state::SubscriptionStatus;
use crate::wait_error::{Looked, wait};

/// A running informer of any kind. Cheap to clone; the last handle dropped stops the informer.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// # #[cfg(feature = "testing")] {
/// use actix_informer::informer::{AnyInformer, Informer};
/// use actix_informer::runtime::Runtime;
/// # use actix_informer::testing::Server;
/// # use std::time::Duration;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let (server, other) = (Server::<String>::new(), Server::<u32>::new());
/// # server.apply("default/web", "a text".to_owned());
/// let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
/// let numbers = Informer::builder(&runtime, "numbers").source(move || other.clone()).start()?;
/// let caches: Vec<AnyInformer> = vec![(&texts).into(), (&numbers).into()];
/// for cache in &caches {
///     cache.synced_within(Duration::from_secs(30)).await?;
/// }
/// assert_eq!(caches[0].name(), "texts");
/// assert_eq!(caches[0].objects(), 1);
/// for cache in &caches {
///     assert!(cache.shutdown(Duration::from_secs(30)).await.is_clean());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
/// ```
#[derive(Clone)]
pub struct AnyInformer(Arc<dyn Erased>);

/// Called once for each change.
type IsEnough<'a> = Box<dyn FnMut(&InformerStatus) -> bool + Send + 'a>;

trait Erased: Send + Sync {
    fn ending(&self) -> &Arc<Ending>;
    fn stale(&self) -> Option<Stale>;
    fn objects(&self) -> usize;
    fn observed(&self) -> Arc<dyn Observed>;
    fn synced_within(&self, limit: Duration) -> BoxFuture<'_, Result<Synced, WaitError>>;
    fn wait_until<'a>(&'a self, enough: IsEnough<'a>) -> BoxFuture<'a, Result<InformerStatus, WaitError>>;
    fn begin(&self);
    fn revive(&self, source: &SourceId) -> Result<(), ReviveError>;
    fn shutdown(&self, limit: Duration) -> BoxFuture<'_, ShutdownReport>;
}

impl<S: Body> Erased for Informer<S> {
    fn ending(&self) -> &Arc<Ending> {
        &self.0.ending
    }

    fn stale(&self) -> Option<Stale> {
        self.status().stale(self.runtime().now())
    }

    fn objects(&self) -> usize {
        self.snapshot().len()
    }

    fn observed(&self) -> Arc<dyn Observed> {
        Arc::new(self.downgrade())
    }

    fn synced_within(&self, limit: Duration) -> BoxFuture<'_, Result<Synced, WaitError>> {
        Self::synced_within(self, limit).boxed()
    }

    fn wait_until<'a>(&'a self, enough: IsEnough<'a>) -> BoxFuture<'a, Result<InformerStatus, WaitError>> {
        Self::wait_until(self, enough).boxed()
    }

    fn begin(&self) {
        Self::begin(self);
    }

    fn revive(&self, source: &SourceId) -> Result<(), ReviveError> {
        Self::revive(self, source)
    }

    fn shutdown(&self, limit: Duration) -> BoxFuture<'_, ShutdownReport> {
        Self::shutdown(self, limit).boxed()
    }
}

impl AnyInformer {
    /// Its name, as [`Informer::name`].
    pub fn name(&self) -> &str {
        self.0.ending().registration.name()
    }

    /// Its states, counters and errors.
    pub fn status(&self) -> InformerStatus {
        self.0.ending().board.read()
    }

    /// Whether what it serves is out of date, for how long, and why; `None` before its first list.
    pub fn stale(&self) -> Option<Stale> {
        self.0.stale()
    }

    /// What its worst source is doing; Stopped only when the informer itself has stopped.
    pub fn state(&self) -> SourceState {
        self.status().state()
    }

    /// The newest failure of its worst source, or else of any source.
    pub fn last_error(&self) -> Option<ListWatchError> {
        self.status().last_error().cloned()
    }

    /// The status of each subscription, as [`Informer::subscriptions`].
    pub fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        self.0.ending().subscriptions()
    }

    /// Starts it if it was declared, as [`Informer::begin`].
    pub fn begin(&self) {
        self.0.begin();
    }

    /// Whether it was stopped, or is being stopped, as [`Informer::has_stopped`].
    pub fn has_stopped(&self) -> bool {
        self.0.ending().stop_reading.is_cancelled()
    }

    /// Follows a given-up source again, as [`Informer::revive`]. Returns at once.
    ///
    /// # Errors
    /// As [`Informer::revive`].
    pub fn revive(&self, source: &SourceId) -> Result<(), ReviveError> {
        self.0.revive(source)
    }

    /// How many objects the newest snapshot has. Reads no object, takes no lock.
    pub fn objects(&self) -> usize {
        self.0.objects()
    }

    /// Keeps nothing running.
    pub(crate) fn observed(&self) -> Arc<dyn Observed> {
        self.0.observed()
    }

    /// Waits until the first list of every source is published. Latched.
    ///
    /// # Errors
    /// As [`Informer::synced`].
    pub async fn synced(&self) -> Result<Synced, WaitError> {
        self.synced_within(Duration::MAX).await
    }

    /// As [`Self::synced`], for at most `limit`.
    ///
    /// # Errors
    /// As [`Informer::synced_within`].
    pub async fn synced_within(&self, limit: Duration) -> Result<Synced, WaitError> {
        self.0.synced_within(limit).await
    }

    /// Waits until the status satisfies `enough`, and returns it.
    ///
    /// # Errors
    /// As [`Informer::wait_until`].
    pub async fn wait_until(
        &self,
        enough: impl FnMut(&InformerStatus) -> bool + Send,
    ) -> Result<InformerStatus, WaitError> {
        self.0.wait_until(Box::new(enough)).await
    }

    /// Waits until supervision gives up a part of it, and returns the reason; `None` when it has stopped. The
    /// future does not keep the informer running.
    pub fn failure(&self) -> impl Future<Output = Option<Arc<str>>> + Send + use<> {
        let ending = Arc::clone(self.0.ending());
        async move {
            let board = &ending.board;
            let look = || {
                let seen = board.settled().count();
                match board.failed() {
                    Some(failure) => Looked::Decided(failure),
                    None => Looked::NotYet(board.settled().since(seen)),
                }
            };
            let end = async {
                tokio::select! {
                    () = ending.over.cancelled() => {}
                    () = ending.abandoned() => {}
                }
            };
            wait(end, Duration::MAX, look).await.ok()
        }
    }

    /// Stops the informer as [`Informer::shutdown`] does, within `limit`.
    pub async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        self.0.shutdown(limit).await
    }
}

impl<S: Body> From<Informer<S>> for AnyInformer {
    fn from(informer: Informer<S>) -> Self {
        Self(Arc::new(informer))
    }
}

impl<S: Body> From<&Informer<S>> for AnyInformer {
    fn from(informer: &Informer<S>) -> Self {
        informer.clone().into()
    }
}

informer_core::debug_as!(
    AnyInformer,
    self,
    name = self.name(),
    state = format_args!("{}", self.state()),
    objects = self.objects()
);
