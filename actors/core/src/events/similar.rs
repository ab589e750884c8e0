//! Events that differ only in their notes: from the tenth on, one event stands for all of them.
//!
//! Answers "is this event told by itself, or together with those like it?". Invariants:
//! 1. Of events that differ only in their notes, and each of which came less than ten minutes after the one before, the
//!    first nine notes have events of their own; all further notes share one.
//! 2. What is kept of a note is a number. Two notes with the same number are taken for one, and only here.
//!
//! client-go forgets any of the notes at the bound, so a known note may be told again by itself or not; here it always is.
//! Read next: `record.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::event::{Identity, digest};
use super::lru::Lru;

/// How many notes of similar events are told by themselves at most, whatever is asked for.
pub(super) const MOST_NOTES: usize = 4_096;

#[derive(Debug, Clone)]
struct Notes {
    own: BTreeSet<u64>,
    last: Duration,
}

/// Which notes were told by themselves.
#[derive(Debug, Clone)]
pub(super) struct Similar {
    groups: Lru<Arc<Identity>, Notes>,
    own_notes: usize,
    within: Duration,
}

impl Similar {
    /// The `combined`th note within this time is the first that shares an event; at most [`MOST_NOTES`] have their own.
    pub(super) fn new(combined: usize, within: Duration, cached: usize) -> Self {
        let own_notes = combined.saturating_sub(1).min(MOST_NOTES);
        Self { groups: Lru::new(cached), own_notes, within }
    }

    /// Whether an event with this note is told together with others. Changes nothing.
    pub(super) fn is_combined(&self, group: &Arc<Identity>, note: &str, now: Duration) -> bool {
        let notes = self.groups.peek(group).filter(|notes| self.is_recent(notes, now));
        match notes {
            Some(notes) => !notes.own.contains(&digest(note)) && notes.own.len() >= self.own_notes,
            None => self.own_notes == 0,
        }
    }

    /// Counts an event.
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
