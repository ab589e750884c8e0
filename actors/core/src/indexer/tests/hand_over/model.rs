//! Any history of a server, of sources that read its log and take over from each other, against what is so.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{ALL, EACH, among, of};
use crate::delta::{Cause, Change, Replacement};
use crate::indexer::tests::{Play, bookmark, gone, put, text_of, texts};
use crate::indexer::{Progress, Publish, Store, invariants};
use crate::meta::{Object, ObjectKey, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{key, version, written};

/// What happens in the model: to the server's objects, or to a source.
#[derive(Debug, Clone)]
enum Deed {
    Write(usize),
    Delete(usize),
    /// The source brings the next so many events.
    Bring(usize, usize),
    /// The source is asked for a list, which shows the server as it was so many events ago.
    Ask(usize, usize),
    /// The list arrives.
    Land(usize),
    /// Sources whose successors have listed hand over.
    HandOver,
    /// The store is built again from what is published.
    Restart,
}

const SOURCES: [&str; 3] = [ALL, EACH[0], EACH[1]];
const NAMES: usize = 6;

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let source = 0..SOURCES.len();
    let deed = prop_oneof![
        6 => (0..NAMES).prop_map(Deed::Write),
        4 => (0..NAMES).prop_map(Deed::Delete),
        6 => (source.clone(), 1..6_usize).prop_map(|(source, count)| Deed::Bring(source, count)),
        4 => (source.clone(), 0..4_usize).prop_map(|(source, back)| Deed::Ask(source, back)),
        4 => source.prop_map(Deed::Land),
        2 => Just(Deed::HandOver),
        1 => Just(Deed::Restart),
    ];
    prop::collection::vec(deed, 1..120)
}

type State = BTreeMap<ObjectKey, (u64, u64)>;

/// A source of the model.
#[derive(Default)]
struct Source {
    is_there: bool,
    /// How far it has brought everything: an index into the log. `None` before its first list.
    at: Option<usize>,
    asked: Option<usize>,
}

/// A server with its whole log, the sources that read it, and the store.
struct Model {
    play: Play,
    /// The key, its uid and version, and whether it is a deletion. The version of an event is its place, and one.
    log: Vec<(ObjectKey, u64, bool)>,
    now: State,
    sources: [Source; 3],
    /// Whether the sources of single namespaces take over from the one of all, or the other way round.
    is_back: bool,
    subscriber: State,
    told: BTreeSet<(bool, u64)>,
}

impl Model {
    fn new() -> Self {
        let mut sources: [Source; 3] = Default::default();
        (sources[1].is_there, sources[2].is_there) = (true, true);
        let (log, now, subscriber) = (Vec::new(), State::new(), State::new());
        let mut model =
            Self { play: Play::new(), log, now, sources, is_back: false, subscriber, told: BTreeSet::new() };
        model.write(0);
        model.write(1);
        model
    }

    fn name(at: usize) -> ObjectKey {
        key(&format!("{}/o{at}", EACH[at % 2]))
    }

    fn write(&mut self, at: usize) {
        let (at, place) = (Self::name(at), self.log.len() as u64);
        let uid = self.now.get(&at).map_or(place, |(uid, _)| *uid);
        self.now.insert(at.clone(), (uid, place + 1));
        self.log.push((at, uid, false));
    }

    fn delete(&mut self, at: usize) {
        let at = Self::name(at);
        if let Some((uid, _)) = self.now.remove(&at) {
            self.log.push((at, uid, true));
        }
    }

    fn object(source: usize, key: &ObjectKey, uid: u64, number: u64) -> Object<String> {
        of(SOURCES[source], &key.to_string(), &format!("u{uid}"), number)
    }

    fn follows(source: usize, key: &ObjectKey) -> bool {
        source == 0 || key.namespace() == Some(SOURCES[source])
    }

    fn predecessors(&self, source: usize) -> impl Iterator<Item = usize> + use<'_> {
        let others: &[usize] = if source == 0 { &[1, 2] } else { &[0] };
        others.iter().copied().filter(|other| self.sources[*other].is_there)
    }

    fn play(&mut self, deed: &Deed) {
        match *deed {
            Deed::Write(at) => self.write(at),
            Deed::Delete(at) => self.delete(at),
            Deed::Bring(source, count) => self.bring(source, count),
            Deed::Ask(source, back) => self.ask(source, back),
            Deed::Land(source) => self.land(source),
            Deed::HandOver => self.hand_over(),
            Deed::Restart => {
                while self.play.store.is_replacing() {
                    self.advance();
                }
                self.play.store = Store::new(self.play.now().clone(), Vec::new());
            }
        }
        self.show_successors();
        while self.play.store.is_replacing() {
            self.advance();
        }
    }

    /// As the shell does: while both kinds of sources are there, each may have something to tell the others.
    fn show_successors(&mut self) {
        let there = |source: &usize| self.sources[*source].is_there;
        let is_open = there(&0) && (there(&1) || there(&2));
        let sources = (0..3).filter(there).map(|source| SOURCES[source]);
        let open = if is_open { vec![among(sources)] } else { Vec::new() };
        self.play.store.hand_over_among(open);
    }

    fn bring(&mut self, source: usize, count: usize) {
        let Some(mut at) = self.sources[source].at.filter(|_| self.sources[source].is_there) else { return };
        for _ in 0..count {
            let Some((key, uid, is_gone)) = self.log.get(at).cloned() else { break };
            at += 1;
            let part = match (Self::follows(source, &key), is_gone) {
                (false, _) => bookmark(at as u64),
                (true, false) => put(Self::object(source, &key, uid, at as u64)),
                (true, true) => gone(Self::object(source, &key, uid, at as u64)),
            };
            let applied = self.play.apply_from(&SourceId::new(SOURCES[source]), vec![part]);
            self.check(&applied);
        }
        self.sources[source].at = Some(at);
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
        let mut state = State::new();
        for (place, (key, uid, is_gone)) in self.log[..at].iter().enumerate() {
            if *is_gone {
                state.remove(key);
            } else {
                state.insert(key.clone(), (*uid, place as u64 + 1));
            }
        }
        let listed = state.iter().filter(|(key, _)| Self::follows(source, key));
        let listed = listed.map(|(key, (uid, number))| Self::object(source, key, *uid, *number)).collect();
        let cause = if self.sources[source].at.is_none() { Cause::InitialList } else { Cause::Relist };
        let replacement = Replacement::new(version(at as u64), cause, listed, Vec::new());
        self.play.store.begin_replace(SourceId::new(SOURCES[source]), replacement);
        self.sources[source].at = Some(at);
        self.advance();
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
            self.advance();
        }
        self.is_back = !self.is_back;
    }

    fn advance(&mut self) {
        match self.play.store.advance(2) {
            Progress::More => {}
            Progress::Done(applied) => self.check(&applied),
            Progress::Idle => panic!("busy, and nothing to do"),
        }
        if self.play.store.is_replacing() {
            self.advance();
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
            let lives = self.now.get(&key).map(|(uid, _)| *uid);
            if let Change::Deleted { old, .. } = &change {
                assert_ne!(lives, Some(uid(old)), "it lives: {line}");
                assert!(self.told.insert((false, uid(old))), "it was told before: {line}");
                self.subscriber.remove(&key);
            }
            if let Change::Added { object, .. } | Change::Updated { object, .. } = &change {
                let number = self.log.len() as u64;
                let at: u64 = object.version().to_string().parse().expect("a number");
                assert!(at <= number && !self.told.contains(&(false, uid(object))), "it is gone: {line}");
                let before = self.subscriber.insert(key, (uid(object), at));
                assert!(before.is_none_or(|(_, before)| before < at), "back from {before:?}: {line}");
            }
        }
    }

    /// Everything is brought: the store has what the server has.
    fn end(mut self) {
        for source in 0..3 {
            self.play(&Deed::Land(source));
            self.play(&Deed::Bring(source, usize::MAX));
        }
        let followed = self.now.iter().filter(|(key, _)| {
            (0..3).any(|source| self.sources[source].at.is_some() && Self::follows(source, key))
        });
        let expected: Vec<String> =
            followed.map(|(key, (uid, number))| format!("{key} u{uid}@{number}")).collect();
        let now: &Snapshot<String> = self.play.now();
        assert_eq!(now.iter().map(written).collect::<Vec<_>>(), expected);
        assert!(now.frame().behind().is_empty(), "nothing is kept when all is brought");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn informer_1_whatever_happens_while_sources_take_over_each_life_is_told_once_and_none_that_lives_as_deleted(
        deeds in deeds(),
    ) {
        let mut model = Model::new();
        [1, 2].into_iter().for_each(|source| {
            model.play(&Deed::Ask(source, 0));
            model.play(&Deed::Land(source));
        });
        deeds.iter().for_each(|deed| model.play(deed));
        model.end();
    }
}
