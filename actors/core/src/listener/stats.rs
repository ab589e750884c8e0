//! The figures of a backlog. Nothing is counted that would need a walk: see `BacklogStats::depth`.

use super::cursor::{Cursor, Purpose};
use super::{Backlog, BacklogStats, Waiting};

impl<S> Backlog<S> {
    pub(super) fn count_filtered(&mut self, changes: u64) {
        if let Some(filtering) = &mut self.filter {
            filtering.dropped += changes;
        }
    }

    /// A dropped change joins an event that waits.
    pub(super) fn uncount_filtered(&mut self) {
        if let Some(filtering) = &mut self.filter {
            filtering.dropped = filtering.dropped.saturating_sub(1);
        }
    }

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

    /// How many keys have something that waits, each counted once; under `Every` how many events wait.
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
