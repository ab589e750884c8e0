//! One informer of texts over the scripted server, and the few operations that tests need.
//!
//! Answers "how does a scenario drive the pipeline?". Every wait is for a condition on the informer's status or on
//! what a subscriber has recorded; with the paused clock such waits take no real time.

use std::future::Future;
use std::time::Duration;

use actix::Actor;
use informer_actors::informer::Informer;
use informer_actors::informer::InformerBuilder;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::{SubscribeOptions, Subscription};
use informer_actors::testing::Faults;
use informer_actors::testing::{Recorder, RecorderHandle, Server};
use informer_core::meta::{ObjectKey, ResourceVersion};
use informer_core::reflector::SourceState;

/// A limit that a healthy wait never comes near.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// A server, an informer over it, and the runtime of both.
pub(crate) struct World {
    pub(crate) server: Server<String>,
    pub(crate) informer: Informer<String>,
    pub(crate) runtime: Runtime,
}

/// A subscription whose events are recorded.
pub(crate) struct Watched {
    pub(crate) subscription: Subscription<String>,
    pub(crate) received: RecorderHandle<String>,
}

/// Runs a scenario over a server that `prepare` has filled.
pub(crate) fn run<F>(prepare: impl FnOnce(&Server<String>), scenario: impl FnOnce(World) -> F)
where
    F: Future<Output = ()>,
{
    run_with(Faults::default(), prepare, scenario);
}

/// The same with a fault hook.
pub(crate) fn run_with<F>(
    faults: Faults,
    prepare: impl FnOnce(&Server<String>),
    scenario: impl FnOnce(World) -> F,
) where
    F: Future<Output = ()>,
{
    run_built(faults, |builder| builder, prepare, scenario);
}

/// The same with an informer that `build` configures further.
pub(crate) fn run_built<F>(
    faults: Faults,
    build: impl FnOnce(InformerBuilder<String>) -> InformerBuilder<String>,
    prepare: impl FnOnce(&Server<String>),
    scenario: impl FnOnce(World) -> F,
) where
    F: Future<Output = ()>,
{
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let server = Server::new();
        prepare(&server);
        let connected = server.clone();
        let builder = Informer::builder(&runtime, "texts")
            .source(move || connected.clone())
            .index("body", |object| [object.body().clone()]);
        let informer = build(builder).start().expect("the spec is valid");
        scenario(World { server, informer, runtime }).await;
    });
}

/// Three objects: `a/one`, `a/two`, `b/one`.
pub(crate) fn three(server: &Server<String>) {
    for (key, body) in [("a/one", "1"), ("a/two", "2"), ("b/one", "3")] {
        server.apply(key, body.to_owned());
    }
}

/// No objects.
pub(crate) fn nothing(_server: &Server<String>) {}

impl World {
    /// Waits for the first list.
    pub(crate) async fn synced(&self) {
        self.informer.synced_within(LONG).await.expect("the informer syncs");
    }

    /// A first list and live changes, after which the watch is open.
    pub(crate) async fn changes(&self) {
        self.synced().await;
        for n in 0..5 {
            self.apply("a/one", &format!("live {n}")).await;
            self.apply(&format!("c/{n}"), "new").await;
        }
        self.delete("a/two").await;
        self.streaming().await;
    }

    /// So many live changes, of as many objects.
    pub(crate) async fn changes_of(&self, count: usize) {
        for n in 0..count {
            self.apply(&format!("live/{n:03}"), "new").await;
        }
    }

    /// A deletion, a change and a creation that no watch shows, and the relist that finds them.
    pub(crate) async fn gap(&self) {
        self.server.freeze_watches(true);
        self.server.delete("c/1");
        self.server.apply("c/2", "changed in the gap".to_owned());
        self.server.apply("d/1", "created in the gap".to_owned());
        self.server.compact();
        self.server.freeze_watches(false);
        self.server.end_watches(None);
        self.agrees().await;
    }

    /// Creates or updates, and waits until it is published.
    pub(crate) async fn apply(&self, key: &str, body: &str) -> ResourceVersion {
        let version = self.server.apply(key, body.to_owned());
        self.reaches(&version).await;
        version
    }

    /// Deletes, and waits until that is published.
    pub(crate) async fn delete(&self, key: &str) -> ResourceVersion {
        let version = self.server.delete(key).expect("it is there");
        self.reaches(&version).await;
        version
    }

    /// Waits until the store has reached `version`.
    pub(crate) async fn reaches(&self, version: &ResourceVersion) {
        self.informer.lister().wait_for(version, LONG).await.expect("the version arrives");
    }

    /// Waits until the store equals the server's content.
    pub(crate) async fn agrees(&self) {
        self.reaches(&self.server.version()).await;
        assert_eq!(self.content(), self.server.content());
    }

    /// Waits for a state.
    pub(crate) async fn state(&self, wanted: impl Fn(&SourceState) -> bool) -> SourceState {
        let status = self.informer.wait_until(|status| wanted(&status.state())).await;
        status.expect("the informer runs").state()
    }

    /// Waits until the stream is live.
    pub(crate) async fn streaming(&self) {
        self.state(|state| matches!(state, SourceState::Streaming)).await;
    }

    /// The published objects, as key and version.
    pub(crate) fn content(&self) -> Vec<(ObjectKey, ResourceVersion)> {
        let snapshot = self.informer.snapshot();
        snapshot.iter().map(|object| (object.key().clone(), object.version().clone())).collect()
    }

    /// Subscribes a recording actor.
    pub(crate) fn watched(&self) -> Watched {
        self.watched_with(SubscribeOptions::new())
    }

    /// The same with options.
    pub(crate) fn watched_with(&self, options: SubscribeOptions<String>) -> Watched {
        let (recorder, received) = Recorder::new();
        let subscription =
            self.informer.subscribe_with(options, recorder.start()).expect("the informer runs");
        Watched { subscription, received }
    }
}

impl Watched {
    /// Waits until it has handled its last initial event.
    pub(crate) async fn synced(&self) {
        self.subscription.synced_within(LONG).await.expect("the subscription syncs");
    }

    /// Waits until `count` events have been handled, and returns their lines.
    pub(crate) async fn lines(&self, count: usize) -> Vec<String> {
        until(|| self.received.len() >= count).await;
        self.received.lines()
    }

    /// Waits until the events it received give what the informer has, and checks every event on the way.
    pub(crate) async fn agrees(&self, world: &World) {
        let agrees = || self.received.agrees_with(&world.informer.snapshot());
        for _ in 0..10_000 {
            if agrees().is_ok() {
                return;
            }
            settle().await;
        }
        assert_eq!(agrees(), Ok(()));
    }
}

/// Runs everything that can run now: time moves only when nothing else can.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Lets simulated time pass.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Waits for a condition, for at most a simulated minute.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if condition() {
            return;
        }
        settle().await;
    }
    assert!(condition(), "the condition did not come true within a simulated minute");
}

/// Waits for a condition that becomes true without any time passing.
pub(crate) async fn until_now(condition: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if condition() {
            return;
        }
        tokio::task::yield_now().await;
    }
    assert!(condition(), "the condition did not come true at once");
}
