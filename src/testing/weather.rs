//! Draws from the seed how long a request is on its way, and what befalls it there.
//!
//! 1. Requests of one world draw one after the other from one stream of numbers.
//! 2. A counted fault befalls as many requests as it was set for, and no watch that is already open.

use std::time::Duration;

use informer_actors::testing::RandomNumbers;

/// One of this many pieces of a watch is late, by up to [`LATE`] times the usual lag: caches are stale.
const LATE_ONE_IN: usize = 16;
const LATE: u32 = 20;

#[derive(Debug)]
pub(super) struct Weather {
    dice: RandomNumbers,
    /// At most, in one direction.
    pub(super) latency: Duration,
    /// At most, from the server to a watcher, unless a piece is late.
    pub(super) watch_lag: Duration,
    /// The next requests that are lost before they take effect.
    pub(super) lose_requests: u32,
    /// The next answers that are lost.
    pub(super) lose_answers: u32,
    /// The next requests that are refused, and the code.
    pub(super) refuse: (u32, u16),
    /// The next updates that meet a newer version.
    pub(super) conflicts: u32,
    /// The next requests that are slow, and by how much at most.
    pub(super) slow: (u32, Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    /// Its connection breaks before it takes effect.
    Lost,
    /// It takes effect; its connection breaks before the answer.
    AnswerLost,
    /// With this code.
    Refused(u16),
    /// Somebody else changes the object first.
    Overtaken,
}

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

    /// `bound` is not zero.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((self.dice.draw() * bound as f64) as usize).min(bound - 1)
    }

    /// In whole milliseconds.
    pub(super) fn up_to(&mut self, longest: Duration) -> Duration {
        let most = usize::try_from(longest.as_millis()).unwrap_or(usize::MAX - 1);
        Duration::from_millis(self.below(most + 1) as u64)
    }

    /// `updates`: it changes an object that exists.
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

    /// Of the next piece of a watch.
    pub(super) fn lag(&mut self) -> Duration {
        let late = self.below(LATE_ONE_IN) == 0;
        let longest = if late { self.watch_lag.saturating_mul(LATE) } else { self.watch_lag };
        self.up_to(longest)
    }

    pub(super) fn clear(&mut self) {
        (self.lose_requests, self.lose_answers, self.conflicts) = (0, 0, 0);
        (self.refuse.0, self.slow.0) = (0, 0);
    }
}

/// Counts down; returns whether something was left.
fn take(left: &mut u32) -> bool {
    let some = *left > 0;
    *left = left.saturating_sub(1);
    some
}

// Incidents that users of real clusters have seen; a correct operator survives all of them.
// 1. What is drawn depends on the seed alone.
// 2. Each incident ends by itself: then the server answers, and each process runs that ran before.

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incident {
    /// The server refuses connections for this time, and resets those that are open.
    ServerDown(Duration),
    /// The server answers nothing for this time: requests wait.
    ServerHangs(Duration),
    /// This many requests of processes are lost before they take effect.
    RequestsLost(u32),
    /// This many requests of processes take effect, and their answers are lost.
    AnswersLost(u32),
    /// This many requests of processes are refused, with this code.
    Refused(u32, u16),
    /// This many requests of processes take longer, each by at most this time.
    Slow(u32, Duration),
    /// Somebody else changes the objects of this many updates just before the update takes effect.
    Conflicts(u32),
    /// All open watches end, and past events are dropped: who watches on from an older version gets 410.
    WatchesExpire,
    /// All open watches end as at their deadline.
    WatchesEnd,
    /// All open watches break in the middle of a line.
    WatchesBreak,
    /// Nothing comes through watches for this time, while requests are answered: caches are stale.
    WatchesFreeze(Duration),
    /// Past events are dropped; open watches go on.
    Compaction,
    /// The process with this number, in the order of their first starts, is killed, and started again after this time. Nothing
    /// happens if it was ended or frozen before; it stays as it is if the test does that meanwhile.
    Crash(usize, Duration),
    /// The process with this number stands still for this time, as after SIGSTOP; as with a crash, the test has precedence.
    Freeze(usize, Duration),
}

impl Incident {
    pub(super) fn draw(weather: &mut Weather, processes: usize) -> Self {
        let kinds = if processes == 0 { 12 } else { 16 };
        let kind = weather.below(kinds);
        let count = 1 + weather.below(4) as u32;
        let time = weather.up_to(Duration::from_secs(40)) + Duration::from_millis(1);
        let process = weather.below(processes.max(1));
        match kind {
            0 => Self::ServerDown(time),
            1 => Self::ServerHangs(time),
            2 => Self::RequestsLost(count),
            3 => Self::AnswersLost(count),
            4 => Self::Refused(count, [500, 503, 504, 429][weather.below(4)]),
            5 => Self::Slow(4 * count, time),
            6 | 7 => Self::Conflicts(count),
            8 => Self::WatchesExpire,
            9 => [Self::WatchesEnd, Self::WatchesBreak][weather.below(2)].clone(),
            10 => Self::WatchesFreeze(time),
            11 => Self::Compaction,
            12 => Self::Freeze(process, time),
            // Operators survive crashes worst: some are long, some last a moment.
            _ => Self::Crash(process, [time, Duration::from_millis(1)][weather.below(2)]),
        }
    }
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
