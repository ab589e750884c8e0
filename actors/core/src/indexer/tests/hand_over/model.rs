//! Any history of a server, of sources that read its log and take over from each other, against what is so.
//!
//! An object may enter and leave the selector of each source, and may be a state that does not decode. A source may bring
//! its parts in the order of their keys, and the group may die in the middle of that.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{ALL, EACH, among, of};
use crate::delta::{Cause, Change, Replacement, Undecodable, WatchPart};
use crate::indexer::machine::UnderWay;
use crate::indexer::tests::{Play, bookmark, gone, put, text_of, texts, undecodable};
use crate::indexer::{Progress, Publish, Store, invariants};
use crate::meta::{Object, ObjectKey, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{key, version, written};

/// What happens in the model: to the server's objects, or to a source.
#[derive(Debug, Clone)]
enum Deed {
    /// Which object, which sources select it, and whether it decodes.
    Write(usize, u8, bool),
    Delete(usize),
    /// The source brings the next so many events.
    Bring(usize, usize),
    /// The source brings the next so many events in the order of their keys. Half of them stay in the queue.
    BringByKey(usize, usize),
    /// The source is asked for a list, which shows the server as it was so many events ago.
    Ask(usize, usize),
    /// The list arrives.
    Land(usize),
    /// Sources whose successors have listed hand over.
    HandOver,
    /// The store is built again from what is published; what is in the queue is lost.
    Restart,
}

const SOURCES: [&str; 3] = [ALL, EACH[0], EACH[1]];
const NAMES: usize = 6;
const BY_ALL: u8 = 7;

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let source = 0..SOURCES.len();
    let by = prop_oneof![3 => Just(BY_ALL), 1 => 0..BY_ALL];
    let deed = prop_oneof![
        6 => (0..NAMES, by, prop::bool::weighted(0.8)).prop_map(|(at, by, reads)| Deed::Write(at, by, reads)),
        4 => (0..NAMES).prop_map(Deed::Delete),
        6 => (source.clone(), 1..6_usize).prop_map(|(source, count)| Deed::Bring(source, count)),
        2 => (source.clone(), 2..8_usize).prop_map(|(source, count)| Deed::BringByKey(source, count)),
        4 => (source.clone(), 0..4_usize).prop_map(|(source, back)| Deed::Ask(source, back)),
        4 => source.prop_map(Deed::Land),
        2 => Just(Deed::HandOver),
        1 => Just(Deed::Restart),
    ];
    prop::collection::vec(deed, 1..120)
}

/// A state of an object, or its deletion. Its version is its place in the log, and one.
#[derive(Clone)]
struct Event {
    key: ObjectKey,
    uid: u64,
    is_gone: bool,
    /// The sources that select it, one bit each.
    by: u8,
    decodes: bool,
}

impl Event {
    fn is_seen_by(&self, source: usize) -> bool {
        let is_in_scope = source == 0 || self.key.namespace() == Some(SOURCES[source]);
        is_in_scope && !self.is_gone && self.by & (1 << source) != 0
    }
}

/// A source of the model.
#[derive(Default)]
struct Source {
    is_there: bool,
    /// How far it has brought everything, or put it into the queue: an index into the log. `None` before its first list.
    at: Option<usize>,
    asked: Option<usize>,
    /// What is in the queue, if anything is.
    queued: Option<Vec<(SourceId, WatchPart<String>)>>,
    /// Something in the queue was lost: it brings nothing before its next list.
    must_list: bool,
}

/// A server with its whole log, the sources that read it, and the store.
struct Model {
    play: Play,
    log: Vec<Event>,
    now: BTreeMap<ObjectKey, usize>,
    sources: [Source; 3],
    /// Whether the sources of single namespaces take over from the one of all, or the other way round.
    is_back: bool,
    subscriber: BTreeMap<ObjectKey, (u64, u64)>,
    /// The lives that were told as deleted.
    told: BTreeSet<u64>,
    /// The lives of which some source did not select a state: each source tells its own end of them.
    split: BTreeSet<u64>,
}

impl Model {
    fn new() -> Self {
        let mut sources: [Source; 3] = Default::default();
        (sources[1].is_there, sources[2].is_there) = (true, true);
        let (log, now, subscriber) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (play, told, split) = (Play::new(), BTreeSet::new(), BTreeSet::new());
        let mut model = Self { play, log, now, sources, is_back: false, subscriber, told, split };
        model.write(0, BY_ALL, true);
        model.write(1, BY_ALL, true);
        model
    }

    fn name(at: usize) -> ObjectKey {
        key(&format!("{}/o{at}", EACH[at % 2]))
    }

    fn write(&mut self, at: usize, by: u8, decodes: bool) {
        let (key, place) = (Self::name(at), self.log.len());
        let uid = self.now.get(&key).map_or(place as u64, |place| self.log[*place].uid);
        self.now.insert(key.clone(), place);
        self.log.push(Event { key, uid, is_gone: false, by, decodes });
        if by != BY_ALL {
            self.split.insert(uid);
        }
    }

    fn delete(&mut self, at: usize) {
        if let Some(place) = self.now.remove(&Self::name(at)) {
            self.log.push(Event { is_gone: true, ..self.log[place].clone() });
        }
    }

    fn object(&self, source: usize, place: usize) -> Object<String> {
        let event = &self.log[place];
        of(SOURCES[source], &event.key.to_string(), &format!("u{}", event.uid), place as u64 + 1)
    }

    fn unread(&self, place: usize) -> Undecodable {
        undecodable(&self.log[place].key.to_string(), place as u64 + 1)
    }

    /// What the watch of a source sends for an event.
    fn part(&self, source: usize, place: usize) -> WatchPart<String> {
        let event = &self.log[place];
        let before = self.log[..place].iter().rev().find(|before| before.key == event.key);
        let was_seen = before.is_some_and(|before| before.is_seen_by(source));
        match (event.is_seen_by(source), was_seen, event.decodes) {
            (true, _, true) => put(self.object(source, place)),
            (true, _, false) => WatchPart::Undecodable(self.unread(place)),
            (false, true, true) => gone(self.object(source, place)),
            (false, true, false) => WatchPart::DeletedUndecodable(self.unread(place)),
            (false, false, _) => bookmark(place as u64 + 1),
        }
    }

    fn predecessors(&self, source: usize) -> impl Iterator<Item = usize> + use<'_> {
        let others: &[usize] = if source == 0 { &[1, 2] } else { &[0] };
        others.iter().copied().filter(|other| self.sources[*other].is_there)
    }

    fn play(&mut self, deed: &Deed) {
        match *deed {
            Deed::Write(at, by, decodes) => self.write(at, by, decodes),
            Deed::Delete(at) => self.delete(at),
            Deed::Bring(source, count) => self.bring(source, count),
            Deed::BringByKey(source, count) => self.bring_by_key(source, count),
            Deed::Ask(source, back) => self.ask(source, back),
            Deed::Land(source) => self.land(source),
            Deed::HandOver => self.hand_over(),
            Deed::Restart => self.restart(),
        }
        self.show_successors();
        self.run();
    }

    /// As the shell does: while both kinds of sources are there, each may have something to tell the others.
    fn show_successors(&mut self) {
        let there = |source: &usize| self.sources[*source].is_there;
        let is_open = there(&0) && (there(&1) || there(&2));
        let sources = (0..3).filter(there).map(|source| SOURCES[source]);
        let open = if is_open { vec![among(sources)] } else { Vec::new() };
        self.play.store.hand_over_among(open);
    }

    fn restart(&mut self) {
        self.play.store = Store::new(self.play.now().clone(), Vec::new());
        for (source, name) in self.sources.iter_mut().zip(SOURCES) {
            if source.queued.take().is_some() {
                let newest = self.play.now().newest_version(&SourceId::new(name));
                source.at = newest.and_then(|newest| newest.to_string().parse().ok());
                source.must_list = true;
            }
        }
    }

    /// What is in the queue of a source is applied, and it reaches its place in the log.
    fn drain(&mut self, source: usize) {
        let (at, queued) = (self.sources[source].at, self.sources[source].queued.take());
        let (Some(at), Some(queued)) = (at, queued) else { return };
        let reached = vec![(SourceId::new(SOURCES[source]), version(at as u64))];
        self.play.store.begin_keyed(queued, reached);
        self.run();
    }

    /// The place of a source from which it brings.
    fn place(&mut self, source: usize) -> Option<usize> {
        self.drain(source);
        let Source { at, is_there, must_list, .. } = &self.sources[source];
        at.filter(|_| *is_there && !must_list)
    }

    fn bring(&mut self, source: usize, count: usize) {
        let Some(from) = self.place(source) else { return };
        for place in from..self.log.len().min(from.saturating_add(count)) {
            let part = self.part(source, place);
            let applied = self.play.apply_from(&SourceId::new(SOURCES[source]), vec![part]);
            self.check(&applied);
            self.run();
            self.sources[source].at = Some(place + 1);
        }
    }

    fn bring_by_key(&mut self, source: usize, count: usize) {
        let Some(from) = self.place(source) else { return };
        let upto = self.log.len().min(from + count);
        let mut places: Vec<usize> = (from..upto).collect();
        places.sort_by(|one, other| self.log[*one].key.cmp(&self.log[*other].key));
        let parts = places.into_iter().map(|place| self.part(source, place));
        let parts = parts.filter(|part| !matches!(part, WatchPart::Bookmark { .. }));
        let mut first: Vec<_> = parts.map(|part| (SourceId::new(SOURCES[source]), part)).collect();
        self.sources[source].queued = Some(first.split_off(first.len() / 2));
        self.sources[source].at = Some(upto);
        self.play.store.begin_keyed(first, Vec::new());
        self.run();
    }

    /// Asks for a list: not older than what it has brought itself, nor than what its predecessors have.
    fn ask(&mut self, source: usize, back: usize) {
        let may_join = if self.is_back { source != 0 } else { source == 0 };
        let is_first = self.play.now().versions().is_empty() && self.sources[source].is_there;
        if !self.sources[source].is_there && !may_join && !is_first {
            return;
        }
        self.sources[source].is_there = true;
        let awaited = |other: usize| {
            let until = self.play.now().awaited_version(&SourceId::new(SOURCES[other]))?;
            until.to_string().parse::<usize>().ok()
        };
        let floors = self.predecessors(source).filter_map(|other| self.sources[other].at.max(awaited(other)));
        let floor = floors.chain(self.sources[source].at).max().unwrap_or_default().max(1);
        self.sources[source].asked = Some(self.log.len().saturating_sub(back).max(floor));
    }

    fn land(&mut self, source: usize) {
        let Some(at) = self.sources[source].asked.take() else { return };
        if self.sources[source].at.is_some_and(|reached| reached > at) {
            return;
        }
        self.drain(source);
        let mut newest = BTreeMap::new();
        self.log[..at].iter().enumerate().for_each(|(place, event)| _ = newest.insert(&event.key, place));
        let seen = newest.into_values().filter(|place| self.log[*place].is_seen_by(source));
        let (read, unread): (Vec<_>, Vec<_>) = seen.partition(|place| self.log[*place].decodes);
        let read = read.into_iter().map(|place| self.object(source, place)).collect();
        let unread = unread.into_iter().map(|place| self.unread(place)).collect();
        let cause = if self.sources[source].at.is_none() { Cause::InitialList } else { Cause::Relist };
        let replacement = Replacement::new(version(at as u64), cause, read, unread);
        self.play.store.begin_replace(SourceId::new(SOURCES[source]), replacement);
        self.sources[source].at = Some(at);
        self.sources[source].must_list = false;
        self.run();
    }

    fn hand_over(&mut self) {
        let (from, to): (&[usize], &[usize]) = if self.is_back { (&[0], &[1, 2]) } else { (&[1, 2], &[0]) };
        if to.iter().any(|source| self.sources[*source].at.is_none() || !self.sources[*source].is_there) {
            return;
        }
        for source in from {
            let successors = among(to.iter().map(|to| SOURCES[*to]));
            self.play.store.begin_remove_source(SourceId::new(SOURCES[*source]), successors);
            self.sources[*source] = Source::default();
            self.run();
        }
        self.is_back = !self.is_back;
    }

    fn run(&mut self) {
        while self.play.store.under_way() == UnderWay::InOrder {
            match self.play.store.advance(2) {
                Progress::More => {}
                Progress::Done(applied) => self.check(&applied),
                Progress::Idle => panic!("busy, and nothing to do"),
            }
        }
    }

    /// Each life is added once and deleted once, and only when it is over; versions never go back.
    fn check(&mut self, applied: &Publish<String>) {
        assert!(invariants::replays_to(applied), "{:?}", texts(applied));
        assert!(invariants::is_consistent(&applied.snapshot));
        self.play.published.push(applied.snapshot.clone());
        for change in invariants::changes_of(applied) {
            let line = text_of(&change);
            let uid = |object: &Object<String>| {
                let uid = object.object_uid().expect("each has one").to_string();
                uid[1..].parse::<u64>().expect("a number")
            };
            let key = change.key().clone();
            let lives = self.now.get(&key).map(|place| self.log[*place].uid);
            if let Change::Deleted { old, .. } = &change {
                let is_split = self.split.contains(&uid(old));
                assert!(is_split || lives != Some(uid(old)), "it lives: {line}");
                assert!(self.told.insert(uid(old)) || is_split, "it was told before: {line}");
                self.subscriber.remove(&key);
            }
            if let Change::Added { object, .. } | Change::Updated { object, .. } = &change {
                let at: u64 = object.version().to_string().parse().expect("a number");
                assert!(at <= self.log.len() as u64, "not yet: {line}");
                let (uid, is_split) = (uid(object), self.split.contains(&uid(object)));
                assert!(is_split || !self.told.contains(&uid), "it is gone: {line}");
                let before = self.subscriber.insert(key, (uid, at));
                assert!(before.is_none_or(|(_, before)| before < at), "back from {before:?}: {line}");
            }
        }
    }

    /// Everything is brought: the store has what the server has. What does not decode may be there in an older state.
    fn end(mut self) {
        for source in 0..3 {
            if self.sources[source].must_list {
                self.play(&Deed::Ask(source, 0));
            }
            self.play(&Deed::Land(source));
            self.play(&Deed::Bring(source, usize::MAX));
        }
        let is_followed = |place: &usize| {
            (0..3).any(|source| self.sources[source].at.is_some() && self.log[*place].is_seen_by(source))
        };
        let (read, unread): (Vec<usize>, Vec<usize>) =
            self.now.values().copied().filter(is_followed).partition(|place| self.log[*place].decodes);
        let shown = |place: &usize| written(&self.object(0, *place));
        let now: &Snapshot<String> = self.play.now();
        let decoded = now.iter().filter(|object| now.undecodable_of(object.key()).is_none());
        assert_eq!(decoded.map(written).collect::<Vec<_>>(), read.iter().map(shown).collect::<Vec<_>>());
        let keys = now.undecodable().map(|entry| format!("{}@{}", entry.key, entry.version));
        let expected = unread.iter().map(|place| format!("{}@{}", self.log[*place].key, place + 1));
        assert_eq!(keys.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert!(now.frame().behind().is_empty(), "nothing is kept when all is brought");
    }
}

fn play(deeds: &[Deed]) {
    let mut model = Model::new();
    [1, 2].into_iter().for_each(|source| {
        model.play(&Deed::Ask(source, 0));
        model.play(&Deed::Land(source));
    });
    deeds.iter().for_each(|deed| model.play(deed));
    model.end();
}

#[test]
fn informer_1_a_state_that_is_added_late_ends_the_one_of_its_source_before_it_that_did_not_decode() {
    use Deed::{Ask, BringByKey, HandOver, Land, Restart, Write};
    let (by_each, by_all) = (BY_ALL & !1, BY_ALL);
    let to_all = [Write(0, by_all, false), Ask(0, 0), Land(0), HandOver];
    // The source of all has lost its selector's object, and tells that before the next one brings it.
    let back = [Ask(1, 0), BringByKey(0, 2), Write(0, by_each, true), Write(1, by_all, false), Restart];
    play(&[&to_all[..], &back].concat());
}

#[test]
fn informer_1_a_state_that_does_not_decode_stays_for_no_source_that_deleted_the_life_before() {
    use Deed::{Ask, BringByKey, Delete, Write};
    let lives = [Write(5, BY_ALL, false), Delete(5), Write(5, 1, false)];
    play(&[&lives[..], &[Ask(0, 0), BringByKey(2, 2), Delete(5)]].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn informer_1_whatever_happens_while_sources_take_over_each_life_is_told_once_and_none_that_lives_as_deleted(
        deeds in deeds(),
    ) {
        play(&deeds);
    }
}
