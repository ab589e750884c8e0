//! How often the pipeline allocates for an event, and where.
//!
//! Answers "what does one event cost the allocator, besides its body?" with parts that are created beforehand, so that
//! only the pipeline's allocations are counted. The fault hook is called in every actor: what is allocated between two
//! calls belongs to the second. Invariant: parts, keys and bodies are allocated before the count begins.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer_actors::informer::Informer;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Faults, Site};
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::request::{ListRequest, WatchRequest};
use tokio::sync::mpsc;

use super::{COUNTING, LONG, settle};

const OBJECTS: u64 = 1_000;
/// Events, or batches, that are counted.
const ROUNDS: u64 = 100;

type Parts = Vec<WatchPart<()>>;
type Body = Rc<RefCell<Option<mpsc::Receiver<Parts>>>>;

/// Lists objects, then brings the events that the test has made.
struct Made(Body);

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

/// The same object in a version, its names shared with the other versions, as the client does it.
fn object(n: u64, number: u64, names: &[(ObjectKey, Uid)]) -> Object<()> {
    let (key, uid) = names[usize::try_from(n).expect("small")].clone();
    let meta = Meta::new(key, version(number), SourceId::default()).uid(Some(uid)).wire_bytes(100);
    Object::new(meta, ())
}

fn names() -> Vec<(ObjectKey, Uid)> {
    let name = |n: u64| {
        (ObjectKey::namespaced("a", format!("{n:04}")), Uid::new(&n.to_string()).expect("not empty"))
    };
    (0..OBJECTS).map(name).collect()
}

impl ListWatch<()> for Made {
    fn list(&self, _request: ListRequest, _known: KnownObjects<()>) -> ListStream<()> {
        let names = names();
        let objects = (0..OBJECTS).map(|n| object(n, n + 1, &names)).collect();
        let end = ListPart::End { version: version(OBJECTS), token: None };
        stream::iter([Ok(ListPart::Objects(objects)), Ok(end)]).boxed_local()
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<()>) -> WatchStream<()> {
        if request.initial_events {
            let refusal = ListWatchError::WatchListUnsupported("it lists".into());
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let Some(parts) = self.0.borrow_mut().take() else { return stream::pending().boxed_local() };
        let parts = stream::unfold(parts, async |mut parts| Some((Ok(parts.recv().await?), parts)));
        stream::once(async { Ok(Vec::new()) }).chain(parts).boxed_local()
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<()>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

/// How often each site was passed, and the allocations made between it and the site before.
#[derive(Default)]
struct Sites {
    last: usize,
    counts: BTreeMap<Site, (u64, usize)>,
}

type Counted = Arc<Mutex<Sites>>;

fn counting() -> (Faults, Counted) {
    let counted = Counted::default();
    let hook = Arc::clone(&counted);
    let faults = Faults::new(move |site| {
        // An actor has several turns for a batch; the messages are counted.
        if matches!(site, Site::TurnBegun | Site::TurnEnded) {
            return;
        }
        let now = COUNTING.stats().allocations;
        let mut sites = hook.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now - sites.last;
        let (passed, allocations) = sites.counts.entry(site).or_default();
        (*passed, *allocations) = (*passed + 1, *allocations + since);
        // What the map itself has allocated is not the pipeline's.
        sites.last = COUNTING.stats().allocations;
    });
    (faults, counted)
}

/// What each event costs when so many come at once; with the places.
async fn an_event(runtime: &Runtime, counted: &Counted, batch: u64) -> (f64, String) {
    let (say, said) = mpsc::channel(1);
    let body = Arc::new(Mutex::new(Some(said)));
    let connect = move || {
        let said = body.lock().unwrap_or_else(PoisonError::into_inner).take();
        Made(Rc::new(RefCell::new(said)))
    };
    let informer = Informer::builder(runtime, "counted").source(connect).start().expect("the spec is valid");
    let subscription = informer.for_each(|_| std::future::ready(())).expect("it runs");
    subscription.synced_within(LONG).await.expect("it has received everything");
    let names = names();
    let mut next = OBJECTS;
    let mut made = || -> Parts {
        let one = |_| {
            next += 1;
            WatchPart::Applied(object(next * 7 % OBJECTS, next, &names))
        };
        (0..batch).map(one).collect()
    };
    let warm: Vec<Parts> = (0..ROUNDS).map(|_| made()).collect();
    let events: Vec<Parts> = (0..ROUNDS).map(|_| made()).collect();
    for parts in warm {
        say.send(parts).await.expect("the watch is open");
        settle().await;
    }
    *counted.lock().unwrap_or_else(PoisonError::into_inner) =
        Sites { last: COUNTING.stats().allocations, counts: BTreeMap::new() };
    let before = COUNTING.stats().allocations;
    for parts in events {
        say.send(parts).await.expect("the watch is open");
        settle().await;
    }
    let all = COUNTING.stats().allocations - before;
    let (received, each) =
        (subscription.status().delivered, |count: usize| count as f64 / (ROUNDS * batch) as f64);
    assert!(received >= OBJECTS + ROUNDS * batch, "{received} are delivered");
    let mut places = String::new();
    for (site, (passed, count)) in &counted.lock().unwrap_or_else(PoisonError::into_inner).counts {
        write!(places, "\n  {:6.2} before {site:?}", each(*count)).expect("a String takes every text");
        // Each actor that handles a batch has sites of its own, so this counts the messages.
        assert_eq!(*passed, ROUNDS, "a batch passes {site:?} once");
    }
    (each(all), places)
}

// INF-71: given a thousand objects and one subscribed closure, when an update comes alone, then the pipeline
// allocates at most 28 times for it besides its body, and in a batch of 64 at most 1.5 times; a batch is four
// messages, each handled once; threads without work sleep.
// - a the counts, by the place where they arise
// - b threads that sleep: `threads_without_a_job_sleep`
/// INF-71: a lone event, and one of many, allocate no more than this besides their bodies.
#[test]
fn inf_71_an_event_allocates_little_besides_its_body() {
    let _alone = super::ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (batch, most) in [(1, 28.0), (64, 1.5)] {
        let (faults, counted) = counting();
        Runtime::simulation(1).faults(faults).build().run(|runtime| async move {
            // As on real threads: in a simulation every change leaves marks.
            runtime.paths().sample(0);
            let (each, places) = an_event(&runtime, &counted, batch).await;
            println!("{each:.2} allocations an event in batches of {batch}{places}");
            assert!(
                each <= most,
                "{each:.2} allocations an event in batches of {batch}, {most} allowed{places}"
            );
        });
    }
}
