//! What readers of lazy bodies find undecodable. It goes to the watch of the source, which tells the informer
//! (`../list_watch.rs`).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use informer_core::delta::Undecodable;
use informer_core::meta::{ClusterName, ObjectKey};

use crate::wire::{MetaScan, UnnamedError};

/// What does not fit is told when it is read again.
const MOST_WAITING: usize = 250;

/// The findings of one source.
#[derive(Debug, Default)]
pub struct LateFindings {
    cluster: Option<ClusterName>,
    waiting: Mutex<BTreeMap<ObjectKey, Undecodable>>,
    told: AtomicWaker,
}

impl LateFindings {
    pub(crate) fn new(cluster: Option<ClusterName>) -> Self {
        Self { cluster, ..Self::default() }
    }

    pub(super) fn key(&self, scan: &MetaScan<'_>) -> Result<ObjectKey, UnnamedError> {
        let key = scan.key()?;
        Ok(match &self.cluster {
            Some(cluster) => key.in_cluster(cluster),
            None => key,
        })
    }

    pub(super) fn note(&self, found: Undecodable) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST_WAITING || waiting.contains_key(&found.key) {
            waiting.insert(found.key.clone(), found);
        }
        drop(waiting);
        self.told.wake();
    }

    /// All that wait; pending if nothing does.
    pub(crate) fn poll_found(&self, cx: &Context<'_>) -> Poll<Vec<Undecodable>> {
        self.told.register(cx.waker());
        let found = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if found.is_empty() { Poll::Pending } else { Poll::Ready(found.into_values().collect()) }
    }
}
