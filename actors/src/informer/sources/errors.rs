//! Why sources were not added, removed, revived or handed over.

use std::sync::Arc;

use informer_core::meta::SourceId;

use crate::informer::WaitError;

/// The error of reviving a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReviveError {
    /// The informer has no source of this name.
    #[error("informer {informer:?} has no source {:?}", .name.as_str())]
    UnknownSource {
        /// The informer's name.
        informer: Arc<str>,
        /// The name that was given.
        name: SourceId,
    },
    /// The source is not given up.
    #[error("source {:?} of informer {informer:?} is not given up", .name.as_str())]
    NotGivenUp {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of the source.
        name: SourceId,
    },
    /// The informer has stopped.
    #[error("informer {informer:?} has stopped")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
    },
}

/// The error of adding a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddSourceError {
    /// Another source of the informer has the name, or had it and is still being removed.
    #[error("informer {informer:?} has a source {:?}", .name.as_str())]
    NameTaken {
        /// The informer's name.
        informer: Arc<str>,
        /// The name that was given.
        name: SourceId,
    },
    /// The informer's sources name a cluster and this one does not, or the reverse.
    #[error("source {:?} {}: informer {informer:?} was started otherwise", .name.as_str(), of_cluster(*.has_cluster))]
    MixedClusters {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of the new source.
        name: SourceId,
        /// Whether it names a cluster.
        has_cluster: bool,
    },
    /// It certainly has objects in common with another source. To let it take over from that one, use
    /// [`Informer::hand_over`](crate::informer::Informer::hand_over).
    #[error("source {:?} covers objects that source {:?} of informer {informer:?} covers", .name.as_str(), .other.as_str())]
    Overlapping {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of the new source.
        name: SourceId,
        /// The name of the other.
        other: SourceId,
    },
    /// The informer has stopped.
    #[error("informer {informer:?} has stopped")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
    },
}

/// The error of removing a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveSourceError {
    /// The informer has no source of this name.
    #[error("informer {informer:?} has no source {:?}", .name.as_str())]
    UnknownSource {
        /// The informer's name.
        informer: Arc<str>,
        /// The name that was given.
        name: SourceId,
    },
    /// It belongs to a namespace of a set, which would follow it again. To end that, use
    /// [`Informer::remove_namespace`], [`Informer::set_namespaces`] or [`Informer::remove_cluster`].
    ///
    /// [`Informer::remove_namespace`]: crate::informer::Informer::remove_namespace
    /// [`Informer::set_namespaces`]: crate::informer::Informer::set_namespaces
    /// [`Informer::remove_cluster`]: crate::informer::Informer::remove_cluster
    #[error("source {:?} of informer {informer:?} follows one of its namespaces: remove the namespace", .name.as_str())]
    OfNamespaces {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of the source.
        name: SourceId,
    },
    /// It is the only source. To replace it, use [`Informer::hand_over`]; to end it, stop the informer.
    ///
    /// [`Informer::hand_over`]: crate::informer::Informer::hand_over
    #[error("source {:?} is the last one of informer {informer:?}", .name.as_str())]
    LastSource {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of the source.
        name: SourceId,
    },
    /// The informer has stopped.
    #[error("informer {informer:?} has stopped")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
    },
}

/// The error of a hand-over.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// A new source was refused. Nothing has changed.
    #[error(transparent)]
    Add(#[from] AddSourceError),
    /// An old source could not be removed. If it does not exist or follows namespaces of a set, nothing has
    /// changed. Otherwise the new sources are followed.
    #[error(transparent)]
    Remove(#[from] RemoveSourceError),
    /// A new source was given up, or the informer stopped, before it had listed. All sources are still there.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

fn of_cluster(has_cluster: bool) -> &'static str {
    if has_cluster { "names a cluster" } else { "names no cluster" }
}
