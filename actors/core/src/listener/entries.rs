//! How events and lists enter a backlog, and become ready to be delivered. Invariants:
//! 1. A recipient for which nothing waits or is under way receives the events of a publish as they came.
//! 2. What waits for a key leads to the state from which a cursor that has yet to pass the key leads on.
//! 3. While a cursor has yet to pass a key, a life of it is brief if neither the cursor's older snapshot nor the last
//!    list has it.
//! 4. Cursors lead between states of the store, so a filter does not alter what they have left.

use std::sync::Arc;

use super::coalesce::Brief;
use super::cursor::{Cursor, Purpose, change_of};
use super::filter::Judged;
use super::{Backlog, BacklogStats, CHUNK, CURSORS, Waiting, WhenFull};
use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::snapshot::{DiffCursor, Difference, Snapshot};

impl<S> Backlog<S> {
    /// Returns how many changes were too much.
    pub(super) fn add_events(&mut self, changes: &[Change<S>]) -> u64 {
        let is_prompt = self.is_empty() && !self.is_under_way && changes.len() <= CHUNK;
        if !is_prompt {
            self.put_back();
        }
        let filter = self.filter.as_ref().map(|filtering| Arc::clone(&filtering.filter));
        let mut lost = 0;
        for change in changes {
            let judged = Judged::of(change, filter.as_deref());
            if !matches!(judged, Judged::As(_)) {
                self.count_filtered(1);
            }
            self.arrivals += 1;
            lost += u64::from(!self.add_event(change, judged, (is_prompt, lost > 0)));
        }
        lost
    }

    /// False if the change was too much, as all are after a loss.
    fn add_event(
        &mut self,
        change: &Change<S>,
        judged: Judged<'_, S>,
        (is_prompt, is_lost): (bool, bool),
    ) -> bool {
        let (arrival, since) = (self.arrivals, self.now);
        match (&mut self.waiting, judged) {
            (Waiting::Every(line), Judged::As(judged)) => {
                return !is_lost && !line.is_closed && line.push(&judged, arrival, since);
            }
            (Waiting::Every(_), _) => {}
            (Waiting::Coalesced { .. }, Judged::As(judged)) if is_prompt => {
                self.ready.push_back((arrival, since, judged.into_owned()));
            }
            (Waiting::Coalesced { .. }, judged) => self.coalesce(change, judged),
            (Waiting::Keys(_), judged) => self.touch(change, judged),
        }
        true
    }

    fn coalesce(&mut self, change: &Change<S>, judged: Judged<'_, S>) {
        let covering = self.cursors.iter().position(|cursor| cursor.covers(change.key()));
        let Some(covering) = covering else {
            self.cursors.iter_mut().for_each(|cursor| cursor.count(change));
            match judged {
                Judged::As(judged) => self.merge(judged.into_owned()),
                Judged::Unasked if self.waiting.contains(change.key()) => {
                    self.uncount_filtered();
                    self.merge(change.clone());
                }
                Judged::Unasked | Judged::Nothing => {}
            }
            return;
        };
        let Judged::As(judged) = judged else { return };
        let change = &*judged;
        self.counters.coalesced += 1;
        let Change::Deleted { old, cause, .. } = change else { return };
        let known = self.cursors[covering].older().get(change.key());
        let was_listed = self
            .listed
            .as_ref()
            .and_then(|listed| listed.get(old.source()))
            .is_some_and(|at| old.version() <= at);
        if was_listed || known.is_some_and(|known| known.is_same_life_as(old)) {
            return;
        }
        let brief = Brief { arrival: self.arrivals, cause: *cause, deleted: change.clone() };
        // The addition and this deletion were counted as coalesced, and are delivered.
        self.counters.coalesced = self.counters.coalesced.saturating_sub(2);
        self.merging(2, |pending| pending.keep_ahead(change.key(), brief));
    }

    pub(super) fn merge(&mut self, change: Change<S>) {
        let (arrival, since) = (self.arrivals, self.now);
        if let Waiting::Keys(keys) = &mut self.waiting {
            let is_new = keys.touch(change.key(), change.cause(), arrival, since);
            self.counters.coalesced += u64::from(!is_new);
            return;
        }
        let key = change.key().clone();
        let mut is_possible = true;
        self.merging(1, |pending| is_possible = pending.merge(change, arrival, since));
        if !is_possible {
            self.counters.impossible += 1;
            // Only a predicate with varying answers makes such changes; without a filter the store has a fault.
            debug_assert!(self.filter.is_some(), "a change of {key} cannot follow what is pending");
        }
    }

    pub(super) fn merging(&mut self, events: usize, change: impl FnOnce(&mut super::Pending<S>)) {
        let Waiting::Coalesced { pending, most_briefs } = &mut self.waiting else { return };
        let pending = pending.get_or_insert_with(|| Box::new(super::Pending::new(*most_briefs)));
        let before = pending.events() + events;
        change(pending);
        self.counters.coalesced += (before - pending.events()) as u64;
        self.counters.dropped += pending.drop_surplus();
    }

    /// Only for the keys that no cursor has yet to pass.
    pub(super) fn add_list(&mut self, before: Snapshot<S>, after: &Snapshot<S>, cause: Cause) {
        // Two empty states differ only by a rewind. `Every` must record it: later states count it.
        let is_rewound = self.waiting.is_every() && before.rewinds() != after.rewinds();
        if self.is_closed() || (before.is_empty() && after.is_empty() && !is_rewound) {
            return;
        }
        if !self.waiting.is_every() {
            self.listed = Some(Box::new(after.versions().clone()));
            self.add_gaps(&before, after, cause);
            return;
        }
        let arrivals = self.arrivals;
        let is_unbegun = |cursor: &&mut Cursor<S>| {
            cursor.arrival == arrivals && !cursor.has_begun && cursor.purpose == Purpose::List(Cause::Relist)
        };
        match self.cursors.back_mut().filter(is_unbegun) {
            // Nothing came since the last restart or relist: they are one gap.
            Some(cursor) if cause == Cause::Relist => cursor.lead_to(after),
            _ => self.push_cursor(Cursor::new(Purpose::List(cause), (before, after.clone()), (None, None))),
        }
    }

    pub(super) fn push_cursor(&mut self, mut cursor: Cursor<S>) {
        if !cursor.is_finished() {
            cursor.is_alone = self.waiting.len() == 0 && self.ready.is_empty();
            self.arrivals += 1;
            (cursor.arrival, cursor.since) = (self.arrivals, self.now);
            self.cursors.push_back(cursor);
        }
    }

    pub(super) fn reach(&mut self, newest: Snapshot<S>) {
        // Under `Coalesce` a resync keeps the state that it began with: it does not deliver what has changed since.
        let is_led = |cursor: &&mut Cursor<S>| match &self.waiting {
            Waiting::Coalesced { .. } => cursor.purpose != Purpose::Resync,
            Waiting::Keys(_) => true,
            Waiting::Every(_) => false,
        };
        self.cursors.iter_mut().filter(is_led).for_each(|cursor| cursor.lead_to(&newest));
        if let Some(initial) = &mut self.initial {
            let missing = initial.missing.len();
            while initial.missing.pop_if(|source| newest.version(source).is_some()).is_some() {}
            if initial.missing.len() < missing {
                initial.until = self.arrivals;
            }
        }
        self.newest = newest;
        self.catch_up();
        self.latch();
    }

    fn catch_up(&mut self) {
        if self.cursors.is_empty() && self.waiting.len() == 0 {
            let newest = self.newest.clone();
            self.waiting.set_delivered(&newest);
        }
    }

    /// False if there is no entry.
    pub(super) fn make_ready(&mut self, wanted: usize, visits: &mut usize, is_all: bool) -> bool {
        if self.is_cursor_next() {
            let keys = wanted.min(*visits);
            *visits -= keys;
            let Some((arrival, since)) = self.next_waiting() else { return false };
            let changes = self.pass_at(0, keys);
            self.ready.extend(changes.into_iter().map(|change| (arrival, since, change)));
            return true;
        }
        *visits -= 1;
        match &mut self.waiting {
            Waiting::Coalesced { pending, .. } => {
                let first = pending.as_mut().and_then(|pending| pending.take_first());
                let Some((arrival, since, events)) = first else { return false };
                self.ready.extend(events.into_changes().map(|change| (arrival, since, change)));
            }
            Waiting::Every(line) => {
                let Some((arrival, since, change)) = line.pop() else { return false };
                // A recipient that takes all has the newest state without this.
                if !is_all {
                    line.apply_delivered(&change);
                }
                self.ready.push_back((arrival, since, change));
            }
            Waiting::Keys(_) => return false,
        }
        self.catch_up();
        true
    }

    pub(super) fn pass_at(&mut self, at: usize, visits: usize) -> Vec<Change<S>> {
        let Some(mut cursor) = self.cursors.remove(at) else { return Vec::new() };
        let changes = self.pass(&mut cursor, visits);
        if !cursor.is_finished() {
            self.cursors.insert(at, cursor);
        } else if cursor.purpose != Purpose::Resync {
            self.waiting.set_delivered(cursor.newer());
            self.catch_up();
        }
        changes
    }

    /// As [`Self::pass_at`], for a cursor outside the backlog.
    pub(super) fn pass(&mut self, cursor: &mut Cursor<S>, visits: usize) -> Vec<Change<S>> {
        let from = cursor.place().cloned();
        let passed = cursor.pass(visits);
        let changes = match cursor.purpose {
            Purpose::Resync => self.resynced(cursor, passed),
            Purpose::List(cause) => self.listed(cursor, from.as_ref(), passed, cause),
        };
        if !self.waiting.is_every() {
            for change in &changes {
                let others = self.cursors.iter_mut().filter(|other| !other.covers(change.key()));
                others.for_each(|other| other.count(change));
            }
        }
        let Some(filtering) = &self.filter else { return changes };
        let filter = Arc::clone(&filtering.filter);
        let count = changes.len();
        let asked: Vec<Change<S>> = changes
            .iter()
            .filter_map(|change| match filter.judge(change) {
                Judged::As(judged) => Some(judged.into_owned()),
                Judged::Unasked | Judged::Nothing => None,
            })
            .collect();
        self.count_filtered((count - asked.len()) as u64);
        asked
    }

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
        let mut changes: Vec<Change<S>> = plain.map(|difference| change_of(difference, cause)).collect();
        for brief in briefs {
            let key = brief.deleted.key().clone();
            let gone = cursor.older().get(&key).map(|old| Difference::Deleted(old.clone()));
            let there = cursor.newer().get(&key).map(|new| Difference::Added(new.clone()));
            changes.extend(gone.map(|difference| change_of(difference, cause)));
            changes.extend(brief.into_changes());
            changes.extend(there.map(|difference| change_of(difference, cause)));
        }
        changes
    }

    /// Only for objects that are still the same and for which nothing else waits.
    fn resynced(&self, cursor: &Cursor<S>, passed: Vec<Difference<S>>) -> Vec<Change<S>> {
        let since = DiffCursor::new(cursor.newer().clone(), self.newest.clone());
        let is_pending =
            |key: &_| self.waiting.contains(key) || self.cursors.iter().any(|cursor| cursor.will_give(key));
        let is_every = self.waiting.is_every();
        let objects = passed.into_iter().filter_map(|difference| match difference {
            Difference::Added(object) => Some(object),
            _ => None,
        });
        let same = objects.filter(|object| {
            let key = object.key();
            since.at(key).is_empty() && (is_every || !is_pending(key))
        });
        same.map(|object| Change::Updated { old: object.clone(), object, cause: Cause::Resync }).collect()
    }

    /// First lists, one per source, do not count. Where the subscription would end, only lists count that are known
    /// to have events.
    pub(super) fn has_too_many_lists(&self) -> bool {
        let Waiting::Every(line) = &self.waiting else { return false };
        let restates = line.when_full == WhenFull::Restate;
        let counts = |cursor: &&Cursor<S>| cursor.is_later_list() && (restates || cursor.has_events);
        self.cursors.len() > CURSORS && self.cursors.iter().filter(counts).count() > CURSORS
    }

    /// A restatement keeps a cursor that has begun, because it ends in a known state, or a first initial list.
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
        // The number of a list's events is not known: at least one.
        let least = |cursor: &Cursor<S>| cursor.remaining().max(usize::from(cursor.has_events));
        let remaining: usize = self.cursors.iter().map(least).sum();
        self.counters.dropped += lost + (line.len() + remaining) as u64;
        line.clear();
        self.cursors.clear();
        if line.when_full == WhenFull::Disconnect {
            self.counters.dropped += std::mem::take(&mut self.ready).len() as u64;
            line.is_closed = true;
            return;
        }
        let from = kept.as_ref().map_or_else(|| line.delivered_state(), |cursor| cursor.newer().clone());
        self.resync_until =
            kept.as_ref().filter(|kept| kept.purpose == Purpose::Resync).map_or(0, |kept| kept.arrival);
        self.cursors.extend(kept);
        let gap = Cursor::new(Purpose::List(Cause::Relist), (from, snapshot.clone()), (None, None));
        self.push_cursor(gap);
        if let Some(initial) = &mut self.initial {
            initial.until = self.arrivals;
        }
    }
}

// Nothing is counted that would need a walk: see `BacklogStats::depth`.

impl<S> Backlog<S> {
    /// The numbers. It walks nothing but what is ready to be delivered: at most what one publish brought.
    pub fn stats(&self) -> BacklogStats {
        let oldest = self.oldest();
        let (events, bytes) = match &self.waiting {
            Waiting::Coalesced { pending, .. } => (pending.as_ref().map_or(0, |pending| pending.events()), 0),
            Waiting::Every(line) => (line.len(), line.bytes),
            Waiting::Keys(keys) => (keys.len(), 0),
        };
        BacklogStats {
            depth: self.depth(),
            events: self.ready.len() + events,
            cursors: self.cursors.len(),
            coalesced: self.counters.coalesced,
            dropped: self.counters.dropped,
            filtered: self.filter.as_ref().map_or(0, |filtering| filtering.dropped),
            bytes,
            delivered: self.counters.delivered,
            impossible: self.counters.impossible,
            oldest: oldest.map(|(arrival, _)| arrival),
            oldest_since: oldest.map(|(_, since)| since),
        }
    }

    /// Keys with something that waits, each once; under `Every` the events that wait.
    fn depth(&self) -> usize {
        let remaining = self.cursors.iter().map(Cursor::remaining);
        if self.waiting.is_every() {
            return self.ready.len() + self.waiting.len() + remaining.sum::<usize>();
        }
        let (written, ahead) = (self.ready_keys() + self.waiting.len(), remaining.max().unwrap_or(0));
        match self.cursors.front() {
            // What is written out lies behind the cursor.
            Some(only) if self.cursors.len() == 1 && only.is_alone && only.purpose != Purpose::Resync => {
                written + ahead
            }
            // The cursors and the rest may have keys in common.
            _ => written.max(ahead),
        }
    }

    fn ready_keys(&self) -> usize {
        if self.ready.len() < 2 {
            return self.ready.len();
        }
        let mut keys: Vec<_> = self.ready.iter().map(|(_, _, change)| change.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }
}
