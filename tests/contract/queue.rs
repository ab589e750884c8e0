//! RF-16, RF-17, RF-29 and REF-51: the queue between a Reflector and a busy Indexer.
//!
//! Answers "which actor waits for which, and for how long?" The Indexer is busy while it applies a long list in
//! slices; the source brings one event at a time and counts how many were taken from it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer_actors::informer::Informer;
use informer_actors::informer::Lister;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_actors::testing::{Faults, Site};
use informer_core::backoff::BackoffPolicy;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::delta_fifo::Bounds;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::request::{ListRequest, WatchRequest};
use informer_core::restart::RestartPolicy;

use crate::world::{LONG, pass, run_built, run_with, three, until_now};

/// Objects of the list: 80 slices.
const LISTED: u64 = 20_000;
/// Events that are ready at once after it.
const EVENTS: u64 = 50;
/// The weight of each event.
const WIRE_BYTES: u32 = 100;

/// A long list, and many events after it, one in each item of the stream.
#[derive(Clone, Default)]
struct Long {
    /// How many events were taken from the stream.
    taken: Arc<AtomicUsize>,
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

fn object(name: u64, number: u64) -> Object<String> {
    let key = ObjectKey::namespaced("a", format!("o{name:05}"));
    let source = SourceId::default();
    let meta = Meta::new(key, version(number), source).wire_bytes(WIRE_BYTES);
    Object::new(meta, String::new())
}

impl ListWatch<String> for Long {
    fn list(&self, _request: ListRequest, _known: KnownObjects<String>) -> ListStream<String> {
        let objects = ListPart::Objects((0..LISTED).map(|name| object(name, 1)).collect());
        let end = ListPart::End { version: version(LISTED), token: None };
        stream::iter([Ok(objects), Ok(end)]).boxed_local()
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<String>) -> WatchStream<String> {
        if request.initial_events {
            let refusal = ListWatchError::WatchListUnsupported("it lists".into());
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let from =
            request.version.version().map_or(0, |version| version.to_string().parse().expect("a number"));
        let taken = Arc::clone(&self.taken);
        let events = (from + 1..=LISTED + EVENTS).map(move |number| {
            taken.fetch_add(1, Ordering::Relaxed);
            Ok(vec![WatchPart::Applied(object(number - LISTED, number))])
        });
        stream::iter([Ok(Vec::new())]).chain(stream::iter(events)).chain(stream::pending()).boxed_local()
    }

    fn get(
        &self,
        _key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

/// What had happened when a snapshot was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    taken: usize,
    pushes: usize,
}

/// The record of each publish: the first is that of the list.
fn publishes(bounds: Bounds) -> Vec<Seen> {
    let (source, pushes) = (Long::default(), AtomicUsize::new(0));
    let publishes = Arc::new(Mutex::new(Vec::new()));
    let (seen, taken) = (Arc::clone(&publishes), Arc::clone(&source.taken));
    let faults = Faults::new(move |here| match here {
        Site::DeltaFifoPush => drop(pushes.fetch_add(1, Ordering::Relaxed)),
        Site::IndexerPublished => {
            let (taken, pushes) = (taken.load(Ordering::Relaxed), pushes.load(Ordering::Relaxed));
            seen.lock().expect("no panic").push(Seen { taken, pushes });
        }
        _ => {}
    });
    Runtime::simulation(17).faults(faults).build().run(|runtime| async move {
        let informer = Informer::builder(&runtime, "long").source(move || source.clone()).bounds(bounds);
        let informer = informer.start().expect("the spec is valid");
        let waited = informer.lister().wait_for(&version(LISTED + EVENTS), LONG).await;
        waited.expect("when the Indexer takes a batch it goes on");
        assert_eq!(runtime.now(), Duration::ZERO, "nobody waited for a timer");
        let snapshot = informer.snapshot();
        let followed = (1..=EVENTS).filter(|name| {
            let held = snapshot.get(object(*name, 1).key());
            held.is_some_and(|held| *held.version() == version(LISTED + name))
        });
        assert_eq!((snapshot.len() as u64, followed.count() as u64), (LISTED, EVENTS), "nothing is lost");
    });
    let publishes = publishes.lock().expect("no panic").clone();
    assert!(!publishes.is_empty(), "the list was published");
    publishes
}

#[test]
fn rf_16_while_the_indexer_is_busy_every_delta_below_the_bounds_is_taken_at_once() {
    let when_the_list_is_published = publishes(Bounds::default())[0];
    assert_eq!(when_the_list_is_published, Seen { taken: EVENTS as usize, pushes: 1 + EVENTS as usize });
}

// RF-17: given the queue at its bound of bytes or count, when the Reflector has more, then its one ask in
// flight stays unanswered, it reads no more from the socket and memory stays flat; when the Indexer takes a
// batch it goes on and nothing is lost.
// - a the queue is full at its bound of bytes or of count, in either discipline:
//   `rf_17_a_full_queue_says_so_by_count_and_by_bytes_and_has_room_again_when_a_batch_is_taken`
// - b the one ask in flight stays unanswered and nothing more is read, so that memory stays flat
// - c when the Indexer takes a batch it goes on and nothing is lost
#[test]
fn rf_17_at_its_bound_of_count_or_bytes_the_queue_takes_no_more_and_nothing_more_is_read() {
    let by_count = Bounds { parts: 5, ..Bounds::default() };
    let by_bytes = Bounds { bytes: 5 * WIRE_BYTES as usize, ..Bounds::default() };
    for bounds in [by_count, by_bytes] {
        let when_the_list_is_published = publishes(bounds)[0];
        assert_eq!(when_the_list_is_published, Seen { taken: 5, pushes: 1 + 5 }, "{bounds:?}");
    }
}

// RF-29: given parts that arrive while the Indexer works, when it asks again, then one batch holds them up to
// the batch bound and one snapshot is published for it; with nothing queued the ask waits and nothing polls.
// - a one batch holds them up to the batch bound
// - b one snapshot is published for it
// - c with nothing queued the ask waits and nothing polls:
//   `rf_29_with_nothing_queued_the_indexer_asks_once_and_nothing_polls`
#[test]
fn rf_29_parts_that_came_while_the_indexer_worked_are_one_batch_up_to_its_bound_and_one_snapshot_each() {
    for (batch, expected) in [(250, 1), (20, 3), (50, 1), (49, 2)] {
        let all = publishes(Bounds { batch, ..Bounds::default() });
        assert_eq!(all.len(), 1 + expected, "batches of {batch}");
    }
}

#[test]
fn rf_29_with_nothing_queued_the_indexer_asks_once_and_nothing_polls() {
    let pops = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&pops);
    let faults = Faults::new(move |here| {
        counted.fetch_add(usize::from(here == Site::DeltaFifoPop), Ordering::Relaxed);
    });
    run_with(faults, three, |world| async move {
        world.synced().await;
        world.streaming().await;
        let before = pops.load(Ordering::Relaxed);
        pass(Duration::from_secs(3600)).await;
        assert_eq!(pops.load(Ordering::Relaxed), before);
        world.apply("a/one", "it waited").await;
        assert_eq!(pops.load(Ordering::Relaxed), before + 1);
    });
}

/// What the hook of REF-51 sees and does.
#[derive(Default)]
struct Watched {
    lister: Option<Lister<String>>,
    replaces: usize,
    pushes: usize,
    kill: bool,
    /// The published version when the reflector was killed.
    at_death: Option<ResourceVersion>,
    published: Vec<ResourceVersion>,
}

// REF-51: given published version 10, parts up to 20 still queued, the Reflector killed, and a server that
// would answer a list at 10 with version 15, when it restarts, then no published version or object goes back,
// and no rewind is counted.
// - a the restarted Reflector asks for the newest queued version
// - b no published version or object goes back
// - c no rewind is counted
#[test]
fn ref_51_a_reflector_killed_while_parts_are_queued_asks_for_the_newest_of_them_and_nothing_goes_back() {
    let watched = Arc::new(Mutex::new(Watched::default()));
    let hook = Arc::clone(&watched);
    let faults = Faults::new(move |here| {
        let mut seen = hook.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lister) = &seen.lister else { return };
        let reached = lister.snapshot().versions().first().expect("one source").clone();
        match here {
            Site::IndexerReplace => seen.replaces += 1,
            Site::DeltaFifoPush => seen.pushes += 1,
            Site::IndexerPublished => seen.published.push(reached),
            Site::ReflectorReceived if std::mem::take(&mut seen.kill) => {
                seen.at_death = Some(reached);
                drop(seen);
                panic!("killed");
            }
            _ => {}
        }
    });
    let at_once = RestartPolicy {
        backoff: BackoffPolicy { base: Duration::ZERO, cap: Duration::ZERO },
        ..RestartPolicy::default()
    };
    let fill = |server: &Server<String>| {
        (0..5_000).for_each(|n| drop(server.apply(&format!("a/{n}"), "old".to_owned())))
    };
    run_built(
        faults,
        |builder| builder.restarts(at_once),
        fill,
        |world| async move {
            world.synced().await;
            world.streaming().await;
            // A relist begins a second after the previous list, at the soonest.
            pass(Duration::from_secs(2)).await;
            world.server.answer_after(Duration::ZERO);
            watched.lock().expect("no panic").lister = Some(world.informer.lister());
            let look = |what: fn(&Watched) -> usize| what(&watched.lock().expect("no panic"));
            world.server.freeze_watches(true);
            fill(&world.server);
            world.server.compact();
            world.server.freeze_watches(false);
            until_now(|| look(|seen| seen.replaces) > 0).await;
            let pushes = look(|seen| seen.pushes);
            let queued = world.server.apply("b/queued", "after the list".to_owned());
            until_now(|| look(|seen| seen.pushes) > pushes).await;
            let asked = world.server.requests().len();
            watched.lock().expect("no panic").kill = true;
            world.server.apply("b/lost", "with the Reflector".to_owned());
            world.agrees().await;
            let seen = std::mem::take(&mut *watched.lock().unwrap_or_else(PoisonError::into_inner));
            assert!(
                seen.at_death.is_some_and(|published| published < queued),
                "parts were queued when it was killed"
            );
            assert_eq!(world.server.requests()[asked], format!("WATCH-LIST version=\"{queued}\""));
            assert!(seen.published.is_sorted(), "{:?}", seen.published);
            let status = world.informer.status();
            assert_eq!((status.sources[0].counters.rewinds, status.sources[0].restarts), (0, 1));
        },
    );
}
