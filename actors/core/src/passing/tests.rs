//! What one receiver gets, against a receiver that is a plain map and a server that is another one.
//!
//! Answers "does the receiver have what the server has, whatever is lost on the way, and does nothing come twice?"

use std::collections::VecDeque;

use proptest::prelude::*;
use sides::*;

use super::{Ahead, Deciding, Outgoing, Shown, gone_of_published};
use crate::delta::{Cause, ListPart, Replacement, Undecodable, WatchPart};
use crate::indexer::{Progress, Store};
use crate::meta::{Object, ObjectKey, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{version, written};

mod sides;

/// Objects on a page, and parts that are sent at once.
const PAGE: usize = 2;

struct List {
    server: Server,
    is_rewind: bool,
    everything: bool,
    rest: VecDeque<(usize, State)>,
    objects: Vec<Object<Body>>,
    undecodable: Vec<Undecodable>,
}

enum Batch {
    Parts(Vec<WatchPart<Body>>),
    List(Replacement<Body>),
}

struct World {
    server: Server,
    /// Of the present history.
    events: Vec<Event>,
    first: Server,
    /// Events that the watch has brought.
    position: Option<usize>,
    list: Option<List>,
    must_rewind: bool,
    /// The server has lost what was sent, and no list has shown it yet. If it passes the versions that it has lost before a
    /// new session asks, nobody can know: then nothing is checked.
    is_restored: bool,
    is_unknowable: bool,
    /// The last list that was sent awaits its publication.
    is_settling: bool,
    queue: VecDeque<Batch>,
    store: Store<Body>,
    published: Snapshot<Body>,
    ahead: Ahead<Body>,
    receiver: Receiver,
}

impl World {
    fn new() -> Self {
        let published = Snapshot::empty();
        let first = Server { at: 1, ..Server::default() };
        Self {
            server: first.clone(),
            events: Vec::new(),
            first,
            position: None,
            list: None,
            must_rewind: false,
            is_restored: false,
            is_unknowable: false,
            is_settling: false,
            queue: VecDeque::new(),
            store: Store::new(published.clone(), Vec::new()),
            published,
            ahead: Ahead::new(),
            receiver: Receiver { is_strict: true, ..Receiver::default() },
        }
    }

    fn play(&mut self, deed: &Deed) {
        match *deed {
            Deed::Write(name) => self.change(name, |state, _| state.is_broken = false),
            Deed::Recreate(name) => {
                self.change(name, |state, life| (state.life, state.is_broken) = (life, false))
            }
            Deed::Break(name) => self.change(name, |state, _| state.is_broken = true),
            Deed::Delete { name, is_undecodable } => self.delete(name, is_undecodable),
            Deed::Watch(count, death) => self.watch(count, death),
            Deed::Page(death) => self.page(death),
            Deed::Fetch(name) => self.fetch(name),
            Deed::Fail => self.fail(),
            Deed::Publish => self.publish(),
            Deed::LoseQueue => {
                self.queue.clear();
                self.die();
            }
            Deed::Restore(back) => self.restore(back),
        }
    }

    fn change(&mut self, name: usize, change: impl FnOnce(&mut State, u64)) {
        let server = &mut self.server;
        server.at += 1;
        server.lives += 1;
        let new = State { life: server.lives, version: 0, is_broken: false };
        let former = server.states.get(&name).copied();
        let mut state = former.unwrap_or(new);
        change(&mut state, server.lives);
        if former.is_some_and(|former| former.life != state.life) {
            self.delete(name, false);
            self.server.at += 1;
        }
        let server = &mut self.server;
        state.version = server.at;
        server.states.insert(name, state);
        let part = match state.is_broken {
            true => WatchPart::Undecodable(undecodable(name, state.version)),
            false => WatchPart::Applied(object(name, state)),
        };
        self.events.push(Event { part, after: self.server.clone() });
    }

    fn delete(&mut self, name: usize, is_undecodable: bool) {
        let Some(mut state) = self.server.states.remove(&name) else { return };
        self.server.at += 1;
        state.version = self.server.at;
        let part = match is_undecodable {
            true => WatchPart::DeletedUndecodable(undecodable(name, state.version)),
            false => WatchPart::Deleted(object(name, state)),
        };
        self.events.push(Event { part, after: self.server.clone() });
    }

    fn restore(&mut self, back: usize) {
        self.events.truncate(self.events.len().saturating_sub(back));
        let at = self.events.last().map_or(&self.first, |event| &event.after).clone();
        // A life of the former history never comes again.
        self.server = Server { lives: self.server.lives, ..at };
        let is_behind = self.ahead.newest().is_some_and(|newest| *newest > version(self.server.at));
        self.must_rewind |= is_behind;
        self.is_restored |= is_behind;
        self.receiver.is_strict &= !self.must_rewind;
        self.fail();
    }

    /// The session goes on.
    fn fail(&mut self) {
        (self.position, self.list) = (None, None);
    }

    /// A new session knows what was sent, and nothing else.
    fn die(&mut self) {
        self.fail();
        (self.is_settling, self.must_rewind) = (false, false);
    }

    /// What is published in this state is not read again.
    fn read(&self, object: Object<Body>, everything: bool) -> Object<Body> {
        match self.published.get(object.key()) {
            Some(known) if !everything && known.is_same_as(&object) => known.clone(),
            _ => object,
        }
    }

    fn watch(&mut self, count: usize, death: Death) {
        let Some(position) = self.position else { return };
        let parts: Vec<_> =
            self.events[position..].iter().take(count).map(|event| copied(&event.part)).collect();
        self.position = Some(position + parts.len());
        self.bring(parts, death);
    }

    fn fetch(&mut self, name: usize) {
        let found = self.server.states.get(&name).copied();
        if self.position.is_some()
            && let Some(found) = found.filter(|found| !found.is_broken)
        {
            self.bring(vec![WatchPart::Fetched(object(name, found))], Death(None));
        }
    }

    fn bring(&mut self, parts: Vec<WatchPart<Body>>, death: Death) {
        let (mut outgoing, mut left) = (Vec::new(), Vec::new());
        let everything = self.ahead.is_rewound();
        let parts: Vec<_> = parts
            .into_iter()
            .map(|part| match part {
                WatchPart::Applied(object) => WatchPart::Applied(self.read(object, everything)),
                other => other,
            })
            .map(|part| self.deciding(false, &mut outgoing, &mut left).watched(part))
            .collect();
        if self.send(outgoing, false, death) {
            self.queue.push_back(Batch::Parts(parts));
        }
    }

    fn deciding<'a>(
        &'a self,
        is_rewind: bool,
        outgoing: &'a mut Vec<Outgoing<Body>>,
        left: &'a mut Vec<Object<Body>>,
    ) -> Deciding<'a, Body> {
        let (ahead, published) = (&self.ahead, &self.published);
        Deciding { ahead, published, is_rewind, without_body: &without_body, outgoing, left }
    }

    /// Whether the source has survived it.
    fn send(&mut self, outgoing: Vec<Outgoing<Body>>, is_rewind: bool, Death(death): Death) -> bool {
        let mut rest = outgoing.into_iter();
        for number in 0.. {
            let (parts, means): (Vec<_>, Vec<_>) =
                rest.by_ref().take(PAGE).map(|outgoing| (outgoing.part, outgoing.means)).unzip();
            if parts.is_empty() {
                return true;
            }
            if death == Some(number) {
                self.die();
                return false;
            }
            parts.iter().for_each(|part| self.receiver.take(part));
            self.ahead.sent(means, is_rewind, &self.published);
        }
        true
    }

    fn page(&mut self, death: Death) {
        if self.position.is_some() {
            return;
        }
        let at = version(self.server.at);
        let is_older = |version: Option<&_>| version.is_some_and(|version| *version > at);
        let is_rewind = self.must_rewind
            || is_older(self.ahead.newest())
            || is_older(self.published.version(&SourceId::default()));
        let mut list = self.list.take().unwrap_or_else(|| List {
            server: self.server.clone(),
            is_rewind,
            everything: is_rewind || self.ahead.is_rewound(),
            rest: self.server.states.clone().into_iter().collect(),
            objects: Vec::new(),
            undecodable: Vec::new(),
        });
        self.is_settling &= !list.is_rewind;
        self.is_unknowable |= self.is_restored && !list.is_rewind;
        let (mut outgoing, mut left) = (Vec::new(), Vec::new());
        for _ in 0..PAGE {
            let Some((name, state)) = list.rest.pop_front() else { break };
            let part = match state.is_broken {
                true => ListPart::Undecodable(undecodable(name, state.version)),
                false => ListPart::Objects(vec![self.read(object(name, state), list.everything)]),
            };
            match self.deciding(list.is_rewind, &mut outgoing, &mut left).listed(part) {
                ListPart::Objects(kept) => list.objects.extend(kept),
                ListPart::Undecodable(undecodable) => list.undecodable.push(undecodable),
                _ => {}
            }
        }
        if !self.send(outgoing, list.is_rewind, death) {
            return;
        }
        match list.rest.is_empty() {
            true => self.list_ends(list, death),
            false => self.list = Some(list),
        }
    }

    fn list_ends(&mut self, list: List, death: Death) {
        let listed = version(list.server.at);
        let lists = |key: &ObjectKey| list.server.states.keys().any(|name| name_key(*name) == *key);
        let shown = Shown { lists: &lists, version: &listed, is_rewind: list.is_rewind };
        let (mut outgoing, mut behind) = self.ahead.gone_behind(None, 1, shown);
        while behind.is_some() {
            let (gone, last) = self.ahead.gone_behind(behind.as_ref(), 1, shown);
            outgoing.extend(gone);
            behind = last;
        }
        outgoing.extend(gone_of_published(&self.published, shown).flatten());
        outgoing.push(Outgoing::listed(&listed));
        if !self.send(outgoing, list.is_rewind, death) {
            return;
        }
        let cause = match self.published.version(&SourceId::default()) {
            _ if list.is_rewind => Cause::Rewind,
            None => Cause::InitialList,
            Some(_) => Cause::Relist,
        };
        self.queue.push_back(Batch::List(Replacement::new(listed, cause, list.objects, list.undecodable)));
        let is_brought = |event: &&Event| event.after.at <= list.server.at;
        self.position = Some(self.events.iter().take_while(is_brought).count());
        (self.must_rewind, self.is_restored, self.is_settling) = (false, false, true);
        self.check(&list.server);
    }

    fn publish(&mut self) {
        match self.queue.pop_front() {
            None => {}
            Some(Batch::Parts(parts)) => {
                let parts = parts.into_iter().map(|part| (SourceId::default(), part)).collect::<Vec<_>>();
                self.published = self.store.apply_parts(parts).snapshot;
            }
            Some(Batch::List(list)) => {
                self.store.begin_replace(SourceId::default(), list);
                self.published = loop {
                    match self.store.advance(10) {
                        Progress::More => {}
                        Progress::Done(published) => break published.snapshot,
                        Progress::Idle => panic!("a list is under way"),
                    }
                };
                let is_last = !self.queue.iter().any(|batch| matches!(batch, Batch::List(_)));
                if self.is_settling && is_last {
                    self.is_settling = false;
                    self.ahead.list_published();
                    let mut behind = self.ahead.settle_behind(None, 1, &self.published);
                    while behind.is_some() {
                        behind = self.ahead.settle_behind(behind.as_ref(), 1, &self.published);
                    }
                }
            }
        }
    }

    /// The receiver has what the server has, of what decodes; what does not decode leaves it with what it had.
    fn check(&self, server: &Server) {
        for name in (0..NAMES).filter(|_| !self.is_unknowable) {
            match server.states.get(&name) {
                Some(state) if state.is_broken => {}
                Some(state) => {
                    let wanted = written(&object(name, *state));
                    assert_eq!(self.receiver.has(name), Some(wanted), "n{name}");
                }
                None => assert_eq!(self.receiver.has(name), None, "n{name}"),
            }
        }
    }

    /// Nothing happens any more; everything arrives.
    fn settle(&mut self) {
        while self.position.is_none() {
            self.page(Death(None));
        }
        self.watch(usize::MAX, Death(None));
        self.check(&self.server);
        while !self.queue.is_empty() {
            self.publish();
        }
    }
}

fn play(history: &[Deed]) -> World {
    let mut world = World::new();
    for deed in history {
        world.play(deed);
    }
    world.settle();
    world
}

const ALIVE: Death = Death(None);

#[test]
fn a_good_state_of_a_lost_history_hides_no_state_of_the_present_one() {
    use Deed::*;

    let delete = Delete { name: 0, is_undecodable: true };
    let restored = [
        Write(0),
        Break(0),
        Write(0),
        Write(0),
        Write(0),
        Page(ALIVE),
        Publish,
        Restore(3),
        Page(ALIVE),
        Publish,
    ];
    play(&[&restored[..], &[delete.clone(), Watch(1, ALIVE), Write(0), Watch(1, ALIVE)]].concat());
    play(&[&restored[..], &[delete, Fail, Page(ALIVE)]].concat());
}

proptest! {
    #[test]
    fn the_receiver_has_what_the_server_has_and_nothing_twice(history in deeds()) {
        let mut world = play(&history);
        // What is published leaves what is ahead. Of what does not decode, the receiver alone may have a good state.
        for _ in 0..=2 * NAMES {
            world.ahead.sent([], false, &world.published);
        }
        if world.receiver.is_strict {
            let is_broken = |name: usize| world.server.states.get(&name).is_some_and(|state| state.is_broken);
            let good: Vec<_> = (0..NAMES).filter(|name| !is_broken(*name)).map(name_key).collect();
            let mut ahead = world.ahead.held.keys().filter(|place| good.contains(&place.key));
            assert_eq!(ahead.next(), None);
        }
    }
}
