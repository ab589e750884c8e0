//! What happens, and the server and the receiver as plain maps.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::delta::{Undecodable, WatchPart};
use crate::meta::{Meta, Object, ObjectKey, SourceId, Uid};
use crate::passing::PassedPart;
use crate::snapshot::fixture::{key, version, written};

pub(super) const NAMES: usize = 4;

#[derive(Debug, Clone)]
pub(super) enum Deed {
    Write(usize),
    Recreate(usize),
    Delete {
        name: usize,
        is_undecodable: bool,
    },
    Break(usize),
    /// The watch brings so many events at once.
    Watch(usize, Death),
    /// The list brings a page; after its last page it is whole.
    Page(Death),
    /// The answer to a single request comes.
    Fetch(usize),
    /// The list or watch fails.
    Fail,
    /// The store applies what waits longest.
    Publish,
    /// What waits for the store is lost, and the source begins again.
    LoseQueue,
    /// The server goes back so many changes.
    Restore(usize),
}

/// The source dies after so many sends. What is sent is noted in the same moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Death(pub(super) Option<usize>);

pub(super) fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let name = 0..NAMES;
    let death = || prop::option::weighted(0.15, 0..3_usize).prop_map(Death);
    let deed = prop_oneof![
        6 => name.clone().prop_map(Deed::Write),
        2 => name.clone().prop_map(Deed::Recreate),
        3 => (name.clone(), prop::bool::weighted(0.3))
            .prop_map(|(name, is_undecodable)| Deed::Delete { name, is_undecodable }),
        2 => name.clone().prop_map(Deed::Break),
        6 => (1..4_usize, death()).prop_map(|(events, death)| Deed::Watch(events, death)),
        6 => death().prop_map(Deed::Page),
        1 => name.prop_map(Deed::Fetch),
        1 => Just(Deed::Fail),
        6 => Just(Deed::Publish),
        1 => Just(Deed::LoseQueue),
        1 => (1..6_usize).prop_map(Deed::Restore),
    ];
    prop::collection::vec(deed, 1..80)
}

pub(super) type Body = Option<()>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub(super) life: u64,
    pub(super) version: u64,
    pub(super) is_broken: bool,
}

pub(super) fn name_key(name: usize) -> ObjectKey {
    key(&format!("a/n{name}"))
}

pub(super) fn object(name: usize, state: State) -> Object<Body> {
    let uid = Uid::new(&format!("u{}", state.life));
    let meta = Meta::new(name_key(name), version(state.version), SourceId::default()).uid(uid);
    Object::new(meta, Some(()))
}

pub(super) fn undecodable(name: usize, number: u64) -> Undecodable {
    Undecodable { key: name_key(name), version: version(number), error: "broken".into() }
}

pub(super) fn without_body(object: &Object<Body>) -> Option<Object<Body>> {
    object.body().map(|()| Object::new(object.cached_meta().clone(), None))
}

#[derive(Debug, Clone, Default)]
pub(super) struct Server {
    pub(super) at: u64,
    pub(super) lives: u64,
    pub(super) states: BTreeMap<usize, State>,
}

/// What happened to a name, and the server afterwards.
pub(super) struct Event {
    pub(super) part: WatchPart<Body>,
    pub(super) after: Server,
}

/// What the receiver has.
#[derive(Default)]
pub(super) struct Receiver {
    pub(super) objects: BTreeMap<ObjectKey, Object<Body>>,
    pub(super) undecodable: BTreeMap<ObjectKey, Undecodable>,
    /// No state may come twice, or after a newer one of its life.
    pub(super) is_strict: bool,
}

impl Receiver {
    pub(super) fn take(&mut self, part: &PassedPart<Body>) {
        match part {
            PassedPart::Applied(object) => {
                assert_eq!(object.body(), &Some(()), "it has its body");
                let before = self.objects.insert(object.key().clone(), object.clone());
                if let Some(before) = before.filter(|_| self.is_strict) {
                    assert!(before.is_same_life_as(object), "the end of {before:?} was not told");
                    assert!(before.version() < object.version(), "{object:?} after {before:?}");
                }
            }
            PassedPart::Deleted(last) => {
                if self.objects.get(last.key()).is_some_and(|has| has.is_same_life_as(last)) {
                    self.objects.remove(last.key());
                }
            }
            PassedPart::DeletedUndecodable(last) => drop(self.objects.remove(&last.key)),
            PassedPart::Undecodable(state) => {
                let before = self.undecodable.insert(state.key.clone(), state.clone());
                assert!(!self.is_strict || before.as_ref() != Some(state), "{state:?} twice");
            }
            PassedPart::Listed(_) => {}
        }
    }

    pub(super) fn has(&self, name: usize) -> Option<String> {
        self.objects.get(&name_key(name)).map(written)
    }
}

pub(super) fn copied(part: &WatchPart<Body>) -> WatchPart<Body> {
    match part {
        WatchPart::Applied(object) => WatchPart::Applied(object.clone()),
        WatchPart::Deleted(object) => WatchPart::Deleted(object.clone()),
        WatchPart::Undecodable(undecodable) => WatchPart::Undecodable(undecodable.clone()),
        WatchPart::DeletedUndecodable(undecodable) => WatchPart::DeletedUndecodable(undecodable.clone()),
        other => panic!("{other:?}"),
    }
}
