//! What readers of lazy bodies have found undecodable, until the watch of its source has told the informer.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use informer_core::delta::Undecodable;
use informer_core::meta::{ClusterName, ObjectKey};

use crate::wire::{MetaScan, UnnamedError};

/// What does not fit is found again when it is read again.
const MOST_WAITING: usize = 250;

/// The findings of one source.
#[derive(Debug, Default)]
pub(crate) struct LateFindings {
    cluster: Option<ClusterName>,
    waiting: Mutex<VecDeque<Undecodable>>,
    told: AtomicWaker,
}

impl LateFindings {
    pub(crate) fn new(cluster: Option<ClusterName>) -> Self {
        Self { cluster, ..Self::default() }
    }

    pub(crate) fn key(&self, scan: &MetaScan<'_>) -> Result<ObjectKey, UnnamedError> {
        let key = scan.key()?;
        Ok(match &self.cluster {
            Some(cluster) => key.in_cluster(cluster),
            None => key,
        })
    }

    /// False if too many wait.
    pub(crate) fn note(&self, found: Undecodable) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MOST_WAITING {
            return false;
        }
        waiting.push_back(found);
        drop(waiting);
        self.told.wake();
        true
    }

    /// All that wait; pending if nothing does.
    pub(crate) fn poll_found(&self, cx: &Context<'_>) -> Poll<VecDeque<Undecodable>> {
        self.told.register(cx.waker());
        let found = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if found.is_empty() { Poll::Pending } else { Poll::Ready(found) }
    }
}
