//! A server's history for property tests: objects of two sources, what happens to them, and what is published of it.
//!
//! Answers "what does the store publish, and what is there?" without a store: objects in a map and in a frame.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::Backlog;
use crate::delta::{Cause, Change, Changes};
use crate::meta::{Object, ObjectKey, SourceId, Uid};
use crate::snapshot::fixture::{brought_by, key, version};
use crate::snapshot::{Frame, Snapshot};

pub(super) const NAMES: usize = 8;

/// What happens to one key of the world.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deed {
    Write(usize),
    Delete(usize),
    Recreate(usize),
    /// What was deleted last comes back: the same life, the same version.
    Return(usize),
}

/// What a publish brings.
#[derive(Debug, Clone)]
pub(super) enum Publish {
    /// A watch's parts.
    Parts(Vec<Deed>),
    /// A source is listed; the deeds are seen only by the list.
    List(usize, Vec<Deed>),
    /// A source has gone back: every object of it is told anew at its old version, with another body.
    Rewind(usize),
    /// The group restarts; what happened meanwhile was told to nobody.
    Restart(Vec<Deed>),
}

pub(super) fn deed() -> impl Strategy<Value = Deed> {
    let name = 0..NAMES;
    prop_oneof![
        5 => name.clone().prop_map(Deed::Write),
        4 => name.clone().prop_map(Deed::Delete),
        1 => name.clone().prop_map(Deed::Recreate),
        1 => name.prop_map(Deed::Return),
    ]
}

pub(super) fn publish() -> impl Strategy<Value = Publish> {
    let deeds = |least| prop::collection::vec(deed(), least..6);
    prop_oneof![
        8 => deeds(1).prop_map(Publish::Parts),
        2 => (0..2_usize, deeds(0)).prop_map(|(source, deeds)| Publish::List(source, deeds)),
        1 => (0..2_usize).prop_map(Publish::Rewind),
        1 => deeds(0).prop_map(Publish::Restart),
    ]
}

/// What a subscription gets of a publish.
pub(super) struct Published {
    pub(super) changes: Vec<Changes<String>>,
    pub(super) snapshot: Snapshot<String>,
    /// The changes of a watch, in order.
    pub(super) events: Vec<Change<String>>,
    pub(super) is_restart: bool,
}

impl Published {
    pub(super) fn record(&self, backlog: &mut Backlog<String>) {
        if self.is_restart {
            backlog.reattach(self.snapshot.clone());
        } else {
            backlog.publish(&self.changes, &self.snapshot);
        }
    }
}

/// The truth.
#[derive(Default)]
pub(super) struct World {
    pub(super) live: BTreeMap<ObjectKey, Object<String>>,
    /// Lives that came back: no new ones.
    pub(super) returned: BTreeSet<Uid>,
    graves: BTreeMap<ObjectKey, Object<String>>,
    frame: Frame<String>,
    version: u64,
}

pub(super) fn sources() -> [SourceId; 2] {
    [SourceId::new("even"), SourceId::new("odd")]
}

impl World {
    pub(super) fn snapshot(&self) -> Snapshot<String> {
        Snapshot::publish(self.frame.clone())
    }

    pub(super) fn is_listed(&self) -> bool {
        self.frame.versions().len() == sources().len()
    }

    pub(super) fn publish(&mut self, publish: Publish) -> Published {
        let before = self.snapshot();
        let (mut changes, mut events, mut is_restart) = (Vec::new(), Vec::new(), false);
        match publish {
            Publish::Parts(deeds) => {
                events = deeds.into_iter().flat_map(|deed| self.apply(deed)).collect();
                changes.push(Changes::Parts(events.clone().into()));
            }
            Publish::Restart(deeds) => {
                deeds.into_iter().for_each(|deed| drop(self.apply(deed)));
                is_restart = true;
            }
            Publish::List(at, deeds) => {
                let source = sources()[at].clone();
                let is_first = self.frame.version(&source).is_none();
                let cause = if is_first { Cause::InitialList } else { Cause::Relist };
                self.reach(&source);
                deeds.into_iter().for_each(|deed| {
                    if deed.source() == at {
                        self.apply(deed);
                    }
                });
                self.reach(&source);
                changes.push(Changes::Listed { source, before, after: self.snapshot(), cause });
            }
            Publish::Rewind(at) => {
                let source = sources()[at].clone();
                if self.frame.version(&source).is_some() {
                    self.rewind(&source);
                    let after = self.snapshot();
                    changes.push(Changes::Listed { source, before, after, cause: Cause::Rewind });
                }
            }
        }
        Published { changes, snapshot: self.snapshot(), events, is_restart }
    }

    fn reach(&mut self, source: &SourceId) {
        self.version += 1;
        self.frame.set_version(source, &version(self.version));
    }

    fn apply(&mut self, deed: Deed) -> Vec<Change<String>> {
        let (Deed::Write(name) | Deed::Delete(name) | Deed::Recreate(name) | Deed::Return(name)) = deed;
        let key = key(&format!("ns-{}/pod-{name}", name % 3));
        if self.frame.version(&sources()[deed.source()]).is_none() {
            return Vec::new();
        }
        match deed {
            Deed::Write(_) => vec![self.write(&key, deed.source())],
            Deed::Delete(_) => self.delete(&key).into_iter().collect(),
            Deed::Recreate(_) => {
                let deletion = self.delete(&key);
                deletion.into_iter().chain([self.write(&key, deed.source())]).collect()
            }
            Deed::Return(_) => self.bring_back(&key).into_iter().collect(),
        }
    }

    fn write(&mut self, key: &ObjectKey, source: usize) -> Change<String> {
        self.version += 1;
        let old = self.live.get(key).cloned();
        let uid = old.as_ref().and_then(|old| old.object_uid().cloned());
        let uid = uid.map_or_else(|| format!("u{}", self.version), |uid| uid.to_string());
        let object = brought_by(&sources()[source], &key.to_string(), &uid, self.version, "");
        self.live.insert(key.clone(), object.clone());
        self.frame.insert(object.clone());
        match old {
            None => Change::Added { object, cause: Cause::Watch },
            Some(old) => Change::Updated { old, object, cause: Cause::Watch },
        }
    }

    fn delete(&mut self, key: &ObjectKey) -> Option<Change<String>> {
        let old = self.live.remove(key)?;
        self.frame.remove(key);
        self.graves.insert(key.clone(), old.clone());
        self.version += 1;
        let uid = old.object_uid().map_or_else(String::new, Uid::to_string);
        let last = brought_by(old.source(), &key.to_string(), &uid, self.version, "");
        Some(Change::Deleted { old, last, exact: true, cause: Cause::Watch })
    }

    fn bring_back(&mut self, key: &ObjectKey) -> Option<Change<String>> {
        let object = self.graves.remove(key).filter(|_| !self.live.contains_key(key))?;
        self.returned.extend(object.object_uid().cloned());
        self.live.insert(key.clone(), object.clone());
        self.frame.insert(object.clone());
        Some(Change::Added { object, cause: Cause::Watch })
    }

    fn rewind(&mut self, source: &SourceId) {
        self.reach(source);
        self.frame.count_rewind();
        let body = format!("rewound at {}", self.version);
        for live in self.live.values_mut().filter(|live| live.source() == source) {
            *live = Object::new(live.cached_meta().clone(), body.clone());
            self.frame.insert_rewound(live.clone());
        }
    }
}

impl Deed {
    fn source(self) -> usize {
        let (Self::Write(name) | Self::Delete(name) | Self::Recreate(name) | Self::Return(name)) = self;
        name % 2
    }
}
