//! Large values that are dropped: none of them is freed on the arbiter that the informers share.
//!
//! Answers "what does it cost other informers when a list fails, a store ends, or a group is restarted?" with bodies
//! that report on which thread they are dropped, and a source whose answers the test sets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer_actors::informer::Informer;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_actors::subscription::{SubscribeOptions, Subscriber, WhenFull};
use informer_actors::testing::{Faults, Site};
use informer_core::delta::{ListPart, Undecodable, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, SourceId};
use informer_core::reflector::SourceState;
use informer_core::request::{ListRequest, WatchRequest};

use crate::blocking::{Gate, Held, on_threads};
use crate::fed::{Fed, version};
use crate::threads::{LIMIT, start};

/// The number of objects of a list.
const COUNT: usize = 2_000;
/// A body that reports on which thread it is dropped; some wait for a gate first.
struct Noted(mpsc::Sender<String>, Option<Held>);

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(gate) = &self.1 {
            gate.wait();
        }
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let _heard = self.0.send(name); // at the end of a test the receiver is gone
    }
}

/// How the source answers a request. When no answer is left, it lists nothing, and its watches are silent.
enum Answer {
    /// A list of all objects, then its end.
    List,
    /// The same in pieces of 50; each piece is created when it is requested.
    Parts,
    /// A list that fails after its last object.
    Fails,
    /// A list whose end never comes.
    NeverEnds,
    /// A list of objects that cannot be read.
    Unreadable,
    /// A watch-list that ends before its bookmark.
    Cut,
}

/// The source; clones share it.
#[derive(Clone)]
struct Written(Arc<Shared>);

struct Shared {
    answers: Mutex<VecDeque<Answer>>,
    lists: AtomicUsize,
    /// The number of objects that have been created.
    made: AtomicUsize,
    received: mpsc::Sender<String>,
    /// The weight of the last object, and the gate that its drop waits for: a vector is freed from its end.
    last: (u32, Option<Held>),
}

impl Written {
    fn new(answers: impl IntoIterator<Item = Answer>) -> (Self, mpsc::Receiver<String>) {
        Self::heavy(answers, (100, None))
    }

    fn heavy(
        answers: impl IntoIterator<Item = Answer>,
        last: (u32, Option<Held>),
    ) -> (Self, mpsc::Receiver<String>) {
        let (received, drops) = mpsc::channel();
        let answers = Mutex::new(answers.into_iter().collect());
        (
            Self(Arc::new(Shared {
                answers,
                lists: AtomicUsize::new(0),
                made: AtomicUsize::new(0),
                received,
                last,
            })),
            drops,
        )
    }

    fn informer(&self, runtime: &Runtime, name: &str) -> Informer<Noted> {
        let source = self.clone();
        Informer::builder(runtime, name).source(move || source.clone()).start().expect("the spec is valid")
    }

    /// The next answer, if it answers this kind of request.
    fn next(&self, watch_list: bool) -> Option<Answer> {
        let mut answers = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.pop_front_if(|answer| matches!(answer, Answer::Cut) == watch_list)
    }

    fn objects(&self) -> impl Iterator<Item = Object<Noted>> + use<> {
        let shared = Arc::clone(&self.0);
        (0..COUNT).map(move |n| {
            let (wire_bytes, gate) = if n == COUNT - 1 { shared.last.clone() } else { (100, None) };
            let key = ObjectKey::namespaced("a", format!("{n:05}"));
            shared.made.fetch_add(1, Ordering::Relaxed);
            let number = u64::try_from(n).expect("small") + 1;
            let meta = Meta::new(key, version(number), SourceId::default());
            Object::new(meta.wire_bytes(wire_bytes), Noted(shared.received.clone(), gate))
        })
    }
}

/// Every object of the source has been received, and none of them has been stored yet.
async fn listed(informer: &Informer<Noted>) {
    let all = |received: u64| received >= COUNT as u64;
    let limit = tokio::time::timeout(
        LIMIT,
        informer.wait_until(
            |status| matches!(status.sources[0].state, SourceState::Listing { received } if all(received)),
        ),
    );
    limit.await.expect("the list comes").expect("it runs");
}

/// Waits until this many objects are dropped, and counts them by thread.
fn threads_of(drops: &mpsc::Receiver<String>, count: usize) -> BTreeMap<String, usize> {
    let mut threads = BTreeMap::new();
    for _ in 0..count {
        *threads.entry(drops.recv_timeout(LIMIT).expect("it is dropped")).or_default() += 1;
    }
    threads
}

fn freed_elsewhere(drops: &mpsc::Receiver<String>) {
    let threads = threads_of(drops, COUNT);
    assert_eq!(threads, BTreeMap::from([("informer-free".to_owned(), COUNT)]), "by thread");
}

impl ListWatch<Noted> for Written {
    fn list(&self, _request: ListRequest, _known: KnownObjects<Noted>) -> ListStream<Noted> {
        self.0.lists.fetch_add(1, Ordering::Relaxed);
        let end = || Ok(ListPart::End { version: version(COUNT as u64), token: None });
        let Some(answer) = self.next(false) else { return stream::iter([end()]).boxed_local() };
        if matches!(answer, Answer::Unreadable) {
            let parts = self.objects().map(|object| {
                let (key, version) = (object.key().clone(), object.version().clone());
                Ok(ListPart::Undecodable(Undecodable { key, version, error: "unreadable".into() }))
            });
            return stream::iter(parts.chain([end()])).boxed_local();
        }
        if matches!(answer, Answer::Parts) {
            let mut objects = self.objects();
            let pieces =
                (0..COUNT / 50).map(move |_| Ok(ListPart::Objects(objects.by_ref().take(50).collect())));
            return stream::iter(pieces.chain([end()])).boxed_local();
        }
        let objects: Vec<_> = self.objects().collect();
        let parts = stream::iter([Ok(ListPart::Objects(objects))]);
        match answer {
            Answer::Fails => {
                parts.chain(stream::iter([Err(ListWatchError::Protocol("it broke".into()))])).boxed_local()
            }
            Answer::NeverEnds => parts.chain(stream::pending()).boxed_local(),
            _ => parts.chain(stream::iter([end()])).boxed_local(),
        }
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<Noted>) -> WatchStream<Noted> {
        if !request.initial_events {
            return stream::once(async { Ok(Vec::new()) }).chain(stream::pending()).boxed_local();
        }
        if self.next(true).is_none() {
            let refusal = ListWatchError::WatchListUnsupported("it lists".into());
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let parts: Vec<_> = self.objects().map(WatchPart::Applied).collect();
        stream::iter([Ok(Vec::new()), Ok(parts)]).boxed_local()
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<Noted>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

#[test]
fn inf_70_a_list_that_fails_at_its_end_is_not_freed_on_the_arbiter() {
    on_threads(async {
        let (source, drops) = Written::new([Answer::Fails]);
        let informer = source.informer(&start(), "fails");
        freed_elsewhere(&drops);
        informer.synced_within(LIMIT).await.expect("the next list ends well");
    });
}

#[test]
fn inf_70_a_watch_list_that_is_cut_before_its_bookmark_is_not_freed_on_the_arbiter() {
    on_threads(async {
        let (source, drops) = Written::new([Answer::Cut]);
        let informer = source.informer(&start(), "cut");
        freed_elsewhere(&drops);
        informer.synced_within(LIMIT).await.expect("the list that follows ends well");
    });
}

#[test]
fn inf_70_a_list_that_a_shutdown_ends_in_the_middle_is_not_freed_on_the_arbiter() {
    on_threads(async {
        let (runtime, (source, drops)) = (start(), Written::new([Answer::NeverEnds]));
        let informer = source.informer(&runtime, "unfinished");
        listed(&informer).await;
        assert!(informer.shutdown(LIMIT).await.is_clean());
        freed_elsewhere(&drops);
    });
}

// INF-70: given a list that fails, is cut, is stopped or is ended by a restart of the group, a store that is
// replaced or whose last handle is gone, and the owed events of a subscriber that ends or overflows, when it
// is dropped, then none of its objects is freed on the arbiter or on the decode pool; while 256 MiB or more
// are still to be freed no list begins, which the source's status shows.
// - a a list that fails at its end: `inf_70_a_list_that_fails_at_its_end_is_not_freed_on_the_arbiter`
// - b a watch-list that is cut:
//   `inf_70_a_watch_list_that_is_cut_before_its_bookmark_is_not_freed_on_the_arbiter`
// - c a stop in mid-list: `inf_70_a_list_that_a_shutdown_ends_in_the_middle_is_not_freed_on_the_arbiter`
// - d a restart in mid-Replace
// - e the store, with the last handle:
//   `inf_70_the_store_of_an_informer_is_freed_with_its_last_handle_but_not_on_the_arbiter`
// - f every other end of a list: `inf_70_no_way_in_which_a_list_ends_frees_its_objects_in_the_machine`
// - g objects that cannot be read are taken over by slices:
//   `a_list_of_which_nothing_can_be_decoded_is_processed_and_forgotten_in_slices`
// - h what a stalled subscriber was owed:
//   `inf_70_what_waited_for_a_stalled_subscriber_is_not_freed_on_the_arbiter`
// - i the decode pool goes on, the next list waits:
//   `inf_70_while_objects_are_freed_all_other_work_goes_on_and_only_the_next_list_waits_from_256_mib_on`
// - j until they are free, what a store, a publish and a backlog under `Every` held counts as bytes to free:
//   `inf_70_the_objects_of_an_informer_that_ends_count_as_bytes_to_free_until_they_are_free`
#[test]
fn inf_70_a_list_that_a_restart_of_the_group_ends_in_the_middle_of_its_replace_is_not_freed_on_the_arbiter() {
    on_threads(async {
        let slices = Arc::new(AtomicUsize::new(0));
        let faults = Faults::new(move |site| {
            let dies = site == Site::IndexerReplace && slices.fetch_add(1, Ordering::Relaxed) == 3;
            assert!(!dies, "panics on purpose");
        });
        let runtime = Runtime::threads().faults(faults).start().expect("threads can be started");
        let (source, drops) = Written::new([Answer::List]);
        let informer = source.informer(&runtime, "restarted");
        freed_elsewhere(&drops);
        informer.synced_within(LIMIT).await.expect("the list after the restart ends well");
        assert_eq!(source.0.lists.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn inf_70_the_store_of_an_informer_is_freed_with_its_last_handle_but_not_on_the_arbiter() {
    on_threads(async {
        let (runtime, (source, drops)) = (start(), Written::new([Answer::List]));
        let informer = source.informer(&runtime, "large");
        informer.synced_within(LIMIT).await.expect("it syncs");
        drop(informer);
        freed_elsewhere(&drops);
    });
}

#[test]
fn inf_70_no_object_is_freed_on_the_arbiter_when_its_last_subscriber_and_its_informer_end() {
    on_threads(async {
        let (runtime, (source, drops)) = (start(), Written::new([Answer::List]));
        let informer = source.informer(&runtime, "subscribed");
        let subscription = informer.subscribe(Subscriber::blocking(|_| {})).expect("it runs");
        subscription.synced_within(LIMIT).await.expect("it has received everything");
        drop((subscription, informer));
        let threads = threads_of(&drops, COUNT);
        assert!(!threads.contains_key("informer-0"), "{threads:?}");
    });
}

#[test]
fn a_list_in_which_no_object_can_be_read_is_taken_over_by_slices() {
    on_threads(async {
        let (runtime, (source, _drops)) = (start(), Written::new([Answer::Unreadable]));
        let informer = source.informer(&runtime, "unreadable");
        informer.synced_within(LIMIT).await.expect("it syncs");
        assert_eq!(informer.snapshot().undecodable_len(), COUNT);
    });
}

#[test]
fn inf_70_while_objects_are_freed_all_other_work_goes_on_and_only_the_next_list_waits_from_256_mib_on() {
    on_threads(async {
        let runtime = Runtime::threads().decoders(1).start().expect("threads can be started");
        let (gate, held) = Gate::new();
        let (source, drops) = Written::heavy([Answer::Fails], (300 << 20, Some(held)));
        let informer = source.informer(&runtime, "heavy");
        let waits = informer.wait_until(|status| status.sources[0].waits_for_memory);
        tokio::time::timeout(LIMIT, waits).await.expect("its next list waits").expect("it runs");
        assert!(runtime.bytes_to_free() >= 256 << 20, "{}", runtime.bytes_to_free());
        assert_eq!(source.0.lists.load(Ordering::Relaxed), 1);
        assert_eq!(runtime.decode_pool().run(|| 7).await, Ok(7), "the one decoder is free");
        drop(gate);
        informer.synced_within(LIMIT).await.expect("then it lists");
        assert!(!informer.status().sources[0].waits_for_memory);
        freed_elsewhere(&drops);
    });
}

/// Waits until this is true.
pub(crate) async fn comes_true(what: &str, condition: impl Fn() -> bool) {
    let comes_true = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, comes_true).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[test]
fn inf_70_the_objects_of_an_informer_that_ends_count_as_bytes_to_free_until_they_are_free() {
    on_threads(async {
        let (runtime, (gate, held)) = (start(), Gate::new());
        let (source, drops) = Written::heavy([Answer::List], (100, Some(held)));
        let informer = source.informer(&runtime, "weighed");
        informer.synced_within(LIMIT).await.expect("it syncs");
        assert_eq!(informer.snapshot().wire_bytes(), COUNT * 100);
        comes_true("its list is free", || runtime.bytes_to_free() == 0).await;
        drop(informer);
        comes_true("its objects are to be freed", || runtime.bytes_to_free() == COUNT * 100).await;
        drop(gate);
        comes_true("all is free", || runtime.bytes_to_free() == 0).await;
        freed_elsewhere(&drops);
    });
}

#[test]
fn inf_70_replaced_objects_and_the_events_that_waited_for_a_subscriber_count_as_bytes_to_free() {
    const OBJECTS: u64 = 250;
    const REPLACED: usize = 250 * 100;
    on_threads(async {
        let (runtime, (gate, held), (told, _drops)) = (start(), Gate::new(), mpsc::channel());
        let fed = Fed::new(OBJECTS, move || Noted(told.clone(), Some(held.clone())));
        let informer = fed.informer(&runtime, "replaced");
        fed.watched().await;
        comes_true("its list is free", || runtime.bytes_to_free() == 0).await;
        informer.lister().wait_for(&fed.update_all(OBJECTS), LIMIT).await.expect("it arrives");
        comes_true("what is replaced is to be freed", || runtime.bytes_to_free() == REPLACED).await;
        let options = SubscribeOptions::new().every(1 << 30, WhenFull::Disconnect);
        let stalled =
            informer.subscribe_with(options, Subscriber::each(|_| std::future::pending())).expect("it runs");
        comes_true("it is called", || stalled.status().in_flight).await;
        informer.lister().wait_for(&fed.update_all(2 * OBJECTS), LIMIT).await.expect("it arrives");
        comes_true("it is replaced again", || runtime.bytes_to_free() == 2 * REPLACED).await;
        comes_true("its events have reached it", || stalled.status().depth == 250 - 64 + 250).await;
        drop(stalled);
        let owed = 250 * (100 + 64);
        comes_true("so are its events", || runtime.bytes_to_free() == 2 * REPLACED + owed).await;
        drop(gate);
        comes_true("all is free", || runtime.bytes_to_free() == 0).await;
    });
}

/// Sends every object ten times to a subscriber that never returns, and drops it; returns the threads that
/// freed what waited for it.
async fn after_a_stalled_subscriber(bytes: usize, when_full: WhenFull) -> BTreeMap<String, usize> {
    const OBJECTS: u64 = 250;
    let (runtime, (received, drops)) = (start(), mpsc::channel());
    let fed = Fed::new(OBJECTS, move || Noted(received.clone(), None));
    let informer = fed.informer(&runtime, "stalled");
    let options = SubscribeOptions::new().every(bytes, when_full);
    let stalled =
        informer.subscribe_with(options, Subscriber::each(|_| std::future::pending())).expect("it runs");
    fed.watched().await;
    for round in 1..=10 {
        let newest = fed.update_all(round * OBJECTS);
        informer.lister().wait_for(&newest, LIMIT).await.expect("it arrives");
    }
    // Until the older frames are freed they hold the objects too. Values are freed in the order in which they
    // arrive.
    let (marker, freed) = Written::new([Answer::List]);
    let other = marker.informer(&runtime, "marker");
    other.synced_within(LIMIT).await.expect("it syncs");
    drop(other);
    threads_of(&freed, COUNT);
    drop(stalled);
    // The last states stay; the objects of its window are dropped where its closure runs.
    threads_of(&drops, 9 * 250)
}

#[test]
fn inf_70_what_waited_for_a_stalled_subscriber_is_not_freed_on_the_arbiter() {
    on_threads(async {
        for (bytes, when_full) in
            [(1 << 30, WhenFull::Disconnect), (30_000, WhenFull::Restate), (30_000, WhenFull::Disconnect)]
        {
            let threads = after_a_stalled_subscriber(bytes, when_full).await;
            assert!(!threads.contains_key("informer-0"), "{when_full:?} at {bytes}: {threads:?}");
        }
    });
}

#[test]
fn a_list_that_is_always_ready_lets_others_have_their_turn_after_at_most_250_objects() {
    Runtime::simulated(7).run(|runtime| async move {
        let (source, _drops) = Written::new([Answer::Parts]);
        let informer = source.informer(&runtime, "ready");
        let mut most = 0;
        let mut before = 0;
        while informer.snapshot().is_empty() {
            tokio::task::yield_now().await;
            let made = source.0.made.load(Ordering::Relaxed);
            (most, before) = (most.max(made - before), made);
        }
        assert_eq!(before, COUNT);
        assert!(most <= 250, "{most} objects in one turn");
    });
}
