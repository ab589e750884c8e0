//! Cursors that are walked while the recipient takes nothing: their events are written out and wait by key.
//! Invariants:
//! 1. Under `Coalesce`, once all is walked, at most [`CURSORS`] cursors are left, each of which pins a
//!    snapshot. A list adds at most one for each gap between them, and none beyond [`CURSORS`] if 250 visits
//!    find what differs.
//! 2. Under `Keys` each cursor that begins with a state other than the empty one is walked, because it pins
//!    that state.
//! 3. Under `Every`, where a full subscription ends, lists beyond [`CURSORS`] are looked at: one without
//!    events goes.
//! 4. What a walk writes out comes behind what waits. A resync keeps its place: a later list may have yet to
//!    pass its objects.

use std::sync::Arc;

use super::cursor::{Cursor, Purpose, change_of, gaps};
use super::filter::{Filter, Told};
use super::{Backlog, CHUNK, CURSORS, Waiting, WhenFull};
use crate::delta::{Cause, Change};
use crate::snapshot::Snapshot;

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
                let is_unknown = |cursor: &Cursor<S>| cursor.is_later_list() && !cursor.tells;
                is_looked_at.then(|| self.cursors.iter().position(is_unknown)).flatten()
            }
        }
    }

    fn look_at(&mut self, at: usize, visits: usize) {
        let Some(mut cursor) = self.cursors.remove(at) else { return };
        let filter = self.filter.as_ref().map(|filtering| Arc::clone(&filtering.filter));
        let passed = cursor.look_ahead(visits, |difference| {
            let is_asked = |filter: &Arc<_>| {
                matches!(Filter::judge(filter, &change_of(difference, Cause::Relist)), Told::As(_))
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

    /// Adds what a list changed, for the keys that no cursor has yet to pass. If there would be too many
    /// cursors, or they are walked anyway, what 250 visits find is written out.
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

    /// Makes ready events wait by key again, before a newer event of their keys may come.
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
