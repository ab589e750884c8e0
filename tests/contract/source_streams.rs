//! REF-23 and REF-47: the streams that are open at a source, counted by the source.
//!
//! Answers "is a stream that is no longer needed closed, and are there ever too many?" The source counts its streams
//! itself: each carries a guard that counts when it is dropped. Lists take some time, so that they overlap.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, stream};
use informer_actors::informer::Informer;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_actors::testing::{Faults, Site};
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};
use informer_core::reflector::SourceState;
use informer_core::request::{ListRequest, WatchRequest};

use crate::world::{LONG, World, pass, three};

/// How long a list takes, and how long the head of a watch takes.
const ANSWER: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Counts {
    opened: usize,
    dropped: usize,
    /// How many streams were open right after each one was opened.
    beside: Vec<usize>,
    /// Open lists, and watch-lists before their end bookmark.
    listing: usize,
    most_listing: usize,
}

/// The streams of one server.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<Counts>>);

/// One open stream.
struct Open {
    streams: Streams,
    is_list: bool,
}

impl Streams {
    fn with<T>(&self, look: impl FnOnce(&mut Counts) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn open(&self, is_list: bool) -> Open {
        self.with(|counts| {
            counts.opened += 1;
            counts.beside.push(counts.opened - counts.dropped);
            counts.listing += usize::from(is_list);
            counts.most_listing = counts.most_listing.max(counts.listing);
        });
        Open { streams: self.clone(), is_list }
    }

    fn are_open(&self) -> usize {
        self.with(|counts| counts.opened - counts.dropped)
    }
}

impl Open {
    fn has_listed(&mut self) {
        let was_list = std::mem::take(&mut self.is_list);
        self.streams.with(|counts| counts.listing -= usize::from(was_list));
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.has_listed();
        self.streams.with(|counts| counts.dropped += 1);
    }
}

/// A server that counts its streams.
#[derive(Clone)]
struct Counted {
    server: Server<String>,
    streams: Streams,
}

impl ListWatch<String> for Counted {
    fn list(&self, request: ListRequest, known: KnownObjects<String>) -> ListStream<String> {
        let is_question = request.name.is_some();
        let list = self.server.list(request, known);
        if is_question {
            return list;
        }
        let open = self.streams.open(true);
        let slow = list.then(move |part| {
            let _open = &open;
            let takes = if matches!(part, Ok(ListPart::End { .. })) { ANSWER } else { Duration::ZERO };
            async move {
                pass(takes).await;
                part
            }
        });
        slow.boxed_local()
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<String>) -> WatchStream<String> {
        let mut open = self.streams.open(request.initial_events);
        let watch = self.server.watch(request, known);
        let watch = watch.map(move |parts| {
            let is_end = |part: &WatchPart<String>| {
                matches!(part, WatchPart::Bookmark { initial_events_end: true, .. })
            };
            if parts.as_ref().is_ok_and(|parts| parts.iter().any(is_end)) {
                open.has_listed();
            }
            parts
        });
        stream::once(pass(ANSWER)).flat_map(move |()| stream::empty()).chain(watch).boxed_local()
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        self.server.get(key)
    }
}

fn counted(runtime: Runtime) -> (World, Streams) {
    let (server, streams) = (Server::new(), Streams::default());
    three(&server);
    server.serve_watch_list(false);
    let source = Counted { server: server.clone(), streams: streams.clone() };
    let informer = Informer::builder(&runtime, "texts").source(move || source.clone());
    let informer = informer.start().expect("the spec is valid");
    (World { server, informer, runtime }, streams)
}

/// Waits until a watch has been accepted.
async fn watching(world: &World) {
    world.streaming().await;
    pass(2 * ANSWER).await;
}

#[test]
fn ref_23_a_failed_stream_is_dropped_before_the_next_is_opened() {
    Runtime::simulation(23).build().run(|runtime| async move {
        let (world, streams) = counted(runtime);
        watching(&world).await;
        for error in [
            None,
            Some(ListWatchError::source("cut")),
            Some(ListWatchError::Expired("too old".into())),
            Some(ListWatchError::Denied("no".into())),
            Some(ListWatchError::Unreadable("garbage".into())),
        ] {
            pass(Duration::from_secs(15)).await;
            assert_eq!(streams.are_open(), 1, "before {error:?}");
            world.server.end_watches(error.clone());
            if matches!(error, Some(ListWatchError::Denied(_))) {
                world.state(|state| matches!(state, SourceState::Denied { .. })).await;
                assert_eq!(streams.are_open(), 0, "nothing is open in a wait");
            }
            watching(&world).await;
        }
        world.server.end_watches(Some(ListWatchError::Expired("too old".into())));
        world.server.refuse([ListWatchError::source("a list fails too")]);
        watching(&world).await;
        assert!(world.informer.status().sources[0].counters.lists >= 4);
        let most = streams.with(|counts| counts.beside.iter().copied().max());
        assert_eq!(most, Some(1), "two streams were open together");
    });
}

#[test]
fn ref_23_only_while_a_renewal_awaits_its_head_are_two_streams_open() {
    Runtime::simulation(23).build().run(|runtime| async move {
        let (world, streams) = counted(runtime);
        watching(&world).await;
        let opened = streams.with(|counts| counts.opened);
        while streams.with(|counts| counts.opened) == opened {
            assert_eq!(streams.are_open(), 1);
            pass(Duration::from_millis(10)).await;
        }
        assert_eq!(streams.are_open(), 2, "the renewal awaits its head");
        pass(2 * ANSWER).await;
        assert_eq!((streams.are_open(), world.informer.status().sources[0].counters.renewals), (1, 1));
    });
}

// REF-23: given an open list or watch stream, when the informer stops, the stream fails or the reflector
// restarts, then that stream is dropped exactly once, and two streams of one source are never open together,
// except while a renewal (REF-39) awaits its head.
// - a when the informer stops, the stream is dropped
// - b when it fails: `ref_23_a_failed_stream_is_dropped_before_the_next_is_opened`
// - c when the reflector restarts
// - d each is dropped exactly once
// - e two are never open together: `ref_23_a_failed_stream_is_dropped_before_the_next_is_opened`
// - f except while a renewal awaits its head:
//   `ref_23_only_while_a_renewal_awaits_its_head_are_two_streams_open`
#[test]
fn ref_23_a_stop_and_a_restart_of_the_reflector_drop_what_is_open() {
    let lethal = Arc::new(AtomicBool::new(false));
    let kill = Arc::clone(&lethal);
    let faults = Faults::new(move |here| {
        let is_due = here == Site::ReflectorReceived && kill.swap(false, Ordering::Relaxed);
        assert!(!is_due, "killed");
    });
    Runtime::simulation(23).faults(faults).build().run(|runtime| async move {
        let (world, streams) = counted(runtime);
        watching(&world).await;
        for restarts in 1..=2 {
            lethal.store(true, Ordering::Relaxed);
            world.server.apply("a/one", "lethal".to_owned());
            world.informer.wait_until(|status| status.restarts == restarts).await.expect("it runs");
            assert_eq!(streams.are_open(), 0, "stopped, and waiting out its backoff");
            if restarts == 1 {
                watching(&world).await;
            } else {
                // The second time it is stopped in the middle of its list.
                world.server.hold_lists(true);
                world.state(|state| matches!(state, SourceState::Listing { received: 3 })).await;
            }
            assert_eq!(streams.are_open(), 1);
        }
        assert!(world.informer.shutdown(LONG).await.is_clean());
        let (opened, dropped) = streams.with(|counts| (counts.opened, counts.dropped));
        assert_eq!(opened, dropped, "each is dropped exactly once");
        assert_eq!(streams.with(|counts| counts.beside.iter().copied().max()), Some(1));
    });
}

#[test]
fn ref_23_a_stop_in_mid_watch_drops_the_watch() {
    Runtime::simulation(23).build().run(|runtime| async move {
        let (world, streams) = counted(runtime);
        watching(&world).await;
        assert_eq!(streams.are_open(), 1);
        assert!(world.informer.shutdown(LONG).await.is_clean());
        assert_eq!(streams.are_open(), 0);
    });
}

#[test]
fn ref_47_never_more_lists_than_the_budget_are_in_flight_whether_all_start_or_all_relist() {
    for serve_watch_list in [true, false] {
        Runtime::simulation(47).lists_at_once(4).build().run(|runtime| async move {
            let (server, streams) = (Server::new(), Streams::default());
            three(&server);
            server.serve_watch_list(serve_watch_list);
            let informers: Vec<_> = (0..100)
                .map(|n| {
                    let source = Counted { server: server.clone(), streams: streams.clone() };
                    let informer = Informer::builder(&runtime, format!("texts-{n}"));
                    informer.source(move || source.clone()).start().expect("the spec is valid")
                })
                .collect();
            for informer in &informers {
                informer.synced_within(LONG).await.expect("each syncs");
            }
            pass(Duration::from_secs(2)).await;
            server.end_watches(Some(ListWatchError::Expired("too old".into())));
            for informer in &informers {
                informer.wait_until(|status| status.relists() == 1).await.expect("each relists");
            }
            let version = server.apply("a/one", "after".to_owned());
            for informer in &informers {
                informer.lister().wait_for(&version, LONG).await.expect("each follows");
            }
            assert_eq!(streams.with(|counts| counts.most_listing), 4, "{serve_watch_list}");
            let failures = informers.iter().map(|informer| informer.status().sources[0].counters.failures);
            assert_eq!(failures.sum::<u64>(), 0, "waiting for the budget is not a failure");
        });
    }
}

#[test]
fn ref_47_a_hundred_informers_that_start_at_one_moment_begin_spread_over_the_start_jitter() {
    let simulation = Runtime::simulation(47).start_jitter(Duration::from_secs(10));
    simulation.build().run(|runtime| async move {
        let server = Server::new();
        three(&server);
        let informers: Vec<_> = (0..100)
            .map(|n| {
                let connected = server.clone();
                let informer = Informer::builder(&runtime, format!("texts-{n}"));
                informer.source(move || connected.clone()).start().expect("the spec is valid")
            })
            .collect();
        let (mut asked, mut each_second) = (0, Vec::new());
        for _ in 0..10 {
            pass(Duration::from_secs(1)).await;
            let before = std::mem::replace(&mut asked, server.requests().len());
            each_second.push(asked - before);
        }
        assert_eq!(asked, informers.len(), "{each_second:?}");
        assert!(each_second.iter().all(|count| (2..=25).contains(count)), "{each_second:?}");
    });
}
