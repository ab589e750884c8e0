//! Series of events.k8s.io: when their repeats are told, and when a series is over.
//!
//! Answers "which series has to be looked at now?". Invariants:
//! 1. An event to which no repeat has come for the idle time is forgotten; what was not told of it is told before.
//! 2. A series that goes on is told each time the heartbeat has passed since it was told last.
//! 3. Each known event of a series has one timer. It may ring early, and is then set anew.
//!
//! Read next: `sending.rs`.

use std::sync::Arc;
use std::time::Duration;

use super::record::{Record, State};
use super::{At, DropReason, Recorder, RecorderConfig, Repeats};

/// How many timers are handled in one call.
const MOST_DUE: usize = 256;

/// When a series for which there is no room is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

impl Recorder {
    /// Handles the timers that are due. A closed recorder has told all of each series already.
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

    /// What follows for one event; when to look again if it is still known.
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

    /// An idle record that gives way to a new one: what was not told of it is told, if there is room for both.
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

    /// Lets each series wait of which something was not told.
    pub(super) fn tell_all(&mut self) {
        let untold = |(_, record): &(&u64, &Record)| record.is_idle() && record.untold() > 0;
        let untold: Vec<u64> = self.records.iter().filter(untold).map(|(id, _)| *id).collect();
        untold.into_iter().for_each(|id| self.enqueue(id));
    }
}

/// When something follows for this event, if no repeat comes.
fn due(record: &Record, config: &RecorderConfig) -> Duration {
    let over = record.seen.saturating_add(config.idle);
    match record.told {
        Some(told) if record.untold() > 0 => over.min(told.at.saturating_add(config.heartbeat)),
        _ => over,
    }
}
