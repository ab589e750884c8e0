//! How many lists may be under way at once.
//!
//! Answers "may this source list now?" with permits, of which each cluster has its own: what one API server is spared
//! says nothing about another, and a cluster that answers slowly must not keep the lists of the others waiting.
//! Invariants:
//! 1. Sources without a cluster share one pool; sources of one cluster share one, whatever informer they belong to.
//! 2. A pool is forgotten when no source uses it any more, so that clusters that come and go leave nothing.
//!
//! Read next: `pipeline/reflector/session.rs`, which waits for a permit and gives it back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use informer_core::meta::ClusterName;
use tokio::sync::Semaphore;

/// The permits for lists, one pool of the same size for each cluster.
#[derive(Debug)]
pub(crate) struct ListBudget {
    size: usize,
    own: Arc<Semaphore>,
    clusters: Mutex<BTreeMap<ClusterName, Weak<Semaphore>>>,
}

impl ListBudget {
    /// So many lists at once, for each cluster.
    pub(crate) fn new(size: usize) -> Self {
        Self { size, own: Arc::new(Semaphore::new(size)), clusters: Mutex::default() }
    }

    /// The pool of a cluster. Whoever keeps it, or a permit of it, keeps it in use.
    pub(crate) fn of(&self, cluster: Option<&ClusterName>) -> Arc<Semaphore> {
        let Some(cluster) = cluster else {
            return Arc::clone(&self.own);
        };
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = clusters.get(cluster).and_then(Weak::upgrade) {
            return pool;
        }
        clusters.retain(|_, pool| pool.strong_count() > 0);
        let pool = Arc::new(Semaphore::new(self.size));
        clusters.insert(cluster.clone(), Arc::downgrade(&pool));
        pool
    }
}

#[cfg(test)]
mod tests {
    use super::ListBudget;

    #[test]
    fn each_cluster_has_permits_of_its_own_and_one_that_nobody_uses_is_forgotten() {
        let budget = ListBudget::new(1);
        let [eu, us] = ["eu", "us"].map(|name| name.parse().expect("a name"));
        let (own, of_eu) = (budget.of(None), budget.of(Some(&eu)));
        let taken = of_eu.try_acquire().expect("the first");
        assert!(budget.of(Some(&eu)).try_acquire().is_err(), "one pool for all sources of a cluster");
        assert!(budget.of(Some(&us)).try_acquire().is_ok() && own.try_acquire().is_ok());
        drop(taken);
        assert!(budget.of(Some(&eu)).try_acquire().is_ok());
        drop(of_eu);
        let used = budget.of(Some(&us));
        assert_eq!(budget.clusters.lock().expect("no panic").len(), 1, "the other one is forgotten");
        drop(used);
    }
}
