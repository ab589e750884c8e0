//! A server that goes back once, the sources that read it, and the store.
//!
//! Answers "what does each source bring, and may the store tell what it tells?". What a source can never
//! notice is left out: the server goes back to before what each has brought, and stays below that until each has noticed. Nor does a list of the former history arrive when
//! one has noticed, and asked for another one.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{ALL, EACH, among, scope_of};
use super::Deed;
use crate::delta::{Cause, Change, Replacement};
use crate::indexer::machine::UnderWay;
use crate::indexer::tests::{Play, bookmark, gone, put, text_of, texts};
use crate::indexer::{Progress, Publish, Store, Successors, invariants};
use crate::meta::{Object, ObjectKey, SourceId};
use crate::snapshot::fixture::{brought_by, key, version, written};

pub(super) const SOURCES: [&str; 3] = [ALL, EACH[0], EACH[1]];
pub(super) const NAMES: usize = 4;

/// A state of an object, or its deletion. Its version is its place in the log, and one.
#[derive(Clone, Copy)]
struct Event {
    name: usize,
    uid: usize,
    is_gone: bool,
    /// The server has gone back before.
    is_new: bool,
}

/// A list that was answered.
#[derive(Clone, Copy)]
struct Asked {
    at: usize,
    is_former: bool,
    cause: Cause,
}

#[derive(Default)]
struct Source {
    is_there: bool,
    /// How far it has brought everything. `None` before its first list.
    at: Option<usize>,
    asked: Option<Asked>,
    /// It reads the history before the rewind.
    is_former: bool,
}

pub(super) struct Model {
    play: Play,
    log: Vec<Event>,
    /// The whole log of the history that has ended, and where it was left.
    former: Option<(Vec<Event>, usize)>,
    /// A source has noticed, and was asked for a list since.
    has_noticed: bool,
    lives: usize,
    sources: [Source; 3],
    successors: Successors,
    is_back: bool,
    /// The newest version that sources have delivered that have left.
    left: usize,
    /// The lives that were told as deleted, and whether by what a former history says.
    told: BTreeMap<usize, bool>,
    /// The lives that came back with the present history.
    returned: BTreeSet<usize>,
}

fn name(at: usize) -> ObjectKey {
    key(&format!("{}/o{at}", EACH[at % 2]))
}

fn uid_of(object: &Object<String>) -> usize {
    object.object_uid().expect("each has one").to_string()[1..].parse().expect("a number")
}

fn version_of(object: &Object<String>) -> usize {
    object.version().to_string().parse().expect("a number")
}

/// Where the newest state of each object is in a log.
fn state(log: &[Event]) -> BTreeMap<usize, usize> {
    let mut state = BTreeMap::new();
    for (place, event) in log.iter().enumerate() {
        if event.is_gone {
            state.remove(&event.name)
        } else {
            state.insert(event.name, place)
        };
    }
    state
}

impl Model {
    pub(super) fn new() -> Self {
        let mut sources: [Source; 3] = Default::default();
        (sources[1].is_there, sources[2].is_there) = (true, true);
        let (log, told, returned) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let (play, former, has_noticed, lives) = (Play::new(), None, false, 0);
        let (is_back, left) = (false, 0);
        let successors = among(EACH);
        let mut model = Self {
            play,
            log,
            former,
            has_noticed,
            lives,
            sources,
            successors,
            is_back,
            left,
            told,
            returned,
        };
        (0..NAMES).for_each(|name| model.write(name));
        [1, 2].into_iter().for_each(|source| model.list(source));
        model
    }

    fn list(&mut self, source: usize) {
        self.play(&Deed::Ask(source));
        self.play(&Deed::Land(source));
    }

    fn history(&self, is_former: bool) -> &[Event] {
        self.former.as_ref().filter(|_| is_former).map_or(&self.log, |(log, _)| log)
    }

    /// Whether the server may come to one more version, and each source still notices that it went back.
    fn may_grow(&self) -> bool {
        let asked = |source: &Source| source.asked.filter(|asked| asked.is_former).map(|asked| asked.at);
        let reached = |source: &Source| source.at.filter(|_| source.is_former);
        self.sources.iter().all(|source| {
            [asked(source), reached(source)].into_iter().flatten().all(|at| self.log.len() + 1 < at)
        })
    }

    fn write(&mut self, name: usize) {
        if self.may_grow() {
            let known = state(&self.log).get(&name).map(|place| self.log[*place].uid);
            self.lives += usize::from(known.is_none());
            let (uid, is_new) = (known.unwrap_or(self.lives), self.former.is_some());
            self.log.push(Event { name, uid, is_gone: false, is_new });
        }
    }

    fn delete(&mut self, name: usize) {
        if let Some(place) = state(&self.log).get(&name).filter(|_| self.may_grow()) {
            let is_new = self.former.is_some();
            self.log.push(Event { is_gone: true, is_new, ..self.log[*place] });
        }
    }

    fn object(&self, source: usize, place: usize, is_former: bool) -> Object<String> {
        let event = self.history(is_former)[place];
        let (name, uid) = (name(event.name).to_string(), format!("u{}", event.uid));
        let body = if event.is_new { "new" } else { "" };
        brought_by(&SourceId::new(SOURCES[source]), &name, &uid, place as u64 + 1, body)
    }

    pub(super) fn play(&mut self, deed: &Deed) {
        match *deed {
            Deed::Write(name) => self.write(name),
            Deed::Delete(name) => self.delete(name),
            Deed::Bring(source, count) => self.bring(source, count),
            Deed::Ask(source) => self.ask(source),
            Deed::Land(source) => self.land(source),
            Deed::HandOver => self.hand_over(),
            Deed::Rewind(back) => self.rewind(back),
            Deed::Restart => self.play.store = Store::new(self.play.now().clone(), Vec::new()),
        }
        self.show_successors();
        self.run(false);
    }

    fn is_there(&self, source: usize) -> bool {
        self.sources[source].is_there
    }

    fn is_open(&self) -> bool {
        self.is_there(0) && (self.is_there(1) || self.is_there(2))
    }

    fn show_successors(&mut self) {
        let open = if self.is_open() { vec![self.successors.clone()] } else { Vec::new() };
        self.play.store.hand_over_among(open);
    }

    /// The source has come so far in this history.
    fn reach(&mut self, source: usize, at: usize, is_former: bool) {
        (self.sources[source].at, self.sources[source].is_former) = (Some(at), is_former);
        self.successors.deliver(&SourceId::new(SOURCES[source]), &version(at as u64));
    }

    /// How far a source has come, as far as it counts for others: the store does not know it as outdated.
    fn counted(&self, source: usize) -> Option<usize> {
        let is_outdated = self.play.now().frame().is_outdated(&SourceId::new(SOURCES[source]));
        self.sources[source].at.filter(|_| !is_outdated)
    }

    fn rewind(&mut self, back: usize) {
        let reached = |source: &Source| [source.at, source.asked.map(|asked| asked.at)];
        let lowest = self.sources.iter().flat_map(reached).flatten().min().unwrap_or_default();
        let fork = lowest.saturating_sub(1 + back);
        if fork == 0 {
            return;
        }
        self.former = Some((self.log.clone(), fork));
        self.log.truncate(fork);
        for source in &mut self.sources {
            source.is_former = source.at.is_some();
            source.asked.iter_mut().for_each(|asked| asked.is_former = true);
        }
    }

    fn bring(&mut self, source: usize, count: usize) {
        let Source { at, is_former, asked, .. } = self.sources[source];
        let Some(from) = at.filter(|_| asked.is_none_or(|asked| is_former && !asked.is_former)) else {
            return;
        };
        let id = SourceId::new(SOURCES[source]);
        for place in from..self.history(is_former).len().min(from.saturating_add(count)) {
            let (event, object) = (self.history(is_former)[place], self.object(source, place, is_former));
            let part = match event.is_gone {
                _ if source != 0 && source != 1 + event.name % 2 => bookmark(place as u64 + 1),
                true => gone(object),
                false => put(object),
            };
            let applied = self.play.apply_from(&id, vec![part]);
            self.check(&applied, is_former);
            self.run(is_former);
            self.reach(source, place + 1, is_former);
        }
    }

    /// Asks for a list. It is below what the source knows if the server went back: then it notices.
    fn ask(&mut self, source: usize) {
        let may_join = self.is_back == (source != 0);
        if self.sources[source].asked.is_some() || !(self.is_there(source) || may_join) {
            return;
        }
        let id = SourceId::new(SOURCES[source]);
        if !std::mem::replace(&mut self.sources[source].is_there, true) {
            self.successors.add(scope_of(SOURCES[source]), id.clone());
        }
        let others = (0..3).filter(|other| *other != source).filter_map(|other| self.counted(other));
        let others = others.chain([self.left]).filter(|_| self.is_open()).max();
        let (at, own) = (self.log.len(), self.sources[source].at);
        let cause = match own {
            _ if own.max(others).is_some_and(|known| known > at) => Cause::Rewind,
            None => Cause::InitialList,
            Some(_) => Cause::Relist,
        };
        if cause == Cause::Rewind {
            self.successors.ask_after_rewind(&id, &version(at as u64));
            self.has_noticed = true;
        }
        self.sources[source].asked = Some(Asked { at, is_former: false, cause });
    }

    fn land(&mut self, source: usize) {
        let Some(Asked { at, is_former, cause }) = self.sources[source].asked.take() else { return };
        if is_former && self.has_noticed {
            return self.ask_again(source);
        }
        let seen = state(&self.history(is_former)[..at]);
        let seen = seen.into_iter().filter(|(name, _)| source == 0 || source == 1 + name % 2);
        let objects = seen.map(|(_, place)| self.object(source, place, is_former)).collect();
        let replacement = Replacement::new(version(at as u64), cause, objects, Vec::new());
        let id = SourceId::new(SOURCES[source]);
        if cause == Cause::Rewind && self.notices_first(source) {
            let forgotten = self.told.iter_mut().filter(|(_, by_former)| !**by_former);
            for (life, by_former) in forgotten {
                *by_former = true;
                self.returned.remove(life);
            }
        }
        self.play.store.begin_replace(id, replacement);
        self.run(is_former);
        self.reach(source, at, is_former);
        if cause == Cause::Rewind {
            self.successors.end_rewind(&SourceId::new(SOURCES[source]));
            self.left = if self.left > at { 0 } else { self.left };
        }
    }

    /// Whether a source that lists after a rewind forgets what was told before: also what others have told that have noticed.
    fn notices_first(&self, source: usize) -> bool {
        let is_outdated = |at: usize| self.play.now().frame().is_outdated(&SourceId::new(SOURCES[at]));
        let is_news = |other: usize| self.sources[other].is_former && !is_outdated(other);
        !is_outdated(source) && (self.sources[source].at.is_some() || (0..3).any(is_news))
    }

    /// Its list is lost. A first one is asked for again.
    fn ask_again(&mut self, source: usize) {
        if self.sources[source].at.is_none() {
            self.ask(source);
        }
    }

    fn hand_over(&mut self) {
        let (from, to): (&[usize], &[usize]) = if self.is_back { (&[0], &[1, 2]) } else { (&[1, 2], &[0]) };
        if to.iter().any(|source| self.sources[*source].at.is_none()) {
            return;
        }
        let is_former = to.iter().any(|source| self.sources[*source].is_former);
        for source in from {
            let successors = among(to.iter().map(|to| SOURCES[*to]));
            self.left = self.left.max(self.counted(*source).unwrap_or_default());
            self.play.store.begin_remove_source(SourceId::new(SOURCES[*source]), successors);
            self.successors.remove(&scope_of(SOURCES[*source]), &SourceId::new(SOURCES[*source]));
            let left = std::mem::take(&mut self.sources[*source]);
            self.run(is_former && left.is_former);
        }
        self.is_back = !self.is_back;
    }

    fn run(&mut self, by_former: bool) {
        while self.play.store.under_way() == UnderWay::InOrder {
            match self.play.store.advance(2) {
                Progress::More => {}
                Progress::Done(applied) => self.check(&applied, by_former),
                Progress::Idle => panic!("busy, and nothing to do"),
            }
        }
    }

    /// Whether it is a state of the history that has ended.
    fn is_former(&self, object: &Object<String>) -> bool {
        let fork = self.former.as_ref().map(|(_, fork)| *fork);
        object.body().is_empty() && fork.is_some_and(|fork| version_of(object) > fork)
    }

    /// What is told after a source that reads the present history, or a `former` one, has brought something.
    fn check(&mut self, applied: &Publish<String>, by_former: bool) {
        assert!(invariants::replays_to(applied), "{:?}", texts(applied));
        assert!(invariants::is_consistent(&applied.snapshot));
        self.play.published.push(applied.snapshot.clone());
        let living: BTreeSet<usize> = state(&self.log).values().map(|place| self.log[*place].uid).collect();
        let is_rewound = self.former.is_some();
        for change in invariants::changes_of(applied) {
            let line = text_of(&change);
            if let Change::Deleted { old, .. } = &change {
                assert!(by_former || !living.contains(&uid_of(old)), "it lives: {line}");
                self.told.insert(uid_of(old), by_former || !is_rewound);
            }
            if let Change::Added { object, .. } | Change::Updated { object, .. } = &change {
                assert!(by_former || !self.is_former(object), "it is of the former history: {line}");
                let deleted = self.told.remove(&uid_of(object));
                assert!(by_former || deleted != Some(false), "it is gone: {line}");
                assert!(deleted.is_none() || is_rewound, "it is gone: {line}");
                let is_return = deleted.is_some() && !by_former;
                assert!(!is_return || self.returned.insert(uid_of(object)), "a second time: {line}");
            }
            if let Change::Updated { old, object, .. } = &change {
                let of_present = !self.is_former(old) && !self.is_former(object);
                assert!(
                    !of_present
                        || version_of(old) < version_of(object)
                        || is_rewound && version_of(old) == version_of(object),
                    "it goes back: {line}"
                );
            }
        }
    }

    /// Each source notices, and brings everything: the store has what the server has.
    pub(super) fn end(mut self) {
        for source in (0..3).chain(0..3) {
            self.play(&Deed::Land(source));
            if self.sources[source].is_former {
                self.list(source);
            }
        }
        (0..3).for_each(|source| self.play(&Deed::Bring(source, usize::MAX)));
        let shown = |object: &Object<String>| format!("{} {}", written(object), object.body());
        let expected = state(&self.log).into_values().map(|place| shown(&self.object(0, place, false)));
        let now = self.play.now();
        assert_eq!(now.iter().map(shown).collect::<BTreeSet<_>>(), expected.collect::<BTreeSet<_>>());
        assert!(now.frame().behind().is_empty() && !now.frame().has_outdated(), "nothing is left");
    }
}
