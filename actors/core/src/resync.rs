//! The resync clock: when each subscription is due for a resync. Invariants:
//! 1. Each is due at its start plus whole multiples of its own period, however late.
//! 2. Missed times are skipped: a delay of ten periods makes one resync.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::processor::ListenerId;

/// The shortest period: shorter resyncs would only be a load (client-go has the same bound).
pub const MIN_PERIOD: Duration = Duration::from_secs(1);

/// When each subscription that asked for resyncs is due next.
#[derive(Debug, Clone, Default)]
pub struct ResyncClock {
    schedules: BTreeMap<ListenerId, Schedule>,
    by_time: BTreeSet<(Duration, ListenerId)>,
}

#[derive(Debug, Clone, Copy)]
struct Schedule {
    period: Duration,
    due: Duration,
}

impl Schedule {
    /// `None` if time ends before the next due time.
    fn after(self, now: Duration) -> Option<Self> {
        let late = now.saturating_sub(self.due);
        let into_period = Duration::from_nanos_u128(late.as_nanos() % self.period.as_nanos());
        let due = now.checked_add(self.period - into_period)?;
        Some(Self { due, ..self })
    }
}

impl ResyncClock {
    /// No listener is ever due.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `id` due every `period` from `now` on, first one period from now; replaces what it had asked
    /// before. A period below [`MIN_PERIOD`] becomes that.
    pub fn schedule(&mut self, id: ListenerId, period: Duration, now: Duration) {
        self.cancel(id);
        let period = period.max(MIN_PERIOD);
        self.insert(id, Schedule { period, due: now.saturating_add(period) });
    }

    /// `id` is not due any more; nothing happens if it never was.
    pub fn cancel(&mut self, id: ListenerId) {
        if let Some(schedule) = self.schedules.remove(&id) {
            self.by_time.remove(&(schedule.due, id));
        }
    }

    /// When to call [`Self::due`] next; `None` while no listener has asked for resyncs.
    pub fn next_due(&self) -> Option<Duration> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// Who is due at `now`, longest waiting first, equal ones by id; each is rescheduled from its due time.
    pub fn due(&mut self, now: Duration) -> Vec<ListenerId> {
        let mut due = Vec::new();
        while let Some((_, id)) = self.by_time.first().filter(|(time, _)| *time <= now).copied() {
            due.push(id);
            self.by_time.pop_first();
            if let Some(next) = self.schedules.remove(&id).and_then(|schedule| schedule.after(now)) {
                self.insert(id, next);
            }
        }
        due
    }

    fn insert(&mut self, id: ListenerId, schedule: Schedule) {
        self.schedules.insert(id, schedule);
        self.by_time.insert((schedule.due, id));
    }
}

#[cfg(test)]
mod tests;
