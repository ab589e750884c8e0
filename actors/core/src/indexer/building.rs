//! An index on its way: built over the objects that are there, while parts go on changing them.
//!
//! Answers "which objects does the new index know yet?". Invariants:
//! 1. Keys up to `passed` are in the index as they are now; later ones are not in it at all.
//! 2. It is in no frame before it has passed every key.

use super::Store;
use super::draft::Draft;
use crate::index::{Index, IndexSpec};
use crate::meta::{Object, ObjectKey};
use crate::snapshot::{Held, Sources};

pub(super) struct Building<S> {
    spec: IndexSpec<S>,
    index: Index,
    passed: Option<ObjectKey>,
}

impl<S> Building<S> {
    pub(super) fn new(spec: IndexSpec<S>) -> Self {
        Self { index: Index::new(spec.name.clone()), spec, passed: None }
    }

    pub(super) fn spec(&self) -> &IndexSpec<S> {
        &self.spec
    }

    /// An object was stored: known here only if its key is passed, else the walk will come to it.
    pub(super) fn follow(&mut self, object: &Object<S>, draft: &mut Draft<S>) {
        if self.passed.as_ref().is_some_and(|passed| object.key() <= passed) {
            draft.index(&mut self.index, &self.spec, object);
        }
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.index.forget(key);
    }
}

impl<S> Store<S> {
    /// Takes up at most `budget` objects into the first index being built; true when it is whole.
    pub(super) fn advance_building(&mut self, budget: usize) -> bool {
        let Some(building) = self.building.front_mut() else {
            return false;
        };
        let mut objects =
            self.working.objects().after(building.passed.as_ref(), Sources::ALL).map(Held::object);
        let mut last = None;
        for object in objects.by_ref().take(budget) {
            self.draft.index(&mut building.index, &building.spec, object);
            last = Some(object);
        }
        if let Some(object) = last {
            building.passed = Some(object.key().clone());
        }
        if objects.next().is_some() {
            return false;
        }
        drop(objects);
        if let Some(Building { spec, index, .. }) = self.building.pop_front() {
            self.add_index(spec, index);
        }
        true
    }
}
