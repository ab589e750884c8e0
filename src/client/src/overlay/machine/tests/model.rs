//! Random writes of ours and of others on two clusters, whose answers and events come in any order, against a model.
//!
//! The model knows everything that the servers did. A reader sees of a key what the server had at the newer of two
//! versions: that of the cache, and that of the newest write of ours whose answer has come.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index as Pick;

use informer_core::delta::WatchPart;
use informer_core::index::Index;
use informer_core::indexer::Store;
use informer_core::meta::{Object, ObjectKey, SourceId};
use informer_core::snapshot::Snapshot;

use super::super::{Overlay, OverlayLimits};
use super::{brought_by, over, version, written};

const KEYS: [&str; 3] = ["eu|a/x", "eu|a/y", "us|a/x"];
/// The newest version of each cluster at the beginning: far apart, so that comparing across them would show.
const FIRST: [(&str, u64); 2] = [("eu", 1), ("us", 1_000)];

#[derive(Debug, Clone)]
enum Op {
    /// Somebody creates or changes a key; the flag: we.
    Write(usize, bool),
    Delete(usize, bool),
    /// We change a key so that it is not selected any more.
    Leave(usize),
    /// One of the answers that are under way comes.
    Answer(Pick),
    /// The watch of a cluster brings so many events.
    Watch(usize, usize),
}

/// What a server did to a key: the object after it, whether it is selected, and the object that it was about.
struct Event {
    at: u64,
    key: &'static str,
    after: Option<Object<String>>,
    about: Object<String>,
    leaves: bool,
}

struct Cluster {
    source: SourceId,
    revision: u64,
    log: Vec<Event>,
    /// How many events the cache has.
    seen: usize,
}

impl Cluster {
    /// What a selecting reader sees of a key at a version.
    fn truth(&self, key: &str, at: u64) -> Option<String> {
        let newest = self.log.iter().rev().find(|event| event.key == key && event.at <= at)?;
        newest.after.as_ref().filter(|_| !newest.leaves).map(written)
    }

    fn newest(&self, key: &str) -> Option<&Event> {
        self.log.iter().rev().find(|event| event.key == key)
    }

    fn reached(&self, first: u64) -> u64 {
        self.seen.checked_sub(1).map_or(first, |last| self.log[last].at)
    }
}

struct World {
    clusters: Vec<Cluster>,
    store: Store<String>,
    overlay: Overlay<String>,
    by_uid: Index<String>,
    lives: u64,
    /// Cluster and event of each answer that is under way.
    answers: Vec<(usize, usize)>,
    /// The newest write of ours, by key, whose answer has come.
    laid: BTreeMap<&'static str, u64>,
}

impl World {
    fn new() -> Self {
        let by_uid = Index::<String>::new("body", |object| [object.body().clone()]);
        let mut store = Store::new(Snapshot::empty(), vec![(&by_uid).into()]);
        let clusters: Vec<_> = FIRST
            .into_iter()
            .map(|(name, revision)| Cluster {
                source: SourceId::new(name),
                revision,
                log: Vec::new(),
                seen: 0,
            })
            .collect();
        for cluster in &clusters {
            let part = WatchPart::Bookmark { version: version(cluster.revision), initial_events_end: true };
            store.apply_parts([(cluster.source.clone(), part)]);
        }
        let overlay = Overlay::new(OverlayLimits::new(KEYS.len(), Duration::MAX));
        Self { clusters, store, overlay, by_uid, lives: 0, answers: Vec::new(), laid: BTreeMap::new() }
    }

    fn happen(&mut self, key: usize, deletes: bool, leaves: bool, ours: bool) {
        let (at, key) = (usize::from(KEYS[key].starts_with("us")), KEYS[key]);
        let cluster = &mut self.clusters[at];
        let (uid, known, has_left) = match cluster.newest(key) {
            Some(Event { after: Some(object), leaves, .. }) => {
                let uid = object.object_uid().expect("it has one").to_string();
                (uid, true, *leaves)
            }
            _ if deletes || leaves => return,
            _ => {
                self.lives += 1;
                (format!("u{}", self.lives), false, false)
            }
        };
        cluster.revision += 1;
        let body = format!("{uid}@{}", cluster.revision);
        let object = brought_by(&cluster.source, key, &uid, cluster.revision, &body);
        // Of a deletion no more is answered than what was known of the life at first.
        let first = cluster.log.iter().filter(|event| event.key == key).find_map(|event| {
            let state = event.after.as_ref().filter(|_| deletes && known)?;
            (state.object_uid() == object.object_uid()).then(|| state.clone())
        });
        let about = first.unwrap_or_else(|| object.clone());
        let after = (!deletes).then_some(object);
        cluster.log.push(Event { at: cluster.revision, key, after, about, leaves: leaves || has_left });
        if ours {
            self.answers.push((at, cluster.log.len() - 1));
        }
    }

    fn answer(&mut self, pick: &Pick) {
        if self.answers.is_empty() {
            return;
        }
        let (at, event) = self.answers.swap_remove(pick.index(self.answers.len()));
        let sources = [self.clusters[at].source.clone()];
        let (event, cache) = (&self.clusters[at].log[event], self.store.snapshot());
        let laid = match &event.after {
            Some(_) if event.leaves => {
                self.overlay.handle_left(&cache, event.about.cached_meta(), &sources, Duration::ZERO)
            }
            Some(object) => self.overlay.handle_written(&cache, object.clone(), &sources, Duration::ZERO),
            None => self.overlay.handle_deleted(&cache, event.about.cached_meta(), &sources, Duration::ZERO),
        };
        laid.expect("there is room for each key");
        let newest = self.laid.entry(event.key).or_default();
        *newest = event.at.max(*newest);
    }

    fn watch(&mut self, at: usize, count: usize) {
        let cluster = &mut self.clusters[at];
        for event in cluster.log.iter().skip(cluster.seen).take(count) {
            let part = match &event.after {
                Some(object) if !event.leaves => WatchPart::Applied(object.clone()),
                _ => {
                    let (uid, key) = (event.about.object_uid().expect("it has one").to_string(), event.key);
                    WatchPart::Deleted(brought_by(&cluster.source, key, &uid, event.at, ""))
                }
            };
            self.store.apply_parts([(cluster.source.clone(), part)]);
            cluster.seen += 1;
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let cache = self.store.snapshot();
        let shown = over(&mut self.overlay, &cache, &[(&self.by_uid).into()]);
        for text in KEYS {
            let at = usize::from(text.starts_with("us"));
            let reached = self.clusters[at].reached(FIRST[at].1);
            let newest = reached.max(self.laid.get(text).copied().unwrap_or_default());
            let key: ObjectKey = text.parse().expect("a key");
            let seen = shown.get(&key);
            prop_assert_eq!(
                seen.map(written),
                self.clusters[at].truth(text, newest),
                "{} at {}",
                text,
                newest
            );
            let is_ours = seen.is_some() && cache.get(&key).map(written) != seen.map(written);
            prop_assert_eq!(shown.is_written(&key), is_ours);
            if let Some(object) = seen {
                let found = self.by_uid.keys(&shown, object.body()).expect("it has the index");
                prop_assert!(found.eq([&key]), "the index agrees with the objects");
            }
        }
        prop_assert_eq!(shown.iter().count(), shown.len());
        let counters = self.overlay.counters;
        let ended = counters.reached + counters.replaced + counters.expired + counters.rewound;
        prop_assert_eq!(
            counters.laid,
            ended + self.overlay.entries.len() as u64,
            "each answer is accounted for"
        );
        Ok(())
    }
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS.len();
    prop_oneof![
        4 => (key.clone(), any::<bool>()).prop_map(|(key, ours)| Op::Write(key, ours)),
        2 => (key.clone(), any::<bool>()).prop_map(|(key, ours)| Op::Delete(key, ours)),
        1 => key.prop_map(Op::Leave),
        4 => any::<Pick>().prop_map(Op::Answer),
        3 => (0..2_usize, 1..4_usize).prop_map(|(cluster, events)| Op::Watch(cluster, events)),
    ]
}

proptest! {
    #[test]
    fn idx_13_and_idx_14_a_reader_sees_the_newer_of_the_cache_and_our_writes_in_whatever_order_both_come(
        ops in prop::collection::vec(op(), 0..60),
    ) {
        let mut world = World::new();
        for op in ops {
            match op {
                Op::Write(key, ours) => world.happen(key, false, false, ours),
                Op::Delete(key, ours) => world.happen(key, true, false, ours),
                Op::Leave(key) => world.happen(key, false, true, true),
                Op::Answer(pick) => world.answer(&pick),
                Op::Watch(cluster, events) => world.watch(cluster, events),
            }
            world.check()?;
        }
        world.watch(0, usize::MAX);
        world.watch(1, usize::MAX);
        world.check()?;
        prop_assert!(world.overlay.entries.is_empty(), "nothing is left when the cache has everything");
    }
}
