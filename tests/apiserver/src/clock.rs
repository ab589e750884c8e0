//! The clock of one server: what time stamps show, and when bookmarks, watch timeouts and waits are due.
//!
//! Answers: what time is it here, and how long until then? By default it follows the machine's, and never the clock of
//! the caller's runtime, paused or not. The clock of a server in process follows that of the tokio runtime in which it was
//! started. A test may set either, stop it and move it on.
//! 1. `set` changes what the wall clock shows and nothing else: timers do not jump.
//! 2. `advance` moves the wall clock and all timers together; what falls due meanwhile happens at once.
//! 3. A stopped clock stands still in both respects until `advance` or `resume`.
//!
//! Not governed by it: how long the server waits for a slow client, and faults measured in bytes per second.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::{SignedDuration, Timestamp};
use tokio::runtime::{Handle, TryCurrentError};
use tokio::sync::Notify;

/// The clock of a running server; clones share it.
#[derive(Debug, Clone)]
pub struct Clock {
    followed: Followed,
    shared: Arc<Shared>,
}

/// What clones share. Whoever waits is woken in the order in which they began, in every run.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

/// The clock that this one follows.
#[derive(Debug, Clone)]
enum Followed {
    Machine {
        started: Instant,
    },
    Runtime {
        runtime: Handle,
        started: tokio::time::Instant,
        /// The time of day at the start.
        at: Timestamp,
    },
}

impl Followed {
    fn since_start(&self) -> Duration {
        match self {
            Self::Machine { started } => started.elapsed(),
            Self::Runtime { runtime, started, .. } => {
                // Inside of the runtime its clock is read, outside of it the machine's.
                let _inside = runtime.enter();
                started.elapsed()
            }
        }
    }

    fn timestamp(&self) -> Timestamp {
        match self {
            Self::Machine { .. } => Timestamp::now(),
            Self::Runtime { at, .. } => at.saturating_add(self.since_start()).unwrap_or(Timestamp::MAX),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// How far the wall clock of this server is ahead of the machine's.
    shift: SignedDuration,
    /// How far the timers are ahead of the machine's; negative after a stop.
    ahead: SignedDuration,
    /// The time at which the clock stands still: on the wall, and since the start.
    stopped: Option<(Timestamp, Duration)>,
}

impl Clock {
    /// The clock of this machine, until a test changes it.
    #[expect(clippy::disallowed_methods, reason = "the one place where a server reads the machine's clock")]
    pub(crate) fn real() -> Self {
        Self::following(Followed::Machine { started: Instant::now() })
    }

    /// The clock of the runtime in which this is called, which may be paused. It shows the time of day `at` now.
    ///
    /// # Errors
    /// Outside of a runtime.
    pub(crate) fn of_runtime(at: SystemTime) -> Result<Self, TryCurrentError> {
        let runtime = Handle::try_current()?;
        let started = tokio::time::Instant::now();
        Ok(Self::following(Followed::Runtime { runtime, started, at: timestamp_of(at) }))
    }

    fn following(followed: Followed) -> Self {
        Self { followed, shared: Arc::default() }
    }

    fn state(&self) -> State {
        *self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.changed.notify_waiters();
    }

    /// What the wall clock of this server shows now.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.timestamp().into()
    }

    /// Sets the wall clock: `creationTimestamp` and its like follow. Timers do not jump.
    ///
    /// Times beyond year 9999 or before year -9999 are taken as the nearest time within.
    pub fn set(&self, to: SystemTime) {
        let to = timestamp_of(to);
        self.change(|state| match &mut state.stopped {
            Some((wall, _)) => *wall = to,
            None => state.shift = self.followed.timestamp().duration_until(to),
        });
    }

    /// Moves the clock on: the wall clock, and everything that waits (bookmarks, watch timeouts).
    pub fn advance(&self, by: Duration) {
        let signed = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        self.change(|state| match &mut state.stopped {
            Some((wall, elapsed)) => {
                *wall = wall.saturating_add(signed).unwrap_or(Timestamp::MAX);
                *elapsed = elapsed.saturating_add(by);
            }
            None => {
                state.shift = state.shift.saturating_add(signed);
                state.ahead = state.ahead.saturating_add(signed);
            }
        });
    }

    /// Stops the clock where it is; `advance` still moves it.
    pub fn stop(&self) {
        let at = (self.timestamp(), self.elapsed());
        self.change(|state| state.stopped = state.stopped.or(Some(at)));
    }

    /// Lets a stopped clock go on from where it is.
    pub fn resume(&self) {
        let since = self.since_start();
        self.change(|state| {
            if let Some((wall, elapsed)) = state.stopped.take() {
                state.shift = self.followed.timestamp().duration_until(wall);
                let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
                state.ahead = elapsed.saturating_sub(since);
            }
        });
    }

    /// The wall clock in whole seconds since 1970, as time stamps of the API want it.
    pub(crate) fn seconds(&self) -> i64 {
        self.timestamp().as_second()
    }

    pub(crate) fn timestamp(&self) -> Timestamp {
        let state = self.state();
        match state.stopped {
            Some((wall, _)) => wall,
            None => self.followed.timestamp().saturating_add(state.shift).unwrap_or(Timestamp::MAX),
        }
    }

    /// How long this server has run, by its own clock.
    pub(crate) fn elapsed(&self) -> Duration {
        let state = self.state();
        match state.stopped {
            Some((_, elapsed)) => elapsed,
            None => self.since_start().saturating_add(state.ahead).unsigned_abs(),
        }
    }

    /// Waits until `elapsed` is at least this.
    pub(crate) async fn sleep_until(&self, at: Duration) {
        loop {
            // It hears of each change from here on.
            let changed = self.shared.changed.notified();
            let stopped = self.state().stopped.is_some();
            let left = at.saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            if stopped {
                changed.await;
            } else {
                let _moved_or_due = tokio::time::timeout(left, changed).await;
            }
        }
    }

    fn since_start(&self) -> SignedDuration {
        SignedDuration::try_from(self.followed.since_start()).unwrap_or(SignedDuration::MAX)
    }
}

/// Times beyond what can be written become the nearest one that can.
fn timestamp_of(time: SystemTime) -> Timestamp {
    let late = time >= SystemTime::UNIX_EPOCH;
    Timestamp::try_from(time).unwrap_or(if late { Timestamp::MAX } else { Timestamp::MIN })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_clock_that_is_set_shows_that_time_and_does_not_change_the_timers() {
        let clock = Clock::real();
        clock.stop();
        let before = clock.elapsed();
        clock.set(SystemTime::UNIX_EPOCH + HOUR);
        assert_eq!((clock.seconds(), clock.elapsed()), (3_600, before));
        clock.advance(HOUR);
        assert_eq!((clock.seconds(), clock.elapsed()), (7_200, before + HOUR));
    }

    #[test]
    fn a_stopped_clock_continues_from_where_it_stopped() {
        let clock = Clock::real();
        clock.stop();
        clock.set(SystemTime::UNIX_EPOCH);
        clock.advance(HOUR);
        let (wall, elapsed) = (clock.seconds(), clock.elapsed());
        clock.resume();
        assert!(clock.seconds() >= wall && clock.seconds() < wall + 3_600);
        assert!(clock.elapsed() >= elapsed && clock.elapsed() < elapsed + HOUR);
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_of_a_server_in_process_follows_its_runtime_also_on_other_threads() {
        let clock = Clock::of_runtime(SystemTime::UNIX_EPOCH).unwrap();
        clock.sleep_until(HOUR).await;
        let elsewhere = clock.clone();
        let shown = std::thread::spawn(move || (elsewhere.seconds(), elsewhere.elapsed())).join().unwrap();
        assert_eq!((shown, clock.seconds(), clock.elapsed()), ((3_600, HOUR), 3_600, HOUR));
        clock.advance(HOUR);
        clock.set(SystemTime::UNIX_EPOCH);
        tokio::time::sleep(HOUR).await;
        assert_eq!((clock.seconds(), clock.elapsed()), (3_600, 3 * HOUR));
    }

    #[tokio::test]
    async fn a_wait_ends_when_the_clock_is_moved_past_its_time() {
        let clock = Clock::real();
        clock.stop();
        let due = clock.elapsed() + HOUR;
        let waiting = clock.clone();
        let waiter = tokio::spawn(async move { waiting.sleep_until(due).await });
        tokio::task::yield_now().await;
        clock.advance(HOUR / 2);
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        clock.advance(HOUR);
        waiter.await.unwrap();
    }
}
