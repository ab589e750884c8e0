//! The list budget: how many lists may be open at once.
//!
//! Each cluster has its own permits: a slow cluster does not delay lists of others. Sources without a cluster share
//! one pool. An unused pool is removed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use crate::runtime::locked::locked;
use informer_core::meta::ClusterName;
use tokio::sync::Semaphore;

#[derive(Debug)]
pub(crate) struct ListBudget {
    size: usize,
    own: Arc<Semaphore>,
    clusters: Mutex<BTreeMap<ClusterName, Weak<Semaphore>>>,
}

impl ListBudget {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, own: Arc::new(Semaphore::new(size)), clusters: Mutex::default() }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// A cluster's pool exists while a caller keeps it or one of its permits.
    pub(crate) fn of(&self, cluster: Option<&ClusterName>) -> Arc<Semaphore> {
        let Some(cluster) = cluster else {
            return Arc::clone(&self.own);
        };
        let mut clusters = locked(&self.clusters);
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
    fn each_cluster_has_its_own_permits_and_an_unused_pool_is_removed() {
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
