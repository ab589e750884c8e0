//! IDX-27 and IDX-28. Indices added while the informer works: whatever its actors are doing, nothing stalls.
//!
//! Simulated time stands still while anything spins, so these tests wait for a number of turns of the thread and move
//! the time themselves meanwhile: what has not come after those turns never comes.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use informer_actors::informer::{AddIndexError, Informer};
use informer_actors::testing::Server;
use informer_actors::testing::{Faults, Site};
use informer_core::index::Index;
use informer_core::meta::{Object, ResourceVersion};

use crate::world::{World, run_with, three};

/// More turns than any test here needs, and how much time passes in a hundred of them.
const TURNS: usize = 5_000;
const STEP: Duration = Duration::from_millis(100);

/// Sites between an object's arrival and its last effect.
const SITES: [Site; 8] = [
    Site::ReflectorReceived,
    Site::DeltaFifoPush,
    Site::DeltaFifoPop,
    Site::IndexerApply,
    Site::IndexerReplace,
    Site::IndexerPublished,
    Site::ProcessorChanges,
    Site::ProcessorFannedOut,
];

type Act = Box<dyn FnOnce() + Send>;

/// Something that is done once, at a later visit of a site.
#[derive(Clone, Default)]
struct Planned(Arc<Mutex<Option<(Site, usize, Act)>>>);

impl Planned {
    fn faults(&self) -> Faults {
        let planned = self.clone();
        Faults::new(move |here| {
            let act = planned.visit(here);
            if let Some(act) = act {
                act();
            }
        })
    }

    /// Plans it from now on at the `nth` visit of `site`, the first being 1.
    fn at(&self, site: Site, nth: usize, act: impl FnOnce() + Send + 'static) {
        *self.lock() = Some((site, nth, Box::new(act)));
    }

    fn is_done(&self) -> bool {
        self.lock().is_none()
    }

    fn visit(&self, here: Site) -> Option<Act> {
        let mut planned = self.lock();
        let (site, left, _) = planned.as_mut()?;
        if *site != here {
            return None;
        }
        *left -= 1;
        if *left > 0 {
            return None;
        }
        planned.take().map(|(_, _, act)| act)
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Site, usize, Act)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls of `add_index` that were begun inside a hook. They are kept, because a call that is dropped is
/// withdrawn.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<Call>>>);

type Call = Pin<Box<dyn Future<Output = Result<(), AddIndexError>> + Send>>;

impl Calls {
    /// Sends the question at once; the answer is taken by [`Self::answered`].
    fn begin(&self, informer: &Informer<String>, name: &str) {
        let (informer, spec) = (informer.clone(), by_name(name));
        let mut call: Call = Box::pin(async move { informer.add_index(spec).await });
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the Indexer has had no turn yet");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    async fn answered(&self) {
        let calls = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for call in calls {
            assert_eq!(in_turns(call).await, Some(Ok(())));
        }
    }
}

fn by_name(index: &str) -> Index<String> {
    Index::new(index, |object: &Object<String>| vec![object.key().name().to_owned()])
}

/// Polls a future for many turns of the thread.
async fn in_turns<T>(future: impl Future<Output = T>) -> Option<T> {
    let turns = async {
        for turn in 1..=TURNS {
            if turn % 100 == 0 {
                tokio::time::advance(STEP).await;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        value = future => Some(value),
        () = turns => None,
    }
}

async fn arrives(world: &World, version: &ResourceVersion) -> bool {
    let lister = world.informer.lister();
    let arrived = async {
        while lister.snapshot().versions().first().is_none_or(|reached| reached < version) {
            tokio::task::yield_now().await;
        }
    };
    in_turns(arrived).await.is_some()
}

/// Waits until an index is published.
async fn held(world: &World, index: &str) {
    while world.informer.snapshot().index_values(index).map(Iterator::count).is_err() {
        tokio::task::yield_now().await;
    }
}

/// One more object arrives, and each index holds all objects.
async fn goes_on_with(world: &World, indices: &[&str], at: &str) {
    let version = world.server.apply("z/last", "last".to_owned());
    assert!(arrives(world, &version).await, "{at}: a later object never arrived");
    let all = world.informer.lister().list().len();
    for index in indices {
        assert!(in_turns(held(world, index)).await.is_some(), "{at}: index {index} never came");
        let snapshot = world.informer.snapshot();
        let names: Vec<String> =
            snapshot.index_values(index).expect("it is there").map(str::to_owned).collect();
        let held = |name: &String| world.informer.lister().by_index(index, name).expect("it is there").len();
        assert_eq!(names.iter().map(held).sum::<usize>(), all, "{at}: index {index} lacks objects");
    }
}

fn many(count: usize) -> impl Fn(&Server<String>) {
    move |server| (0..count).for_each(|n| drop(server.apply(&format!("a/{n}"), "first".to_owned())))
}

#[test]
fn idx_27_an_index_added_while_another_is_published_stalls_nothing() {
    let planned = Planned::default();
    run_with(planned.faults(), many(600), |world| async move {
        world.synced().await;
        let (calls, informer) = (Calls::default(), world.informer.clone());
        let begun = calls.clone();
        planned.at(Site::IndexerPublished, 1, move || begun.begin(&informer, "second"));
        world.informer.add_index(by_name("first")).await.expect("the name is free");
        assert!(in_turns(held(&world, "first")).await.is_some(), "the first index comes");
        assert!(planned.is_done(), "its publish was visited");
        calls.answered().await;
        assert!(in_turns(held(&world, "second")).await.is_some(), "the second index comes");
        goes_on_with(&world, &["first", "second"], "the publish of an index").await;
    });
}

// IDX-27: given indices added at any moment, one after another or at once, also while another is published or
// a list is popped, when objects come later, then they arrive, and every index holds all objects.
// - a while another is published: `idx_27_an_index_added_while_another_is_published_stalls_nothing`
// - b while a list is popped
// - c at once, at every visit of every site:
//   `idx_27_indices_added_at_once_stall_nothing_wherever_the_actors_are`
// - d one after another, at every visit of every site:
//   `idx_27_indices_added_one_after_another_stall_nothing_wherever_the_actors_are`
// - e in every order of events one step runs at a time and the next batch is asked for:
//   `idx_27_in_every_order_of_events_one_step_runs_at_a_time_and_the_next_batch_is_asked_for`
#[test]
fn idx_27_a_list_that_is_popped_while_an_index_is_handed_on_stalls_nothing() {
    let planned = Planned::default();
    run_with(planned.faults(), many(100), |world| async move {
        world.server.serve_watch_list(false);
        world.synced().await;
        world.streaming().await;
        let (calls, informer) = (Calls::default(), world.informer.clone());
        let begun = calls.clone();
        // The small store's index is built and published in the turn in which the Indexer also gets the list.
        planned.at(Site::DeltaFifoPush, 1, move || begun.begin(&informer, "first"));
        relist(&world, 600);
        assert!(arrives(&world, &world.server.version()).await, "the list arrives");
        assert!(planned.is_done(), "its arrival was visited");
        calls.answered().await;
        goes_on_with(&world, &["first"], "the arrival of a list").await;
    });
}

/// Changes much while the watch is down, so that the source is listed again.
fn relist(world: &World, count: usize) {
    world.server.freeze_watches(true);
    (0..count).for_each(|n| drop(world.server.apply(&format!("a/{n}"), "second".to_owned())));
    world.server.compact();
    world.server.freeze_watches(false);
    world.server.end_watches(None);
}

/// A first list, events, a relist, more events.
async fn busy(world: &World) {
    for n in 0..3 {
        world.server.apply(&format!("b/{n}"), "live".to_owned());
        assert!(arrives(world, &world.server.version()).await);
    }
    relist(world, 300);
    assert!(arrives(world, &world.server.version()).await);
    for n in 0..3 {
        world.server.apply(&format!("c/{n}"), "live".to_owned());
    }
}

#[test]
fn idx_27_indices_added_at_once_stall_nothing_wherever_the_actors_are() {
    at_every_visit(|world, planned, site, nth| {
        let (calls, informer) = (Calls::default(), world.informer.clone());
        let begun = calls.clone();
        planned.at(site, nth, move || ["x", "y", "z"].iter().for_each(|name| begun.begin(&informer, name)));
        calls
    });
}

#[test]
fn idx_27_indices_added_one_after_another_stall_nothing_wherever_the_actors_are() {
    at_every_visit(|world, planned, site, nth| {
        let informer = world.informer.clone();
        let calls = Calls::default();
        planned.at(site, nth, move || {
            drop(actix_rt::spawn(async move {
                for name in ["x", "y", "z"] {
                    informer.add_index(by_name(name)).await.expect("the name is free");
                }
            }));
        });
        calls
    });
}

/// Runs a busy scenario for each visit of each site and lets `add` plan there; every run must go on.
fn at_every_visit(add: impl Fn(&World, &Planned, Site, usize) -> Calls) {
    for site in SITES {
        let mut visited = 0;
        for nth in 1.. {
            let planned = Planned::default();
            let (add, done) = (&add, planned.clone());
            run_with(planned.faults(), many(300), |world| async move {
                let _listening = world.watched();
                world.server.serve_watch_list(nth % 2 == 0);
                world.synced().await;
                let calls = add(&world, &planned, site, nth);
                busy(&world).await;
                let indices: &[&str] = if planned.is_done() { &["x", "y", "z"] } else { &[] };
                goes_on_with(&world, indices, &format!("visit {nth} of {site:?}")).await;
                calls.answered().await;
            });
            if !done.is_done() {
                break;
            }
            visited = nth;
        }
        assert!(visited > 0, "{site:?} was never visited: the test proves nothing");
    }
}

// IDX-28: given the Indexer killed after it took a new index and before it answered, when it is back, then
// the call answers Ok and the index is there; another call for an index of that name is refused.
// - a the call answers Ok and the index is there
// - b another call of that name is refused
#[test]
fn idx_28_an_index_whose_indexer_crashed_over_it_is_added_and_a_second_one_of_its_name_is_refused() {
    let planned = Planned::default();
    run_with(planned.faults(), three, |world| async move {
        world.synced().await;
        // It has taken the index for this and all later runs, and panics before it can answer.
        planned.at(Site::IndexerReplace, 1, || panic!("killed over the new index"));
        let spec = by_name("name");
        assert_eq!(world.informer.add_index(spec.clone()).await, Ok(()));
        assert_eq!(world.informer.status().restarts, 1, "the Indexer crashed over it");
        goes_on_with(&world, &["name"], "the crash over an index").await;
        for again in [spec, by_name("name")] {
            let refused = Err(AddIndexError::Exists("name".to_owned()));
            assert_eq!(world.informer.add_index(again).await, refused);
        }
    });
}
