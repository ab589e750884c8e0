//! What the passes of one reconcile over one owner have wanted.
//!
//! Answers "was this child wanted by a pass of this reconcile?" A pass that is pruned deletes what it does not want. A second pass
//! of the same reconcile that wants something else would make that again, and delete what the first one wants, in turns and for
//! ever. So what one of them has wanted is kept by all, also if it was dropped before its prune; and what comes after a prune
//! without it is refused. Invariants:
//! 1. Only passes of one reconcile know of each other; without a controller there is none.
//! 2. Of each owner the last reconcile of each controller is remembered, and of as many owners as a controller may have workers.
//!    One that is still running when so many others have ended after it is forgotten: its second pass then knows nothing of
//!    its first one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::queue::MOST_WORKERS;
use informer_core::meta::ObjectKey;

use super::{ChildPass, KindName};

/// What a pass wants: by kind and not by type, since two types may stand for one kind, as those of two versions of it do.
pub(super) type Wanted = BTreeSet<(KindName, ObjectKey)>;

/// What the last reconciles have wanted.
#[derive(Default)]
pub(super) struct Passes {
    hasher: RandomState,
    known: Mutex<Known>,
}

/// Hashes instead of texts: two with one hash would keep a child that is not wanted until the next reconcile.
#[derive(Default)]
struct Known {
    /// By the hash of owner and controller.
    reconciles: BTreeMap<u64, Reconcile>,
    /// The serial of each of them with that hash, the oldest first.
    order: BTreeSet<(u64, u64)>,
}

/// What the passes of one reconcile have wanted.
#[derive(Default)]
struct Reconcile {
    /// No other reconcile of this process has it; controllers come and go.
    serial: u64,
    wanted: BTreeSet<u64>,
    /// Whether one of its passes was pruned.
    is_pruned: bool,
}

impl ChildPass<'_> {
    /// This pass wants this child. False if a pass of its reconcile was pruned that has not wanted it.
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

    /// This pass begins to be pruned.
    pub(super) fn begin_prune(&self) {
        self.in_reconcile(|known| known.is_pruned = true);
    }

    /// Whether this pass has wanted it, or another one of its reconcile.
    pub(super) fn is_wanted(&self, one: &(KindName, ObjectKey)) -> bool {
        let hash = || self.children.passes.hasher.hash_one(one);
        self.wanted.contains(one)
            || self.in_reconcile(|known| known.wanted.contains(&hash())).unwrap_or_default()
    }

    /// What is known of the reconcile of this pass; `None` without a controller, and of a reconcile that is not the last one.
    fn in_reconcile<R>(&self, call: impl FnOnce(&mut Reconcile) -> R) -> Option<R> {
        let (controller, serial) = self.log.reconcile()?;
        let passes = &self.children.passes;
        let at = passes.hasher.hash_one((&self.owner.uid, controller));
        Some(call(passes.known().last(at, serial)?))
    }
}

impl Known {
    /// The reconcile of this serial, unless a later one of the same owner and controller is known.
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
        // What a panic may leave half done is a reconcile that is forgotten too late.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
