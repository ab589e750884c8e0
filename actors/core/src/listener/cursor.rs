//! Debts that are not written out: what the difference of two snapshots owes, told a chunk at a time.
//!
//! Answers "what does this list, late join, restart or resync still owe?" without an event in memory: a cursor is two
//! snapshots and a place between their keys. Invariants:
//! 1. Of cursors that lead to the newest snapshot, at most one has yet to pass a key: [`gaps`] gives the ranges of
//!    keys that none of them has yet to pass, and only those get a new cursor.
//! 2. A cursor tells each key of its range once, as it passes it.
//!
//! Read next: `listener.rs`, which gives every cursor its place among the events that wait.

use std::collections::VecDeque;
use std::time::Duration;

use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::snapshot::{DiffCursor, Difference, Snapshot};

/// What a cursor tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// What differs between its snapshots, with this cause: a list, a late join, a restart.
    List(Cause),
    /// Every object of its newer snapshot that is still the same.
    Resync,
}

/// One debt.
pub(super) struct Cursor<S> {
    pub(super) purpose: Purpose,
    pub(super) arrival: u64,
    pub(super) since: Duration,
    diff: DiffCursor<S>,
    until: Option<ObjectKey>,
    /// How many differences it has given.
    given: usize,
    pub(super) has_begun: bool,
}

/// A range of keys: after one, up to and with another; `None` leaves that side open.
pub(super) type Range = (Option<ObjectKey>, Option<ObjectKey>);

impl<S> Cursor<S> {
    /// What leads from one state to another within a range.
    pub(super) fn new(purpose: Purpose, states: (Snapshot<S>, Snapshot<S>), (after, until): Range) -> Self {
        let diff = DiffCursor::between(states.0, states.1, after, until.clone());
        Self { purpose, arrival: 0, since: Duration::ZERO, diff, until, given: 0, has_begun: false }
    }

    /// The state that it leads from.
    pub(super) fn older(&self) -> &Snapshot<S> {
        self.diff.older()
    }

    /// The state that it leads to.
    pub(super) fn newer(&self) -> &Snapshot<S> {
        self.diff.newer()
    }

    /// Leads to this state from now on.
    pub(super) fn lead_to(&mut self, newer: &Snapshot<S>) {
        if self.purpose != Purpose::Resync {
            self.diff.lead_to(newer.clone());
        }
    }

    /// Whether it is a list's, and has yet to pass this key.
    pub(super) fn covers(&self, key: &ObjectKey) -> bool {
        self.purpose != Purpose::Resync && self.diff.covers(key)
    }

    /// Whether it has yet to tell something of this key.
    pub(super) fn owes(&self, key: &ObjectKey) -> bool {
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

    /// How many keys it still has to tell, if that is known without looking.
    pub(super) fn remaining(&self) -> usize {
        if self.older().is_empty() { self.newer().len().saturating_sub(self.given) } else { 0 }
    }

    /// Makes at most so many visits and gives what differs.
    pub(super) fn pass(&mut self, max_visits: usize) -> Vec<Difference<S>> {
        let mut passed = Vec::new();
        self.diff.next_chunk(max_visits, &mut passed);
        self.given += passed.len();
        self.has_begun = true;
        passed
    }
}

/// A difference, told with the cause of its list.
pub(super) fn told_as<S>(difference: Difference<S>, cause: Cause) -> Change<S> {
    match difference {
        Difference::Added(object) => Change::Added { object, cause },
        Difference::Updated { old, new, is_rewound } => {
            let cause = if is_rewound { Cause::Rewind } else { cause };
            Change::Updated { old, object: new, cause }
        }
        Difference::Deleted(old) => Change::Deleted { last: old.clone(), old, exact: false, cause },
    }
}

/// The ranges of keys that no list's cursor has yet to pass, in key order.
pub(super) fn gaps<S>(cursors: &VecDeque<Cursor<S>>) -> Vec<Range> {
    let lists = cursors.iter().filter(|cursor| cursor.purpose != Purpose::Resync && !cursor.is_finished());
    let mut covered: Vec<(Option<&ObjectKey>, Option<&ObjectKey>)> =
        lists.map(|cursor| (cursor.place(), cursor.until.as_ref())).collect();
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
