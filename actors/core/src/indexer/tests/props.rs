//! Any history of two sources, against a store that is a `BTreeMap` and does the obvious thing.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::indices::by_word;
use super::{Play, gone, is_busy, put, text_of, texts};
use crate::delta::{Cause, Change, Replacement, Undecodable, WatchPart};
use crate::indexer::{Progress, Publish, invariants};
use crate::meta::{Object, ObjectKey, SourceId, Uid};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{brought_by, key, version, written};

/// What the world does to one source: names are numbers, versions rise by themselves.
#[derive(Debug, Clone)]
enum Deed {
    Write {
        name: usize,
        words: usize,
    },
    Recreate {
        name: usize,
    },
    Delete {
        name: usize,
        unread: bool,
    },
    Break {
        name: usize,
    },
    /// A reader finds that what is stored does not decode.
    Doubt {
        name: usize,
    },
    Bookmark,
    /// The watch repeats an old part.
    Repeat {
        back: usize,
    },
    /// A gap: deeds that only a list tells of, then the list.
    Relist {
        unseen: Vec<(usize, u8)>,
        is_rewind: bool,
    },
    StartIndex,
}

const SOURCES: [&str; 2] = ["a", "b"];
const NAMES: usize = 12;

fn deeds() -> impl Strategy<Value = Vec<(usize, Deed, usize)>> {
    let name = 0..NAMES;
    let deed = prop_oneof![
        6 => (name.clone(), 0..6_usize).prop_map(|(name, words)| Deed::Write { name, words }),
        1 => name.clone().prop_map(|name| Deed::Recreate { name }),
        3 => (name.clone(), any::<bool>()).prop_map(|(name, unread)| Deed::Delete { name, unread }),
        1 => name.clone().prop_map(|name| Deed::Break { name }),
        1 => name.clone().prop_map(|name| Deed::Doubt { name }),
        1 => Just(Deed::Bookmark),
        1 => (0..6_usize).prop_map(|back| Deed::Repeat { back }),
        2 => (prop::collection::vec((name, 0..4_u8), 0..8), prop::bool::weighted(0.2))
            .prop_map(|(unseen, is_rewind)| Deed::Relist { unseen, is_rewind }),
        1 => Just(Deed::StartIndex),
    ];
    prop::collection::vec((0..SOURCES.len(), deed, 1..9_usize), 1..60)
}

/// One source's truth: what a server holds.
struct Server {
    source: SourceId,
    number: u64,
    lives: u64,
    objects: BTreeMap<ObjectKey, Object<String>>,
    broken: BTreeMap<ObjectKey, Undecodable>,
    /// What is stored and does not decode.
    late: BTreeMap<ObjectKey, Undecodable>,
    sent: Vec<(bool, Object<String>)>,
}

impl Server {
    fn new(name: &str) -> Self {
        let (objects, broken, late) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { source: SourceId::new(name), number: 1, lives: 0, objects, broken, late, sent: Vec::new() }
    }

    fn key(&self, name: usize) -> ObjectKey {
        key(&format!("{}{}/n{name}", self.source, name % 2))
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn state(&mut self, name: usize, uid: Option<String>, words: &str) -> Object<String> {
        let key = self.key(name);
        let lives = self.lives;
        let known = self.objects.get(&key).and_then(|object| object.object_uid()).map(Uid::to_string);
        let uid = uid.or(known).unwrap_or_else(|| format!("l{lives}"));
        let number = self.next();
        self.late.remove(&key);
        brought_by(&self.source, &key.to_string(), &uid, number, words)
    }

    fn write(&mut self, name: usize, words: usize) -> Object<String> {
        let words = ["", "red", "blue red", "green", "!error", "red red"][words];
        let object = self.state(name, None, words);
        self.broken.remove(object.key());
        self.objects.insert(object.key().clone(), object.clone());
        object
    }

    fn recreate(&mut self, name: usize) -> Object<String> {
        self.lives += 1;
        let object = self.state(name, Some(format!("l{}", self.lives)), "new");
        self.broken.remove(object.key());
        self.objects.insert(object.key().clone(), object.clone());
        object
    }

    fn delete(&mut self, name: usize) -> Object<String> {
        let object = self.state(name, None, "last words");
        self.lives += 1;
        self.broken.remove(object.key());
        self.objects.remove(object.key());
        object
    }

    /// The newest version cannot be read: the cache shall keep the last good one.
    fn spoil(&mut self, name: usize) -> Undecodable {
        let undecodable =
            Undecodable { key: self.key(name), version: version(self.next()), error: "spoilt".into() };
        self.broken.insert(undecodable.key.clone(), undecodable.clone());
        self.late.remove(&undecodable.key);
        undecodable
    }

    /// `None` if nothing is stored, or a newer version cannot be read.
    fn doubt(&mut self, name: usize) -> Option<Undecodable> {
        let stored = self.objects.get(&self.key(name)).filter(|one| !self.broken.contains_key(one.key()))?;
        let (key, version) = (stored.key().clone(), stored.version().clone());
        let late = Undecodable { key: key.clone(), version, error: "late".into() };
        self.late.insert(key, late.clone());
        Some(late)
    }

    fn list(&mut self, cause: Cause) -> Replacement<String> {
        let version = version(self.next());
        if cause == Cause::Rewind {
            self.late.clear();
        }
        let is_good = |object: &&Object<String>| !self.broken.contains_key(object.key());
        let renewed = |object: &Object<String>| match cause {
            Cause::Rewind => Object::new(object.cached_meta().clone(), object.body().clone()),
            _ => object.clone(),
        };
        let objects = self.objects.values().filter(is_good).map(renewed).collect();
        Replacement::new(version, cause, objects, self.broken.values().cloned().collect())
    }
}

/// Replays changes on a plain map, as a subscriber would.
fn replay(state: &mut BTreeMap<ObjectKey, Object<String>>, change: &Change<String>) {
    let key = change.key().clone();
    match change {
        Change::Added { object, .. } => {
            assert!(state.insert(key, object.clone()).is_none(), "{}", text_of(change))
        }
        Change::Updated { old, object, .. } => {
            let known = state.insert(key, object.clone());
            assert!(known.is_some_and(|known| known.ptr_eq(old)), "{}", text_of(change));
        }
        Change::Deleted { old, .. } => {
            assert!(state.remove(&key).is_some_and(|known| known.ptr_eq(old)), "{}", text_of(change));
        }
    }
}

struct World {
    play: Play,
    servers: Vec<Server>,
    subscriber: BTreeMap<ObjectKey, Object<String>>,
    asked_for_index: bool,
}

impl World {
    fn new() -> Self {
        let mut play = Play::new();
        play.specs.push(by_word());
        let servers = SOURCES.iter().map(|name| Server::new(name)).collect();
        Self { play, servers, subscriber: BTreeMap::new(), asked_for_index: false }
    }

    fn part(&mut self, at: usize, deed: &Deed) -> Option<WatchPart<String>> {
        let server = &mut self.servers[at];
        Some(match deed {
            Deed::Write { name, words } => put(server.write(*name, *words)),
            Deed::Recreate { name } => put(server.recreate(*name)),
            Deed::Delete { name, unread: false } => gone(server.delete(*name)),
            Deed::Delete { name, unread: true } => {
                let last = server.delete(*name);
                let (key, version) = (last.key().clone(), last.version().clone());
                return Some(WatchPart::DeletedUndecodable(Undecodable {
                    key,
                    version,
                    error: "spoilt".into(),
                }));
            }
            Deed::Break { name } => WatchPart::Undecodable(server.spoil(*name)),
            Deed::Doubt { name } => WatchPart::LateUndecodable(server.doubt(*name)?),
            Deed::Bookmark => {
                WatchPart::Bookmark { version: version(server.number), initial_events_end: false }
            }
            Deed::Repeat { back } => {
                let (was_deletion, object) = server.sent.iter().rev().nth(*back)?.clone();
                let is_gone = !server.objects.contains_key(object.key());
                if is_gone && !was_deletion {
                    return None;
                }
                if was_deletion { gone(object) } else { put(object) }
            }
            Deed::Relist { .. } | Deed::StartIndex => return None,
        })
    }

    fn play(&mut self, at: usize, deed: &Deed, slice: usize) {
        match deed {
            Deed::Relist { unseen, is_rewind } => self.relist(at, unseen, *is_rewind, slice),
            Deed::StartIndex => {
                let is_new = self.play.store.begin_index(by_word()).is_ok();
                assert!(is_new != self.asked_for_index);
                self.asked_for_index = true;
            }
            deed => {
                let Some(part) = self.part(at, deed) else { return };
                match &part {
                    WatchPart::Applied(object) => self.servers[at].sent.push((false, object.clone())),
                    WatchPart::Deleted(object) => self.servers[at].sent.push((true, object.clone())),
                    _ => {}
                }
                let source = self.servers[at].source.clone();
                let applied = self.play.apply_from(&source, vec![part]);
                self.check(&applied);
                self.build_on(slice);
            }
        }
    }

    /// Goes on with an index, if one is being built: it tells no change.
    fn build_on(&mut self, slice: usize) {
        if let Progress::Done(applied) = self.play.store.advance(slice) {
            let applied = self.play.note(applied);
            assert_eq!(texts(&applied), Vec::<String>::new());
            assert!(applied.snapshot.by_index("word", "red").is_ok());
        }
    }

    fn relist(&mut self, at: usize, unseen: &[(usize, u8)], is_rewind: bool, slice: usize) {
        let server = &mut self.servers[at];
        for (name, kind) in unseen {
            match kind {
                0 => drop(server.write(*name, 1)),
                1 => drop(server.recreate(*name)),
                2 => drop(server.delete(*name)),
                _ => drop(server.spoil(*name)),
            }
        }
        let cause = if is_rewind { Cause::Rewind } else { Cause::Relist };
        let replacement = server.list(cause);
        let listed = replacement.version.clone();
        server.sent.clear();
        let source = server.source.clone();
        self.play.store.begin_replace(source.clone(), replacement);
        let seen = self.play.now().clone();
        let applied = loop {
            match self.play.store.advance(slice) {
                Progress::More => assert!(self.play.store.snapshot().ptr_eq(&seen)),
                Progress::Done(applied) => break self.play.note(applied),
                Progress::Idle => panic!("a Replace is under way"),
            }
        };
        assert!(is_rewind || invariants::keeps_pointers(&applied.before, &applied.snapshot));
        assert_eq!(applied.snapshot.version(&source), Some(&listed));
        self.check(&applied);
    }

    fn check(&mut self, applied: &Publish<String>) {
        for change in invariants::changes_of(applied) {
            replay(&mut self.subscriber, &change);
        }
        let now = &applied.snapshot;
        assert!(invariants::versions_advance(&applied.before, now));
        let holds: Vec<String> = now.iter().map(written).collect();
        assert_eq!(holds, self.subscriber.values().map(written).collect::<Vec<_>>(), "{:?}", texts(applied));
        for server in &self.servers {
            self.check_server(server, now);
        }
    }

    /// The store shows what the server holds; of what cannot be read, some good version or none.
    fn check_server(&self, server: &Server, now: &Snapshot<String>) {
        for name in 0..NAMES {
            let at = server.key(name);
            if server.broken.contains_key(&at) {
                continue;
            }
            assert_eq!(now.get(&at).map(written), server.objects.get(&at).map(written), "{at}");
            assert_eq!(now.undecodable_of(&at), server.late.get(&at), "{at}");
        }
        let of_it = now
            .undecodable()
            .filter(|undecodable| undecodable.key.to_string().starts_with(server.source.as_str()));
        let all: BTreeMap<_, _> = server.broken.iter().chain(&server.late).collect();
        assert!(of_it.eq(all.into_values()), "{:?}", server.broken);
        if let Some(reached) = now.version(&server.source) {
            assert!(*reached <= version(server.number));
        }
    }
}

proptest! {
    // RF-34: given any mix of parts, Replaces and Resyncs, when counted, then each snapshot comes from one
    // batch or one Replace, in epoch and queue order, and its `Changes` is exactly what changed since the one
    // before.
    // - a each snapshot comes from one batch or one Replace, in queue order
    // - b in epoch order: `inf_43_an_indexer_killed_between_a_publish_and_its_changes_costs_nobody_an_event`
    // - c its `Changes` is exactly what changed since the one before
    #[test]
    fn rf_34_any_history_keeps_the_store_as_the_server_is_and_its_changes_replay(history in deeds()) {
        let mut world = World::new();
        for (at, deed, slice) in &history {
            world.play(*at, deed, *slice);
        }
        while is_busy(&world.play.store) {
            world.build_on(1);
        }
        prop_assert_eq!(world.play.now().by_index("word", "red").is_ok(), world.asked_for_index);
    }

    #[test]
    fn a_batch_gives_the_same_changes_as_its_parts_one_by_one(history in deeds()) {
        let (mut world, mut batched) = (World::new(), Play::with_indices(vec![by_word()]));
        let (mut parts, mut one_by_one) = (Vec::new(), Vec::new());
        for (at, deed, _) in &history {
            let Some(part) = world.part(*at, deed) else { continue };
            let source = world.servers[*at].source.clone();
            parts.push((source.clone(), copy(&part)));
            one_by_one.extend(texts(&world.play.apply_from(&source, vec![part])));
        }
        let applied = batched.store.apply_parts(parts);
        let applied = batched.note(applied);
        prop_assert_eq!(texts(&applied), one_by_one);
        prop_assert_eq!(batched.holds(), world.play.holds());
        prop_assert_eq!(batched.now().versions(), world.play.now().versions());
    }
}

fn copy(part: &WatchPart<String>) -> WatchPart<String> {
    match part {
        WatchPart::Applied(object) => put(object.clone()),
        WatchPart::Deleted(object) => gone(object.clone()),
        WatchPart::Undecodable(undecodable) => WatchPart::Undecodable(undecodable.clone()),
        WatchPart::DeletedUndecodable(undecodable) => WatchPart::DeletedUndecodable(undecodable.clone()),
        WatchPart::LateUndecodable(undecodable) => WatchPart::LateUndecodable(undecodable.clone()),
        WatchPart::Fetched(object) => WatchPart::Fetched(object.clone()),
        WatchPart::Bookmark { version, .. } => {
            WatchPart::Bookmark { version: version.clone(), initial_events_end: false }
        }
    }
}
