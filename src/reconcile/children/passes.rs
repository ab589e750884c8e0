//! The passes of one reconcile over one owner, after the first of them was pruned.
//!
//! Answers "was this child wanted by a pass of this reconcile that is over?" A pass that is pruned deletes what it does not want.
//! A second pass of the same reconcile that wants something else would make that again, and delete what the first one wants,
//! in turns and for ever. So what the first one wants is kept, and what it has not wanted is refused. Invariants:
//! 1. Only passes of one reconcile know of each other; without a controller there is none.
//! 2. As many reconciles are remembered as a controller may have workers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use informer_actors::work_queue::MOST_WORKERS;
use informer_core::meta::{ObjectKey, Uid};

use super::kinds::KindName;

/// What a pass wants: by kind and not by type, since two types may stand for one kind, as those of two versions of it do.
pub(super) type Wanted = BTreeSet<(KindName, ObjectKey)>;

/// Which reconcile of which owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Reconcile {
    pub(super) owner: Uid,
    pub(super) controller: String,
    pub(super) id: u64,
}

/// What the passes that are over have wanted.
#[derive(Default)]
pub(super) struct Passes {
    hasher: RandomState,
    known: Mutex<Known>,
}

/// Hashes instead of texts. Two with one hash would keep a child that is not wanted until the next reconcile.
#[derive(Default)]
struct Known {
    wanted: BTreeMap<u64, BTreeSet<u64>>,
    /// The reconciles, the newest last.
    order: VecDeque<u64>,
}

impl Passes {
    /// A pass of this reconcile begins to be pruned, and wants this.
    pub(super) fn end(&self, reconcile: &Reconcile, wanted: &Wanted) {
        let at = self.hasher.hash_one(reconcile);
        let mut known = self.known();
        if !known.wanted.contains_key(&at) {
            known.order.push_back(at);
        }
        known.wanted.entry(at).or_default().extend(wanted.iter().map(|one| self.hasher.hash_one(one)));
        if known.order.len() > MOST_WORKERS
            && let Some(oldest) = known.order.pop_front()
        {
            known.wanted.remove(&oldest);
        }
    }

    /// Whether passes of this reconcile that are over have wanted this; `None` if there are none.
    pub(super) fn wanted_before(&self, reconcile: &Reconcile, one: &(KindName, ObjectKey)) -> Option<bool> {
        let at = self.hasher.hash_one(reconcile);
        self.known().wanted.get(&at).map(|wanted| wanted.contains(&self.hasher.hash_one(one)))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // What a panic may leave half done is a reconcile that is forgotten too late.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
