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
use informer_core::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;

use crate::informer::Running;
use crate::messages::Body;
use crate::published::Published;
use crate::runtime::within;

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
    #[error("version {wanted} not reached; {}", reached_text(.reached))]
    Deadline {
        /// The version asked for.
        wanted: ResourceVersion,
        /// The version that the source has reached, if it has listed at all.
        reached: Option<ResourceVersion>,
    },
    /// The informer has stopped.
    #[error("the informer stopped before version {wanted}")]
    Stopped {
        /// The version asked for.
        wanted: ResourceVersion,
    },
    /// There is no such source, or several and none was named.
    #[error("no source is named {0:?}")]
    UnknownSource(String),
}

fn reached_text(reached: &Option<ResourceVersion>) -> String {
    reached
        .as_ref()
        .map_or_else(|| "nothing is listed yet".to_owned(), |version| format!("reached {version}"))
}

impl<S: Body> Lister<S> {
    pub(crate) fn new(keep: Arc<Running<S>>) -> Self {
        Self { published: Arc::clone(&keep.family.shared.published), keep }
    }

    /// The object of this key. About a microsecond.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.published.get(key)
    }

    /// All objects, in key order: one pointer copied for each. To look at them without that, use [`Self::snapshot`].
    pub fn list(&self) -> Vec<Object<S>> {
        self.published.snapshot().iter().cloned().collect()
    }

    /// The objects of one namespace; visits no other.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Object<S>> {
        self.published.snapshot().namespace(namespace).cloned().collect()
    }

    /// The objects that the named index files under `value`, each once.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Object<S>>, UnknownIndex> {
        Ok(self.published.snapshot().by_index(index, value)?.cloned().collect())
    }

    /// The whole published state at one moment.
    pub fn snapshot(&self) -> Snapshot<S> {
        self.published.snapshot()
    }

    /// Waits until the only source has reached `version`: by event, bookmark or list. Read your own writes with it.
    ///
    /// # Errors
    /// At the deadline, with the version reached; when the informer stops; when there are several sources.
    pub async fn wait_for(&self, version: &ResourceVersion, limit: Duration) -> Result<(), WaitForError> {
        match &*self.keep.family.shared.sources {
            [only] => self.wait_for_source(&only.clone(), version, limit).await,
            _ => Err(WaitForError::UnknownSource(String::new())),
        }
    }

    /// As [`Self::wait_for`], for one source of several.
    ///
    /// # Errors
    /// As there, and when no source has this name.
    pub async fn wait_for_source(
        &self,
        source: &SourceId,
        version: &ResourceVersion,
        limit: Duration,
    ) -> Result<(), WaitForError> {
        if !self.keep.family.shared.sources.contains(source) {
            return Err(WaitForError::UnknownSource(source.to_string()));
        }
        let reached = || self.published.snapshot().version(source).cloned();
        let mut publishes = self.published.publishes();
        let arrival = async {
            drop(publishes.wait_for(|_| reached().is_some_and(|reached| reached >= *version)).await);
        };
        let stop = self.keep.family.kin.stop.clone();
        tokio::select! {
            biased;
            arrived = within(limit, arrival) => arrived.ok_or_else(|| WaitForError::Deadline {
                wanted: version.clone(),
                reached: reached(),
            }),
            () = stop.cancelled() => Err(WaitForError::Stopped { wanted: version.clone() }),
        }
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
