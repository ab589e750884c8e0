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

use futures_util::future::try_join_all;
use informer_core::index::{AnyIndex, UnknownIndex};
use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;

use crate::pipeline::messages::Body;
use crate::pipeline::published::Published;
use crate::pipeline::shared::IndexRegistry;
use crate::running::Running;
use crate::runtime::{Stuck, within};

/// A read handle; cheap to clone, `Send` and `Sync`.
pub struct Lister<S: Body> {
    published: Arc<Published<S>>,
    origin: Origin<S>,
}

/// Whose objects a lister reads.
enum Origin<S: Body> {
    /// Those of an informer, which it keeps running.
    Running(Arc<Running<S>>),
    /// Those of a fake, which does nothing by itself.
    Fake(Arc<FakeOrigin<S>>),
}

/// What a lister needs of a fake.
pub(crate) struct FakeOrigin<S> {
    pub(crate) name: Arc<str>,
    pub(crate) indices: IndexRegistry<S>,
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
    /// No source covers this key.
    #[error("informer {informer:?} has no source that follows {key}")]
    NotFollowed {
        /// Its name.
        informer: Arc<str>,
        /// The key.
        key: ObjectKey,
    },
    /// There are several sources, each with its own versions, and the call names none.
    #[error(
        "informer {informer:?} has several sources ({}): use wait_for_write or wait_for_source", names(.sources)
    )]
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
        Self { published: Arc::clone(&keep.pipeline.shared.published), origin: Origin::Running(keep) }
    }

    pub(crate) fn fake(published: Arc<Published<S>>, fake: Arc<FakeOrigin<S>>) -> Self {
        Self { published, origin: Origin::Fake(fake) }
    }

    /// The informer that it keeps running; a fake has none.
    pub(crate) fn keep(&self) -> Option<&Arc<Running<S>>> {
        match &self.origin {
            Origin::Running(keep) => Some(keep),
            Origin::Fake(_) => None,
        }
    }

    /// The object of this key. About a microsecond.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.published.get(key)
    }

    /// All objects, in key order: one pointer copied for each. To read them without the copies, use [`Self::snapshot`].
    pub fn list(&self) -> Vec<Object<S>> {
        self.published.snapshot().iter().cloned().collect()
    }

    /// The keys of all objects, in order: two pointers copied for each.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.published.snapshot().keys().cloned().collect()
    }

    /// How many objects there are. O(1).
    pub fn len(&self) -> usize {
        self.published.snapshot().len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        match self.sources().as_slice() {
            [only] => self.wait_for_source(only, version, limit).await,
            several => Err(WaitForError::SeveralSources {
                informer: self.informer_name(),
                sources: several.iter().cloned().collect(),
            }),
        }
    }

    /// Waits until the cache has what a write of ours has returned, or something newer: until the object of its key is at
    /// its version or above, or every source that may follow the key is. It needs no name of a source.
    ///
    /// Of a plain body the front door's `meta_of` gives the argument. What is said at [`Self::wait_for`] holds here, too.
    ///
    /// # Errors
    /// As [`Self::wait_for_source`]; and [`WaitForError::NotFollowed`] if no source covers the key.
    pub async fn wait_for_write(&self, written: &Meta, limit: Duration) -> Result<(), WaitForError> {
        let Meta { key, version, .. } = written;
        let sources = self.sources_of(key);
        if sources.is_empty() {
            let (informer, key) = (self.informer_name(), key.clone());
            return Err(WaitForError::NotFollowed { informer, key });
        }
        let object = async {
            let mut known = None;
            loop {
                let changed = self.published.changing(key, known);
                let cached = self.published.get(key).map(|object| object.version().clone());
                if cached.as_ref().is_some_and(|cached| cached >= version) {
                    return;
                }
                // This handle holds what wakes it.
                drop(changed.await);
                known = cached;
            }
        };
        let all = try_join_all(sources.iter().map(|source| self.wait_for_source(source, version, limit)));
        tokio::select! {
            biased;
            () = object => Ok(()),
            reached = all => reached.map(drop),
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
        let reached = || self.published.snapshot().version(source).cloned();
        let Origin::Running(keep) = &self.origin else {
            // Nobody brings what a fake has not reached.
            let is_there = reached().is_some_and(|reached| reached >= *version);
            return if is_there { Ok(()) } else { Err(self.not_reached(source, version, Duration::ZERO)) };
        };
        let is_gone = || !keep.pipeline.shared.sources.contains(source);
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
        tokio::select! {
            biased;
            arrived = within(limit, arrival) => {
                arrived.unwrap_or_else(|| Err(self.not_reached(source, version, limit)))
            }
            () = keep.ending.stop.cancelled() => {
                Err(WaitForError::Stopped { informer: self.informer_name(), wanted: version.clone() })
            }
        }
    }

    fn not_reached(&self, source: &SourceId, wanted: &ResourceVersion, waited: Duration) -> WaitForError {
        let stuck = match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.board.read().stuck,
            Origin::Fake(_) => None,
        };
        WaitForError::Deadline(Box::new(NotReached {
            informer: self.informer_name(),
            source: source.clone(),
            waited,
            wanted: wanted.clone(),
            reached: self.published.snapshot().version(source).cloned(),
            stuck,
        }))
    }

    fn sources(&self) -> Vec<SourceId> {
        match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.sources.ids(),
            Origin::Fake(_) => {
                self.published.snapshot().versions().iter().map(|(source, _)| source.clone()).collect()
            }
        }
    }

    /// The sources that may follow the object of this key; none if it is not followed.
    pub(crate) fn sources_of(&self, key: &ObjectKey) -> Vec<SourceId> {
        match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.sources.following(key),
            Origin::Fake(_) => self.sources(),
        }
    }

    /// The indices, with their functions.
    pub(crate) fn indices(&self) -> Vec<AnyIndex<S>> {
        match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.indices.all(),
            Origin::Fake(fake) => fake.indices.all(),
        }
    }

    /// The time of the runtime's clock. A fake has none: its time stands still.
    pub(crate) fn now(&self) -> Duration {
        match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.runtime.now(),
            Origin::Fake(_) => Duration::ZERO,
        }
    }

    pub(crate) fn informer_name(&self) -> Arc<str> {
        match &self.origin {
            Origin::Running(keep) => Arc::clone(&keep.pipeline.parent.name),
            Origin::Fake(fake) => Arc::clone(&fake.name),
        }
    }
}

impl<S: Body> Clone for Lister<S> {
    fn clone(&self) -> Self {
        Self { published: Arc::clone(&self.published), origin: self.origin.clone() }
    }
}

impl<S: Body> Clone for Origin<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Running(keep) => Self::Running(Arc::clone(keep)),
            Self::Fake(fake) => Self::Fake(Arc::clone(fake)),
        }
    }
}

impl<S: Body> fmt::Debug for Lister<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("objects", &self.published.snapshot().len()).finish_non_exhaustive()
    }
}
