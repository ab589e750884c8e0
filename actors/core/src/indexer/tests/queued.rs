//! Queue and store together: what a history that went through either queue order makes of the store.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Play, bookmark, gone, is_busy, put, reported, texts};
use crate::delta::{Cause, Replacement, WatchPart};
use crate::delta_fifo::{Batch, Bounds, DeltaQueue, QueueOrder};
use crate::indexer::{Publish, Successors, invariants};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId, Uid};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{key, life, object, version, written};

const BOTH: [QueueOrder; 2] = [QueueOrder::InOrder, QueueOrder::PerKey];

/// A queue of single-part batches, and the store behind it.
struct Pipeline {
    queue: DeltaQueue<String>,
    play: Play,
    changes: Vec<Publish<String>>,
}

impl Pipeline {
    fn new(queue_order: QueueOrder, batch: usize) -> Self {
        let queue = DeltaQueue::new(Bounds { batch, ..Bounds::default() }, queue_order);
        Self { queue, play: Play::new(), changes: Vec::new() }
    }

    /// One that has listed these objects at a version.
    fn listed(queue_order: QueueOrder, number: u64, objects: &[Object<String>]) -> Self {
        let mut pipeline = Self::new(queue_order, 1);
        pipeline.list(number, Cause::InitialList, objects);
        pipeline.drain();
        pipeline.changes.clear();
        pipeline
    }

    fn push(&mut self, parts: Vec<WatchPart<String>>) {
        self.queue.push_delta(SourceId::default(), parts);
    }

    fn list(&mut self, number: u64, cause: Cause, objects: &[Object<String>]) {
        let (version, undecodable) = (version(number), Vec::new());
        let replacement = Replacement::new(version, cause, objects.to_vec(), undecodable);
        self.queue.push_replace(SourceId::default(), replacement);
    }

    /// Applies one batch; false when there is none.
    fn step(&mut self) -> bool {
        let applied = match self.queue.pop_batch() {
            None => return false,
            Some(Batch::Resync { .. }) => return true,
            Some(Batch::Parts(parts)) => {
                let applied = self.play.store.apply_parts(parts);
                self.play.note(applied)
            }
            Some(Batch::PartsByKey { parts, reached }) => {
                self.play.store.begin_keyed(parts, reached);
                let mut applied = self.play.finish();
                while is_busy(&self.play.store) {
                    self.changes.push(applied);
                    applied = self.play.finish();
                }
                applied
            }
            Some(Batch::Replace { source, replacement }) => self.play.replace_whole(&source, replacement),
            Some(Batch::RemoveSource { source, .. }) => {
                self.play.store.begin_remove_source(source, Successors::none());
                self.play.finish()
            }
        };
        self.changes.push(applied);
        true
    }

    fn drain(&mut self) {
        while self.step() {}
    }

    fn texts(&self) -> Vec<String> {
        self.changes.iter().flat_map(texts).collect()
    }

    fn version(&self) -> String {
        super::at(&self.play)
    }

    /// The states that each key went through, in order.
    fn states(&self) -> BTreeMap<ObjectKey, Vec<Option<String>>> {
        let mut states: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for change in self.changes.iter().flat_map(invariants::changes_of) {
            states.entry(change.key().clone()).or_default().push(change.object().map(written));
        }
        states
    }
}

// RF-02: given Deleted of a key that the store does not hold, in either discipline, when applied, then it is
// counted, is not a change, and the version moves on.
// - a it is counted, is not a change, and the version moves on, in either discipline
// - b an undecoded deletion too:
//   `rf_02_deleting_an_unknown_key_is_counted_and_is_not_a_change_and_the_version_moves_on`
#[test]
fn rf_02_a_deletion_of_an_object_that_is_not_stored_is_counted_and_is_not_a_change_and_the_version_moves_on()
{
    for queue_order in BOTH {
        let mut pipeline = Pipeline::listed(queue_order, 5, &[object("a", 1)]);
        pipeline.push(vec![gone(object("x", 6))]);
        pipeline.drain();
        assert_eq!(pipeline.texts(), Vec::<String>::new(), "{queue_order:?}");
        assert_eq!(reported(&pipeline.changes[0]), ["deleted_unknown x"]);
        assert_eq!(pipeline.version(), "6");
    }
}

// RF-03: given store {a,b,c} and Replace([a]) with a unchanged, in either discipline, when applied, then
// Changes holds Deleted b and Deleted c with exact: false and cause Relist, in any order, nothing for a, and
// one snapshot is published.
// - a Deleted b and Deleted c with exact: false and cause Relist, nothing for a
// - b one snapshot is published, in either discipline
#[test]
fn rf_03_what_a_relist_lacks_is_deleted_inexactly_in_one_publish() {
    for queue_order in BOTH {
        let objects = [object("a", 1), object("b", 2), object("c", 3)];
        let mut pipeline = Pipeline::listed(queue_order, 5, &objects);
        pipeline.list(9, Cause::Relist, &objects[..1]);
        pipeline.drain();
        assert_eq!(pipeline.changes.len(), 1, "{queue_order:?}");
        assert_eq!(pipeline.texts(), ["- b u1@2 inexact Relist", "- c u1@3 inexact Relist"]);
        assert_eq!(pipeline.version(), "9");
    }
}

// FIFO-11: given parts that keep the queue from running empty, when batches are published, then the
// snapshot's version stays; once it runs empty it is that of the newest part or bookmark.
// - a while the queue does not run empty the snapshot's version stays
// - b once it runs empty it is that of the newest part or bookmark
#[test]
fn fifo_11_the_version_stays_while_parts_wait_and_is_the_newest_when_the_queue_runs_empty() {
    let mut pipeline = Pipeline::listed(QueueOrder::PerKey, 5, &[]);
    pipeline.push(vec![put(object("a", 6)), put(object("b", 7)), put(object("a", 8)), bookmark(9)]);
    assert!(pipeline.step());
    assert_eq!(pipeline.play.holds(), ["a u1@8"], "newer objects than the version says");
    assert_eq!(pipeline.version(), "5");
    let newest = pipeline.play.now().newest_version(&SourceId::default()).map(ToString::to_string);
    assert_eq!(newest.as_deref(), Some("8"), "nothing may be asked for from before this");
    pipeline.push(vec![put(object("c", 10))]);
    assert!(pipeline.step());
    assert_eq!(pipeline.version(), "5", "it did not run empty");
    pipeline.drain();
    assert_eq!(pipeline.version(), "10");
    pipeline.push(vec![bookmark(11)]);
    pipeline.drain();
    assert_eq!((pipeline.version().as_str(), pipeline.changes.len()), ("11", 4));
}

#[test]
fn fifo_12_after_a_replace_the_store_is_the_replace_whatever_was_queued_before_it() {
    for queue_order in BOTH {
        let mut pipeline = Pipeline::listed(queue_order, 5, &[object("a", 1), object("b", 2)]);
        pipeline.push(vec![put(object("b", 6)), put(object("a", 7)), gone(object("b", 8))]);
        pipeline.list(9, Cause::Relist, &[object("a", 7), object("c", 9)]);
        pipeline.push(vec![put(object("b", 10))]);
        while pipeline.version() != "9" {
            assert!(pipeline.step());
        }
        assert_eq!(pipeline.play.holds(), ["a u1@7", "c u1@9"], "{queue_order:?}");
        pipeline.drain();
        assert_eq!(pipeline.play.holds(), ["a u1@7", "b u1@10", "c u1@9"], "{queue_order:?}");
    }
}

#[test]
fn keyed_parts_are_applied_in_slices_and_reach_their_version_with_the_last() {
    let mut pipeline = Pipeline::listed(QueueOrder::PerKey, 5, &[]);
    let parts: Vec<_> = (6..1_006).map(|number| (SourceId::default(), put(object("a", number)))).collect();
    pipeline.play.store.begin_keyed(parts, vec![(SourceId::default(), version(1_005))]);
    let mut slices = Vec::new();
    while is_busy(&pipeline.play.store) {
        assert_eq!(pipeline.version(), "5");
        slices.push(invariants::changes_of(&pipeline.play.finish()).len());
    }
    assert_eq!(slices, [250; 4]);
    assert_eq!((pipeline.play.holds(), pipeline.version()), (vec!["a u1@1005".to_owned()], "1005".into()));
}

#[derive(Debug, Clone)]
enum Deed {
    Write(usize),
    Recreate(usize),
    Delete(usize),
    /// A deletion that is told twice.
    DeleteTwice(usize),
    Bookmark,
    Relist(Vec<usize>),
}

fn deed() -> impl Strategy<Value = Deed> {
    let name = 0..5_usize;
    prop_oneof![
        6 => name.clone().prop_map(Deed::Write),
        1 => name.clone().prop_map(Deed::Recreate),
        2 => name.clone().prop_map(Deed::Delete),
        1 => name.clone().prop_map(Deed::DeleteTwice),
        1 => Just(Deed::Bookmark),
        1 => prop::collection::vec(name, 0..4).prop_map(Deed::Relist),
    ]
}

/// The server, and every state that it ever had.
#[derive(Default)]
struct Server {
    number: u64,
    objects: BTreeMap<ObjectKey, Object<String>>,
    past: Vec<(ResourceVersion, BTreeMap<ObjectKey, Object<String>>)>,
}

fn uid_of(object: &Object<String>) -> String {
    object.object_uid().map_or_else(String::new, Uid::to_string)
}

impl Server {
    fn write(&mut self, name: usize, is_new_life: bool) -> Object<String> {
        self.number += 1;
        let name = format!("k-{name}");
        let uid =
            self.objects.get(&key(&name)).and_then(|old| old.object_uid()).filter(|_| !is_new_life).cloned();
        let uid = uid.map_or_else(|| format!("u{}", self.number), |uid| uid.to_string());
        let object = life(&name, &uid, self.number);
        self.objects.insert(object.key().clone(), object.clone());
        self.remember();
        object
    }

    fn delete(&mut self, name: usize) -> Option<Object<String>> {
        let name = format!("k-{name}");
        let old = self.objects.remove(&key(&name))?;
        self.number += 1;
        self.remember();
        Some(life(&name, &uid_of(&old), self.number))
    }

    fn remember(&mut self) {
        self.past.push((version(self.number), self.objects.clone()));
    }

    fn parts(&mut self, deed: Deed) -> Vec<WatchPart<String>> {
        match deed {
            Deed::Write(name) => vec![put(self.write(name, false))],
            Deed::Recreate(name) => vec![put(self.write(name, true))],
            Deed::Delete(name) => self.delete(name).map(gone).into_iter().collect(),
            Deed::DeleteTwice(name) => self.delete(name).map_or_else(Vec::new, |last| {
                self.number += 1;
                self.remember();
                let again = life(last.key().name(), &uid_of(&last), self.number);
                vec![gone(last), gone(again)]
            }),
            Deed::Bookmark => vec![bookmark(self.number.max(1))],
            Deed::Relist(_) => Vec::new(),
        }
    }

    /// Whether each key is in a state that it had at the snapshot's version or later.
    fn is_honest(&self, snapshot: &Snapshot<String>) -> bool {
        let Some(stamped) = snapshot.version(&SourceId::default()) else { return snapshot.is_empty() };
        let since = self.past.iter().rposition(|(version, _)| version <= stamped).unwrap_or(0);
        (0..5).map(|name| key(&format!("k-{name}"))).all(|key| {
            let held = snapshot.get(&key).map(written);
            self.past[since..].iter().any(|(_, state)| state.get(&key).map(written) == held)
        })
    }

    /// Whether the snapshot is the very state at its version.
    fn is_exact(&self, snapshot: &Snapshot<String>) -> bool {
        let stamped = snapshot.version(&SourceId::default());
        let state = self.past.iter().rfind(|(version, _)| stamped.is_some_and(|stamped| version <= stamped));
        state.is_none_or(|(_, state)| state.values().map(written).eq(snapshot.iter().map(written)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn rf_10_either_queue_order_ends_in_one_snapshot_and_each_key_went_through_the_same_states(
        deeds in prop::collection::vec((deed(), 0..3_usize), 1..60),
        batch in 1..4_usize,
    ) {
        let mut server = Server::default();
        server.write(0, false);
        let mut pipelines = BOTH.map(|queue_order| Pipeline::new(queue_order, batch));
        for pipeline in &mut pipelines {
            pipeline.list(server.number, Cause::InitialList, &server.objects.values().cloned().collect::<Vec<_>>());
        }
        for (deed, pops) in deeds {
            if let Deed::Relist(unseen) = &deed {
                unseen.iter().for_each(|name| drop(server.write(*name, name % 3 == 0)));
                server.delete(unseen.len());
                let objects: Vec<_> = server.objects.values().cloned().collect();
                pipelines.iter_mut().for_each(|it| it.list(server.number, Cause::Relist, &objects));
            }
            let parts = server.parts(deed);
            let again = |part: &WatchPart<String>| match part {
                WatchPart::Applied(object) => put(object.clone()),
                WatchPart::Deleted(object) => gone(object.clone()),
                other => WatchPart::Bookmark { version: other.version().clone(), initial_events_end: false },
            };
            for pipeline in &mut pipelines {
                pipeline.push(parts.iter().map(again).collect());
                for _ in 0..pops {
                    pipeline.step();
                }
                prop_assert!(server.is_honest(pipeline.play.now()));
            }
            prop_assert!(server.is_exact(pipelines[0].play.now()));
        }
        pipelines.iter_mut().for_each(Pipeline::drain);
        let [in_order, per_key] = &pipelines;
        prop_assert!(server.is_exact(per_key.play.now()) && server.is_exact(in_order.play.now()));
        prop_assert_eq!(in_order.play.holds(), per_key.play.holds());
        prop_assert_eq!(in_order.version(), per_key.version());
        prop_assert_eq!(in_order.states(), per_key.states());
    }
}
