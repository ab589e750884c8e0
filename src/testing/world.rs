//! A simulated world: an in-memory API server, a network, processes, and a paused clock, from one seed.
//!
//! 1. All of it is one thread; time moves on only when nothing can run.
//! 2. Everything ends with `run`: processes are killed, what their programs have captured is dropped.
//! 3. A panic in a scenario shows the seed, the processes and the last lines of the trace.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use informer_actors::runtime::Runtime;
use informer_apiserver::{ApiServer, Builder};

use super::network::Network;
use super::process::{Host, Process};
use super::seeds;
use super::trace::{Asked, Clock, What};
use super::weather::{Incident, Weather};
use crate::client::Client;
use crate::object::ObjectKey;
use crate::path::{Path, chrome_trace};

/// Lines of the trace that a failure shows.
const SHOWN: usize = 40;

/// A simulated world. Cloning copies a pointer.
///
/// ```
/// use actix_informer::prelude::*;
/// use actix_informer::testing::World;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
/// use std::time::Duration;
///
/// World::simulated(7).run(|world| async move {
///     // The program under test: it follows config maps until it is stopped.
///     let program = world.start("follower", |host| async move {
///         let maps = host.client().resource::<ConfigMap>().informer(host.runtime())?.start()?;
///         host.stopping().await;
///         drop(maps);
///         Ok(())
///     });
///     world.server().create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))?;
///     let trace = world.clone();
///     world.eventually(Duration::from_secs(10), move || trace.trace().concat().contains("ConfigMap default/a")).await;
///     program.crash(); // all of it is gone at once
///     program.start();
///     assert!(program.stop(Duration::from_secs(5)).await);
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct World(Rc<Inner>);

struct Inner {
    seed: u64,
    runtime: Runtime,
    network: Rc<Network>,
    processes: RefCell<Vec<Process>>,
}

/// The settings of a world that has not begun.
#[must_use = "a world does nothing until `run`"]
pub struct WorldBuilder {
    seed: u64,
    server: Builder,
    latency: Duration,
    watch_lag: Duration,
}

impl World {
    /// A world with this seed: its server collects garbage by owner references; a request takes up to 10 ms in each
    /// direction, and an event of a watch up to 20 ms, now and then up to 400 ms.
    pub fn simulated(seed: u64) -> WorldBuilder {
        let server = ApiServer::builder().seed(seed).garbage_collection(true);
        let (latency, watch_lag) = (Duration::from_millis(10), Duration::from_millis(20));
        WorldBuilder { seed, server, latency, watch_lag }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// The runtime of the world itself: its clock and time of day. Processes have runtimes of their own.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// The server: to act as the users of the cluster do, to look at what is stored, and to break it by its fault switches.
    /// These calls take no time, and are not in the trace.
    pub fn server(&self) -> &ApiServer {
        &self.0.network.server
    }

    /// A client of a user of the cluster, without delays and without lost requests. Its requests are in the trace.
    pub fn client(&self) -> Client {
        Client::in_process(&self.0.runtime, self.0.network.link("user", false).service())
    }

    /// Starts a process: `program` is called where it starts, and again each time it is started again. What it returns, or
    /// a panic, is its end; after a failure it is started again, after 10 s, as a kubelet does.
    pub fn start<F>(&self, name: &str, program: impl Fn(Host) -> F + 'static) -> Process
    where
        F: Future<Output = Result<(), Box<dyn Error>>> + 'static,
    {
        let mut processes = self.0.processes.borrow_mut();
        // Far apart: each start adds one.
        let seed = self.0.seed.wrapping_add((processes.len() as u64 + 1) << 32);
        let world = (self.0.runtime.clone(), Rc::clone(&self.0.network), seed);
        let process = Process::spawn(name, world, program);
        processes.push(process.clone());
        process
    }

    /// Lets something go wrong, and returns when it is over. Counted faults begin, and are not waited for.
    pub async fn cause(&self, incident: Incident) {
        self.note(format!("{incident:?} begins"));
        let faults = self.server().faults();
        match incident {
            Incident::ServerDown(time) => {
                faults.refuse_connections();
                tokio::time::sleep(time).await;
                faults.accept_connections().expect("there is no port that could be taken");
            }
            Incident::ServerHangs(time) => {
                faults.freeze_server(true);
                tokio::time::sleep(time).await;
                faults.freeze_server(false);
            }
            Incident::WatchesFreeze(time) => {
                faults.freeze_watches(true);
                tokio::time::sleep(time).await;
                faults.freeze_watches(false);
            }
            Incident::WatchesExpire => {
                faults.end_watches();
                faults.compact();
            }
            Incident::WatchesEnd => faults.end_watches(),
            Incident::WatchesBreak => faults.reset_watches(),
            Incident::Compaction => faults.compact(),
            Incident::Crash(process, time) => {
                self.with_process(process, time, Process::crash, Process::start).await
            }
            Incident::Freeze(process, time) => {
                self.with_process(process, time, Process::freeze, Process::thaw).await
            }
            counted => self.count(&counted),
        }
    }

    /// Lets so many things go wrong, drawn from the seed, at moments within this time, also at the same time. Returns when
    /// all are over: the server answers, and each process that ran runs again.
    pub async fn disturb(&self, incidents: usize, within: Duration) {
        let drawn: Vec<(Duration, Incident)> = {
            let (mut weather, count) = (self.0.network.weather.borrow_mut(), self.0.processes.borrow().len());
            (0..incidents).map(|_| (weather.up_to(within), Incident::draw(&mut weather, count))).collect()
        };
        let caused = drawn.into_iter().map(|(after, incident)| async move {
            tokio::time::sleep(after).await;
            self.cause(incident).await;
        });
        join_all(caused).await;
        self.0.network.weather.borrow_mut().clear();
        self.note("all is well again".to_owned());
    }

    /// What has happened so far: each request with its answer, each event of a watch, each start and end of a process.
    pub fn trace(&self) -> Vec<String> {
        self.0.network.trace.borrow().lines().map(ToString::to_string).collect()
    }

    /// The path of the objects of this key through the processes that run: [`crate::path`].
    pub fn path(&self, key: &ObjectKey) -> Path {
        self.paths(|runtime| runtime.paths().of(key))
    }

    /// All that the processes that run have marked, as a trace that Perfetto opens
    /// ([`crate::path::chrome_trace`]).
    pub fn chrome_trace(&self) -> String {
        chrome_trace(&self.paths(|runtime| runtime.paths().all()))
    }

    fn paths(&self, of: impl Fn(&Runtime) -> Path) -> Path {
        let mut all = Path::default();
        for runtime in self.processes().iter().filter_map(Process::runtime) {
            all.add(of(&runtime));
        }
        all
    }

    /// Of at most three keys that this text names.
    fn paths_of_named(&self, text: &str) -> Vec<String> {
        let all = self.paths(|runtime| runtime.paths().all());
        let is_named = |key: &ObjectKey| {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"-./".contains(c));
            words.any(|word| word == key.to_string() || word == key.name())
        };
        let keys: std::collections::BTreeSet<_> = all.marks.iter().map(|mark| &mark.key).collect();
        let named = keys.into_iter().filter(|key| is_named(key)).take(3);
        named.map(|key| format!("the path of {key}:\n{}", self.path(key))).collect()
    }

    /// The requests so far, in the order in which they took effect, were refused or were lost. Events of watches are not among
    /// them.
    ///
    /// ```
    /// use actix_informer::testing::World;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// World::simulated(7).run(|world| async move {
    ///     assert!(world.client().api::<ConfigMap>().namespaced("shop").get_opt("prices").await?.is_none());
    ///     let asked = &world.requests()[0];
    ///     assert_eq!((&*asked.process, &*asked.method, &*asked.outcome), ("user", "GET", "404"));
    ///     assert_eq!(asked.path, "/api/v1/namespaces/shop/configmaps/prices");
    ///     Ok::<(), actix_informer::client::Error>(())
    /// })?;
    /// # Ok::<(), actix_informer::client::Error>(())
    /// ```
    pub fn requests(&self) -> Vec<Asked> {
        self.0.network.trace.borrow().lines().filter_map(Asked::of).collect()
    }

    /// A number that two runs have in common only if the same has happened in both, at the same times.
    pub fn fingerprint(&self) -> u64 {
        self.0.network.trace.borrow().fingerprint()
    }

    /// The processes, in the order of their first starts.
    pub fn processes(&self) -> Vec<Process> {
        self.0.processes.borrow().clone()
    }

    /// Notes a line of the scenario's own in the trace.
    pub fn note(&self, text: impl Into<String>) {
        self.0.network.note(&"world".into(), What::Happened(text.into()));
    }

    pub(super) fn network(&self) -> &Network {
        &self.0.network
    }

    /// For a failure: seed, time, processes, objects, the paths of the objects that `what` names, the last lines of the trace.
    pub(super) fn report(&self, what: &str) -> String {
        let Inner { seed, runtime, network, .. } = &*self.0;
        let mut lines =
            vec![format!("at {} of seed {seed}; again: {}", Clock(runtime.now()), seeds::command(*seed))];
        let processes = self.processes();
        lines.extend(processes.iter().map(|process| format!("process {process}")));
        lines.extend(self.objects());
        lines.extend(self.paths_of_named(what));
        let trace = network.trace.borrow();
        let count = seeds::number("INFORMER_SIM_LINES").map_or(SHOWN, |count| count as usize);
        lines.extend(trace.last(count).map(ToString::to_string));
        lines.join("\n  ")
    }

    /// In short, of the resources that were asked for.
    fn objects(&self) -> Vec<String> {
        let requests = self.server().requests();
        let named = requests.into_iter().map(|request| request.resource).filter(|name| !name.is_empty());
        let resources: std::collections::BTreeSet<String> = named.collect();
        let listed = |resource: &String| {
            let objects = self.server().list(resource).unwrap_or_default();
            let text = |object: &serde_json::Value| {
                let meta = &object["metadata"];
                let field = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
                let deleted = if meta["deletionTimestamp"].is_null() { "" } else { ", being deleted" };
                format!("{}/{}@{}{deleted}", field("namespace"), field("name"), field("resourceVersion"))
            };
            let shown: Vec<String> = objects.iter().take(SHOWN).map(text).collect();
            format!("{} {resource}: {}", objects.len(), shown.join(", "))
        };
        resources.iter().map(listed).collect()
    }

    fn count(&self, incident: &Incident) {
        let mut weather = self.0.network.weather.borrow_mut();
        match *incident {
            Incident::RequestsLost(count) => weather.lose_requests += count,
            Incident::AnswersLost(count) => weather.lose_answers += count,
            Incident::Refused(count, code) => weather.refuse = (count, code),
            Incident::Slow(count, longest) => weather.slow = (count, longest),
            Incident::Conflicts(count) => weather.conflicts += count,
            _ => {}
        }
    }

    async fn with_process(
        &self,
        number: usize,
        time: Duration,
        break_it: fn(&Process),
        mend_it: fn(&Process),
    ) {
        let process = self.processes().get(number).cloned();
        // A process that the test has killed, stopped or frozen stays so, also if it does that meanwhile.
        let Some(process) = process.filter(|process| process.orders().1) else { return };
        break_it(&process);
        let (orders, _) = process.orders();
        tokio::time::sleep(time).await;
        if process.orders().0 == orders {
            mend_it(&process);
        }
    }
}

impl WorldBuilder {
    /// Changes the settings of the server, for example to `rbac`.
    pub fn server(mut self, change: impl FnOnce(Builder) -> Builder) -> Self {
        self.server = change(self.server);
        self
    }

    /// How long a request, and its answer, is on its way at most, in whole milliseconds.
    pub fn latency(mut self, longest: Duration) -> Self {
        self.latency = longest;
        self
    }

    /// How long an event of a watch is on its way at most; one in sixteen takes up to twenty times as long.
    pub fn watch_lag(mut self, longest: Duration) -> Self {
        self.watch_lag = longest;
        self
    }

    /// Runs `scenario` to its end on this thread, and gives its result. Whatever runs in the world then is dropped.
    ///
    /// # Panics
    /// When `scenario` does, and when this is called inside an async context.
    pub fn run<F: Future>(self, scenario: impl FnOnce(World) -> F) -> F::Output {
        let Self { seed, server, latency, watch_lag } = self;
        Runtime::simulated(seed).run(|runtime| async move {
            let server = server
                .in_process(runtime.wall_time())
                .start()
                .await
                .expect("nothing of the system is needed");
            let network = Network::start(server, runtime.clone(), Weather::new(seed, latency, watch_lag));
            let processes = RefCell::default();
            let world = World(Rc::new(Inner { seed, runtime, network, processes }));
            let _end = End(world.clone());
            scenario(world).await
        })
    }
}

/// Shows what happened after a panic. Drops the programs, which may hold the world.
struct End(World);

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the world, {}", self.0.report(""));
        }
        let processes = std::mem::take(&mut *self.0.0.processes.borrow_mut());
        processes.iter().for_each(Process::discard);
    }
}

informer_core::debug_as!(World, self, seed = self.0.seed);

informer_core::debug_as!(WorldBuilder, self, seed = self.seed);
