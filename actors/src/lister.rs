//! The lister: reads the published store from any thread.
//!
//! Answers "what is there?" without a mailbox, a lock or an await, and "is my own write there yet?" with
//! [`Lister::wait_for`]. Invariants:
//! 1. Every answer comes from one published snapshot.
//! 2. Before the first list it is empty; a missing name is `None`, never an error and never a wait.
//! 3. It keeps the informer running; a [`Snapshot`] does not.
//!
//! Read next: `informer_core::snapshot`, what it reads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::index::UnknownIndex;
use informer_core::meta::{ClusterName, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;

use crate::pipeline::messages::Body;
use crate::pipeline::published::Published;
use crate::running::Running;
use crate::runtime::{Stuck, within};

/// A read handle; cheap to clone, `Send` and `Sync`.
pub struct Lister<S: Body> {
    published: Arc<Published<S>>,
    keep: Arc<Running<S>>,
}

/// Why a version was not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitForError {
    /// The deadline passed.
    #[error("{0}")]
    Deadline(Box<NotReached>),
    /// The informer has stopped.
    #[error("informer {informer:?} stopped before it reached version {wanted}")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
        /// The version asked for.
        wanted: ResourceVersion,
    },
    /// There is no such source, or it was removed meanwhile.
    #[error("informer {informer:?} has no source named {name:?}")]
    UnknownSource {
        /// Its name.
        informer: Arc<str>,
        /// The name asked for.
        name: Arc<str>,
    },
    /// There are several sources, each with its own versions, and the call names none.
    #[error("informer {informer:?} has several sources ({}): use wait_for_source", names(.sources))]
    SeveralSources {
        /// Its name.
        informer: Arc<str>,
        /// Its sources.
        sources: Arc<[SourceId]>,
    },
}

/// Which version a source had reached at a deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotReached {
    /// The informer's name.
    pub informer: Arc<str>,
    /// The source that was waited for.
    pub source: SourceId,
    /// How long the wait took.
    pub waited: Duration,
    /// The version asked for.
    pub wanted: ResourceVersion,
    /// The version that the source has reached, if it has listed at all.
    pub reached: Option<ResourceVersion>,
    /// What blocks a thread of the informer or of its subscribers' closures, if something does.
    pub stuck: Option<Stuck>,
}

impl fmt::Display for NotReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { informer, source, waited, wanted, .. } = self;
        let source = source.as_str();
        write!(
            f,
            "source {source:?} of informer {informer:?} has not reached version {wanted} after {waited:?}: "
        )?;
        match &self.reached {
            Some(version) => write!(f, "it has reached {version}")?,
            None => f.write_str("it has not listed yet")?,
        }
        self.stuck.as_ref().map_or(Ok(()), |stuck| write!(f, "; {stuck}"))
    }
}

fn names(sources: &[SourceId]) -> String {
    sources.iter().map(SourceId::as_str).collect::<Vec<_>>().join(", ")
}

impl<S: Body> Lister<S> {
    pub(crate) fn new(keep: Arc<Running<S>>) -> Self {
        Self { published: Arc::clone(&keep.pipeline.shared.published), keep }
    }

    pub(crate) fn keep(&self) -> &Arc<Running<S>> {
        &self.keep
    }

    /// The object of this key. About a microsecond.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.published.get(key)
    }

    /// All objects, in key order: one pointer copied for each. To read them without the copies, use [`Self::snapshot`].
    pub fn list(&self) -> Vec<Object<S>> {
        self.published.snapshot().iter().cloned().collect()
    }

    /// The objects of one namespace; visits no other. In an informer of several clusters: of that namespace in each.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Object<S>> {
        self.published.snapshot().namespace(namespace).cloned().collect()
    }

    /// The objects of one cluster, in key order; visits no other. For informers whose sources name clusters.
    pub fn list_cluster(&self, cluster: &ClusterName) -> Vec<Object<S>> {
        self.published.snapshot().cluster(cluster).cloned().collect()
    }

    /// The objects of one namespace of one cluster; visits no other.
    pub fn list_namespace_in(&self, cluster: &ClusterName, namespace: &str) -> Vec<Object<S>> {
        self.published.snapshot().namespace_in(cluster, namespace).cloned().collect()
    }

    /// The objects that the named index files under `value`, each once.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Object<S>>, UnknownIndex> {
        Ok(self.published.snapshot().by_index(index, value)?.cloned().collect())
    }

    /// The published state at one moment.
    pub fn snapshot(&self) -> Snapshot<S> {
        self.published.snapshot()
    }

    /// Waits until the only source has reached `version`: by event, bookmark or list. With the version in the server's
    /// answer to a write, a program reads its own writes.
    ///
    /// Two things to know about that:
    /// - A write to an object that the informer's namespace or selectors leave out brings no event. Then only a later
    ///   event, a bookmark (about once a minute) or a renewed watch (up to 90 s) reaches its version: give such waits
    ///   that time, or do not wait for them.
    /// - Ok means that the store is at least as new as the write, not that it still holds what was written. Another
    ///   client may have changed or deleted the object since, and a list shows only the result. Look with
    ///   [`Self::get`].
    ///
    /// # Errors
    /// At the deadline, with the version reached; when the informer stops; when there are several sources.
    pub async fn wait_for(&self, version: &ResourceVersion, limit: Duration) -> Result<(), WaitForError> {
        match self.keep.pipeline.shared.sources.ids().as_slice() {
            [only] => self.wait_for_source(only, version, limit).await,
            several => Err(WaitForError::SeveralSources {
                informer: self.informer_name(),
                sources: several.iter().cloned().collect(),
            }),
        }
    }

    /// As [`Self::wait_for`], for one source of several.
    ///
    /// # Errors
    /// As there, and when no source has this name, or it is removed meanwhile.
    pub async fn wait_for_source(
        &self,
        source: &SourceId,
        version: &ResourceVersion,
        limit: Duration,
    ) -> Result<(), WaitForError> {
        let is_gone = || !self.keep.pipeline.shared.sources.contains(source);
        let reached = || self.published.snapshot().version(source).cloned();
        let arrival = async {
            loop {
                let woken = self.published.reaching(source, version);
                if is_gone() {
                    return Err(WaitForError::UnknownSource {
                        informer: self.informer_name(),
                        name: source.as_str().into(),
                    });
                }
                if reached().is_some_and(|reached| reached >= *version) {
                    return Ok(());
                }
                // This handle holds what wakes it.
                drop(woken.await);
            }
        };
        let wanted = version.clone();
        tokio::select! {
            biased;
            arrived = within(limit, arrival) => arrived.unwrap_or_else(|| {
                let stuck = self.keep.pipeline.shared.board.read().stuck;
                let (informer, source) = (self.informer_name(), source.clone());
                let reached = reached();
                let reached = NotReached { informer, source, waited: limit, wanted, reached, stuck };
                Err(WaitForError::Deadline(Box::new(reached)))
            }),
            () = self.keep.ending.stop.cancelled() => {
                Err(WaitForError::Stopped { informer: self.informer_name(), wanted: version.clone() })
            }
        }
    }

    fn informer_name(&self) -> Arc<str> {
        Arc::clone(&self.keep.pipeline.parent.name)
    }
}

impl<S: Body> Clone for Lister<S> {
    fn clone(&self) -> Self {
        Self { published: Arc::clone(&self.published), keep: Arc::clone(&self.keep) }
    }
}

impl<S: Body> fmt::Debug for Lister<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("objects", &self.published.snapshot().len()).finish_non_exhaustive()
    }
}
