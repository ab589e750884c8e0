//! Cursors: waiting events that are not in memory, but are the difference of two snapshots, delivered a chunk at a
//! time.
//!
//! Answers "which events of this list, late join, restart or resync are still to be delivered?". A cursor is two
//! snapshots and a position between their keys. Invariants:
//! 1. Of cursors that lead to the newest snapshot, at most one has yet to pass a key: [`gaps`] gives the ranges of
//!    keys that none of them has yet to pass, and only those get a new cursor.
//! 2. A cursor gives each key of its range once, as it passes it.
//!
//! Read next: `listener.rs`, which gives every cursor its place among the events that wait.

use std::time::Duration;

use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::snapshot::{DiffCursor, Difference, Snapshot};

/// Which events a cursor gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// What differs between its snapshots, with this cause: a list, a late join, a restart.
    List(Cause),
    /// Every object of its newer snapshot that is still the same.
    Resync,
}

/// One list, late join, restart or resync that is still to be delivered.
pub(super) struct Cursor<S> {
    pub(super) purpose: Purpose,
    pub(super) arrival: u64,
    pub(super) since: Duration,
    diff: DiffCursor<S>,
    until: Option<ObjectKey>,
    /// How many keys of its newer state are delivered, if it gives all of them.
    delivered: Option<usize>,
    /// No key that it has yet to give waits by itself.
    pub(super) is_alone: bool,
    pub(super) has_begun: bool,
    /// It is known to have something to tell; found out only of lists that are too many.
    pub(super) tells: bool,
}

/// A range of keys: after one, up to and with another; `None` leaves that side open.
pub(super) type Range = (Option<ObjectKey>, Option<ObjectKey>);

impl<S> Cursor<S> {
    /// What leads from one state to another within a range.
    pub(super) fn new(purpose: Purpose, states: (Snapshot<S>, Snapshot<S>), (after, until): Range) -> Self {
        let gives_all = states.0.is_empty() && after.is_none() && until.is_none();
        let diff = DiffCursor::between(states.0, states.1, after, until.clone());
        let delivered = gives_all.then_some(0);
        let (arrival, since) = (0, Duration::ZERO);
        let (is_alone, has_begun, tells) = (true, false, false);
        Self { purpose, arrival, since, diff, until, delivered, is_alone, has_begun, tells }
    }

    /// This change happened behind it, or another entry delivers it: it has one key more or less to give.
    pub(super) fn count(&mut self, change: &Change<S>) {
        if let (Purpose::List(_), Some(delivered)) = (self.purpose, &mut self.delivered) {
            match change {
                Change::Added { .. } => *delivered += 1,
                Change::Updated { .. } => {}
                Change::Deleted { .. } => *delivered = delivered.saturating_sub(1),
            }
        }
    }

    /// The snapshot before the differences.
    pub(super) fn older(&self) -> &Snapshot<S> {
        self.diff.older()
    }

    /// The snapshot after the differences.
    pub(super) fn newer(&self) -> &Snapshot<S> {
        self.diff.newer()
    }

    /// Leads to this state from now on.
    pub(super) fn lead_to(&mut self, newer: &Snapshot<S>) {
        self.diff.lead_to(newer.clone());
    }

    /// Whether it belongs to a list, and has not passed this key yet.
    pub(super) fn covers(&self, key: &ObjectKey) -> bool {
        self.purpose != Purpose::Resync && self.diff.covers(key)
    }

    /// Whether it still has to give an event of this key.
    pub(super) fn will_give(&self, key: &ObjectKey) -> bool {
        self.covers(key) && !self.diff.at(key).is_empty()
    }

    /// Whether it has passed all.
    pub(super) fn is_finished(&self) -> bool {
        self.diff.is_finished()
    }

    /// Where its range ends.
    pub(super) fn until(&self) -> Option<&ObjectKey> {
        self.until.as_ref()
    }

    /// Up to where it has passed.
    pub(super) fn place(&self) -> Option<&ObjectKey> {
        self.diff.place()
    }

    /// How many keys it still has to give, if that is known without a walk.
    pub(super) fn remaining(&self) -> usize {
        self.delivered.map_or(0, |delivered| self.newer().len().saturating_sub(delivered))
    }

    /// Whether it is of a list that is not the first one of its source.
    pub(super) fn is_later_list(&self) -> bool {
        matches!(self.purpose, Purpose::List(cause) if cause != Cause::InitialList)
    }

    /// Makes at most so many visits ahead. It stays where it is if they find something that `is_told`, and moves on
    /// otherwise. Returns how many keys it has moved past that differ.
    pub(super) fn look_ahead(&mut self, visits: usize, is_told: impl Fn(Difference<S>) -> bool) -> usize {
        let (older, newer) = (self.older().clone(), self.newer().clone());
        let mut ahead = DiffCursor::between(older, newer, self.place().cloned(), self.until.clone());
        let mut found = Vec::new();
        ahead.next_chunk(visits, &mut found);
        let passed = found.len();
        self.tells = found.into_iter().any(is_told);
        if self.tells {
            return 0;
        }
        self.diff = ahead;
        self.delivered = self.delivered.map(|delivered| delivered + passed);
        passed
    }

    /// Makes at most so many visits and gives what differs.
    pub(super) fn pass(&mut self, max_visits: usize) -> Vec<Difference<S>> {
        let mut passed = Vec::new();
        self.diff.next_chunk(max_visits, &mut passed);
        self.delivered = self.delivered.map(|delivered| delivered + passed.len());
        self.has_begun = true;
        passed
    }
}

/// A difference as a change, with the cause of its list.
pub(super) fn change_of<S>(difference: Difference<S>, cause: Cause) -> Change<S> {
    match difference {
        Difference::Added(object) => Change::Added { object, cause },
        Difference::Updated { old, new, is_rewound } => {
            let cause = if is_rewound { Cause::Rewind } else { cause };
            Change::Updated { old, object: new, cause }
        }
        Difference::Deleted(old) => Change::Deleted { last: old.clone(), old, exact: false, cause },
    }
}

/// The ranges of keys that none of these cursors has yet to pass, in key order.
pub(super) fn gaps<'a, S: 'a>(cursors: impl Iterator<Item = &'a Cursor<S>>) -> Vec<Range> {
    let unfinished = cursors.filter(|cursor| !cursor.is_finished());
    let mut covered: Vec<(Option<&ObjectKey>, Option<&ObjectKey>)> =
        unfinished.map(|cursor| (cursor.place(), cursor.until.as_ref())).collect();
    covered.sort_unstable();
    let mut gaps = Vec::new();
    let mut passed = None;
    for (after, until) in covered {
        if passed < after {
            gaps.push((passed.cloned(), after.cloned()));
        }
        match until {
            None => return gaps,
            until => passed = until,
        }
    }
    gaps.push((passed.cloned(), None));
    gaps
}
