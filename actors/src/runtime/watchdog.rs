//! The watchdog: notices an arbiter that something blocks, which no panic guard sees.
//!
//! Answers "does every arbiter still turn, and who keeps it if not?". A thread of its own, outside all arbiters, looks
//! at their pulses each second, shows a stuck one in the status of the informers that depend on it, and logs it. It
//! ends nothing: a thread that is blocked cannot be ended. In simulation there is none. Invariants:
//! 1. An arbiter without a pulse for [`STUCK_AFTER`] is stuck; arbiter and actor are named.
//! 2. The status changes when an arbiter becomes stuck and when it turns again, and not in between.
//! 3. A stuck arbiter is logged at most once in ten minutes.
//!
//! Read next: `runtime/arbiter.rs`, whose pulse this is.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{ArbiterHandle, Clock, RuntimeError};

/// Pulses come each second; after so long without one, something blocks the thread.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// How often the watchdog looks.
const ROUND: Duration = Duration::from_secs(1);

/// How often one stuck arbiter is logged.
const LOG_EVERY: Duration = Duration::from_secs(600);

/// An arbiter that something blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The thread's name.
    pub arbiter: Arc<str>,
    /// The actor that blocks it, as `informer/actor`, if it is one of ours or runs a subscriber's closure.
    pub actor: Option<Arc<str>>,
    /// When the thread last showed a pulse, as time since the runtime's start.
    pub since: Duration,
}

/// Shows an informer what holds its arbiters; false when it has stopped and need not be told any more.
pub(crate) type Shown = Box<dyn Fn(Option<&Stuck>) -> bool + Send>;

/// The watchdog of one runtime, or none.
pub(crate) struct Watchdog(Option<Kennel>);

struct Kennel {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    clock: Clock,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    watched: Vec<Watched>,
    closed: bool,
}

/// An informer, and the arbiters that it depends on.
struct Watched {
    arbiters: [ArbiterHandle; 2],
    shown: Shown,
}

/// One arbiter, and when it was last logged as stuck.
struct Patient {
    arbiter: ArbiterHandle,
    logged_at: Option<Duration>,
}

impl Watchdog {
    /// Starts the thread that watches these arbiters.
    pub(super) fn thread(
        name: &str,
        clock: Clock,
        arbiters: Vec<ArbiterHandle>,
    ) -> Result<Self, RuntimeError> {
        let name = format!("{name}-watchdog");
        let shared = Arc::new(Shared { clock, state: Mutex::default(), wake: Condvar::new() });
        let patients: Vec<_> =
            arbiters.into_iter().map(|arbiter| Patient { arbiter, logged_at: None }).collect();
        let watching = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || watching.watch(patients));
        let thread = thread.map_err(|source| RuntimeError::Thread { name, source })?;
        Ok(Self(Some(Kennel { shared, thread: Mutex::new(Some(thread)) })))
    }

    /// Nobody watches: on the paused clock of a simulation nothing can be late.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// From now on `shown` is told when one of these arbiters is stuck, and when it turns again.
    pub(crate) fn watch(&self, arbiters: [ArbiterHandle; 2], shown: Shown) {
        if let Some(Kennel { shared, .. }) = &self.0 {
            shared.state().watched.push(Watched { arbiters, shown });
        }
    }

    /// Lets the thread end.
    pub(super) fn end(&self) {
        if let Some(Kennel { shared, .. }) = &self.0 {
            shared.state().closed = true;
            shared.wake.notify_all();
        }
    }

    /// Ends the thread and joins it; that takes as long as one look.
    pub(super) fn close(&self) {
        self.end();
        let Some(Kennel { thread, .. }) = &self.0 else { return };
        if let Some(thread) = thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, mut patients: Vec<Patient>) {
        loop {
            let state = self.state();
            let open = |state: &mut State| !state.closed;
            let (state, _timed_out) =
                self.wake.wait_timeout_while(state, ROUND, open).unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return;
            }
            drop(state);
            let now = self.clock.now();
            patients.iter_mut().for_each(|patient| patient.look(now));
            self.show();
        }
    }

    /// Tells each informer; without the lock, since that wakes whoever waits for the informer's status.
    fn show(&self) {
        let mut watched = std::mem::take(&mut self.state().watched);
        watched.retain(|informer| (informer.shown)(informer.arbiters.iter().find_map(stuck).as_ref()));
        self.state().watched.append(&mut watched);
    }
}

impl Patient {
    fn look(&mut self, now: Duration) {
        match stuck(&self.arbiter) {
            Some(stuck) if is_due(self.logged_at, now) => {
                let Stuck { arbiter, actor, since } = stuck;
                let (actor, silent_for) = (actor.as_deref().unwrap_or("unknown"), now.saturating_sub(since));
                tracing::error!(%arbiter, actor, ?silent_for, "something blocks an arbiter: its actors stand still");
                self.logged_at = Some(now);
            }
            _ => {}
        }
    }
}

/// Whether a log line may be written again.
fn is_due(logged_at: Option<Duration>, now: Duration) -> bool {
    logged_at.is_none_or(|logged_at| now.saturating_sub(logged_at) >= LOG_EVERY)
}

/// What blocks an arbiter, if something does.
fn stuck(arbiter: &ArbiterHandle) -> Option<Stuck> {
    let is_stuck = arbiter.health().since_pulse >= STUCK_AFTER && !arbiter.is_over();
    is_stuck.then(|| arbiter.blocked())
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watchdog(thread)" } else { "Watchdog(none)" })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LOG_EVERY, is_due};

    #[test]
    fn inf_47_a_stuck_arbiter_is_logged_at_once_and_then_at_most_every_ten_minutes() {
        let first = Duration::from_secs(7);
        assert!(is_due(None, first));
        assert!(!is_due(Some(first), first + LOG_EVERY - Duration::from_millis(1)));
        assert!(is_due(Some(first), first + LOG_EVERY));
    }
}
