//! A subscriber that receives keys and no objects, as a work queue does. Invariants:
//! 1. Every touched key is delivered afterwards, also if its object was created and deleted before. It waits once.
//! 2. What waits keeps no object alive, except what a cursor pins until it is walked ([`Backlog::must_walk`]).
//! 3. A first list, a late join and a resync cost O(1).

use super::cursor::Cursor;
use super::filter::Judged;
use super::{Backlog, Waiting};
use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;

/// One window of what waits for a subscriber, by its policy.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a subscriber takes objects or keys")]
pub enum Notifications<S> {
    /// Changes of objects.
    Changes(Vec<Change<S>>),
    /// Keys and why each is delivered, under [`super::Policy::Keys`].
    Keys(Vec<(ObjectKey, Cause)>),
    /// No event, but the mark that the initial ones have been handled: to a stream that asks for it, once.
    InitDone,
}

impl<S> Notifications<S> {
    /// The number of events.
    pub const fn len(&self) -> usize {
        match self {
            Self::Changes(changes) => changes.len(),
            Self::Keys(keys) => keys.len(),
            Self::InitDone => 0,
        }
    }

    /// Whether it is empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S> Backlog<S> {
    /// The next window, by the policy: [`Self::take`] or [`Self::take_keys`].
    pub fn next_window(&mut self, max: usize) -> Notifications<S> {
        match self.waiting {
            Waiting::Keys(_) => Notifications::Keys(self.take_keys(max)),
            _ => Notifications::Changes(self.take(max)),
        }
    }

    /// The next keys to deliver, at most `max`, each with its last cause, or with `Rewind`. None under
    /// another policy than [`super::Policy::Keys`]. It visits at most four times as many, so it may return
    /// fewer, or none, while something waits: then call again.
    pub fn take_keys(&mut self, max: usize) -> Vec<(ObjectKey, Cause)> {
        let mut visits = max.saturating_mul(4);
        let mut keys = Vec::new();
        while keys.len() < max && visits > 0 && matches!(self.waiting, Waiting::Keys(_)) {
            let visited = if self.is_cursor_next() { visits.min(max - keys.len()) } else { 1 };
            visits -= visited;
            if self.is_cursor_next() {
                keys.extend(self.pass_keys(visited));
            } else if let Waiting::Keys(waiting) = &mut self.waiting
                && let Some(first) = waiting.take_first()
            {
                keys.push(first);
            } else {
                break;
            }
        }
        self.counters.delivered += keys.len() as u64;
        self.is_under_way |= !keys.is_empty();
        self.latch();
        keys
    }

    fn pass_keys(&mut self, visits: usize) -> Vec<(ObjectKey, Cause)> {
        let mut keys: Vec<(ObjectKey, Cause)> = Vec::new();
        for change in self.pass_at(0, visits) {
            let key = change.key();
            let waits = matches!(&self.waiting, Waiting::Keys(waiting) if waiting.contains(key));
            // A new life makes two changes.
            if !waits && keys.last().is_none_or(|last| last.0 != *key) {
                keys.push((key.clone(), change.cause()));
            }
        }
        keys
    }

    pub(super) fn touch(&mut self, change: &Change<S>, judged: Judged<'_, S>) {
        for cursor in self.cursors.iter_mut().filter(|cursor| !cursor.covers(change.key())) {
            cursor.count(change);
        }
        if let Judged::As(judged) = judged
            && !self.is_sure_of(&judged)
        {
            self.merge(judged.into_owned());
        }
    }

    pub(super) fn await_turn(&mut self, change: &Change<S>) {
        if !self.is_sure_of(change) {
            self.merge(change.clone());
        }
    }

    /// A change that a cursor is sure to deliver is counted as coalesced.
    fn is_sure_of(&mut self, change: &Change<S>) -> bool {
        let key = change.key();
        let is_sure = |cursor: &Cursor<S>| cursor.covers(key) && !cursor.older().contains(key);
        if change.object().is_some() && self.cursors.iter().any(is_sure) {
            self.counters.coalesced += 1;
            return true;
        }
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.covers(key)) {
            cursor.is_alone = false;
        }
        false
    }
}
