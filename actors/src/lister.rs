//! The lister: reads the published store from any thread.
//!
//! Reads use no mailbox, lock or await. Before the first list the store is empty.

mod waits;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::index::{AnyIndex, UnknownIndex};
use informer_core::meta::{ClusterName, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;

use crate::pipeline::messages::Body;
use crate::pipeline::published::Published;
use crate::pipeline::shared::IndexRegistry;
use crate::running::Running;
use crate::runtime::Stuck;

/// A read handle; cheap to clone, `Send` and `Sync`.
pub struct Lister<S: Body> {
    published: Arc<Published<S>>,
    origin: Origin<S>,
}

/// What an overlay on top of a lister needs from it.
pub trait Below<S> {
    /// The name of its informer, for errors.
    fn informer_name(&self) -> Arc<str>;
    /// The sources that may follow the object of this key; none if it is not followed.
    fn sources_of(&self, key: &ObjectKey) -> Vec<SourceId>;
    /// The indices, with their functions.
    fn indices(&self) -> Vec<AnyIndex<S>>;
    /// The time of the runtime's clock. A fake has none: its time stands still.
    fn now(&self) -> Duration;
}

enum Origin<S: Body> {
    Running(Arc<Running<S>>),
    Fake(Arc<FakeOrigin<S>>),
}

pub(crate) struct FakeOrigin<S> {
    pub(crate) name: Arc<str>,
    pub(crate) indices: IndexRegistry<S>,
}

/// The error of waiting for a version.
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
        /// The requested version.
        wanted: ResourceVersion,
    },
    /// There is no such source, or it was removed during the wait.
    #[error("informer {informer:?} has no source named {name:?}")]
    UnknownSource {
        /// Its name.
        informer: Arc<str>,
        /// The requested name.
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
    /// There are several sources, each with its own versions, and the call names none of them.
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
    /// The requested version.
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

    /// `None` for a fake.
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

    /// The objects of one namespace; visits no other. In an informer of several clusters: of this namespace
    /// in each cluster.
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

    fn sources(&self) -> Vec<SourceId> {
        match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.sources.ids(),
            Origin::Fake(_) => {
                self.published.snapshot().versions().iter().map(|(source, _)| source.clone()).collect()
            }
        }
    }

    /// Whether the informer may follow the object of this key with these labels: false if its namespaces or
    /// its selectors certainly exclude the object.
    pub fn selects(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> bool {
        self.keep().is_none_or(|keep| keep.pipeline.shared.sources.select(key, labels))
    }
}

impl<S: Body> Below<S> for Lister<S> {
    fn informer_name(&self) -> Arc<str> {
        match &self.origin {
            Origin::Running(keep) => Arc::clone(&keep.pipeline.parent.name),
            Origin::Fake(fake) => Arc::clone(&fake.name),
        }
    }

    fn sources_of(&self, key: &ObjectKey) -> Vec<SourceId> {
        match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.sources.following(key),
            Origin::Fake(_) => self.sources(),
        }
    }

    fn indices(&self) -> Vec<AnyIndex<S>> {
        match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.indices.all(),
            Origin::Fake(fake) => fake.indices.all(),
        }
    }

    fn now(&self) -> Duration {
        match &self.origin {
            Origin::Running(keep) => keep.pipeline.shared.runtime.now(),
            Origin::Fake(_) => Duration::ZERO,
        }
    }
}

informer_core::clone_of!([S: Body] Lister<S> { published, origin });

impl<S: Body> Clone for Origin<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Running(keep) => Self::Running(Arc::clone(keep)),
            Self::Fake(fake) => Self::Fake(Arc::clone(fake)),
        }
    }
}

informer_core::debug_as!([S: Body] Lister<S>, self, objects = self.published.snapshot().len());
