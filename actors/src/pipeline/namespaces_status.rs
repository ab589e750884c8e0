//! The status of a set of namespaces.
//!
//! Answers "how many namespaces are followed, by how many watches, and why not by one?". It decides nothing. Read next:
//! `informer_core::namespaces`, which decides; `status.rs`, the status that it is a part of.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::ClusterName;

/// How the namespaces are followed that an informer was told, or that a selector selects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NamespacesStatus {
    /// The cluster, in an informer of several clusters.
    pub cluster: Option<ClusterName>,
    /// How many namespaces are wanted.
    pub wanted: usize,
    /// Whether one cluster-wide watch follows them, or is about to, instead of one watch each.
    pub cluster_wide: bool,
    /// Why the cluster-wide watch is not used although there are enough namespaces.
    pub refused: Option<Arc<str>>,
    /// When the cluster-wide watch is asked for again after that, as time since the runtime's start.
    pub next_try_at: Option<Duration>,
    /// For how many of them no source could be made. They are tried again.
    pub failed: usize,
    /// One of these, and why.
    pub failure: Option<Arc<str>>,
}

impl fmt::Display for NamespacesStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.cluster_wide { "by one cluster-wide watch" } else { "one by one" };
        write!(f, "{} namespaces", self.wanted)?;
        if let Some(cluster) = &self.cluster {
            write!(f, " of cluster {cluster}")?;
        }
        write!(f, " {how}")?;
        if let Some(why) = &self.refused {
            write!(f, ", as the cluster-wide watch is refused: {why}")?;
        }
        match &self.failure {
            Some(why) => write!(f, ", {} of them not: {why}", self.failed),
            None => Ok(()),
        }
    }
}
