//! The building of an index over the stored objects, while parts change them. Only keys up to `passed` are indexed,
//! in their present state. No frame has the index before all keys are indexed.

use super::Store;
use super::draft::Draft;
use crate::index::{AnyIndex, NamedTable};
use crate::meta::{Object, ObjectKey};
use crate::snapshot::Held;
use crate::tree::Sources;

pub(super) struct Building<S> {
    index: AnyIndex<S>,
    table: NamedTable,
    passed: Option<ObjectKey>,
}

impl<S> Building<S> {
    pub(super) fn new(index: AnyIndex<S>) -> Self {
        Self { table: index.empty(), index, passed: None }
    }

    pub(super) fn index(&self) -> &AnyIndex<S> {
        &self.index
    }

    /// The walk reaches keys that are not passed.
    pub(super) fn follow(&mut self, object: &Object<S>, draft: &mut Draft<S>) {
        if self.passed.as_ref().is_some_and(|passed| object.key() <= passed) {
            draft.index(&mut self.table, &self.index, object);
        }
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.table.forget(key);
    }
}

impl<S> Store<S> {
    /// True when the first index is complete.
    pub(super) fn advance_building(&mut self, budget: usize) -> bool {
        let Some(building) = self.building.front_mut() else {
            return false;
        };
        let mut objects =
            self.working.objects().after(building.passed.as_ref(), Sources::ALL).map(Held::object);
        let mut last = None;
        for object in objects.by_ref().take(budget) {
            self.draft.index(&mut building.table, &building.index, object);
            last = Some(object);
        }
        if let Some(object) = last {
            building.passed = Some(object.key().clone());
        }
        if objects.next().is_some() {
            return false;
        }
        drop(objects);
        if let Some(Building { index, table, .. }) = self.building.pop_front() {
            self.add_index(index, table);
        }
        true
    }
}
