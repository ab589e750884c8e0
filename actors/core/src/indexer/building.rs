//! The building of an index over the stored objects, while parts still change them. Keys up to `passed` are
//! in the index in their present state; later ones are not. No frame has the index before it has passed every
//! key.

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

    /// Indexes a stored object if its key is passed; otherwise the walk will reach it.
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
    /// Adds at most `budget` objects to the first index being built; returns true when it is complete.
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
