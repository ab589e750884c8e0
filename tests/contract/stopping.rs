//! REF-22 and REF-34: an informer that is stopped, whatever it is doing.
//!
//! Answers "does a stop wait for anything?" Each stage of a source's life is one row of a table. The same rows run on
//! simulated time, where a wait for a timer shows at once, and on threads, where work that does not end shows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, stream};
use informer_actors::informer::Informer;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_actors::testing::{Faults, Site};
use informer_core::delta::ListPart;
use informer_core::delta_fifo::Bounds;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};
use informer_core::reflector::SourceState;
use informer_core::request::{ListRequest, WatchRequest};

use crate::threads::block_on;
use crate::world::{LONG, World, pass, three, until_now};

/// What a source's informer is doing when it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    WaitsForItsStart,
    WaitsForTheListBudget,
    BeforeTheFirstPage,
    WithinAPage,
    BetweenPages,
    BeforeTheEndBookmark,
    BeforeTheHeadOfTheWatch,
    Streaming,
    Backoff,
    Overloaded,
    Denied,
    Gone,
    FullQueue,
    UndecodableGet,
}

use Stage::*;

/// The stages that are reached without a minute of waiting or a look into the queue.
const AT_ONCE: [Stage; 12] = [
    WaitsForItsStart,
    WaitsForTheListBudget,
    BeforeTheFirstPage,
    WithinAPage,
    BetweenPages,
    BeforeTheEndBookmark,
    BeforeTheHeadOfTheWatch,
    Streaming,
    Backoff,
    Overloaded,
    Denied,
    Gone,
];

impl Stage {
    fn start_jitter(self) -> Duration {
        if self == WaitsForItsStart { Duration::from_secs(10_000) } else { Duration::ZERO }
    }
}

/// The server of a source whose lists have a second page that never comes, or whose watches are never
/// accepted.
#[derive(Clone)]
struct Source {
    server: Server<String>,
    stage: Stage,
}

impl ListWatch<String> for Source {
    fn list(&self, request: ListRequest, known: KnownObjects<String>) -> ListStream<String> {
        let is_second = request.token.is_some();
        let list = self.server.list(request, known);
        match self.stage {
            BetweenPages if is_second => stream::pending().boxed_local(),
            BetweenPages => list
                .map(|part| match part {
                    Ok(ListPart::End { version, .. }) => {
                        Ok(ListPart::End { version, token: Some("second".to_owned()) })
                    }
                    other => other,
                })
                .boxed_local(),
            _ => list,
        }
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<String>) -> WatchStream<String> {
        let is_plain = !request.initial_events;
        let watch = self.server.watch(request, known);
        if is_plain && self.stage == BeforeTheHeadOfTheWatch {
            stream::pending().boxed_local()
        } else {
            watch
        }
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        self.server.get(key)
    }
}

/// How often the actors have visited the sites that show how full the queue is.
#[derive(Clone, Default)]
struct Visits(Arc<[AtomicUsize; 3]>);

impl Visits {
    const SITES: [Site; 3] = [Site::DeltaFifoPush, Site::IndexerReplace, Site::IndexerPublished];

    fn faults(&self) -> Faults {
        let visits = Arc::clone(&self.0);
        Faults::new(move |here| {
            let counted = Self::SITES.iter().zip(visits.iter()).find(|(site, _)| **site == here);
            if let Some((_, count)) = counted {
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    fn pushes_replaces_publishes(&self) -> [usize; 3] {
        [0, 1, 2].map(|at| self.0[at].load(Ordering::Relaxed))
    }
}

fn prepare(stage: Stage, server: &Server<String>) {
    let refuse = |error: ListWatchError| server.refuse((0..99).map(|_| error.clone()));
    if stage != BeforeTheFirstPage {
        three(server);
    }
    server.serve_watch_list(!matches!(
        stage,
        BeforeTheFirstPage | WithinAPage | BetweenPages | BeforeTheHeadOfTheWatch
    ));
    match stage {
        BeforeTheFirstPage | WithinAPage | BeforeTheEndBookmark => {
            server.hold_lists(true);
        }
        Backoff => refuse(ListWatchError::source("down")),
        Overloaded => refuse(ListWatchError::Overloaded {
            message: "slow down".into(),
            retry_after: Some(Duration::from_secs(60)),
        }),
        Denied => refuse(ListWatchError::Denied("no".into())),
        Gone => refuse(ListWatchError::NotFound("no such kind".into())),
        FullQueue => (0..5_000).for_each(|n| drop(server.apply(&format!("a/{n}"), "old".to_owned()))),
        _ => {}
    }
}

fn start(runtime: &Runtime, server: &Server<String>, stage: Stage) -> Informer<String> {
    let source = Source { server: server.clone(), stage };
    let bounds = Bounds { parts: if stage == FullQueue { 1 } else { 4096 }, ..Bounds::default() };
    let informer = Informer::builder(runtime, "stopped").source(move || source.clone()).bounds(bounds);
    informer.start().expect("the spec is valid")
}

/// Waits until the informer is in this stage and goes no further.
async fn reaches(stage: Stage, world: &World, visits: &Visits) {
    let requests = || world.server.requests();
    let asked = |start: &str| requests().iter().filter(|line| line.starts_with(start)).count();
    let listing = |expected| move |state: &SourceState| matches!(state, SourceState::Listing { received } if *received == expected);
    match stage {
        WaitsForItsStart | WaitsForTheListBudget => {
            pass(Duration::from_millis(1)).await;
            assert!(matches!(world.informer.state(), SourceState::Starting));
        }
        BeforeTheFirstPage => drop(world.state(listing(0)).await),
        WithinAPage | BeforeTheEndBookmark => drop(world.state(listing(3)).await),
        BetweenPages => {
            world.state(listing(3)).await;
            until_asked(world, "LIST", 2).await;
        }
        BeforeTheHeadOfTheWatch => {
            world.synced().await;
            until_asked(world, "WATCH version", 1).await;
        }
        Streaming => {
            // On threads the stream may be live before the first list is published.
            world.synced().await;
            world.streaming().await;
        }
        Backoff | Overloaded => {
            world.state(|state| matches!(state, SourceState::Backoff { .. })).await;
        }
        Denied => drop(world.state(|state| matches!(state, SourceState::Denied { .. })).await),
        Gone => drop(world.state(|state| matches!(state, SourceState::Gone { .. })).await),
        FullQueue => fills_the_queue(world, visits).await,
        UndecodableGet => {
            world.streaming().await;
            world.server.hold_gets(true);
            world.server.poison("a/one");
            world.apply("a/one", "unreadable").await;
            until_asked(world, "GET", 1).await;
            assert_eq!((asked("GET"), world.informer.status().sources[0].repairs.not_repaired), (1, 0));
        }
    }
}

/// Waits for requests, also on real threads.
async fn until_asked(world: &World, start: &str, count: usize) {
    while world.server.requests().iter().filter(|line| line.starts_with(start)).count() < count {
        pass(Duration::from_millis(1)).await;
    }
}

/// Makes a part wait in a queue of one behind a list that is being applied in slices: the Reflector's next
/// ask is not answered.
async fn fills_the_queue(world: &World, visits: &Visits) {
    world.streaming().await;
    // A relist begins a second after the previous list, at the soonest.
    pass(Duration::from_secs(2)).await;
    world.server.answer_after(Duration::ZERO);
    world.server.freeze_watches(true);
    (0..5_000).for_each(|n| drop(world.server.apply(&format!("a/{n}"), "new".to_owned())));
    world.server.compact();
    let [_, replaces, publishes] = visits.pushes_replaces_publishes();
    world.server.freeze_watches(false);
    until_now(|| visits.pushes_replaces_publishes()[1] > replaces).await;
    let [pushes, ..] = visits.pushes_replaces_publishes();
    world.server.apply("b/one", "after the list".to_owned());
    until_now(|| visits.pushes_replaces_publishes()[0] > pushes).await;
    assert_eq!(visits.pushes_replaces_publishes()[2], publishes, "the list is still being applied");
}

/// Stops it, checks what may be seen then, and returns how long it took.
async fn stop(stage: Stage, world: &World) -> Duration {
    let has_not_asked = matches!(stage, WaitsForItsStart | WaitsForTheListBudget);
    assert_eq!(world.server.requests().is_empty(), has_not_asked, "{stage:?}");
    let (requests, failures) =
        (world.server.requests(), world.informer.status().sources[0].counters.failures);
    let (before, began) = (world.informer.snapshot(), world.runtime.now());
    assert!(world.informer.shutdown(LONG).await.is_clean(), "{stage:?}");
    let took = world.runtime.now() - began;
    world.server.hold_lists(false);
    world.server.hold_gets(false);
    let snapshot = world.informer.snapshot();
    if stage == FullQueue {
        let new = snapshot.iter().filter(|object| object.body() == "new").count();
        assert!(new == 0 || new == 5_000, "{new} of 5,000: half a list is published");
    } else {
        assert!(snapshot.ptr_eq(&before), "{stage:?}: something was published");
        let has_listed = matches!(stage, BeforeTheHeadOfTheWatch | Streaming | UndecodableGet);
        assert_eq!((snapshot.len(), snapshot.versions().len()), if has_listed { (3, 1) } else { (0, 0) });
    }
    assert_eq!(world.informer.status().sources[0].counters.failures, failures, "{stage:?}");
    assert_eq!(world.server.requests(), requests, "{stage:?}");
    took
}

/// An informer in this stage, and another one that holds the only list permit if the stage needs that.
async fn arrives(stage: Stage, runtime: Runtime, visits: &Visits) -> (World, Option<Informer<String>>) {
    let other = Server::new();
    other.hold_lists(true);
    let other = (stage == WaitsForTheListBudget).then(|| crate::threads::informer(&runtime, &other));
    if let Some(other) = &other {
        other
            .wait_until(|status| matches!(status.state(), SourceState::Listing { .. }))
            .await
            .expect("it lists");
    }
    let server = Server::new();
    prepare(stage, &server);
    let informer = start(&runtime, &server, stage);
    let world = World { server, informer, runtime };
    reaches(stage, &world, visits).await;
    (world, other)
}

// REF-34: given each state and wait (jittered start, list budget, Listing before, within and between pages,
// watch-list before its end bookmark, Streaming, Backoff, 429 wait, Denied, Gone, full queue, set-aside GET),
// when stopped, then the informer has ended within 100 ms.
// - a in each of the states and waits it ends without waiting for anything
// - b within 100 ms of real time, where the state is reached without a minute's wait:
//   `ref_34_on_threads_too_a_stop_ends_the_informer_within_100_ms_of_real_time`
#[test]
fn ref_22_and_ref_34_in_every_state_a_stop_ends_the_informer_at_once_asks_no_more_and_publishes_no_half() {
    for stage in AT_ONCE.into_iter().chain([FullQueue, UndecodableGet]) {
        let visits = Visits::default();
        let simulation = Runtime::simulation(34).faults(visits.faults()).lists_at_once(1);
        let simulation = simulation.start_jitter(stage.start_jitter());
        simulation.build().run(|runtime| async move {
            let (world, _other) = arrives(stage, runtime, &visits).await;
            let took = stop(stage, &world).await;
            assert!(took <= Duration::from_millis(100), "{stage:?}: {took:?}");
            let requests = world.server.requests();
            pass(Duration::from_secs(3600)).await;
            assert_eq!(world.server.requests(), requests, "{stage:?}: it asks after its end");
        });
    }
}

/// Takes the shortest of several tries: other tests run at the same time.
#[test]
fn ref_34_on_threads_too_a_stop_ends_the_informer_within_100_ms_of_real_time() {
    block_on(&mut tokio::runtime::Builder::new_current_thread(), async {
        for stage in AT_ONCE {
            let mut took = Duration::MAX;
            for _ in 0..10 {
                let runtime = Runtime::threads().lists_at_once(1).start_jitter(stage.start_jitter()).start();
                let runtime = runtime.expect("threads can be started");
                let (world, _other) = arrives(stage, runtime, &Visits::default()).await;
                took = took.min(stop(stage, &world).await);
                if took <= Duration::from_millis(100) {
                    break;
                }
            }
            assert!(took <= Duration::from_millis(100), "{stage:?}: {took:?}");
        }
    });
}

/// Stops the informer by dropping its last handle at the first visit of a site.
fn dropped_at(site: Site, handle: &Arc<Mutex<Option<Informer<String>>>>) -> Faults {
    let handle = Arc::clone(handle);
    Faults::new(move |here| {
        if here == site {
            let last = handle.lock().expect("no panic").take();
            drop(last);
        }
    })
}

// REF-22: given stop before the list, in mid-list, between list and watch, and in mid-watch, when stopped,
// then no further request is made, no failure is counted and nothing half listed is published.
// - a before the list, in mid-list and in mid-watch no further request is made, no failure is counted, and
//   nothing half listed is published:
//   `ref_22_and_ref_34_in_every_state_a_stop_ends_the_informer_at_once_asks_no_more_and_publishes_no_half`
// - b between list and watch no watch is asked for
#[test]
fn ref_22_a_stop_between_a_list_and_its_watch_asks_for_no_watch() {
    let handle = Arc::new(Mutex::new(None));
    let faults = dropped_at(Site::DeltaFifoPush, &handle);
    Runtime::simulation(22).faults(faults).build().run(|runtime| async move {
        let server = Server::new();
        prepare(WithinAPage, &server);
        let informer = start(&runtime, &server, WithinAPage);
        *handle.lock().expect("no panic") = Some(informer);
        pass(Duration::from_secs(1)).await;
        assert!(handle.lock().expect("no panic").is_some(), "the list has not ended");
        server.hold_lists(false);
        pass(Duration::from_secs(3600)).await;
        assert!(handle.lock().expect("no panic").is_none(), "the list has ended");
        assert_eq!(server.requests(), ["WATCH-LIST version=\"\"", "LIST version=\"0\" limit=500"]);
    });
}
