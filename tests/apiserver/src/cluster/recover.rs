//! Reads the store from its log, and collects the changes for the log.
//!
//! Answers: which state do these records describe? Files and threads are in `persistence/`.
//! 1. Records are applied in order; after each one the store is in a state that it had.
//! 2. The first version issued afterwards is above every version that was reserved.
//! 3. An object of a kind that is not served any more is left out: its definition is gone, and so is the object.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::crd;
use super::history::Event;
use super::kind::ResourceId;
use super::object::Object;
use super::registry::Registry;
use super::store::{Cluster, Frozen};
use super::table::Table;
use crate::persistence::{Committed, Record};

impl Cluster {
    /// Begins to collect changes for `take_committed`.
    pub(crate) fn record_changes(&mut self) {
        self.committed.get_or_insert_default();
    }

    /// The changes since the last call, oldest first.
    pub(crate) fn take_committed(&mut self) -> Vec<Committed> {
        self.committed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Restores the state that the records describe, if there is any.
    pub(crate) fn recover<'a>(&mut self, records: impl Iterator<Item = Record<'a>>) {
        let mut began = false;
        let mut reserved = 0;
        for record in records {
            if !std::mem::replace(&mut began, true) {
                self.empty();
            }
            match record {
                Record::Replaced => self.empty(),
                Record::Complete | Record::Continued => {}
                Record::Reserved(revision) => reserved = reserved.max(revision),
                Record::Put { revision, group, plural, key, body } => {
                    let resource = ResourceId::new(&group, &plural);
                    let value = serde_json::from_str(body.get()).unwrap_or_default();
                    self.put_back(&resource, &key, value, revision);
                    reserved = reserved.max(revision);
                }
                Record::Removed { revision, group, plural, key } => {
                    let resource = ResourceId::new(&group, &plural);
                    self.table_mut(&resource).objects.remove(&*key);
                    if *resource.plural == *"customresourcedefinitions" {
                        let (plural, group) = key.split_once('.').unwrap_or((&key, ""));
                        self.registry.replace(&ResourceId::new(group, plural), Vec::new());
                    }
                    reserved = reserved.max(revision);
                }
            }
        }
        if began {
            self.begin_at(reserved);
        }
    }

    /// Every object, as the change that would create it, definitions first.
    pub(crate) fn as_changes(&self) -> Vec<Committed> {
        changes(&self.tables).collect()
    }

    fn empty(&mut self) {
        self.tables.clear();
        self.registry = Registry::builtin();
    }

    fn put_back(&mut self, resource: &ResourceId, key: &str, value: Value, revision: u64) {
        let Some(kind) = self.registry.stored(resource).cloned() else { return };
        if crd::is_definition(&kind) {
            let kinds = crd::kinds(&value);
            let (plural, group) = key.split_once('.').unwrap_or((key, ""));
            let defined = ResourceId::new(group, plural);
            self.registry.replace(&defined, kinds);
            self.reread(&defined);
        }
        let object = Arc::new(Object::encode(&kind, value, revision));
        self.table_mut(resource).objects.insert(key.into(), object);
    }
}

impl Frozen {
    /// Every object, as the change that would create it, definitions first.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Committed> {
        changes(&self.tables)
    }
}

fn changes(tables: &BTreeMap<ResourceId, Table>) -> impl Iterator<Item = Committed> {
    let definitions = |id: &ResourceId| *id.plural == *"customresourcedefinitions";
    let first = tables.iter().filter(move |(id, _)| definitions(id));
    let rest = tables.iter().filter(move |(id, _)| !definitions(id));
    first.chain(rest).flat_map(|(resource, table)| {
        table.objects.iter().map(|(key, object)| {
            let event = Event::new(Arc::clone(key), object.revision, None, Some(Arc::clone(object)));
            Committed::Change(resource.clone(), Arc::new(event))
        })
    })
}
