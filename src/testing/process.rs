//! A process of a world: a program with a runtime and a client of its own, which can be killed, stopped and started again.
//!
//! 1. A crash takes away all that the program has in memory; what it has asked of the server takes effect.
//! 2. Everything spawned with `actix_rt::spawn` or `tokio::task::spawn_local`, and all actors, run only while the process does. A
//!    crash drops them at once, where they wait.
//! 3. A task of `tokio::spawn` outlives a crash, as tokio has no other place for it, and reaches the server no more.
//! 4. All runs in a span `process` with its name, so that a test can tell its logs.
//! 5. A program that fails or panics is started again after [`START_AGAIN_AFTER`]; one that returns is not.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use informer_actors::runtime::Runtime;
use informer_operator::report::Reporting;
use tokio::sync::Notify;
use tokio::task::{JoinError, LocalSet};

use super::network::Network;
use super::trace::What;
use crate::client::Client;
use crate::status::SourceState;

/// The first wait of a kubelet.
const START_AGAIN_AFTER: Duration = Duration::from_secs(10);

type BoxError = Box<dyn std::error::Error>;
type Program = Rc<dyn Fn(Host) -> LocalBoxFuture<'static, Result<(), BoxError>>>;

/// What a program finds where it runs: one per start of a process. Cloning copies pointers.
#[derive(Clone)]
pub struct Host {
    name: Arc<str>,
    runtime: Runtime,
    client: Client,
    stopping: Arc<Stopping>,
}

#[derive(Default)]
struct Stopping {
    is_asked: AtomicBool,
    asked: Notify,
}

impl Host {
    /// The name of the process.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The runtime for informers, queues and controllers of this process. It ends with the process.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The client of the world's server. Its requests meet the delays and faults of the world.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Waits until the process is asked to stop by [`Process::stop`], as by SIGTERM.
    pub async fn stopping(&self) {
        while !self.stopping.is_asked.load(Ordering::Relaxed) {
            self.stopping.asked.notified().await;
        }
    }
}

informer_core::debug_as!(Host, self, name = self.name);

/// A process of a world, made by `World::start`. Cloning copies a pointer; dropping it ends nothing.
#[derive(Clone)]
pub struct Process(Rc<Shared>);

struct Shared {
    name: Arc<str>,
    seed: u64,
    base: Runtime,
    network: Rc<Network>,
    program: RefCell<Option<Program>>,
    state: RefCell<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    wanted: bool,
    frozen: bool,
    crashes: bool,
    running: bool,
    starts: u32,
    /// Calls of kill, start, stop, freeze and thaw.
    orders: u64,
    last_end: Option<String>,
    stopping: Option<Arc<Stopping>>,
    /// While the program runs.
    runtime: Option<Runtime>,
    /// Woken by changes from outside.
    waker: Option<Waker>,
}

/// Still to do.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Keys of work queues that wait or are worked on.
    pub(super) to_do: usize,
    /// Keys that have failed and are delayed.
    pub(super) retrying: usize,
    /// Why it does not see yet what is stored: the first source of a cache that is behind, or that it does not run.
    pub(super) behind: Option<String>,
}

/// A source that is refused is not behind: it may never see what is stored.
fn is_behind(state: &SourceState) -> bool {
    matches!(state, SourceState::Starting | SourceState::Listing { .. } | SourceState::Backoff { .. })
}

enum Exit {
    Crashed,
    Returned,
    Failed(String),
}

impl Process {
    /// Kills it, as SIGKILL and a power cut do: all of it is gone at once, wherever it is. Requests that it has sent take
    /// effect. It stays down until [`Self::start`].
    pub fn crash(&self) {
        let mut state = self.0.change();
        state.wanted = false;
        state.crashes = state.running;
    }

    /// Starts the same program again, with an empty memory. Does nothing if it runs.
    pub fn start(&self) {
        self.0.change().wanted = true;
    }

    /// Asks it to stop, as SIGTERM does: [`Host::stopping`] returns in it. At the limit it is killed. Whether it ended by
    /// itself.
    pub async fn stop(&self, limit: Duration) -> bool {
        let stopping = {
            let mut state = self.0.change();
            state.wanted = false;
            state.stopping.clone()
        };
        let Some(stopping) = stopping else { return true };
        stopping.is_asked.store(true, Ordering::Relaxed);
        stopping.asked.notify_waiters();
        let in_time = tokio::time::timeout(limit, self.ended()).await.is_ok();
        if !in_time {
            self.crash();
            self.ended().await;
        }
        in_time
    }

    async fn ended(&self) {
        while self.is_running() {
            self.0.ended.notified().await;
        }
    }

    /// Nothing of it runs until [`Self::thaw`], as after SIGSTOP. Time goes on, and requests that it has sent take effect.
    pub fn freeze(&self) {
        self.0.change().frozen = true;
    }

    /// It goes on where it was.
    pub fn thaw(&self) {
        self.0.change().frozen = false;
    }

    /// While its program runs.
    pub(super) fn runtime(&self) -> Option<Runtime> {
        self.0.state().runtime.clone()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether its program runs, or is frozen.
    pub fn is_running(&self) -> bool {
        self.0.state().running
    }

    /// How often its program was started.
    pub fn starts(&self) -> u32 {
        self.0.state().starts
    }

    /// How its program ended last; none if it never did.
    pub fn last_end(&self) -> Option<String> {
        self.0.state().last_end.clone()
    }

    /// Nothing while it is meant to be down.
    pub(super) fn work(&self) -> Work {
        let (runtime, wanted) = {
            let state = self.0.state();
            (state.runtime.clone(), state.wanted)
        };
        let Some(report) = runtime.map(|runtime| runtime.report()) else {
            let behind = wanted.then(|| format!("{} is about to start", self.name()));
            return Work { behind, ..Work::default() };
        };
        let mut work = Work::default();
        for figures in report.work_queues.iter().map(|queue| queue.figures) {
            work.to_do += figures.depth.iter().sum::<usize>() + figures.processing;
            work.retrying += figures.retrying;
        }
        let sources = report.informers.iter().flat_map(|informer| &informer.status.sources);
        let behind = sources.filter(|source| is_behind(&source.state));
        let mut behind =
            behind.map(|source| format!("{} has {}: {}", self.name(), source.source, source.state));
        work.behind = behind.next();
        work
    }

    /// Starts its program, too.
    pub(super) fn spawn<F>(
        name: &str,
        (base, network, seed): (Runtime, Rc<Network>, u64),
        program: impl Fn(Host) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + 'static,
    {
        let program: Program = Rc::new(move |host| program(host).boxed_local());
        let state = RefCell::new(State { wanted: true, ..State::default() });
        let program = RefCell::new(Some(program));
        let (name, ended) = (name.into(), Notify::new());
        let shared = Rc::new(Shared { name, seed, base, network, program, state, ended });
        actix_rt::spawn(run(Rc::clone(&shared)));
        Self(shared)
    }

    /// The number of orders; and whether it is meant to run, and is not frozen.
    pub(super) fn orders(&self) -> (u64, bool) {
        let state = self.0.state.borrow();
        (state.orders, state.wanted && !state.frozen)
    }

    /// Ends it permanently, and drops what the program has captured.
    pub(super) fn discard(&self) {
        self.crash();
        let program = self.0.program.borrow_mut().take();
        drop(program);
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state();
        let doing = match (state.running, state.frozen) {
            (true, true) => "is frozen",
            (true, false) => "runs",
            (false, _) => "is down",
        };
        write!(f, "{} {doing}, started {} times", self.0.name, state.starts)?;
        state.last_end.as_ref().map_or(Ok(()), |end| write!(f, "; last time it {end}"))
    }
}

impl Shared {
    fn state(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    /// Counts as an order, and wakes the process.
    fn change(&self) -> RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        state.orders += 1;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        state
    }

    fn note(&self, text: impl Into<String>) {
        self.network.note(&self.name, What::Happened(text.into()));
    }

    async fn wanted(&self) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            state.waker = Some(context.waker().clone());
            if state.wanted { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Whenever the program is wanted, until the world ends.
async fn run(shared: Rc<Shared>) {
    loop {
        shared.wanted().await;
        let Some(program) = shared.program.borrow().clone() else { return };
        let exit = once(&shared, program).await;
        let (returned, failed) = (matches!(exit, Exit::Returned), matches!(exit, Exit::Failed(_)));
        let end = match exit {
            Exit::Crashed => "was killed".to_owned(),
            Exit::Returned => "returned".to_owned(),
            Exit::Failed(why) => why,
        };
        shared.note(end.clone());
        {
            let mut state = shared.state.borrow_mut();
            (state.running, state.crashes, state.last_end) = (false, false, Some(end));
            state.wanted &= !returned;
        }
        shared.ended.notify_waiters();
        if failed {
            tokio::time::sleep(START_AGAIN_AFTER).await;
        }
    }
}

/// Until the program ends or is killed.
async fn once(shared: &Rc<Shared>, program: Program) -> Exit {
    let stopping = Arc::new(Stopping::default());
    let link = shared.network.link(&shared.name, true);
    let starts = {
        let mut state = shared.state.borrow_mut();
        (state.running, state.starts, state.stopping) = (true, state.starts + 1, Some(Arc::clone(&stopping)));
        state.starts
    };
    shared.note("starts");
    let mut local = LocalSet::new();
    let (seed, service) = (shared.seed.wrapping_add(u64::from(starts)), link.service());
    let started = Rc::clone(shared);
    let mut main = local.spawn_local(async move {
        let (name, runtime) = (Arc::clone(&started.name), started.base.simulate_another(seed));
        started.state.borrow_mut().runtime = Some(runtime.clone());
        let client = Client::in_process(&runtime, service);
        program(Host { name, runtime, client, stopping }).await
    });
    let span = tracing::info_span!(target: "actix_informer::testing", "process", name = &*shared.name, start = starts);
    let exit = poll_fn(|context| {
        let _within = span.enter();
        {
            let mut state = shared.state.borrow_mut();
            state.waker = Some(context.waker().clone());
            if state.crashes {
                return Poll::Ready(Exit::Crashed);
            }
            if state.frozen {
                return Poll::Pending;
            }
        }
        // Runs its tasks; those that are left at its end are dropped with `local`.
        let _all_is_done = Pin::new(&mut local).poll(context);
        Pin::new(&mut main).poll(context).map(exit_of)
    });
    let exit = exit.await;
    link.cut();
    let runtime = {
        let mut state = shared.state.borrow_mut();
        state.stopping = None;
        state.runtime.take()
    };
    drop((local, runtime));
    exit
}

fn exit_of(end: Result<Result<(), BoxError>, JoinError>) -> Exit {
    match end {
        Ok(Ok(())) => Exit::Returned,
        Ok(Err(error)) => Exit::Failed(format!("failed: {error}")),
        Err(panicked) => Exit::Failed(format!("panicked: {panicked}")),
    }
}
