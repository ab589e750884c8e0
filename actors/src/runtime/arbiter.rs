//! One arbiter: a named OS thread with a tokio runtime, on which actors run.
//!
//! This file stops and joins the thread. Jobs start in the order of their hand-over. A job that never starts is
//! dropped, which ends every wait for it. A panic ends only its own job. The heartbeat ("pulse") is younger than two
//! seconds unless something blocks the thread.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::labels::{ActorTurns, Label, Labelled, Labels};
use super::{Clock, RuntimeError, Stuck, StuckKind, drop_payload, panic_text};
use crate::runtime::locked::locked;

type Job = Box<dyn FnOnce() + Send>;

const PULSE: Duration = Duration::from_secs(1);

/// A handle to one arbiter. Cloning copies a pointer.
#[derive(Clone)]
pub struct ArbiterHandle(Arc<Shared>);

struct Shared {
    name: String,
    clock: Clock,
    // Unbounded: one job for each started actor. Locked while a job is sent, so that none arrives after the last look
    // into the inbox.
    jobs: Mutex<Option<mpsc::UnboundedSender<Job>>>,
    stop: CancellationToken,
    ended: CancellationToken,
    pulse: AtomicU64,
    panics: AtomicU64,
    labels: Arc<Labels>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// How an arbiter is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArbiterHealth {
    /// The thread's name.
    pub name: String,
    /// Time since the last heartbeat; above two seconds something blocks the thread.
    pub since_pulse: Duration,
    /// The actor that is being polled now, as `informer/actor`, if any.
    pub running: Option<String>,
    /// How many jobs of this thread have panicked, including those of
    /// [`Runtime::spawn_local`](super::Runtime::spawn_local). Each ended alone. Panics of actors and of
    /// subscribers' closures are not included: the informers count those.
    pub panics: u64,
    /// The 20 actors and closures of this thread that took most of its time, the busiest first.
    pub busiest: Vec<ActorTurns>,
}

impl ArbiterHandle {
    pub(super) fn thread(name: String, clock: Clock) -> Result<Self, RuntimeError> {
        let (handle, inbox) = Self::unstarted(name, clock);
        let shared = Arc::clone(&handle.0);
        let failed = |source| RuntimeError::Thread { name: handle.0.name.clone(), source };
        let tokio_runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let thread = std::thread::Builder::new().name(handle.0.name.clone()).spawn(move || {
            let _ended = shared.ended.clone().drop_guard();
            let mut inbox = inbox;
            let runtime = actix_rt::Runtime::from(tokio_runtime);
            runtime.block_on(work(&shared, &mut inbox));
            drop(runtime);
        });
        let thread = thread.map_err(failed)?;
        *locked(&handle.0.thread) = Some(thread);
        Ok(handle)
    }

    /// The returned future is its work, for the simulation's thread. It writes heartbeats if `watched`.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn here(
        name: &str,
        clock: Clock,
        watched: bool,
    ) -> (Self, impl Future<Output = ()> + 'static) {
        let (handle, inbox) = Self::unstarted(name.to_owned(), clock);
        let shared = Arc::clone(&handle.0);
        let work = async move {
            let _ended = shared.ended.clone().drop_guard();
            let mut inbox = inbox;
            if watched {
                work(&shared, &mut inbox).await;
            } else {
                jobs_until_stop(&shared, &mut inbox).await;
            }
        };
        (handle, work)
    }

    fn unstarted(name: String, clock: Clock) -> (Self, Inbox) {
        let (sender, jobs) = mpsc::unbounded_channel();
        let pulse = AtomicU64::new(millis(clock.now()));
        let labels = Arc::new(Labels::new(clock.clone()));
        let shared = Shared {
            name,
            clock,
            jobs: Mutex::new(Some(sender)),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            pulse,
            panics: AtomicU64::new(0),
            labels,
            thread: Mutex::new(None),
        };
        let shared = Arc::new(shared);
        (Self(Arc::clone(&shared)), Inbox { shared, jobs })
    }

    /// Builds a future on the arbiter and runs it there. After the stop, `make` is dropped instead. A panic
    /// in either ends this job alone.
    pub fn spawn<F>(&self, make: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let shared = Arc::clone(&self.0);
        let job: Job = Box::new(move || match catch_unwind(AssertUnwindSafe(make)) {
            // Not an async block: its state machine would hold the future twice, before and during the await.
            Ok(future) => drop(actix_rt::spawn(AssertUnwindSafe(future).catch_unwind().map(move |done| {
                if let Err(panic) = done {
                    shared.note_panic(panic);
                }
            }))),
            Err(panic) => shared.note_panic(panic),
        });
        let refused = match &*self.0.jobs() {
            Some(jobs) => jobs.send(job).err().map(|refused| refused.0),
            None => Some(job),
        };
        if let Some(job) = refused {
            discard(job);
        }
    }

    /// The stop drops the future also in simulation, where the thread continues.
    pub(super) fn spawn_until_stop<F>(&self, make: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let stop = self.0.stop.clone();
        self.spawn(move || {
            let future = make();
            async move { stop.run_until_cancelled(future).await.unwrap_or_default() }
        });
    }

    /// Registers a label for something that is polled on this thread. The watchdog reads the labels.
    pub fn label(&self, label: Arc<Label>) -> Labelled {
        self.0.labels.add(label)
    }

    pub(super) fn stop(&self) {
        self.0.stop.cancel();
    }

    #[cfg(test)]
    pub(crate) fn end_thread(&self) {
        self.stop();
    }

    pub(super) async fn ended(&self) {
        self.0.ended.cancelled().await;
        let thread = locked(&self.0.thread).take();
        let own = std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != own) {
            // The thread has dropped its runtime: this join blocks for microseconds.
            drop(thread.join());
        }
    }

    /// The clock that all threads of this runtime share.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    pub(super) fn last_pulse(&self) -> Duration {
        Duration::from_millis(self.0.pulse.load(Ordering::Relaxed))
    }

    pub(super) fn since_pulse(&self) -> Duration {
        self.0.clock.now().saturating_sub(self.last_pulse())
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    pub(super) fn blocked(&self) -> Stuck {
        let actor = self.0.labels.running().map(Into::into);
        Stuck { kind: StuckKind::Blocked, arbiter: self.name().into(), actor, since: self.last_pulse() }
    }

    pub(super) fn health(&self) -> ArbiterHealth {
        ArbiterHealth {
            name: self.0.name.clone(),
            since_pulse: self.since_pulse(),
            running: self.0.labels.running(),
            panics: self.0.panics.load(Ordering::Relaxed),
            busiest: self.0.labels.busiest(),
        }
    }
}

impl Shared {
    fn jobs(&self) -> MutexGuard<'_, Option<mpsc::UnboundedSender<Job>>> {
        locked(&self.jobs)
    }

    fn note_panic(&self, panic: Box<dyn Any + Send>) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        let (arbiter, text) = (&self.name, panic_text(&*panic));
        tracing::error!(target: "actix_informer::runtime", %arbiter, panic = text, "a job on the arbiter {arbiter} has panicked and is over; the others go on");
        drop_payload(panic);
    }
}

/// Its drop drops the waiting jobs and refuses later ones.
struct Inbox {
    shared: Arc<Shared>,
    jobs: mpsc::UnboundedReceiver<Job>,
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let sender = self.shared.jobs().take();
        drop(sender);
        while let Ok(job) = self.jobs.try_recv() {
            discard(job);
        }
    }
}

/// The job may own a subscriber's values, whose drop may panic.
fn discard(job: Job) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(move || drop(job))) {
        tracing::error!(
            target: "actix_informer::runtime",
            panic = panic_text(&*panic),
            "a job that was handed over after its thread's end has panicked while it was dropped"
        );
    }
}

informer_core::debug_as!(ArbiterHandle, self, name = self.0.name);

/// The arbiter of one actor. Dropping this ends its thread, except in simulation, where the thread has other
/// work.
pub struct OwnArbiter {
    pub(super) arbiter: ArbiterHandle,
    pub(super) is_shared: bool,
}

impl OwnArbiter {
    /// The thread.
    pub fn handle(&self) -> ArbiterHandle {
        self.arbiter.clone()
    }
}

impl Drop for OwnArbiter {
    fn drop(&mut self) {
        if !self.is_shared {
            self.arbiter.stop();
        }
    }
}

informer_core::debug_as!(OwnArbiter, self, arbiter = self.arbiter);

async fn work(shared: &Arc<Shared>, inbox: &mut Inbox) {
    let pulsing = actix_rt::spawn(pulse(Arc::clone(shared)));
    jobs_until_stop(shared, inbox).await;
    pulsing.abort();
}

async fn jobs_until_stop(shared: &Shared, inbox: &mut Inbox) {
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            job = inbox.jobs.recv() => match job {
                Some(job) => job(),
                None => return,
            },
        }
    }
}

async fn pulse(shared: Arc<Shared>) {
    loop {
        shared.pulse.store(millis(shared.clock.now()), Ordering::Relaxed);
        tokio::time::sleep(PULSE).await;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::informer::Informer;
    use crate::runtime::Runtime;
    use crate::testing::Server;

    /// How many jobs of this runtime's arbiters have panicked.
    fn panics(runtime: &Runtime) -> u64 {
        runtime.arbiters().iter().map(|arbiter| arbiter.panics).sum()
    }

    #[test]
    fn informer_2_a_panic_in_a_job_of_the_callbacks_arbiter_ends_that_job_alone_and_is_counted() {
        const LIMIT: Duration = Duration::from_secs(60);
        let main = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        main.block_on(async {
            let (runtime, server) = (Runtime::threads().start().expect("threads"), Server::<String>::new());
            let connected = server.clone();
            let texts = Informer::builder(&runtime, "texts").source(move || connected.clone());
            let texts = texts.start().expect("the spec is valid");
            let early = texts.for_each(|_| std::future::ready(())).expect("it runs");
            early.synced_within(LIMIT).await.expect("it syncs");
            let never = || -> std::future::Ready<()> { panic!("make panics on purpose") };
            runtime.spawn_local(never);
            runtime.spawn_local(|| async { panic!("the future panics on purpose") });
            let (done, next) = tokio::sync::oneshot::channel();
            runtime.spawn_local(|| async move { assert_eq!(done.send(42), Ok(())) });
            assert_eq!(next.await, Ok(42), "the arbiter runs the next job");
            assert_eq!(panics(&runtime), 2);
            let late = texts.for_each(|_| std::future::ready(())).expect("it runs");
            late.synced_within(LIMIT).await.expect("a new subscription is served");
            assert_eq!(early.ended(), None, "and the earlier one goes on");
            runtime.shutdown(LIMIT).await.expect("nothing blocks it");
        });
    }
}
