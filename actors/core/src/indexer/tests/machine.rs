//! The Indexer's machine through every order of what can happen, with a real store.
//!
//! Answers "is there an order in which two steps run at once, a batch is lost, or nothing is ever asked again?" by
//! trying all of them up to a depth: at each point any of the things under way may end first, or an index be added.

use crate::delta::{Cause, Replacement, WatchPart};
use crate::index::Index;
use crate::indexer::machine::{IndexerEffect, IndexerMachine, Step, UnderWay};
use crate::indexer::{Progress, Store, Successors};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{brought_by, object, version};

/// So many things happen, in every possible order.
const DEPTH: usize = 16;
/// Objects in a list; the slices are of one object, so that each takes several.
const LISTED: u64 = 3;
const INDICES: usize = 3;
const BATCHES: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happens {
    BatchComes,
    TurnComes,
    ProcessorHasTaken,
    IndexIsAdded,
}

enum Batch {
    Parts(Vec<WatchPart<String>>),
    List(SourceId, Replacement<String>),
    RemoveSource(SourceId),
}

/// The Indexer as its shell drives it, and what is under way around it.
struct Driven {
    store: Store<String>,
    machine: IndexerMachine<u64>,
    questions: usize,
    turns: usize,
    fan_outs: usize,
    given: u64,
    applied: u64,
    indices: usize,
}

impl Driven {
    fn new() -> Self {
        let store = Store::new(Snapshot::empty(), Vec::new());
        let machine = IndexerMachine::new();
        let mut driven =
            Self { store, machine, questions: 0, turns: 0, fan_outs: 0, given: 0, applied: 0, indices: 0 };
        driven.drive();
        driven
    }

    fn possible(&self) -> Vec<Happens> {
        let mut possible = Vec::new();
        if self.questions > 0 && self.given < BATCHES {
            possible.push(Happens::BatchComes);
        }
        if self.turns > 0 {
            possible.push(Happens::TurnComes);
        }
        if self.fan_outs > 0 {
            possible.push(Happens::ProcessorHasTaken);
        }
        if self.indices < INDICES {
            possible.push(Happens::IndexIsAdded);
        }
        possible
    }

    fn happens(&mut self, what: Happens) {
        match what {
            Happens::BatchComes => {
                self.questions -= 1;
                self.given += 1;
                self.machine.handle_batch(self.given);
            }
            Happens::TurnComes => {
                self.turns -= 1;
                self.machine.handle_turn();
            }
            Happens::ProcessorHasTaken => {
                self.fan_outs -= 1;
                self.machine.handle_fanned_out();
            }
            Happens::IndexIsAdded => {
                self.indices += 1;
                let name = self.indices.to_string();
                let spec = Index::new(name, |object: &Object<String>| vec![object.body().clone()]);
                self.store.begin_index(spec).expect("a new name");
            }
        }
        self.drive();
    }

    fn drive(&mut self) {
        while let Some(effect) = self.machine.poll_effect(self.store.under_way()) {
            match effect {
                IndexerEffect::Ask => self.questions += 1,
                IndexerEffect::Apply(number) => self.apply(number),
                IndexerEffect::Advance => self.advance(),
            }
        }
        assert!(self.turns + self.fan_outs <= 1, "two steps at once");
        assert!(self.questions <= 1, "two questions at once");
        let waits = self.turns + self.fan_outs == 0;
        assert!(!waits || self.questions == 1, "nothing is under way and nothing was asked for");
        assert_eq!(waits, self.machine.step() == Step::Asking);
    }

    fn apply(&mut self, number: u64) {
        assert_ne!(self.store.under_way(), UnderWay::InOrder, "applied in the middle of something");
        assert_eq!(number, self.applied + 1, "batches are applied in order, each once");
        self.applied = number;
        match batch(number) {
            Batch::Parts(parts) => {
                let parts = parts.into_iter().map(|part| (SourceId::default(), part));
                let _applied = self.store.apply_parts(parts);
                self.machine.handle_published();
                self.fan_outs += 1;
            }
            Batch::List(source, replacement) => self.store.begin_replace(source, replacement),
            Batch::RemoveSource(source) => self.store.begin_remove_source(source, Successors::none()),
        }
    }

    fn advance(&mut self) {
        match self.store.advance(1) {
            Progress::Done(_) => {
                self.machine.handle_published();
                self.fan_outs += 1;
            }
            Progress::More => self.turns += 1,
            Progress::Idle => panic!("busy, and nothing to do"),
        }
    }

    /// The epoch would end here: whatever of what is under way still comes, in this order, nothing is begun.
    fn would_end(&self) {
        let mut machine = self.machine.clone();
        machine.handle_end();
        (0..self.questions).for_each(|_| machine.handle_batch(self.given + 1));
        (0..self.turns).for_each(|_| machine.handle_turn());
        (0..self.fan_outs).for_each(|_| machine.handle_fanned_out());
        let all = [UnderWay::Nothing, UnderWay::Index, UnderWay::InOrder];
        assert!(all.into_iter().all(|under_way| machine.poll_effect(under_way).is_none()));
        assert_eq!(machine.step(), Step::Ended);
    }

    /// Lets everything end that is under way.
    fn end(&mut self) {
        for _ in 0..1_000 {
            let next = self.possible().into_iter().find(|what| *what != Happens::IndexIsAdded);
            let Some(next) = next else { break };
            self.happens(next);
        }
        assert_eq!((self.applied, self.machine.step()), (BATCHES, Step::Asking));
        let snapshot = self.store.snapshot();
        let names = 1..=self.indices;
        assert!(
            names.clone().all(|name| snapshot.index_values(&name.to_string()).is_ok()),
            "an index is missing"
        );
        assert!(snapshot.versions().iter().eq([(&SourceId::default(), &version(30))]));
        assert_eq!(snapshot.len(), 1 + usize::try_from(LISTED).expect("few"));
    }
}

/// A list, a list of another source, events, the end of that other source.
fn batch(number: u64) -> Batch {
    let (at, passing) = (number * 10, SourceId::new("passing"));
    let list = |source: &SourceId, count: u64| {
        let object = |n| brought_by(source, &format!("{source}/{n}"), "u1", at - n, "");
        Replacement::new(version(at), Cause::Relist, (0..count).map(object).collect(), Vec::new())
    };
    match number {
        1 => Batch::List(SourceId::default(), list(&SourceId::default(), LISTED)),
        2 => Batch::List(passing.clone(), list(&passing, 1)),
        3 => Batch::Parts(vec![WatchPart::Applied(object("a/live", at))]),
        _ => Batch::RemoveSource(passing),
    }
}

/// Runs the steps that `path` chooses among those possible.
fn played(path: &[usize]) -> Driven {
    let mut driven = Driven::new();
    for choice in path {
        driven.happens(driven.possible()[*choice]);
    }
    driven
}

#[test]
fn idx_27_in_every_order_of_events_one_step_runs_at_a_time_and_the_next_batch_is_asked_for() {
    let mut open = vec![Vec::new()];
    let mut tried = 0;
    while let Some(mut path) = open.pop() {
        let mut driven = played(&path);
        // It goes on with the first choice, and leaves the others open.
        while path.len() < DEPTH {
            let possible = driven.possible();
            open.extend((1..possible.len()).map(|choice| [&path[..], &[choice]].concat()));
            tried += 1;
            driven.would_end();
            driven.happens(possible[0]);
            path.push(0);
        }
        tried += 1;
        driven.would_end();
        driven.end();
    }
    assert!(tried > 1_000, "{tried} orders: too few to prove anything");
}

/// It has asked for a batch, and builds an index meanwhile.
fn building() -> IndexerMachine<&'static str> {
    let mut machine = IndexerMachine::new();
    assert_eq!(machine.poll_effect(UnderWay::Index), Some(IndexerEffect::Ask));
    assert_eq!(machine.poll_effect(UnderWay::Index), Some(IndexerEffect::Advance));
    machine
}

#[test]
fn idx_27_a_batch_that_comes_while_an_index_is_handed_on_waits_until_that_is_taken() {
    let mut machine = building();
    machine.handle_published();
    machine.handle_batch("a list");
    assert_eq!((machine.poll_effect(UnderWay::Nothing), machine.step()), (None, Step::FanningOut));
    // A second index is added: the list goes before it.
    assert_eq!(machine.poll_effect(UnderWay::Index), None);
    machine.handle_fanned_out();
    assert_eq!(machine.poll_effect(UnderWay::Index), Some(IndexerEffect::Apply("a list")));
    assert_eq!(machine.poll_effect(UnderWay::InOrder), Some(IndexerEffect::Advance));
    assert_eq!(machine.poll_effect(UnderWay::InOrder), None, "one slice at a time");
    machine.handle_published();
    machine.handle_fanned_out();
    assert_eq!(machine.poll_effect(UnderWay::Index), Some(IndexerEffect::Ask));
    assert_eq!(machine.poll_effect(UnderWay::Index), Some(IndexerEffect::Advance), "and the index goes on");
}

#[test]
fn after_the_end_of_its_epoch_nothing_is_begun_whatever_still_comes() {
    let mut machine = building();
    machine.handle_end();
    machine.handle_batch("late");
    machine.handle_turn();
    assert_eq!(machine.poll_effect(UnderWay::Index), None);
    assert_eq!(machine.poll_effect(UnderWay::Nothing), None);
    assert_eq!(machine.step(), Step::Ended);
}

#[test]
fn informer_7_while_an_index_of_a_million_objects_is_built_an_event_waits_for_one_slice_and_the_index_for_one_event()
 {
    let (mut machine, mut slices) = (building(), 1);
    // The index takes 4,000 slices; an event comes in the turn behind each of them.
    for _ in 1..4_000 {
        machine.handle_turn();
        machine.handle_batch("an event");
        assert_eq!(machine.poll_effect(UnderWay::Index), Some(IndexerEffect::Apply("an event")));
        machine.handle_published();
        machine.handle_fanned_out();
        assert_eq!(machine.poll_effect(UnderWay::Index), Some(IndexerEffect::Ask));
        assert_eq!(machine.poll_effect(UnderWay::Index), Some(IndexerEffect::Advance));
        slices += 1;
    }
    assert_eq!(slices, 4_000);
}
