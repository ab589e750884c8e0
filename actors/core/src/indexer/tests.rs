//! The store: scenarios of the contract, and properties against naive models.
//!
//! Answers "what does a test see of a publish?" with [`Play`]: it feeds a store, advances it in slices of 250, checks
//! every invariant at each publish and writes changes and incidents as text.

use crate::delta::{Cause, Change, Replacement, Undecodable, WatchPart};
use crate::index::Index;
use crate::indexer::machine::UnderWay;
use crate::indexer::{Progress, Publish, Reported, Store, invariants};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{key, version, worded, written};

mod hand_over;
mod indices;
mod machine;
mod parts;
mod props;
mod queued;
mod replace;
mod sources;

/// Whether something is under way.
fn is_busy<S>(store: &Store<S>) -> bool {
    store.under_way() != UnderWay::Nothing
}

/// A store, and all that it has published.
struct Play {
    store: Store<String>,
    published: Vec<Snapshot<String>>,
    specs: Vec<Index<String>>,
}

impl Play {
    fn new() -> Self {
        Self::with_indices(Vec::new())
    }

    fn with_indices(specs: Vec<Index<String>>) -> Self {
        let store = Store::new(Snapshot::empty(), specs.iter().map(Into::into).collect());
        Self { published: vec![store.snapshot()], store, specs }
    }

    /// A store that has listed these objects of the default source at a version.
    fn listed(number: u64, objects: &[Object<String>]) -> Self {
        let mut play = Self::new();
        play.replace(number, Cause::InitialList, objects);
        play
    }

    fn now(&self) -> &Snapshot<String> {
        self.published.last().expect("at least the empty snapshot")
    }

    fn holds(&self) -> Vec<String> {
        self.now().iter().map(written).collect()
    }

    fn apply(&mut self, parts: Vec<WatchPart<String>>) -> Publish<String> {
        self.apply_from(&SourceId::default(), parts)
    }

    fn apply_from(&mut self, source: &SourceId, parts: Vec<WatchPart<String>>) -> Publish<String> {
        let parts = parts.into_iter().map(|part| (source.clone(), part));
        let applied = self.store.apply_parts(parts);
        assert!(invariants::versions_advance(&applied.before, &applied.snapshot), "{applied:?}");
        self.note(applied)
    }

    fn replace(&mut self, number: u64, cause: Cause, objects: &[Object<String>]) -> Publish<String> {
        self.replace_from(&SourceId::default(), number, cause, objects)
    }

    fn replace_from(
        &mut self,
        source: &SourceId,
        number: u64,
        cause: Cause,
        objects: &[Object<String>],
    ) -> Publish<String> {
        let undecodable = Vec::new();
        let replacement = Replacement::new(version(number), cause, objects.to_vec(), undecodable);
        self.replace_whole(source, replacement)
    }

    fn replace_whole(&mut self, source: &SourceId, replacement: Replacement<String>) -> Publish<String> {
        let cause = replacement.cause;
        self.store.begin_replace(source.clone(), replacement);
        let applied = self.finish();
        assert!(cause == Cause::Rewind || invariants::keeps_pointers(&applied.before, &applied.snapshot));
        applied
    }

    /// Advances to the next publish; nothing of it is seen before.
    fn finish(&mut self) -> Publish<String> {
        loop {
            assert!(is_busy(&self.store));
            match self.store.advance(250) {
                Progress::More => assert!(self.store.snapshot().ptr_eq(self.now()), "published half of it"),
                Progress::Done(applied) => return self.note(applied),
                Progress::Idle => panic!("busy, and nothing to do"),
            }
        }
    }

    fn note(&mut self, applied: Publish<String>) -> Publish<String> {
        assert!(self.store.snapshot().ptr_eq(&applied.snapshot));
        assert!(invariants::replays_to(&applied), "{:?}", texts(&applied));
        assert!(invariants::is_consistent(&applied.snapshot));
        for spec in self.specs.iter().filter(|spec| applied.snapshot.by_index(spec.name(), "").is_ok()) {
            assert!(invariants::index_matches(&applied.snapshot, spec), "{}", spec.name());
        }
        self.published.push(applied.snapshot.clone());
        applied
    }
}

/// The changes as text: `+ a/x u1@1 Watch`, `a/x u1@1 -> a/x u1@2 Watch`, `- a/x u1@3 exact Watch`.
fn texts(applied: &Publish<String>) -> Vec<String> {
    invariants::changes_of(applied).iter().map(text_of).collect()
}

fn text_of(change: &Change<String>) -> String {
    match change {
        Change::Added { object, cause } => format!("+ {} {cause}", written(object)),
        Change::Updated { old, object, cause } => format!("{} -> {} {cause}", written(old), written(object)),
        Change::Deleted { last, exact, cause, .. } => {
            format!("- {} {} {cause}", written(last), if *exact { "exact" } else { "inexact" })
        }
    }
}

/// The incidents as text: reason and key.
fn reported(applied: &Publish<String>) -> Vec<String> {
    let text = |Reported { incident, .. }: &Reported| match incident.key() {
        Some(key) => format!("{} {key}", incident.reason()),
        None => incident.reason().to_string(),
    };
    applied.reported.iter().map(text).collect()
}

fn put(object: Object<String>) -> WatchPart<String> {
    WatchPart::Applied(object)
}

fn gone(object: Object<String>) -> WatchPart<String> {
    WatchPart::Deleted(object)
}

fn bookmark(number: u64) -> WatchPart<String> {
    WatchPart::Bookmark { version: version(number), initial_events_end: false }
}

fn undecodable(name: &str, number: u64) -> Undecodable {
    Undecodable { key: key(name), version: version(number), error: "no such field".into() }
}

fn at(play: &Play) -> String {
    play.now().version(&SourceId::default()).map(ToString::to_string).unwrap_or_default()
}

#[test]
fn a_snapshot_of_objects_has_the_newest_state_of_each_in_key_order_with_versions_and_indices() {
    let by_word = Index::<String>::new("word", |object| [object.body().clone()]);
    let objects = [worded("b/x", 7, "new"), worded("a/y", 3, "other"), worded("b/x", 5, "old")];
    let snapshot = Snapshot::of(objects, [(&by_word).into()]);
    assert_eq!(snapshot.iter().map(written).collect::<Vec<_>>(), ["a/y u1@3", "b/x u1@7"]);
    assert_eq!(snapshot.version(&SourceId::default()), Some(&version(7)));
    let keys: Vec<_> = by_word.keys(&snapshot, "new").expect("it has the index").collect();
    assert_eq!(keys, [&key("b/x")]);
    assert_eq!(by_word.count(&snapshot, "old"), Ok(0));
}
