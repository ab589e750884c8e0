//! Cursors: waiting events as the difference of two snapshots, not in memory. Invariants:
//! 1. Of cursors that lead to the newest snapshot, at most one has yet to pass a key: only the [`gaps`] between them
//!    get a new cursor.
//! 2. A cursor delivers each key of its range once, as it passes it.
//!
//! Some are walked while the recipient takes nothing: their events are written out and wait by key.
//! 1. Under `Coalesce`, once all is walked, at most [`CURSORS`] are left, each of which pins a snapshot. A list adds
//!    at most one for each gap, and none beyond [`CURSORS`] if 250 visits find what differs.
//! 2. Under `Keys` each cursor whose first state is not empty is walked, because it pins that state.
//! 3. Under `Every`, where a full subscription ends, lists beyond [`CURSORS`] are looked at: one without events goes.
//! 4. What a walk writes out comes behind what waits. A resync keeps its place: a later list may have yet to pass its
//!    objects.

use std::sync::Arc;
use std::time::Duration;

use super::filter::{Filter, Judged};
use super::{Backlog, CHUNK, CURSORS, Waiting, WhenFull};
use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::snapshot::{DiffCursor, Difference, Snapshot};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// What differs, with this cause: a list, a late join, a restart.
    List(Cause),
    /// Every object of its newer snapshot that is still the same.
    Resync,
}

pub(super) struct Cursor<S> {
    pub(super) purpose: Purpose,
    pub(super) arrival: u64,
    pub(super) since: Duration,
    diff: DiffCursor<S>,
    until: Option<ObjectKey>,
    /// Keys of its newer state that it delivered, if it delivers all.
    delivered: Option<usize>,
    /// No key that it has yet to deliver waits elsewhere.
    pub(super) is_alone: bool,
    pub(super) has_begun: bool,
    /// Whether it is known to have events; only of lists that are too many.
    pub(super) has_events: bool,
}

/// Keys after the first, up to and with the second; `None` leaves that side open.
pub(super) type Range = (Option<ObjectKey>, Option<ObjectKey>);

impl<S> Cursor<S> {
    pub(super) fn new(purpose: Purpose, states: (Snapshot<S>, Snapshot<S>), (after, until): Range) -> Self {
        let gives_all = states.0.is_empty() && after.is_none() && until.is_none();
        let diff = DiffCursor::between(states.0, states.1, after, until.clone());
        let delivered = gives_all.then_some(0);
        let (arrival, since) = (0, Duration::ZERO);
        let (is_alone, has_begun, has_events) = (true, false, false);
        Self { purpose, arrival, since, diff, until, delivered, is_alone, has_begun, has_events }
    }

    /// A change behind it, or one that another entry delivers, counts as delivered.
    pub(super) fn count(&mut self, change: &Change<S>) {
        if let (Purpose::List(_), Some(delivered)) = (self.purpose, &mut self.delivered) {
            match change {
                Change::Added { .. } => *delivered += 1,
                Change::Updated { .. } => {}
                Change::Deleted { .. } => *delivered = delivered.saturating_sub(1),
            }
        }
    }

    pub(super) fn older(&self) -> &Snapshot<S> {
        self.diff.older()
    }

    pub(super) fn newer(&self) -> &Snapshot<S> {
        self.diff.newer()
    }

    pub(super) fn lead_to(&mut self, newer: &Snapshot<S>) {
        self.diff.lead_to(newer.clone());
    }

    pub(super) fn covers(&self, key: &ObjectKey) -> bool {
        self.purpose != Purpose::Resync && self.diff.covers(key)
    }

    pub(super) fn will_give(&self, key: &ObjectKey) -> bool {
        self.covers(key) && !self.diff.at(key).is_empty()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.diff.is_finished()
    }

    pub(super) fn until(&self) -> Option<&ObjectKey> {
        self.until.as_ref()
    }

    pub(super) fn place(&self) -> Option<&ObjectKey> {
        self.diff.place()
    }

    /// 0 if that needs a walk.
    pub(super) fn remaining(&self) -> usize {
        self.delivered.map_or(0, |delivered| self.newer().len().saturating_sub(delivered))
    }

    pub(super) fn is_later_list(&self) -> bool {
        matches!(self.purpose, Purpose::List(cause) if cause != Cause::InitialList)
    }

    /// Ends without a move if it finds something that `is_event`. Returns how many differing keys it has passed.
    pub(super) fn look_ahead(&mut self, visits: usize, is_event: impl Fn(Difference<S>) -> bool) -> usize {
        let (older, newer) = (self.older().clone(), self.newer().clone());
        let mut ahead = DiffCursor::between(older, newer, self.place().cloned(), self.until.clone());
        let mut found = Vec::new();
        ahead.next_chunk(visits, &mut found);
        let passed = found.len();
        self.has_events = found.into_iter().any(is_event);
        if self.has_events {
            return 0;
        }
        self.diff = ahead;
        self.delivered = self.delivered.map(|delivered| delivered + passed);
        passed
    }

    pub(super) fn pass(&mut self, max_visits: usize) -> Vec<Difference<S>> {
        let mut passed = Vec::new();
        self.diff.next_chunk(max_visits, &mut passed);
        self.delivered = self.delivered.map(|delivered| delivered + passed.len());
        self.has_begun = true;
        passed
    }
}

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

/// The ranges that none of these cursors has yet to pass, in key order.
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

impl<S> Backlog<S> {
    /// Whether [`Self::walk`] has something to do.
    pub fn must_walk(&self) -> bool {
        self.walked().is_some()
    }

    /// Walks one of the cursors that must not stand still: at most 250 keys.
    pub fn walk(&mut self) {
        self.walk_some(CHUNK);
    }

    fn walked(&self) -> Option<usize> {
        match &self.waiting {
            Waiting::Coalesced { .. } => (self.cursors.len() > CURSORS).then_some(0),
            Waiting::Keys(_) => self.cursors.iter().position(|cursor| !cursor.older().is_empty()),
            Waiting::Every(line) => {
                let lists = self.cursors.iter().filter(|cursor| cursor.is_later_list()).count();
                let is_looked_at = lists > CURSORS && line.when_full == WhenFull::Disconnect;
                let is_unknown = |cursor: &Cursor<S>| cursor.is_later_list() && !cursor.has_events;
                is_looked_at.then(|| self.cursors.iter().position(is_unknown)).flatten()
            }
        }
    }

    fn look_at(&mut self, at: usize, visits: usize) {
        let Some(mut cursor) = self.cursors.remove(at) else { return };
        let filter = self.filter.as_ref().map(|filtering| Arc::clone(&filtering.filter));
        let passed = cursor.look_ahead(visits, |difference| {
            let is_asked = |filter: &Arc<_>| {
                matches!(Filter::judge(filter, &change_of(difference, Cause::Relist)), Judged::As(_))
            };
            filter.as_ref().is_none_or(is_asked)
        });
        self.count_filtered(passed as u64);
        if !cursor.is_finished() {
            self.cursors.insert(at, cursor);
        }
        if self.has_too_many_lists() {
            self.overflow_now(0, &self.newest.clone());
        }
    }

    pub(super) fn walk_some(&mut self, visits: usize) {
        let Some(at) = self.walked() else { return };
        if self.waiting.is_every() {
            self.look_at(at, visits);
            return self.latch();
        }
        self.put_back();
        let cursor = &self.cursors[at];
        let (purpose, arrival, since) = (cursor.purpose, cursor.arrival, cursor.since);
        let changes = self.pass_at(at, visits);
        if purpose == Purpose::Resync {
            self.ready = changes.into_iter().map(|change| (arrival, since, change)).collect();
            self.put_back();
        } else {
            self.write_out(changes);
            let arrivals = self.arrivals;
            if let Some(initial) = self.initial.as_mut().filter(|initial| arrival <= initial.until) {
                initial.until = arrivals;
            }
        }
        self.latch();
    }

    /// For keys that no cursor has yet to pass. If there would be too many cursors, or they are walked anyway, writes
    /// out what 250 visits find.
    pub(super) fn add_gaps(&mut self, before: &Snapshot<S>, after: &Snapshot<S>, cause: Cause) {
        let lists = self.cursors.iter().filter(|cursor| cursor.purpose != Purpose::Resync);
        let (ranges, is_walked) = match &self.waiting {
            Waiting::Keys(_) if before.is_empty() => {
                (gaps(lists.filter(|cursor| cursor.older().is_empty())), false)
            }
            // A cursor delivers nothing for a key that it has yet to pass if the object is gone then.
            Waiting::Keys(_) => (vec![(None, None)], true),
            _ => {
                let gaps = gaps(lists);
                let is_walked = self.cursors.len() + gaps.len() > CURSORS;
                (gaps, is_walked)
            }
        };
        let visits = CHUNK / ranges.len().max(1);
        for range in ranges {
            let mut cursor = Cursor::new(Purpose::List(cause), (before.clone(), after.clone()), range);
            if is_walked && !cursor.is_finished() {
                self.put_back();
                let changes = self.pass(&mut cursor, visits);
                self.write_out(changes);
            }
            self.push_cursor(cursor);
        }
    }

    fn write_out(&mut self, changes: Vec<Change<S>>) {
        for change in changes {
            self.arrivals += 1;
            if self.waiting.is_of_keys() {
                self.await_turn(&change);
            } else {
                self.merge(change);
            }
        }
    }

    /// Makes ready events wait by key again, before newer ones of their keys come.
    pub(super) fn put_back(&mut self) {
        if self.waiting.is_every() || self.ready.is_empty() {
            return;
        }
        let ready = std::mem::take(&mut self.ready);
        let (count, arrival) = (ready.len(), self.arrivals + 1);
        self.arrivals += count as u64;
        self.merging(count, |pending| pending.put_back(ready, arrival));
    }
}
