//! How debts come into a ledger, and how they become ready to be told.
//!
//! Answers "what does this event or list add to what is owed?", and "which debt is next, and what does it tell?".
//! Invariants:
//! 1. A recipient that has nothing under way and is owed nothing gets the events of a publish as they came.
//! 2. What waits for a key leads to the state from which a cursor that has yet to pass the key leads on.
//! 3. A life is brief for a key that a cursor has yet to pass if the cursor's older state and the last list lack it.
//!
//! Read next: `listener.rs`.

use std::time::Duration;

use super::coalesce::Brief;
use super::cursor::{Cursor, Purpose, gaps, told_as};
use super::{CHUNK, CURSORS, Ledger, Waiting, WhenFull};
use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::snapshot::{DiffCursor, Difference, Snapshot};

impl<S> Waiting<S> {
    pub(super) fn first(&self) -> Option<(u64, Duration)> {
        match self {
            Self::Coalesced { pending, .. } => pending.as_ref()?.first(),
            Self::Every(line) => line.first(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Coalesced { pending, .. } => pending.as_ref().map_or(0, |pending| pending.len()),
            Self::Every(line) => line.len(),
        }
    }

    pub(super) fn shrink(&mut self) {
        match self {
            Self::Coalesced { pending, .. } => *pending = None,
            Self::Every(line) => line.clear(),
        }
    }

    /// What was told is this state: matters only to whom the difference is restated.
    fn knows(&mut self, told: &Snapshot<S>) {
        if let Self::Every(line) = self {
            line.knows(told);
        }
    }
}

impl<S> Ledger<S> {
    /// Owes live changes in their order; gives how many of them were too much.
    pub(super) fn owe_events(&mut self, changes: &[Change<S>]) -> u64 {
        let is_prompt = self.is_empty() && !self.is_under_way && changes.len() <= CHUNK;
        for (at, change) in changes.iter().enumerate() {
            self.arrivals += 1;
            let (arrival, since) = (self.arrivals, self.now);
            match &mut self.waiting {
                Waiting::Every(line) => {
                    if line.is_closed || !line.push(change, arrival, since) {
                        return (changes.len() - at) as u64;
                    }
                }
                Waiting::Coalesced { .. } if is_prompt => {
                    self.ready.push_back((arrival, since, change.clone()));
                }
                Waiting::Coalesced { .. } => self.coalesce(change),
            }
        }
        0
    }

    /// Owes one change together with what its key is owed.
    fn coalesce(&mut self, change: &Change<S>) {
        let covering = self.cursors.iter().position(|cursor| cursor.covers(change.key()));
        let Some(covering) = covering else { return self.merge(change.clone()) };
        self.counters.coalesced += 1;
        let Change::Deleted { old, cause, .. } = change else { return };
        let known = self.cursors[covering].older().get(change.key());
        let was_listed =
            self.listed.iter().any(|(source, version)| source == old.source() && old.version() <= version);
        if was_listed || known.is_some_and(|known| known.is_same_life_as(old)) {
            return;
        }
        let brief = Brief { arrival: self.arrivals, cause: *cause, deleted: change.clone() };
        // Its addition was counted as spared, and so was this.
        self.counters.coalesced = self.counters.coalesced.saturating_sub(2);
        self.merging(2, |pending| pending.keep_ahead(change.key(), brief));
    }

    fn merge(&mut self, change: Change<S>) {
        let (arrival, since) = (self.arrivals, self.now);
        let key = change.key().clone();
        let mut is_possible = true;
        self.merging(1, |pending| is_possible = pending.merge(change, arrival, since));
        if !is_possible {
            self.counters.impossible += 1;
            debug_assert!(false, "a change of {key} cannot follow what is pending");
        }
    }

    /// Lets so many events merge with those that wait.
    fn merging(&mut self, events: usize, change: impl FnOnce(&mut super::Pending<S>)) {
        let Waiting::Coalesced { pending, most_briefs } = &mut self.waiting else { return };
        let pending = pending.get_or_insert_with(|| Box::new(super::Pending::new(*most_briefs)));
        let before = pending.events() + events;
        change(pending);
        self.counters.coalesced += (before - pending.events()) as u64;
        self.counters.dropped += pending.drop_surplus();
    }

    /// Owes what a list changed: of the keys that no cursor has yet to pass.
    pub(super) fn owe_list(&mut self, before: Snapshot<S>, after: &Snapshot<S>, cause: Cause) {
        if self.is_closed() || (before.is_empty() && after.is_empty()) {
            return;
        }
        let is_coalesced = matches!(self.waiting, Waiting::Coalesced { .. });
        if is_coalesced {
            self.listed = after.versions().into();
            for range in gaps(&self.cursors) {
                let states = (before.clone(), after.clone());
                self.push_cursor(Cursor::new(Purpose::List(cause), states, range));
            }
            return;
        }
        let arrivals = self.arrivals;
        let is_unbegun = |cursor: &&mut Cursor<S>| {
            cursor.arrival == arrivals && !cursor.has_begun && cursor.purpose == Purpose::List(Cause::Relist)
        };
        match self.cursors.back_mut().filter(is_unbegun) {
            // Nothing came since the last restart or relist: one gap with it.
            Some(cursor) if cause == Cause::Relist => cursor.lead_to(after),
            _ => self.push_cursor(Cursor::new(Purpose::List(cause), (before, after.clone()), (None, None))),
        }
    }

    pub(super) fn push_cursor(&mut self, mut cursor: Cursor<S>) {
        if !cursor.is_finished() {
            self.arrivals += 1;
            (cursor.arrival, cursor.since) = (self.arrivals, self.now);
            self.cursors.push_back(cursor);
        }
    }

    /// All that leads to this state is owed.
    pub(super) fn reach(&mut self, newest: Snapshot<S>) {
        if matches!(self.waiting, Waiting::Coalesced { .. }) {
            self.cursors.iter_mut().for_each(|cursor| cursor.lead_to(&newest));
        }
        if let Some(initial) = &mut self.initial {
            let missing = initial.missing.len();
            initial.missing.retain(|source| newest.version(source).is_none());
            if initial.missing.len() < missing {
                initial.until = self.arrivals;
            }
        }
        self.newest = newest;
        self.catch_up();
        self.tidy();
    }

    /// With nothing left to tell, what was told is the newest state.
    fn catch_up(&mut self) {
        if self.cursors.is_empty() && self.waiting.len() == 0 {
            let newest = self.newest.clone();
            self.waiting.knows(&newest);
        }
    }

    /// Lets the oldest debt become ready, or a part of it; false if there is none.
    pub(super) fn make_ready(&mut self, wanted: usize, visits: &mut usize, is_all: bool) -> bool {
        if self.is_cursor_next() {
            let keys = wanted.min(*visits);
            *visits -= keys;
            let Some((arrival, since)) = self.next_debt() else { return false };
            let changes = self.pass_first(keys);
            self.ready.extend(changes.into_iter().map(|change| (arrival, since, change)));
            return true;
        }
        *visits -= 1;
        match &mut self.waiting {
            Waiting::Coalesced { pending, .. } => {
                let first = pending.as_mut().and_then(|pending| pending.take_first());
                let Some((arrival, since, owed)) = first else { return false };
                self.ready.extend(owed.into_changes().map(|change| (arrival, since, change)));
            }
            Waiting::Every(line) => {
                let Some((arrival, since, change)) = line.pop() else { return false };
                // Who takes all that there is has been told the newest state: no need to go through it.
                if !is_all {
                    line.tell(&change);
                }
                self.ready.push_back((arrival, since, change));
            }
        }
        self.catch_up();
        true
    }

    /// Lets the first cursor pass some keys and gives what it tells of them.
    fn pass_first(&mut self, visits: usize) -> Vec<Change<S>> {
        let Some(mut cursor) = self.cursors.pop_front() else { return Vec::new() };
        let from = cursor.place().cloned();
        let passed = cursor.pass(visits);
        let changes = match cursor.purpose {
            Purpose::Resync => self.resynced(&cursor, passed),
            Purpose::List(cause) => self.listed(&cursor, from.as_ref(), passed, cause),
        };
        if !cursor.is_finished() {
            self.cursors.push_front(cursor);
        } else if cursor.purpose != Purpose::Resync {
            self.waiting.knows(cursor.newer());
            self.catch_up();
        }
        changes
    }

    /// What a list's cursor tells of the keys that it has passed, brief lives between their ends.
    fn listed(
        &mut self,
        cursor: &Cursor<S>,
        from: Option<&ObjectKey>,
        passed: Vec<Difference<S>>,
        cause: Cause,
    ) -> Vec<Change<S>> {
        let until = if cursor.is_finished() { cursor.until() } else { cursor.place() };
        let briefs = match &mut self.waiting {
            Waiting::Coalesced { pending: Some(pending), .. } => pending.passed(from, until),
            _ => Vec::new(),
        };
        let is_brief = |difference: &Difference<S>| {
            briefs.binary_search_by(|brief| brief.deleted.key().cmp(difference.key())).is_ok()
        };
        let plain = passed.into_iter().filter(|difference| !is_brief(difference));
        let mut changes: Vec<Change<S>> = plain.map(|difference| told_as(difference, cause)).collect();
        for brief in briefs {
            let key = brief.deleted.key().clone();
            let gone = cursor.older().get(&key).map(|old| Difference::Deleted(old.clone()));
            let there = cursor.newer().get(&key).map(|new| Difference::Added(new.clone()));
            changes.extend(gone.map(|difference| told_as(difference, cause)));
            changes.extend(brief.into_changes());
            changes.extend(there.map(|difference| told_as(difference, cause)));
        }
        changes
    }

    /// What a resync tells of these objects: those that are still the same, and of which nothing else is owed.
    fn resynced(&self, cursor: &Cursor<S>, passed: Vec<Difference<S>>) -> Vec<Change<S>> {
        let since = DiffCursor::new(cursor.newer().clone(), self.newest.clone());
        let is_owed = |key: &_| {
            let waits = match &self.waiting {
                Waiting::Coalesced { pending: Some(pending), .. } => pending.contains(key),
                _ => false,
            };
            waits || self.cursors.iter().any(|cursor| cursor.owes(key))
        };
        let is_coalesced = matches!(self.waiting, Waiting::Coalesced { .. });
        let objects = passed.into_iter().filter_map(|difference| match difference {
            Difference::Added(object) => Some(object),
            _ => None,
        });
        let same = objects.filter(|object| {
            let key = object.key();
            since.at(key).is_empty() && !(is_coalesced && is_owed(key))
        });
        same.map(|object| Change::Updated { old: object.clone(), object, cause: Cause::Resync }).collect()
    }

    /// Under `Coalesce` cursors beyond [`CURSORS`] are written out, a chunk a call, from the first one on.
    pub(super) fn tidy(&mut self) {
        let is_coalesced = matches!(self.waiting, Waiting::Coalesced { .. });
        let surplus = self.cursors.len().saturating_sub(CURSORS);
        for _ in 0..if is_coalesced { surplus } else { 0 } {
            self.write_out(CHUNK / surplus);
        }
        self.latch();
    }

    /// Lets the first cursor pass some keys, and what it owes of them wait.
    pub(super) fn write_out(&mut self, visits: usize) {
        let Some(cursor) = self.cursors.front() else { return };
        let (purpose, arrival) = (cursor.purpose, cursor.arrival);
        let changes = self.pass_first(visits);
        if purpose == Purpose::Resync {
            // A resync merges with nothing.
            let since = self.now;
            self.ready.extend(changes.into_iter().map(|change| (arrival, since, change)));
            return;
        }
        for change in changes {
            self.arrivals += 1;
            self.merge(change);
        }
        let arrivals = self.arrivals;
        if let Some(initial) = self.initial.as_mut().filter(|initial| arrival <= initial.until) {
            initial.until = arrivals;
        }
    }

    /// Too many snapshots are held for the recipient of every event: full. First lists do not count, each source has
    /// one.
    pub(super) fn has_too_many_cursors(&self) -> bool {
        let counts = |cursor: &&Cursor<S>| matches!(cursor.purpose, Purpose::List(cause) if cause != Cause::InitialList);
        matches!(self.waiting, Waiting::Every(_))
            && self.cursors.len() > CURSORS
            && self.cursors.iter().filter(counts).count() > CURSORS
    }

    /// Drops what waits. To restate, a cursor that has begun stays, since it ends in a state that can be named, and so
    /// does the initial list if it is first; then comes what leads to `snapshot`.
    pub(super) fn overflow_now(&mut self, lost: u64, snapshot: &Snapshot<S>) {
        let is_first = self.is_cursor_next();
        let Waiting::Every(line) = &mut self.waiting else { return };
        let is_kept = |cursor: &mut Cursor<S>| {
            cursor.has_begun || (is_first && cursor.purpose == Purpose::List(Cause::InitialList))
        };
        let kept = match line.when_full {
            WhenFull::Restate => self.cursors.pop_front_if(is_kept),
            WhenFull::Disconnect => None,
        };
        let remaining: usize = self.cursors.iter().map(Cursor::remaining).sum();
        self.counters.dropped += lost + (line.len() + remaining) as u64;
        line.clear();
        self.cursors.clear();
        if line.when_full == WhenFull::Disconnect {
            self.counters.dropped += std::mem::take(&mut self.ready).len() as u64;
            line.is_closed = true;
            return;
        }
        let from = kept.as_ref().map_or_else(|| line.told(), |cursor| cursor.newer().clone());
        self.cursors.extend(kept);
        let gap = Cursor::new(Purpose::List(Cause::Relist), (from, snapshot.clone()), (None, None));
        self.push_cursor(gap);
        if let Some(initial) = &mut self.initial {
            initial.until = self.arrivals;
        }
    }
}
