//! What runs in the containers of pods: logs, commands and ports, as a kubelet and its container runtime give them.
//!
//! Answers: what does a container of a test print, and what happens if somebody runs a command in it? A test says it;
//! nothing is run. How it reaches a client is in `http/pod_streams.rs` and `kubelet.rs`.
//! 1. A container exists here from the first time it is named. Without any, a pod has no agent: 404 of its node.
//! 2. A log is read as fast as its reader takes it; a log without end is made only as fast.
//! 3. A command ends with its connection.
mod log;
mod program;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::clock::Clock;
pub(crate) use log::{Log, LogOptions};
pub use program::{Heard, Io};
pub(crate) use program::{Program, Running};

/// What runs in the containers of a server's pods. Clones share it.
///
/// Commands that every container has: `echo WORDS`, `warn WORDS` (to stderr), `cat` (input to output), `exit CODE`,
/// `sizes` (each size of the terminal as a line), `yes` (output without end), `sleep` (until the connection ends). Every
/// port answers with what it was sent, unless [`Self::refuse_port`] says otherwise.
///
/// ```
/// use informer_apiserver::ApiServer;
///
/// let server = ApiServer::builder().start_blocking()?;
/// let web = server.agent().container("default", "web", "main");
/// web.log("started");
/// server.agent().command("greet", |mut io| async move {
///     io.print("hello\n").await;
///     0
/// });
/// # Ok::<(), informer_apiserver::StartError>(())
/// ```
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

struct Inner {
    clock: Clock,
    state: Mutex<State>,
    v4_only: AtomicBool,
    running: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    /// By namespace, pod and container.
    containers: BTreeMap<(String, String, String), Logs>,
    commands: BTreeMap<String, Program>,
    refused_ports: BTreeMap<u16, String>,
}

#[derive(Default)]
struct Logs {
    current: Arc<Log>,
    previous: Option<Arc<Log>>,
}

/// One container.
#[derive(Debug, Clone)]
pub struct Container {
    agent: Agent,
    key: (String, String, String),
}

impl Agent {
    pub(crate) fn new(clock: Clock) -> Self {
        let state = Mutex::new(State::default());
        Self(Arc::new(Inner { clock, state, v4_only: AtomicBool::new(false), running: Arc::default() }))
    }

    /// A container of a pod; from now on the pod has an agent. The pod itself is an object of the server: its
    /// `spec.nodeName` must say that it is bound.
    pub fn container(&self, namespace: &str, pod: &str, container: &str) -> Container {
        let key = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        self.state().containers.entry(key.clone()).or_default();
        Container { agent: self.clone(), key }
    }

    /// What a command does, in every container: the function gets its words, input and output, and gives its exit code.
    /// It runs while the connection lives, on the thread that serves it, and must not block.
    pub fn command<F>(&self, name: &str, run: impl Fn(Io) -> F + Send + Sync + 'static)
    where
        F: Future<Output = i32> + 'static,
    {
        let run: Program = Arc::new(move |io| Box::pin(run(io)));
        self.state().commands.insert(name.to_owned(), run);
    }

    /// Refuses connections to this port, in every pod, with this reason.
    pub fn refuse_port(&self, port: u16, reason: &str) {
        self.state().refused_ports.insert(port, reason.to_owned());
    }

    /// Speaks only v4 of the channels, as clusters before 1.30 do.
    pub fn speak_only_v4(&self, only: bool) {
        self.0.v4_only.store(only, Ordering::SeqCst);
    }

    /// How many commands and forwarded connections are open now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.running.load(Ordering::SeqCst)
    }

    pub(crate) fn is_v4_only(&self) -> bool {
        self.0.v4_only.load(Ordering::SeqCst)
    }

    /// Counted as running until it is dropped.
    pub(crate) fn count(&self) -> Running {
        Running::new(&self.0.running)
    }

    pub(crate) fn has_pod(&self, namespace: &str, pod: &str) -> bool {
        self.state().containers.keys().any(|key| (&*key.0, &*key.1) == (namespace, pod))
    }

    /// The log of a container, or of its life before; `None` if there is none.
    pub(crate) fn log_of(&self, key: &(String, String, String), is_previous: bool) -> Option<Arc<Log>> {
        let state = self.state();
        let logs = state.containers.get(key)?;
        if is_previous { logs.previous.clone() } else { Some(Arc::clone(&logs.current)) }
    }

    /// What runs under this name.
    pub(crate) fn program(&self, name: &str) -> Option<Program> {
        self.state().commands.get(name).cloned().or_else(|| program::built_in(name))
    }

    /// Why a port cannot be reached.
    pub(crate) fn refusal_of(&self, port: u16) -> Option<String> {
        self.state().refused_ports.get(&port).cloned()
    }

    /// Seconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.0.clock.seconds()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Container {
    /// Adds a line to the log.
    pub fn log(&self, line: &str) {
        self.current().append(self.agent.now(), Bytes::from(format!("{line}\n")));
    }

    /// Adds bytes to the log as they are.
    pub fn log_bytes(&self, bytes: impl Into<Bytes>) {
        self.current().append(self.agent.now(), bytes.into());
    }

    /// From here on the log has no end: this line again and again, as fast as readers take it, without memory.
    pub fn log_without_end(&self, line: &str) {
        self.current().repeat(Bytes::from(format!("{line}\n")));
    }

    /// How many bytes of the log have been given to readers.
    #[must_use]
    pub fn log_bytes_sent(&self) -> u64 {
        self.current().sent()
    }

    /// How many readers of the log are connected.
    #[must_use]
    pub fn log_readers(&self) -> usize {
        self.current().readers()
    }

    /// The container has ended: who follows its log reaches the end.
    pub fn end(&self) {
        self.current().end();
    }

    /// The container ends and starts again: its log becomes the previous one.
    pub fn restart(&self) {
        self.end();
        let mut state = self.agent.state();
        let logs = state.containers.entry(self.key.clone()).or_default();
        logs.previous = Some(std::mem::take(&mut logs.current));
    }

    fn current(&self) -> Arc<Log> {
        Arc::clone(&self.agent.state().containers.entry(self.key.clone()).or_default().current)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("running", &self.running()).finish_non_exhaustive()
    }
}
