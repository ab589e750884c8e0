//! The filter of a cluster-wide source beside a naive store: whatever is asked for in whatever order, what counts as
//! listed is complete, and the store ends with exactly what is asked for.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::super::holdings::Holdings;
use super::*;
use crate::delta::Undecodable;
use crate::meta::{Meta, Object, ResourceVersion, SourceId};

type Set = BTreeSet<Arc<str>>;

/// Three namespaces with objects that come and go.
fn set(bits: u8) -> Set {
    ["a", "b", "c"]
        .iter()
        .enumerate()
        .filter(|(at, _)| bits & (1 << at) != 0)
        .map(|(_, name)| (*name).into())
        .collect()
}

/// What the source has delivered and the store has not published.
#[derive(Debug)]
enum Delivered {
    List { number: usize, kept: Set, has: Set },
    Change { of: Arc<str>, is_there: bool },
}

/// The reflector's session as the machine drives it, the server, and the store, which is one set of namespaces that
/// have an object.
struct World {
    filter: FilterMachine,
    holdings: Holdings,
    server: Set,
    store: Set,
    /// The namespaces of which the store misses nothing but what is in `queue`.
    complete: Set,
    queue: VecDeque<Delivered>,
    /// A list is wanted, or under way with what the server had.
    wants_list: bool,
    list: Option<Set>,
    search: Option<Vec<Arc<str>>>,
    /// How many lists were delivered, and which of them the session awaits.
    lists: usize,
    awaited: Option<usize>,
}

#[derive(Debug, Clone)]
enum Step {
    Ask(Set),
    Change(Arc<str>),
    /// The watch has lost its place, whatever waits to be published.
    Relist,
    BeginList,
    EndList,
    Publish,
    Search,
    Look,
    Restart,
}

impl World {
    fn new(asked: Set) -> Self {
        let asked = Names::new(asked);
        Self {
            filter: FilterMachine::new(Names::clone(&asked)),
            holdings: Holdings::new(asked),
            server: set(7),
            store: Set::new(),
            complete: Set::new(),
            queue: VecDeque::new(),
            wants_list: true,
            list: None,
            search: None,
            lists: 0,
            awaited: None,
        }
    }

    /// Between a list and the next, events of the server arrive as far as they are kept.
    fn watches(&self) -> bool {
        self.list.is_none() && !matches!(self.filter.stage, Stage::Listing)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Ask(asked) => self.holdings.handle_asked(Names::new(asked)),
            Step::Change(of) => {
                let is_there = self.server.insert(Arc::clone(&of)) || !self.server.remove(&of);
                if self.watches() && self.filter.kept().contains(&of) {
                    self.queue.push_back(Delivered::Change { of, is_there });
                } else {
                    self.complete.remove(&of);
                }
            }
            Step::Relist => self.wants_list |= self.watches(),
            Step::BeginList if self.wants_list => {
                self.filter.handle_list(Names::clone(self.holdings.asked()));
                (self.wants_list, self.search, self.awaited) = (false, None, None);
                self.list = Some(self.server.clone());
            }
            Step::EndList => {
                let Some(mut has) = self.list.take() else { return };
                // A watch from the list's version brings what has changed since.
                let kept = Set::clone(self.filter.kept());
                has = has.union(&self.server).filter(|of| self.server.contains(*of)).cloned().collect();
                has.retain(|of| kept.contains(of));
                self.holdings.handle_delivery(self.filter.kept());
                self.filter.handle_delivery();
                self.lists += 1;
                self.awaited = Some(self.lists);
                self.queue.push_back(Delivered::List { number: self.lists, kept, has });
            }
            Step::Publish => self.publish(),
            Step::Search if self.queue.is_empty() => {
                let Some(others) = self.search.take() else { return };
                let is_clean = others.iter().all(|of| !self.store.contains(of));
                if self.filter.handle_settled(is_clean) {
                    self.holdings.handle_settled(self.filter.kept());
                }
            }
            Step::Look if self.list.is_none() => match self.filter.look(self.holdings.asked()) {
                Look::Waits => {}
                Look::Agrees => drop(self.holdings.handle_settled(self.filter.kept())),
                Look::List => self.wants_list = true,
                Look::Search(others) => {
                    let kept = self.filter.kept();
                    self.complete.retain(|of| kept.contains(of));
                    self.search = Some(others);
                }
            },
            // Its reflector has died: what was on its way is published first.
            Step::Restart if self.queue.is_empty() => {
                self.filter = FilterMachine::new(Names::clone(self.holdings.asked()));
                (self.wants_list, self.list, self.search, self.awaited) = (true, None, None, None);
            }
            Step::BeginList | Step::Search | Step::Look | Step::Restart => {}
        }
        self.check();
    }

    fn publish(&mut self) {
        match self.queue.pop_front() {
            Some(Delivered::List { number, kept, has }) => {
                (self.store, self.complete) = (has, kept);
                // Nobody waits for a list after which another one has begun.
                if self.awaited.take_if(|awaited| *awaited == number).is_some()
                    && self.filter.handle_settled(true)
                {
                    self.holdings.handle_settled(self.filter.kept());
                }
            }
            Some(Delivered::Change { of, is_there: true }) => drop(self.store.insert(of)),
            Some(Delivered::Change { of, is_there: false }) => drop(self.store.remove(&of)),
            None => {}
        }
    }

    fn check(&self) {
        let listed = self.holdings.listed().cloned().unwrap_or_default();
        // A list that waits in the queue brings all of what it keeps.
        let lists = self.queue.iter().filter_map(|delivered| match delivered {
            Delivered::List { kept, .. } => Some(kept),
            Delivered::Change { .. } => None,
        });
        let complete: Set = lists.flatten().chain(&self.complete).cloned().collect();
        assert!(
            !self.watches() || listed.is_subset(&complete),
            "{listed:?} is listed, {complete:?} complete"
        );
        let delivered = self.queue.iter().flat_map(|delivered| match delivered {
            Delivered::List { has, .. } => has.iter().cloned().collect(),
            Delivered::Change { of, .. } => vec![Arc::clone(of)],
        });
        let mut may_hold: Set = self.store.clone();
        may_hold.extend(delivered);
        assert!(may_hold.is_subset(self.holdings.held()), "{may_hold:?} beyond {:?}", self.holdings.held());
        if self.holdings.is_settled() {
            assert!(self.store.is_subset(self.holdings.asked()), "others are left");
        }
    }

    /// Everything that is under way ends.
    fn rest(&mut self) {
        for _ in 0..8 {
            for step in
                [Step::Look, Step::BeginList, Step::EndList, Step::Publish, Step::Publish, Step::Search]
            {
                self.step(step);
            }
            (0..self.queue.len()).for_each(|_| self.step(Step::Publish));
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0_u8..8).prop_map(|bits| Step::Ask(set(bits))),
        3 => (0_usize..3).prop_map(|at| Step::Change(["a", "b", "c"][at].into())),
        2 => Just(Step::BeginList),
        2 => Just(Step::EndList),
        4 => Just(Step::Publish),
        2 => Just(Step::Search),
        3 => Just(Step::Look),
        1 => Just(Step::Relist),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #[test]
    fn what_counts_as_listed_is_complete_and_the_store_ends_with_exactly_what_is_asked_for(
        first in 0_u8..8,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut world = World::new(set(first));
        steps.into_iter().for_each(|step| world.step(step));
        world.rest();
        prop_assert!(world.holdings.is_settled());
        let asked = world.holdings.asked();
        prop_assert_eq!(world.holdings.listed(), Some(asked));
        let wanted: Set = world.server.intersection(asked).cloned().collect();
        prop_assert_eq!(&world.store, &wanted);
    }
}

fn object(key: &str, version: u64) -> Object<()> {
    let version = ResourceVersion::from_number(version).expect("not zero");
    Object::new(Meta::new(key.parse().expect("a key"), version, SourceId::default()), ())
}

#[test]
fn of_a_watch_what_does_not_pass_becomes_one_bookmark_of_the_last_version() {
    let filter = FilterMachine::new(Names::new(set(1)));
    let mark = |version: u64| WatchPart::<()>::Bookmark {
        version: ResourceVersion::from_number(version).expect("not zero"),
        initial_events_end: false,
    };
    let parts = vec![
        WatchPart::Applied(object("b/x", 2)),
        WatchPart::Deleted(object("c/x", 3)),
        WatchPart::Applied(object("a/x", 4)),
        mark(5),
        WatchPart::Applied(object("b/x", 6)),
    ];
    let kept = filter.keep_watched(parts);
    let told: Vec<_> =
        kept.iter().map(|part| (part.key().map(ToString::to_string), part.version().to_string())).collect();
    assert_eq!(told, [(None, "3".into()), (Some("a/x".into()), "4".into()), (None, "6".into())]);
}

#[test]
fn of_a_list_what_does_not_pass_is_dropped_whether_it_was_decoded_or_not() {
    let filter = FilterMachine::new(Names::new(set(1)));
    let listed = filter.keep_listed(ListPart::Objects(vec![object("a/x", 1), object("b/x", 1)]));
    assert!(matches!(listed, ListPart::Objects(objects) if objects.len() == 1));
    let undecodable = |key: &str| {
        let version = ResourceVersion::from_number(1).expect("not zero");
        ListPart::<()>::Undecodable(Undecodable {
            key: key.parse().expect("a key"),
            version,
            error: "no".into(),
        })
    };
    assert!(matches!(filter.keep_listed(undecodable("a/x")), ListPart::Undecodable(_)));
    assert!(
        matches!(filter.keep_listed(undecodable("b/x")), ListPart::Objects(objects) if objects.is_empty())
    );
}
