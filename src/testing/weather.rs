//! How long a request is on its way, and what befalls it there, drawn from the seed.
//!
//! Answers "does this request arrive, and does its answer?". It decides only; the network waits and sends. Invariants:
//! 1. Requests of one world draw one after the other from one stream of numbers.
//! 2. A counted fault befalls as many requests as it was set for, and no watch that is already open.

use std::time::Duration;

use informer_actors::testing::RandomNumbers;

/// One watch in this many pieces is late by [`LATE`] times the usual lag: caches are stale.
const LATE_ONE_IN: usize = 16;
const LATE: u32 = 20;

/// The delays and faults of the network of one world.
#[derive(Debug)]
pub(super) struct Weather {
    dice: RandomNumbers,
    /// The longest time in one direction.
    pub(super) latency: Duration,
    /// The longest usual time from the server to a watcher.
    pub(super) watch_lag: Duration,
    /// How many of the next requests are lost before they take effect.
    pub(super) lose_requests: u32,
    /// How many of the next answers are lost.
    pub(super) lose_answers: u32,
    /// How many of the next requests are refused, and with which code.
    pub(super) refuse: (u32, u16),
    /// How many of the next updates meet a newer version.
    pub(super) conflicts: u32,
    /// How many of the next requests are slow, and by how much at most.
    pub(super) slow: (u32, Duration),
}

/// What befalls a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    /// Its connection breaks before it takes effect.
    Lost,
    /// It takes effect, and its connection breaks before the answer.
    AnswerLost,
    /// It is refused with this code.
    Refused(u16),
    /// Somebody else changes the object first.
    Overtaken,
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Journey {
    pub(super) fate: Fate,
    pub(super) there: Duration,
    pub(super) back: Duration,
}

impl Weather {
    pub(super) fn new(seed: u64, latency: Duration, watch_lag: Duration) -> Self {
        Self {
            dice: RandomNumbers::new(seed, u64::MAX - 1),
            latency,
            watch_lag,
            lose_requests: 0,
            lose_answers: 0,
            refuse: (0, 503),
            conflicts: 0,
            slow: (0, Duration::ZERO),
        }
    }

    /// Draws a number below `bound`, which is not zero.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((self.dice.draw() * bound as f64) as usize).min(bound - 1)
    }

    /// Draws a duration of whole milliseconds, at most so long.
    pub(super) fn up_to(&mut self, longest: Duration) -> Duration {
        let most = usize::try_from(longest.as_millis()).unwrap_or(usize::MAX - 1);
        Duration::from_millis(self.below(most + 1) as u64)
    }

    /// What befalls the next request; `updates` says whether it changes an object that is there.
    pub(super) fn journey(&mut self, updates: bool) -> Journey {
        let (mut there, back) = (self.up_to(self.latency), self.up_to(self.latency));
        if take(&mut self.slow.0) {
            there += self.up_to(self.slow.1);
        }
        let fate = if take(&mut self.lose_requests) {
            Fate::Lost
        } else if take(&mut self.lose_answers) {
            Fate::AnswerLost
        } else if take(&mut self.refuse.0) {
            Fate::Refused(self.refuse.1)
        } else if updates && take(&mut self.conflicts) {
            Fate::Overtaken
        } else {
            Fate::Fine
        };
        Journey { fate, there, back }
    }

    /// How long the next piece of a watch is on its way.
    pub(super) fn lag(&mut self) -> Duration {
        let late = self.below(LATE_ONE_IN) == 0;
        let longest = if late { self.watch_lag.saturating_mul(LATE) } else { self.watch_lag };
        self.up_to(longest)
    }

    /// No fault befalls requests from here on.
    pub(super) fn clear(&mut self) {
        (self.lose_requests, self.lose_answers, self.conflicts) = (0, 0, 0);
        (self.refuse.0, self.slow.0) = (0, 0);
    }
}

/// Counts down; whether there was something left.
fn take(left: &mut u32) -> bool {
    let some = *left > 0;
    *left = left.saturating_sub(1);
    some
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_counted_fault_befalls_as_many_requests_and_a_conflict_only_updates() {
        let mut weather = Weather::new(1, 10 * MS, MS);
        (weather.lose_requests, weather.lose_answers, weather.refuse, weather.conflicts) =
            (1, 1, (1, 500), 1);
        let fates: Vec<Fate> = [true, true, true, false, true, true]
            .into_iter()
            .map(|updates| weather.journey(updates).fate)
            .collect();
        let expected =
            [Fate::Lost, Fate::AnswerLost, Fate::Refused(500), Fate::Fine, Fate::Overtaken, Fate::Fine];
        assert_eq!(fates, expected);
    }

    #[test]
    fn journeys_take_at_most_the_latency_and_all_lengths_are_drawn() {
        let mut weather = Weather::new(1, 3 * MS, 2 * MS);
        let mut seen = [0; 4];
        for _ in 0..200 {
            let journey = weather.journey(false);
            seen[journey.there.as_millis() as usize] += 1;
            assert!(journey.back <= 3 * MS && weather.lag() <= 2 * MS * LATE);
        }
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
        assert_eq!(Weather::new(1, Duration::ZERO, MS).journey(true).there, Duration::ZERO);
    }
}
