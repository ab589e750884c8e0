//! The informer's handle: read, wait, subscribe, stop; from any thread and any async main.
//!
//! A handle touches no actor's state: it reads what wiring keeps, or sends a message. Every wait ends, at the latest
//! with the informer. No code of the caller runs under a lock.

use std::sync::Arc;
use std::time::Duration;

use informer_core::index::AnyIndex;
use informer_core::list_watch_error::ListWatchError;
use informer_core::reflector::SourceState;
use informer_core::snapshot::Snapshot;

use crate::lister::Below;
use crate::pipeline::ending::Ending;
use crate::pipeline::messages::{AddIndex, IndexCall};
use crate::pipeline::published::Listing;
use crate::pipeline::sources::{Refused, Sources};
use crate::pipeline::status::InformerStatus;
use crate::pipeline::subscription_state::SubscriptionStatus;
use crate::pipeline::wiring::{self, InformerSpec};
use crate::running::Running;
use crate::runtime::mailbox::ask;
use crate::runtime::{Named, Runtime};

pub use crate::all_informers::{DrainReport, InformerSync, NotAllSynced};
pub use crate::any_informer::AnyInformer;
pub use crate::builder::InformerBuilder;
pub use crate::fake::{FakeInformer, NotNewer};
pub use crate::lister::{Lister, NotReached, WaitForError};
pub use crate::pipeline::messages::Body;
pub use crate::running::ShutdownReport;
pub use crate::snapshots::{NotAllReached, Snapshots, Versions};
pub use crate::source_failures::SourceFailure;
pub use crate::until::{NotMet, UntilError};
pub use crate::wait_error::{NotSynced, WaitError};
pub use crate::weak_informer::WeakInformer;
pub use informer_core::namespaces::ClusterWide;
pub(crate) use namespaces::describe;
pub use namespaces::{NamespaceSources, NamespacesError, OfCluster, OfNamespace, Selection};
pub use sources::{AddSourceError, HandOverError, RemoveSourceError, ReviveError};
pub use waits::Synced;

mod namespaces;
mod sources;
mod waits;

/// A running informer. Cheap to clone; the last handle dropped stops it.
#[doc(alias("SharedInformer", "SharedIndexInformer"))]
pub struct Informer<S: Body>(pub(crate) Arc<Running<S>>);

/// The error of starting an informer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The name is empty.
    #[error("an informer's name must not be empty")]
    NoName,
    /// It has no source.
    #[error("informer {informer:?} has no source")]
    NoSource {
        /// Its name.
        informer: Arc<str>,
    },
    /// Two sources have one name.
    #[error("two sources of informer {informer:?} are named {name:?}")]
    SourceTwice {
        /// Its name.
        informer: Arc<str>,
        /// The name of both.
        name: Arc<str>,
    },
    /// A source names a cluster and another one names none.
    #[error("source {name:?} of informer {informer:?} {}", other_clusters(*.has_cluster))]
    MixedClusters {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of the source that differs from those before it.
        name: Arc<str>,
        /// Whether it names a cluster.
        has_cluster: bool,
    },
    /// Two sources certainly have objects in common.
    #[error("sources {name:?} and {other:?} of informer {informer:?} cover the same objects")]
    Overlapping {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of one.
        name: Arc<str>,
        /// The name of the other.
        other: Arc<str>,
    },
    /// One of its namespaces cannot be followed.
    #[error(transparent)]
    Namespace(#[from] NamespacesError),
    /// Two indices have one name.
    #[error("two indices of informer {informer:?} are named {name:?}")]
    IndexTwice {
        /// Its name.
        informer: Arc<str>,
        /// The name of both.
        name: Arc<str>,
    },
    /// This field of [`Bounds`](informer_core::delta_fifo::Bounds) is zero: nothing could ever leave the queue.
    #[error("the queue bound {bound:?} of informer {informer:?} must be at least 1")]
    ZeroBound {
        /// Its name.
        informer: Arc<str>,
        /// The field's name.
        bound: &'static str,
    },
    /// The runtime was shut down, or its simulation is over.
    #[error("the runtime was shut down: informer {informer:?} cannot start on it")]
    RuntimeStopped {
        /// The name in the builder.
        informer: Arc<str>,
    },
}

/// The error of adding an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddIndexError {
    /// The name is taken.
    #[error("an index named {0:?} exists")]
    Exists(String),
    /// The informer has stopped.
    #[error("informer {informer:?} has stopped")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
    },
}

impl<S: Body> From<&Informer<S>> for Lister<S> {
    fn from(informer: &Informer<S>) -> Self {
        informer.lister()
    }
}

impl<S: Body> Informer<S> {
    /// No request is sent before [`Self::begin`].
    pub(crate) fn declared(runtime: &Runtime, mut spec: InformerSpec<S>) -> Result<Self, StartError> {
        check(&spec)?;
        let sources = sources_of(&spec)?;
        let refused = StartError::RuntimeStopped { informer: Arc::clone(&spec.name) };
        let Some(registration) = runtime.register(Named::Informer, &spec.name) else { return Err(refused) };
        spec.name = Arc::clone(registration.name());
        let pipeline = wiring::start(runtime, spec, sources);
        let tokens = (pipeline.parent.stop.clone(), pipeline.shared.stop_reading.clone());
        let objects: Arc<dyn Listing> = pipeline.shared.published.clone();
        let registered = (registration, runtime.paths().clone());
        let ending = Ending::new(tokens, pipeline.shared.board.clone(), registered, Arc::downgrade(&objects));
        let running = Arc::new(Running::new(pipeline, ending));
        running.watch_for_stop();
        // Its arbiter ends, or has ended.
        if running.ending.stop.is_cancelled() {
            return Err(refused);
        }
        namespaces::start(&running.pipeline);
        Ok(Self(running))
    }

    /// Its name: the given one, with a number appended if a live informer of the runtime already had it.
    pub fn name(&self) -> &str {
        &self.0.pipeline.parent.name
    }

    /// Its states, counters and errors.
    pub fn status(&self) -> InformerStatus {
        self.0.pipeline.shared.board.read()
    }

    /// The status of each subscription, in the order in which they were made, without those that have no
    /// actor any more. `Runtime::report` (of the prelude) returns those of all informers.
    pub fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        self.0.ending.subscriptions()
    }

    /// What its worst source is doing; Stopped only when the informer itself has stopped.
    pub fn state(&self) -> SourceState {
        self.status().state()
    }

    /// The newest failure of its worst source, or else of any source.
    pub fn last_error(&self) -> Option<ListWatchError> {
        self.status().last_error().cloned()
    }

    /// A handle for reading the store.
    #[doc(alias("Reflector::store", "GetStore", "GetIndexer"))]
    pub fn lister(&self) -> Lister<S> {
        Lister::new(Arc::clone(&self.0))
    }

    /// The newest published state. It holds no reference to the informer.
    pub fn snapshot(&self) -> Snapshot<S> {
        self.0.pipeline.shared.published.snapshot()
    }

    /// Adds a secondary index. It appears, complete, in one later snapshot.
    ///
    /// # Errors
    /// When the name is taken (nothing changes then), or the informer has stopped.
    pub async fn add_index(&self, index: impl Into<AnyIndex<S>>) -> Result<(), AddIndexError> {
        let (index, call) = (index.into(), IndexCall::new());
        loop {
            let add = AddIndex { index: index.clone(), call: call.clone() };
            match ask(&self.0.pipeline.indexer, add).await {
                Ok(taken) => return taken.map_err(|_| AddIndexError::Exists(index.name().to_string())),
                Err(_) if self.0.ending.stop.is_cancelled() => {
                    return Err(AddIndexError::Stopped {
                        informer: Arc::clone(&self.0.pipeline.parent.name),
                    });
                }
                // The Indexer panicked before its answer: ask the rebuilt one.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// The runtime that it runs on.
    pub fn runtime(&self) -> &Runtime {
        &self.0.pipeline.shared.runtime
    }

    /// Stops the informer: it reads no more, applies what is queued, delivers what waits until `limit`, and
    /// ends every actor. Returns when nothing of it runs any more, including callbacks, or at the limit with
    /// a report of what still runs. Async calls that still run at the limit are cancelled: their futures are
    /// dropped. Blocking calls cannot be cancelled.
    ///
    /// It does not wait for streams that are not polled, see [`Self::events`]. If this future is awaited in a
    /// callback of one of the informer's own closures, it does not wait for that callback, but for all
    /// others.
    pub async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        self.0.shutdown(limit).await
    }
}

fn check<S>(spec: &InformerSpec<S>) -> Result<(), StartError> {
    if spec.name.is_empty() {
        return Err(StartError::NoName);
    }
    let informer = || Arc::clone(&spec.name);
    if spec.sources.is_empty() && spec.namespaces.is_empty() {
        return Err(StartError::NoSource { informer: informer() });
    }
    if let Some(bound) = spec.bounds.zero() {
        return Err(StartError::ZeroBound { informer: informer(), bound });
    }
    first_twice(spec.indices.iter().map(|index| &**index.name()))
        .map_or(Ok(()), |name| Err(StartError::IndexTwice { informer: informer(), name }))
}

fn sources_of<S>(spec: &InformerSpec<S>) -> Result<Sources, StartError> {
    let sources = Sources::default();
    let informer = Arc::clone(&spec.name);
    let joined = sources.join(&spec.sources, false).map_err(|refused| {
        let name: Arc<str> = refused.id.as_str().into();
        match refused.why {
            Refused::Taken => StartError::SourceTwice { informer, name },
            Refused::Cluster { has_cluster } => StartError::MixedClusters { informer, name, has_cluster },
            Refused::Overlaps(other) => {
                StartError::Overlapping { informer, name, other: other.as_str().into() }
            }
        }
    });
    joined.map(|()| sources)
}

fn other_clusters(has_cluster: bool) -> &'static str {
    if has_cluster {
        "names a cluster, and the sources before it name none"
    } else {
        "names no cluster, and the sources before it name one"
    }
}

fn first_twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<Arc<str>> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name)).map(Into::into)
}

informer_core::clone_of!([S: Body] Informer<S>);

informer_core::debug_as!([S: Body] Informer<S>, self,
    name = self.name(),
    state = format_args!("{}", self.status().state()),
    objects = self.snapshot().len()
);

impl<S: Body> Lister<S> {
    /// Adds this index unless one of its name exists, and returns at once. Until a snapshot has the index,
    /// [`Self::by_index`] returns the error that it is unknown. On a fake this does nothing.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::informer::{Index, Informer};
    /// fn add(words: &Informer<String>, by_length: &Index<String>) {
    ///     words.lister().ensure_index(by_length);
    /// }
    /// ```
    pub fn ensure_index(&self, index: impl Into<AnyIndex<S>>) {
        let (Some(keep), index) = (self.keep(), index.into()) else { return };
        if self.indices().iter().any(|known| known.name() == index.name()) {
            return;
        }
        let informer = Informer(Arc::clone(keep));
        let runtime = informer.runtime().clone();
        // Refused only if another index took the name, or the informer has stopped.
        runtime.spawn_local(move || async move { drop(informer.add_index(index).await) });
    }
}

#[cfg(test)]
mod tests;
