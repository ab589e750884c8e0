//! Whether the parts of a recorder fit together.
//!
//! Answers "does each invariant hold?" for tests, and for the actor after a panic. Read next: `events.rs`.

use super::record::State;
use super::{Recorder, Repeats};

impl Recorder {
    /// Tests the invariants.
    ///
    /// # Errors
    /// Names the one that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let is = |id: &u64, wanted: fn(State) -> bool| {
            self.records.get(id).is_some_and(|record| wanted(record.state))
        };
        let count =
            |wanted: fn(State) -> bool| self.records.values().filter(|record| wanted(record.state)).count();
        let waits = |state| state == State::Waiting;
        let flies = |state| matches!(state, State::InFlight { .. });
        let known = self.records.values().filter(|record| record.is_known).count();
        let is_timed = |(_, id): &(_, u64)| self.records.get(id).is_some_and(|record| record.is_known);
        let timers = if self.config.repeats == Repeats::Series { known } else { 0 };
        let rules = [
            (self.lines.ids().all(|id| is(id, waits)), "what waits is marked"),
            (self.in_flight.iter().all(|id| is(id, flies)), "what is in flight is marked"),
            (count(waits) == self.lines.len(), "each waits once"),
            (count(flies) == self.in_flight.len(), "each is in flight once"),
            (self.is_closed || self.unsent() <= self.config.queue, "the queue is bounded"),
            (self.in_flight.len() <= self.config.at_once, "requests are bounded"),
            (self.lines.check(self.in_flight.len()), "the lines of the namespaces are in order"),
            (self.known.len() <= self.config.cached, "what is known is bounded"),
            (known == self.known.len(), "each known event is found"),
            (self.known.values().all(|id| self.records.contains_key(id)), "what is found is there"),
            (self.timers.len() == timers && self.timers.iter().all(is_timed), "each has a timer"),
            (
                self.records.values().all(|record| record.told.is_none_or(|told| told.count <= record.count)),
                "no more is told than was",
            ),
            (
                self.records.values().all(|record| record.is_known || !record.is_idle()),
                "nothing idle is unknown",
            ),
            (self.known.check() && self.objects.check() && self.similar.check(), "the caches are in order"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(rule))
    }
}
