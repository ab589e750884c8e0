//! The watchdog: detects a blocked arbiter, and a pipeline without progress.
//!
//! A thread outside all arbiters checks heartbeats and progress each second. It logs what is stuck, and shows it in
//! the status of the informers concerned; it cannot end a blocked thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use informer_core::restart::StallWatch;

use super::{ArbiterHandle, Clock, RuntimeError, Stuck, StuckKind};
use crate::runtime::locked::locked;
use crate::runtime::progress::Progress;

/// Heartbeats come each second.
const STUCK_AFTER: Duration = Duration::from_secs(2);

const ROUND: Duration = Duration::from_secs(1);

const LOG_EVERY: Duration = Duration::from_secs(600);

const BLOCKING_CLOSURE: &str =
    "a closure that blocks belongs in Subscriber::blocking, which gives it a thread of its own";

const BLOCKING_PIPELINE: &str = "what an informer calls itself (an index, a filter, a source) must not block";

/// False when the informer has stopped.
pub(crate) type Shown = Box<dyn Fn(Option<&Stuck>) -> bool + Send>;

pub(crate) struct Watchdog(Option<Thread>);

struct Thread {
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

/// The first arbiter is that of the pipeline.
pub(crate) struct Watched {
    informer: Arc<str>,
    arbiters: [ArbiterHandle; 2],
    progress: Arc<Progress>,
    stall: StallWatch,
    logged_at: Option<Duration>,
    shown: Shown,
}

struct WatchedArbiter {
    arbiter: ArbiterHandle,
    advice: &'static str,
    logged_at: Option<Duration>,
}

impl Watchdog {
    pub(super) fn thread(
        name: &str,
        clock: Clock,
        (pipelines, callbacks): (&[ArbiterHandle], &ArbiterHandle),
    ) -> Result<Self, RuntimeError> {
        let name = format!("{name}-watchdog");
        let shared = Shared::new(clock);
        let arbiters = WatchedArbiter::all(pipelines, callbacks);
        let watching = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || watching.watch(arbiters));
        let thread = thread.map_err(|source| RuntimeError::Thread { name, source })?;
        Ok(Self(Some(Thread { shared, thread: Mutex::new(Some(thread)) })))
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// It looks while the returned future runs.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn here(
        clock: Clock,
        (pipelines, callbacks): (&[ArbiterHandle], &ArbiterHandle),
    ) -> (Self, impl Future<Output = ()> + 'static) {
        let shared = Shared::new(clock);
        let (mut arbiters, watching) = (WatchedArbiter::all(pipelines, callbacks), Arc::clone(&shared));
        let look = async move {
            while !watching.state().closed {
                tokio::time::sleep(ROUND).await;
                watching.look(&mut arbiters);
            }
        };
        (Self(Some(Thread { shared, thread: Mutex::new(None) })), look)
    }

    pub(crate) fn watch(&self, informer: Watched) {
        if let Some(Thread { shared, .. }) = &self.0 {
            shared.state().watched.push(informer);
        }
    }

    pub(super) fn end(&self) {
        if let Some(Thread { shared, .. }) = &self.0 {
            shared.state().closed = true;
            shared.wake.notify_all();
        }
    }

    /// Takes as long as one look.
    pub(super) fn close(&self) {
        self.end();
        let Some(Thread { thread, .. }) = &self.0 else { return };
        if let Some(thread) = locked(thread).take() {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self { clock, state: Mutex::default(), wake: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn watch(&self, mut arbiters: Vec<WatchedArbiter>) {
        loop {
            let state = self.state();
            let open = |state: &mut State| !state.closed;
            let (state, _timed_out) =
                self.wake.wait_timeout_while(state, ROUND, open).unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return;
            }
            drop(state);
            self.look(&mut arbiters);
        }
    }

    /// Without the lock: a status update wakes tasks.
    fn look(&self, arbiters: &mut [WatchedArbiter]) {
        let now = self.clock.now();
        arbiters.iter_mut().for_each(|arbiter| arbiter.look(now));
        let mut watched = std::mem::take(&mut self.state().watched);
        watched.retain_mut(|informer| informer.look(now));
        self.state().watched.append(&mut watched);
    }
}

impl Watched {
    pub(crate) fn new(
        informer: Arc<str>,
        arbiters: [ArbiterHandle; 2],
        progress: Arc<Progress>,
        shown: Shown,
    ) -> Self {
        Self { informer, arbiters, progress, stall: StallWatch::new(), logged_at: None, shown }
    }

    /// False when the informer is no longer watched.
    fn look(&mut self, now: Duration) -> bool {
        let stalled = self.stalled(now);
        if let Some(stalled) = stalled.as_ref().filter(|_| is_due(self.logged_at, now)) {
            let (arbiter, actor) = (&stalled.arbiter, stalled.actor.as_deref().unwrap_or("unknown"));
            let silent_for = now.saturating_sub(stalled.since);
            tracing::error!(
                target: "actix_informer::runtime",
                informer = %self.informer,
                actor,
                %arbiter,
                ?silent_for,
                "an actor makes no progress although there is work: the informer's store is out of date until the \
                 informer is started anew",
            );
            self.logged_at = Some(now);
        }
        (self.shown)(self.arbiters.iter().find_map(stuck).or(stalled).as_ref())
    }

    fn stalled(&mut self, now: Duration) -> Option<Stuck> {
        let arbiter = &self.arbiters[0];
        let turn = u64::try_from(arbiter.last_pulse().as_millis()).unwrap_or(u64::MAX);
        let since = self.stall.observe(now, self.progress.sample(turn))?;
        let actor = format!("{}/{}", self.informer, self.progress.stalled_actor());
        let kind = StuckKind::NoProgress;
        Some(Stuck { kind, arbiter: arbiter.name().into(), actor: Some(actor.into()), since })
    }
}

impl WatchedArbiter {
    fn all(pipelines: &[ArbiterHandle], callbacks: &ArbiterHandle) -> Vec<Self> {
        let pipelines = pipelines.iter().map(|arbiter| (arbiter.clone(), BLOCKING_PIPELINE));
        let arbiters = pipelines.chain([(callbacks.clone(), BLOCKING_CLOSURE)]);
        arbiters.map(|(arbiter, advice)| Self { arbiter, advice, logged_at: None }).collect()
    }

    fn look(&mut self, now: Duration) {
        match stuck(&self.arbiter) {
            Some(stuck) if is_due(self.logged_at, now) => {
                let Stuck { arbiter, actor, since, .. } = stuck;
                let (actor, silent_for) = (actor.as_deref().unwrap_or("unknown"), now.saturating_sub(since));
                let advice = self.advice;
                tracing::error!(target: "actix_informer::runtime", %arbiter, actor, ?silent_for, "the arbiter {arbiter} is blocked by {actor}: nothing else on it can run until the blocking code returns; {advice}");
                self.logged_at = Some(now);
            }
            _ => {}
        }
    }
}

fn is_due(logged_at: Option<Duration>, now: Duration) -> bool {
    logged_at.is_none_or(|logged_at| now.saturating_sub(logged_at) >= LOG_EVERY)
}

fn stuck(arbiter: &ArbiterHandle) -> Option<Stuck> {
    let is_stuck = arbiter.since_pulse() >= STUCK_AFTER && !arbiter.is_over();
    is_stuck.then(|| arbiter.blocked())
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
