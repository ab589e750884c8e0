//! Runs scenarios, each on a stage of its own: on one server, or on one after another.
//!
//! Answers "what does a scenario find when it begins, and how is its failure reported?" Invariants:
//! 1. A scenario has a namespace and a runtime of its own; on a shared server it does not disturb the pods of any
//!    other.
//! 2. No scenario waits for ever: each has a limit, and each wait within it a shorter one.
//! 3. When a scenario has ended, the threads of its runtime have ended too.
//! 4. On a control plane, the scenarios after a failed one still run; all failures are named at the end.
//! 5. Scenarios that do not disturb their server may run on it at once, each on a thread of its own.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use actix_informer::client::ResourceSource;
use actix_informer::prelude::*;
use actix_informer::representation::Representation;
use futures_util::future::LocalBoxFuture;
use informer_core::reflector::ReflectorConfig;
use tokio::time::{Instant, sleep, timeout};

use crate::api::Api;
use crate::followed::Followed;
use crate::server::Server;

/// The limit of one wait; a healthy one never comes near it.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// The limit of one scenario.
const SCENARIO: Duration = Duration::from_secs(600);
/// How often a condition without a notification of its own is checked.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

/// The environment variable that sets the seed.
const SEED: &str = "INFORMER_SEED";

/// A scenario and its name.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) play: fn(Stage) -> LocalBoxFuture<'static, ()>,
}

/// What a scenario runs on.
pub(crate) struct Stage {
    pub(crate) server: Arc<Server>,
    pub(crate) api: Api,
    pub(crate) runtime: Runtime,
    pub(crate) namespace: String,
    /// The credentials that a trial's informers use; the administrator's if none are named.
    pub(crate) context: Option<&'static str>,
    /// The seed of everything random in a scenario.
    pub(crate) seed: u64,
}

/// Takes the name of a scenario from its function.
macro_rules! scenario {
    ($file:ident::$scenario:ident) => {
        crate::stage::Scenario {
            name: stringify!($scenario),
            play: |stage| Box::pin(crate::$file::$scenario(stage)),
        }
    };
}
pub(crate) use scenario;

/// Runs one on an in-memory server of its own.
pub(crate) fn on_memory(scenario: &Scenario) {
    let server = Arc::new(Server::memory());
    play(&server, scenario).unwrap_or_else(|why| panic!("{} in memory: {why}", scenario.name));
}

/// Runs all of them at once, each on an in-memory server of its own.
pub(crate) fn at_once_on_memory(scenarios: &[Scenario]) {
    at_once(scenarios, |scenario| play(&Arc::new(Server::memory()), scenario));
}

/// Runs them one after another on one control plane, if there are binaries.
pub(crate) fn on_real(server: Option<Server>, scenarios: &[Scenario]) {
    let Some(server) = server.map(Arc::new) else { return };
    judge(scenarios.iter().map(|scenario| (scenario, play(&server, scenario))));
}

/// Runs all of them at once on one control plane, if there are binaries.
pub(crate) fn at_once_on_real(server: Option<Server>, scenarios: &[Scenario]) {
    let Some(server) = server.map(Arc::new) else { return };
    at_once(scenarios, |scenario| play(&server, scenario));
}

fn at_once(scenarios: &[Scenario], play: impl Fn(&Scenario) -> Result<(), String> + Sync) {
    std::thread::scope(|threads| {
        let played = scenarios.iter().map(|scenario| (scenario, threads.spawn(|| play(scenario))));
        let played: Vec<_> = played.collect();
        judge(played.into_iter().map(|(scenario, thread)| {
            (scenario, thread.join().unwrap_or_else(|_| Err("its thread panicked".to_owned())))
        }));
    });
}

fn judge<'a>(played: impl Iterator<Item = (&'a Scenario, Result<(), String>)>) {
    let failed = |(scenario, result): (&Scenario, Result<(), String>)| {
        Some(format!("{}: {}", scenario.name, result.err()?))
    };
    let failures: Vec<String> = played.filter_map(failed).collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

/// Runs one, and prints how long it took.
fn play(server: &Arc<Server>, scenario: &Scenario) -> Result<(), String> {
    actix_rt::Runtime::new().expect("a runtime").block_on(async {
        let began = Instant::now();
        let stage = Stage::set(server, scenario.name).await;
        let (runtime, seed) = (stage.runtime.clone(), stage.seed);
        let played = actix_rt::spawn(timeout(SCENARIO, (scenario.play)(stage))).await;
        let stopped = runtime.shutdown(SCENARIO).await;
        let result = match played {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(format!("not at its end after {SCENARIO:?}")),
            Err(error) => Err(panic_text(error)),
        };
        let result = result.and_then(|()| stopped.map_err(|error| error.to_string()));
        let result = result.map_err(|why| format!("{why} ({SEED}={seed} repeats the same random choices)"));
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        eprintln!("{}: {} {verdict} after {:.1?}", server.name(), scenario.name, began.elapsed());
        result
    })
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "cancelled".to_owned() };
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

impl Stage {
    async fn set(server: &Arc<Server>, name: &str) -> Self {
        let api = Api::new(server.client());
        let namespace = name.replace('_', "-").chars().take(50).collect::<String>();
        let namespace = namespace.trim_end_matches('-').to_owned();
        api.create_namespace(&namespace).await;
        let runtime = Runtime::threads().start().expect("threads");
        let seed = std::env::var(SEED).map(|seed| seed.parse().expect("a number"));
        let seed = seed.unwrap_or_else(|_| fastrand::u64(..));
        Self { server: Arc::clone(server), api, runtime, namespace, context: None, seed }
    }

    /// Follows this stage's pods, first by watch-list, and waits for the first list.
    pub(crate) async fn pods(&self) -> Followed<Pod> {
        self.pods_as("pods", |config| config).await
    }

    /// The same under a name of its own and with other settings.
    pub(crate) async fn pods_as(
        &self,
        name: &str,
        configure: impl FnOnce(ReflectorConfig) -> ReflectorConfig,
    ) -> Followed<Pod> {
        let source = self.server.client().resource::<Pod>().namespace(&*self.namespace);
        let source = source.settings(|settings| *settings = configure(settings.clone()));
        self.follow(self.described(name, source), &[&self.namespace]).await
    }

    /// Follows the pods of these namespaces, and waits for the first list.
    pub(crate) async fn follow<S: Send + Sync + 'static>(
        &self,
        builder: InformerBuilder<S>,
        namespaces: &[&str],
    ) -> Followed<S> {
        let followed = Followed::start(builder, namespaces);
        followed.informer.synced_within(LONG).await.expect("the informer syncs");
        followed
    }

    /// An informer of this resource under a name of its own: names are unique in a runtime.
    pub(crate) fn described<K, R: Representation>(
        &self,
        name: &str,
        resource: ResourceSource<K, R>,
    ) -> InformerBuilder<R::Body> {
        resource.name(name).informer(&self.runtime).expect("a valid namespace")
    }

    /// The same stage on a server behind HTTPS, which the real one always is.
    pub(crate) async fn secured(self) -> Self {
        if let Server::Real(_) = &*self.server {
            return self;
        }
        let server = Arc::new(Server::secure_memory());
        let api = Api::new(server.client());
        api.create_namespace(&self.namespace).await;
        Self { server, api, ..self }
    }

    /// A pod's key on this stage.
    pub(crate) fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(&*self.namespace, name)
    }
}

pub(crate) use k8s_openapi::api::core::v1::Pod;

/// Waits until `check` returns Ok; at the limit its last error is the failure. Servers of other processes take real
/// time and do not report when they are done, so it checks again and again.
pub(crate) async fn eventually<E: Display>(what: &str, mut check: impl FnMut() -> Result<(), E>) {
    let end = Instant::now() + LONG;
    while let Err(why) = check() {
        assert!(Instant::now() < end, "{what}: {why}");
        sleep(LOOK).await;
    }
}

/// Waits until something is true.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    eventually(what, || if condition() { Ok(()) } else { Err("it is not") }).await;
}
