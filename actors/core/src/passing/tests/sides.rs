//! The server, and the receiver, as plain maps.

use std::collections::BTreeMap;

use crate::delta::{Undecodable, WatchPart};
use crate::meta::{Meta, Object, ObjectKey, SourceId, Uid};
use crate::passing::PassedPart;
use crate::snapshot::fixture::{key, version, written};

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
            PassedPart::Undecodable(_) | PassedPart::Listed(_) => {}
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
