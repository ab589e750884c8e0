//! Tests of the waits for a newer snapshot, over a store of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use informer_core::delta::{Cause, Replacement, WatchPart};
use informer_core::indexer::{Progress, Publish, Store};
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::off_arbiter::{PendingFree, Release};

use super::{AT_ONCE, Epoch, Published, Woken};
use crate::pipeline::waits::{NewObjects, News};

struct Here;

impl Release for Here {
    fn release(&self, pending: PendingFree) {
        drop(pending);
    }
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

/// How many values were released to be freed elsewhere.
#[derive(Default)]
struct Elsewhere(AtomicUsize);

impl Release for Elsewhere {
    fn release(&self, _: PendingFree) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn informer_14_a_snapshot_that_a_reader_is_the_last_to_hold_is_freed_by_the_indexer() {
    let elsewhere = Arc::new(Elsewhere::default());
    let published = Published::<()>::new([], Arc::<Elsewhere>::clone(&elsewhere));
    let mut store = Store::new(published.snapshot(), Vec::new());
    let mut publish = |number: u64| {
        let part = WatchPart::Bookmark { version: version(number), initial_events_end: false };
        let Publish { before, snapshot, .. } = store.apply_parts([(SourceId::default(), part)]);
        assert!(published.publish(Epoch(0), snapshot));
        before.free_here();
    };
    publish(1);
    // The system pauses the reader here, and the next state is published.
    published.read(|_| publish(2));
    assert_eq!(published.given_back.with(|given_back| given_back.len()), 1);
    published.free_given_back(AT_ONCE);
    assert_eq!(published.given_back.with(|given_back| given_back.len()), 0);
    assert_eq!(elsewhere.0.load(Ordering::Relaxed), 0, "nothing of it went to the freeing thread");
    published.read(|_| publish(3));
    published.free_given_back(AT_ONCE + 1);
    assert_eq!(elsewhere.0.load(Ordering::Relaxed), 1, "a turn frees no more than it may");
    published.read(|_| ());
    assert_eq!(published.given_back.with(|given_back| given_back.len()), 0, "it is the newest still");
}

/// A store, and what it has published.
struct Play {
    published: Arc<Published<()>>,
    store: Store<()>,
}

impl Play {
    fn new() -> Self {
        let published = Arc::new(Published::<()>::new([], Arc::new(Here)));
        Self { store: Store::new(published.snapshot(), Vec::new()), published }
    }

    /// Publishes, and returns what its waits have to hear, if there are any.
    fn publish(&self, source: &SourceId, applied: Publish<()>) -> Option<News<()>> {
        assert!(self.published.publish(Epoch(0), applied.snapshot.clone()));
        self.published.news(&applied.snapshot, std::slice::from_ref(source), applied.changes.as_ref())
    }

    fn apply(&mut self, source: &SourceId, part: WatchPart<()>) -> Option<News<()>> {
        let applied = self.store.apply_parts([(source.clone(), part)]);
        self.publish(source, applied)
    }

    /// The source reaches a version, and all who wait for it hear of it.
    fn reach(&mut self, source: &SourceId, number: u64) {
        let part = WatchPart::Bookmark { version: version(number), initial_events_end: false };
        if let Some(mut news) = self.apply(source, part) {
            while self.published.wake(&mut news) {}
        }
    }

    fn waits(&self) -> usize {
        self.published.waits.with(|waits| waits.len())
    }
}

fn is_woken(wait: &mut Woken<()>) -> bool {
    wait.now_or_never().is_some()
}

fn object(source: &SourceId, name: &str, number: u64) -> Object<()> {
    let key = ObjectKey::namespaced("a", name);
    Object::new(Meta::new(key, version(number), source.clone()), ())
}

#[test]
fn a_wait_for_a_version_is_woken_by_the_publish_that_reaches_it_and_by_none_before() {
    let mut play = Play::new();
    let (here, other) = (SourceId::new("here"), SourceId::new("other"));
    play.reach(&here, 1);
    let published = Arc::clone(&play.published);
    let (mut five, mut seven) =
        (published.reaching(&here, &version(5)), published.reaching(&here, &version(7)));
    play.reach(&here, 4);
    play.reach(&other, 9);
    assert!(!is_woken(&mut five));
    play.reach(&here, 6);
    assert_eq!((is_woken(&mut five), is_woken(&mut seven)), (true, false));
    drop(seven);
    assert_eq!(play.waits(), 0, "a wait that was dropped is forgotten");
    let mut gone = published.reaching(&SourceId::new("gone"), &version(1));
    let mut news = published.news(&play.store.snapshot(), &[SourceId::new("gone")], None).expect("one waits");
    assert!(!published.wake(&mut news));
    assert!(is_woken(&mut gone), "the wait looks again whether its source is still there");
}

#[test]
fn informer_9_a_publish_looks_at_no_wait_but_those_of_its_sources_and_its_objects() {
    let mut play = Play::new();
    let (here, published) = (SourceId::new("here"), Arc::clone(&play.published));
    let mut waits: Vec<_> = (0..16_000).map(|n| published.reaching(&here, &version(1_000 + n))).collect();
    let others: Vec<_> =
        (0..2_000).map(|n| published.reaching(&SourceId::new(format!("{n}")), &version(1))).collect();
    let keys: Vec<_> =
        (0..2_000).map(|n| published.changing(&ObjectKey::namespaced("a", format!("{n}")), None)).collect();
    let mut news = play.apply(&here, WatchPart::Applied(object(&here, "1999", 1_001))).expect("they wait");
    assert!(matches!(&news.objects, NewObjects::These(keys) if keys.len() == 1), "one key, and no other");
    assert_eq!(news.sources, std::slice::from_ref(&here), "one source, and no other");
    assert!(!published.wake(&mut news));
    assert_eq!(play.waits(), 20_000 - 3, "two for the version, one for the object");
    let woken = waits.iter_mut().map(is_woken).filter(|woken| *woken).count();
    assert_eq!(woken, 2);
    drop((waits, others, keys));
    assert_eq!(play.waits(), 0);
}

#[test]
fn informer_9_no_turn_wakes_more_than_250_waits_and_every_one_is_woken() {
    let mut play = Play::new();
    let (here, published) = (SourceId::new("here"), Arc::clone(&play.published));
    let mut waits: Vec<_> = (0..600).map(|_| published.reaching(&here, &version(7))).collect();
    let one = ObjectKey::namespaced("a", "one");
    waits.extend((0..600).map(|_| published.changing(&one, None)));
    let mut news = play.apply(&here, WatchPart::Applied(object(&here, "one", 7))).expect("they wait");
    let (mut turns, mut left) = (0, 1_200);
    loop {
        let more = published.wake(&mut news);
        assert!(left - play.waits() <= AT_ONCE, "{left} before, {} after", play.waits());
        (turns, left) = (turns + 1, play.waits());
        if !more {
            break;
        }
    }
    assert_eq!((left, turns), (0, 5));
    assert!(waits.iter_mut().all(is_woken));
}

#[test]
fn a_list_wakes_the_waits_for_its_objects_in_slices_and_no_other() {
    let mut play = Play::new();
    let (here, published) = (SourceId::new("here"), Arc::clone(&play.published));
    let key = |n: usize| ObjectKey::namespaced("a", format!("{n:04}"));
    let mut waits: Vec<_> = (0..1_000).map(|n| published.changing(&key(n), None)).collect();
    let listed = (0..500).map(|n| object(&here, &format!("{n:04}"), 7));
    let replacement = Replacement::new(version(7), Cause::InitialList, listed.collect(), Vec::new());
    play.store.begin_replace(here.clone(), replacement);
    let applied = loop {
        if let Progress::Done(applied) = play.store.advance(250) {
            break applied;
        }
    };
    let mut news = play.publish(&here, applied).expect("they wait");
    let mut turns = 1;
    while published.wake(&mut news) {
        turns += 1;
    }
    assert_eq!(turns, 1_000 / AT_ONCE, "each turn looks at so many");
    assert_eq!(waits.iter_mut().map(is_woken).filter(|woken| *woken).count(), 500);
    assert_eq!(play.waits(), 500);
}

#[test]
fn a_list_looks_at_no_wait_of_an_object_that_it_did_not_change() {
    let (mut play, here) = (Play::new(), SourceId::new("here"));
    play.apply(&here, WatchPart::Applied(object(&here, "same", 5)));
    let published = Arc::clone(&play.published);
    let key = ObjectKey::namespaced("a", "same");
    let at = |number| published.changing(&key, Some(version(number)));
    let mut waits: Vec<_> = (0..16_000).map(|_| at(5)).collect();
    let mut others = [published.changing(&key, None), at(4), at(6)];
    let mut news = News { snapshot: published.snapshot(), sources: vec![], objects: NewObjects::Any(None) };
    while published.wake(&mut news) {}
    assert!(others.iter_mut().all(is_woken), "they know another version");
    assert!(!waits.iter_mut().any(is_woken));
    let looks = published.waits.with(|waits| waits.looks());
    assert!(looks < 10, "{looks} looks");
}
