//! What goes wrong in a world: outages, lost answers, expired watches, conflicts, crashes.
//!
//! Answers "what can break, and what breaks next?". Each is something that users of real clusters have seen; a correct
//! operator survives all of them. Invariants:
//! 1. What is drawn depends on the seed alone.
//! 2. Each incident is over by itself: afterwards the server answers, and each process runs that ran before.
//!
//! Read next: `world.rs`, whose `cause` and `disturb` carry them out.

use std::time::Duration;

use super::weather::Weather;

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
    /// Draws one for a world with this many processes.
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
            // Crashes are what operators bear worst: some last moments, some long.
            _ => Self::Crash(process, [time, Duration::from_millis(1)][weather.below(2)]),
        }
    }
}
