//! What the passes of one reconcile over one owner have wanted. Two passes with different wishes would delete
//! each other's children in turns for ever. Therefore all passes of a reconcile keep what one of them has
//! wanted, even if it was dropped; a new wish after a prune is refused. For each owner the last reconcile of
//! each controller is remembered, for as many owners as a controller may have workers. If a running reconcile
//! is forgotten, its second pass does not know its first.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::queue::MOST_WORKERS;
use informer_core::meta::ObjectKey;

use super::{ChildPass, KindName};

/// Not by type: two versions are one kind.
pub(super) type Wanted = BTreeSet<(KindName, ObjectKey)>;

#[derive(Default)]
pub(super) struct Passes {
    hasher: RandomState,
    known: Mutex<Known>,
}

/// Hashes: a collision keeps an unwanted child until the next reconcile.
#[derive(Default)]
struct Known {
    /// By the hash of owner and controller.
    reconciles: BTreeMap<u64, Reconcile>,
    /// Serial and hash, the oldest first.
    order: BTreeSet<(u64, u64)>,
}

#[derive(Default)]
struct Reconcile {
    /// Unique in this process.
    serial: u64,
    wanted: BTreeSet<u64>,
    is_pruned: bool,
}

impl ChildPass<'_> {
    /// False if this reconcile was pruned without it.
    pub(super) fn want(&mut self, one: (KindName, ObjectKey)) -> bool {
        let hash = self.children.passes.hasher.hash_one(&one);
        self.wanted.insert(one);
        let may_be_made = self.in_reconcile(|known| {
            let is_new = !known.wanted.contains(&hash);
            if is_new && !known.is_pruned {
                known.wanted.insert(hash);
            }
            !(is_new && known.is_pruned)
        });
        may_be_made.unwrap_or(true)
    }

    pub(super) fn begin_prune(&self) {
        self.in_reconcile(|known| known.is_pruned = true);
    }

    pub(super) fn is_wanted(&self, one: &(KindName, ObjectKey)) -> bool {
        let hash = || self.children.passes.hasher.hash_one(one);
        self.wanted.contains(one)
            || self.in_reconcile(|known| known.wanted.contains(&hash())).unwrap_or_default()
    }

    /// `None` without a controller, or for an older reconcile.
    fn in_reconcile<R>(&self, call: impl FnOnce(&mut Reconcile) -> R) -> Option<R> {
        let (controller, serial) = self.log.reconcile()?;
        let passes = &self.children.passes;
        let at = passes.hasher.hash_one((&self.owner.uid, controller));
        Some(call(passes.known().last(at, serial)?))
    }
}

impl Known {
    fn last(&mut self, at: u64, serial: u64) -> Option<&mut Reconcile> {
        let before = self.reconciles.get(&at).map(|last| last.serial);
        if before.is_some_and(|before| before > serial) {
            return None;
        }
        if before != Some(serial) {
            before.map(|before| self.order.remove(&(before, at)));
            self.order.insert((serial, at));
            self.reconciles.insert(at, Reconcile { serial, ..Reconcile::default() });
        }
        if self.order.len() > MOST_WORKERS
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.reconciles.remove(&oldest);
        }
        self.reconciles.get_mut(&at)
    }
}

impl Passes {
    fn known(&self) -> MutexGuard<'_, Known> {
        // After a panic a reconcile may be forgotten too late.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
