//! Series of events.k8s.io. An event without a repeat for the idle time is forgotten, after its unsent
//! repeats are sent. A series that goes on is sent once each heartbeat.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::event::{Identity, digest};
use super::record::{Record, State};
use super::{At, DropReason, RecorderConfig, RecorderMachine, Repeats};

/// Timers in one call.
const MOST_DUE: usize = 256;

/// For a series whose request waits or is under way, or has no room.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

impl RecorderMachine {
    /// A closed recorder has sent all of each series already.
    pub(super) fn look_at_series(&mut self, at: At) {
        if self.is_closed {
            return;
        }
        for _ in 0..MOST_DUE {
            let Some((due, id)) = self.timers.first().copied() else { return };
            if due > at.moment.now {
                return;
            }
            self.timers.remove(&(due, id));
            let next = self.look_at(id, at);
            self.timers.extend(next.map(|next| (next, id)));
            if let Some(record) = self.records.get_mut(&id) {
                record.timer = next;
            }
        }
    }

    fn look_at(&mut self, id: u64, at: At) -> Option<Duration> {
        let has_room = self.unsent() < self.config.queue;
        let record = self.records.get_mut(&id)?;
        let due = due(record, &self.config);
        if at.moment.now < due {
            return Some(due);
        }
        let (is_idle, is_untold) = (record.state == State::Idle, record.untold() > 0);
        if !is_idle || (is_untold && !has_room) {
            return Some(at.moment.now.saturating_add(LOOK_AGAIN));
        }
        let is_over = at.moment.now >= record.seen.saturating_add(self.config.idle);
        if is_over {
            record.is_known = false;
            let identity = Arc::clone(&record.identity);
            self.known.remove(&identity);
        }
        if is_untold {
            self.enqueue(id);
        } else if is_over {
            self.records.remove(&id);
        }
        (!is_over).then(|| at.moment.now.saturating_add(self.config.idle.min(self.config.heartbeat)))
    }

    /// Its unsent repeats are sent, if there is room for both.
    pub(super) fn forget(&mut self, id: u64, at: At) {
        let has_room = self.unsent() + 1 < self.config.queue;
        let Some(record) = self.records.get_mut(&id) else { return };
        record.is_known = false;
        if let Some(timer) = record.timer.take() {
            self.timers.remove(&(timer, id));
        }
        let is_untold = self.config.repeats == Repeats::Series && record.untold() > 0;
        if is_untold && has_room {
            self.enqueue(id);
            return;
        }
        if is_untold {
            self.figures.drop_one(DropReason::Forgotten);
            self.note_loss(DropReason::Forgotten, "there are too many series of events", at);
        }
        self.records.remove(&id);
    }

    pub(super) fn tell_all(&mut self) {
        let untold = |(_, record): &(&u64, &Record)| record.is_idle() && record.untold() > 0;
        let untold: Vec<u64> = self.records.iter().filter(untold).map(|(id, _)| *id).collect();
        untold.into_iter().for_each(|id| self.enqueue(id));
    }
}

/// If no repeat comes.
fn due(record: &Record, config: &RecorderConfig) -> Duration {
    let over = record.seen.saturating_add(config.idle);
    match record.told {
        Some(told) if record.untold() > 0 => over.min(told.at.saturating_add(config.heartbeat)),
        _ => over,
    }
}

// Events that differ only in their notes: the first nine notes within ten minutes of each other have their
// own events; further ones share one. Two notes with the same digest count as one.
//
// client-go forgets any of the notes at the bound; here a known note is always sent by itself.

/// For any configuration.
pub(super) const MOST_NOTES: usize = 4_096;

#[derive(Debug, Clone)]
struct Notes {
    own: BTreeSet<u64>,
    last: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct Similar {
    groups: Lru<Arc<Identity>, Notes>,
    own_notes: usize,
    within: Duration,
}

impl Similar {
    /// The `combined`th note within this time is the first that shares an event.
    pub(super) fn new(combined: usize, within: Duration, cached: usize) -> Self {
        let own_notes = combined.saturating_sub(1).min(MOST_NOTES);
        Self { groups: Lru::new(cached), own_notes, within }
    }

    pub(super) fn is_combined(&self, group: &Arc<Identity>, note: &str, now: Duration) -> bool {
        let notes = self.groups.peek(group).filter(|notes| self.is_recent(notes, now));
        match notes {
            Some(notes) => !notes.own.contains(&digest(note)) && notes.own.len() >= self.own_notes,
            None => self.own_notes == 0,
        }
    }

    pub(super) fn count(&mut self, group: &Arc<Identity>, note: &str, now: Duration) {
        let within = self.within;
        let is_combined = self.is_combined(group, note, now);
        if self.groups.get(group).is_none() {
            let none = Notes { own: BTreeSet::new(), last: now };
            self.groups.insert(Arc::clone(group), none, |_| true);
        }
        let Some(notes) = self.groups.get(group) else { return };
        if now.saturating_sub(notes.last) >= within {
            notes.own.clear();
        }
        notes.last = now;
        if !is_combined {
            notes.own.insert(digest(note));
        }
    }

    fn is_recent(&self, notes: &Notes, now: Duration) -> bool {
        now.saturating_sub(notes.last) < self.within
    }

    pub(super) fn check(&self) -> bool {
        self.groups.check() && self.groups.values().all(|notes| notes.own.len() <= self.own_notes)
    }
}

// Forgets the least recently used entry that may go, so it exceeds its bound only while none may go. A call
// is O(log n), as long as the oldest entries may go.

#[derive(Debug, Clone)]
pub(super) struct Lru<K, V> {
    entries: BTreeMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
    used: u64,
    most: usize,
}

impl<K: Ord + Clone, V> Lru<K, V> {
    pub(super) const fn new(most: usize) -> Self {
        Self { entries: BTreeMap::new(), order: BTreeMap::new(), used: 0, most }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Counts as no use.
    pub(super) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        let (at, value) = self.entries.get_mut(key)?;
        if let Some(key) = self.order.remove(at) {
            self.used += 1;
            *at = self.used;
            self.order.insert(self.used, key);
        }
        Some(value)
    }

    /// For a new key. Returns what had to go.
    pub(super) fn insert(&mut self, key: K, value: V, may_go: impl Fn(&V) -> bool) -> Option<V> {
        let goes = |key: &&K| self.peek(key).is_some_and(&may_go);
        let oldest = (self.len() >= self.most).then(|| self.order.values().find(goes).cloned());
        let gone = oldest.flatten().and_then(|key| self.remove(&key));
        self.used += 1;
        self.order.insert(self.used, key.clone());
        self.entries.insert(key, (self.used, value));
        gone
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let (at, value) = self.entries.remove(key)?;
        self.order.remove(&at);
        Some(value)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|(_, value)| value)
    }

    pub(super) fn check(&self) -> bool {
        self.entries.len() == self.order.len()
            && self.order.iter().all(|(at, key)| self.entries.get(key).is_some_and(|(used, _)| used == at))
    }
}
