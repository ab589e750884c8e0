//! Namespaces of one more cluster, for an informer that runs.
//!
//! Answers "how does a cluster come as several sources, as it can at the start?". What can be refused is refused before
//! anything changes; then the set's follower adds the sources. Invariants:
//! 1. A cluster has one set of namespaces. When it was removed, the set stays and takes what is added later.
//! 2. A source of the cluster that is still being removed refuses the cluster.
//!
//! Read next: `follower.rs`, which exchanges the sources; `../sources.rs`, single sources.

use std::sync::Arc;

use super::follower::Follower;
use super::{NamespaceSources, NamespacesError, Wanted, sources_of_each};
use crate::informer::Informer;
use crate::informer::sources::{begin_all, not_added};
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_set::NamespaceSet;

impl<S: Body> Informer<S> {
    /// Follows the namespaces of one more cluster, each with a source of its own, or as many as are selected. Returns at
    /// once: [`Self::namespaces_synced`] waits until each has listed, and [`Self::remove_cluster`] ends it. Then the cluster
    /// may be added again, with other namespaces or other credentials.
    ///
    /// Also for an informer of one cluster whose sources are no namespaces of a set: it then follows these beside them.
    ///
    /// # Errors
    /// When namespaces of this cluster are followed, or are still being removed; when a namespace cannot be followed, a
    /// source is refused as by [`Self::add_source`], or the informer has stopped. Nothing changes then.
    pub fn add_namespaces(&self, sources: NamespaceSources<S>) -> Result<(), NamespacesError> {
        let (pipeline, shared) = (&self.0.pipeline, &self.0.pipeline.shared);
        let informer = Arc::clone(&pipeline.parent.name);
        if self.0.ending.stop.is_cancelled() {
            return Err(NamespacesError::Stopped { informer });
        }
        let (cluster, makers, names) = sources.parts();
        let of_cluster = |set: &&Arc<NamespaceSet<S>>| set.cluster == cluster;
        let exists = || NamespacesError::Exists { informer: Arc::clone(&informer), cluster: cluster.clone() };
        if shared
            .namespaces
            .all()
            .iter()
            .filter(of_cluster)
            .any(|set| !shared.sources.of_set(set.number).is_empty())
        {
            return Err(exists());
        }
        if let Wanted::Given(given) = &names {
            // Asked before the set is there, since its follower would only log what is refused.
            let asked = NamespaceSet::new(usize::MAX, cluster.clone(), makers.clone());
            let each = sources_of_each(&asked, given, &informer)?;
            if let Some(refusal) = shared.sources.refusal(&each) {
                return Err(not_added(refusal, informer).into());
            }
        }
        let Some((set, is_new)) = shared.namespaces.renewed_or_new(cluster.clone(), makers) else {
            return Err(exists());
        };
        if is_new {
            Follower::start(pipeline, Arc::clone(&set));
        }
        match names {
            Wanted::Given(given) => {
                set.change(|_| Arc::new(given.into_iter().collect()));
            }
            Wanted::Selected(selection) => {
                let selected = selection.source(Arc::clone(&set));
                if let Err(refusal) = begin_all(pipeline, vec![selected], false) {
                    set.remove();
                    return Err(not_added(refusal, informer).into());
                }
            }
        }
        Ok(())
    }
}
