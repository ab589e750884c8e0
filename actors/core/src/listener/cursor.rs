//! Debts that are not written out: what the difference of two snapshots owes, told a chunk at a time.
//!
//! Answers "what does this late join, restart or resync still owe?" without an event in memory: a cursor is two
//! snapshots, a place between their keys, and the keys ahead of it that have been dealt with otherwise. Invariants:
//! 1. Each key of the difference is dealt with once: by the cursor as it passes, or before that, *overtaken* because
//!    something newer of the same key had to be told after it.
//! 2. Only keys ahead of the cursor that it would tell are remembered as overtaken, so that set is bounded by the
//!    two snapshots, whatever comes and goes meanwhile.
//!
//! Read next: `listener.rs`, which gives every cursor its place among the live changes.

use std::collections::BTreeSet;
use std::time::Duration;

use super::pending::{Arrival, Place};
use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::snapshot::{DiffCursor, Difference, Snapshot};

/// Why a cursor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A subscription begins: all objects are told as added.
    InitialList,
    /// The group has restarted: what differs is told.
    Relist,
    /// A resync is due: all objects are told as they are.
    Resync,
    /// Events were dropped, or nobody recorded them: what differs is told, by identity.
    Gap,
    /// A list was applied: what it changed is told, by identity, with its cause.
    Listed(Cause),
}

impl Purpose {
    /// Whether every object is told, not only those that differ.
    pub(super) fn tells_all(self) -> bool {
        matches!(self, Self::InitialList | Self::Resync)
    }
}

/// One debt.
pub(super) struct Cursor<S> {
    purpose: Purpose,
    arrival: u64,
    since: Duration,
    steps: u64,
    diff: DiffCursor<S>,
    overtaken: BTreeSet<ObjectKey>,
    /// How many keys of the newer snapshot lie ahead, if it tells each of them.
    ahead: Option<usize>,
    has_begun: bool,
}

impl<S> Cursor<S> {
    /// A debt that arrives at this place in the order.
    pub(super) fn new(purpose: Purpose, diff: DiffCursor<S>, arrival: u64, since: Duration) -> Self {
        let ahead = (purpose.tells_all() || diff.older().is_empty()).then(|| diff.newer().len());
        Self { purpose, arrival, since, steps: 0, diff, overtaken: BTreeSet::new(), ahead, has_begun: false }
    }

    pub(super) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The state that it leads from.
    pub(super) fn older(&self) -> &Snapshot<S> {
        self.diff.older()
    }

    /// The state that it leads to.
    pub(super) fn newer(&self) -> &Snapshot<S> {
        self.diff.newer()
    }

    pub(super) fn since(&self) -> Duration {
        self.since
    }

    /// The place of what it tells next.
    pub(super) fn place(&self) -> Place {
        Place { arrival: self.arrival, step: self.steps }
    }

    /// How many keys it still has to tell, as far as that is known without looking.
    pub(super) fn remaining(&self) -> usize {
        self.ahead.map_or(0, |ahead| ahead.saturating_sub(self.overtaken.len()))
    }

    /// How many events it will give at most.
    pub(super) fn at_most(&self) -> usize {
        let most = self.diff.older().len() + self.diff.newer().len();
        if self.ahead.is_some() { self.remaining() } else { most }
    }

    /// Whether it has passed a key.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether nothing of it is owed any more.
    pub(super) fn is_settled(&self) -> bool {
        self.diff.is_finished() || (self.ahead.is_some() && self.remaining() == 0)
    }

    /// Passes at most so many keys and gives what they owe, with their places.
    pub(super) fn advance(&mut self, max_keys: usize) -> Vec<(Change<S>, Arrival)> {
        let mut passed = Vec::new();
        self.diff.next_chunk(max_keys, &mut passed);
        let told = passed.iter().filter(|difference| !self.overtaken.contains(difference.key())).cloned();
        let told: Vec<Difference<S>> = told.collect();
        for difference in &passed {
            self.overtaken.remove(difference.key());
        }
        self.ahead = self.ahead.map(|ahead| ahead.saturating_sub(passed.len()));
        self.has_begun = true;
        told.into_iter().map(|difference| self.arrive(difference)).collect()
    }

    /// What it owes for one key ahead of it: nothing, one event, or a deletion and an addition.
    pub(super) fn owed(&self, key: &ObjectKey) -> Vec<Difference<S>> {
        if self.diff.has_passed(key) || self.overtaken.contains(key) { Vec::new() } else { self.diff.at(key) }
    }

    /// Gives what it owes for one key now, and will not tell it when it comes by.
    pub(super) fn overtake(&mut self, key: &ObjectKey) -> Vec<(Change<S>, Arrival)> {
        let owed = self.owed(key);
        if !owed.is_empty() {
            self.overtaken.insert(key.clone());
        }
        owed.into_iter().map(|difference| self.arrive(difference)).collect()
    }

    fn arrive(&mut self, difference: Difference<S>) -> (Change<S>, Arrival) {
        let place = self.place();
        self.steps += 1;
        let is_initial = self.purpose == Purpose::InitialList;
        let sameness = self.diff.sameness();
        (told_as(self.purpose, difference), Arrival { place, since: self.since, is_initial, sameness })
    }
}

/// The cursor of a subscription that begins.
pub(super) fn from_nothing<S>(now: Snapshot<S>) -> DiffCursor<S> {
    DiffCursor::new(Snapshot::empty(), now)
}

fn told_as<S>(purpose: Purpose, difference: Difference<S>) -> Change<S> {
    let cause = match purpose {
        Purpose::InitialList => Cause::InitialList,
        Purpose::Relist | Purpose::Gap => Cause::Relist,
        Purpose::Listed(cause) => cause,
        Purpose::Resync => Cause::Resync,
    };
    match difference {
        Difference::Added(object) if purpose == Purpose::Resync => {
            Change::Updated { old: object.clone(), object, cause }
        }
        Difference::Added(object) => Change::Added { object, cause },
        Difference::Updated { old, new, .. } if old.is_same_as(&new) => {
            Change::Updated { old, object: new, cause: Cause::Rewind }
        }
        Difference::Updated { old, new, .. } => Change::Updated { old, object: new, cause },
        Difference::Deleted(old) => Change::Deleted { last: old.clone(), old, exact: false, cause },
    }
}
