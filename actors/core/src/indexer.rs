//! The store: it applies parts and lists, and returns exactly what changed. Invariants:
//! 1. `changes` replayed on the snapshot before gives the snapshot after ([`invariants::replays_to`]).
//! 2. A Replace affects only its own source's keys.
//! 3. A source's version goes back only by a rewind, or by an older list, which is reported.

use std::collections::VecDeque;

use crate::delta::{Changes, Replacement, WatchPart};
use crate::index::{AnyIndex, NamedTable};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::snapshot::{Frame, Snapshot};

pub use crate::index::IndexExists;
pub use draft::Publish;
pub use incident::{DataCounters, Incident, Reason, Reported};
pub use successors::{Scope, Successors};

use building::Building;
use draft::Draft;
use machine::UnderWay;
use parts::PartsByKey;
use replacing::Replacing;

mod building;
mod draft;
mod hand_over;
mod incident;
pub mod invariants;
pub mod machine;
mod parts;
mod replace;
mod replacing;
mod successors;

/// The sole owner of an informer's state. Its snapshots are immutable; its working frame is not shared.
pub struct Store<S> {
    published: Snapshot<S>,
    working: Frame<S>,
    /// In the order of `working`'s indices.
    functions: Vec<AnyIndex<S>>,
    building: VecDeque<Building<S>>,
    /// Parts by key that came before any waiting Replace.
    keyed: Option<PartsByKey<S>>,
    replacing: Option<Replacing<S>>,
    waiting: VecDeque<Waiting<S>>,
    successors: Vec<Successors>,
    /// Sources of the parts being applied, while anything told is kept.
    brought: Vec<SourceId>,
    draft: Draft<S>,
}

enum Waiting<S> {
    List(SourceId, Replacement<S>),
    /// The source hands over to these, where they are behind.
    Remove(SourceId, Successors),
    Settle(SourceId),
}

/// How far [`Store::advance`] came.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<S> {
    /// There is more to do; nothing to publish yet.
    More,
    /// A Replace, the removal of a source, an index or a slice of parts by key is complete: publish this.
    Done(Publish<S>),
    /// There was nothing to do.
    Idle,
}

impl<S> Store<S> {
    /// Continues from the last published frame.
    ///
    /// An index that the frame has and that is named here is kept. An index that the frame lacks is built as
    /// by [`Self::begin_index`] (without a wait if there are no objects). An index that is not named here is
    /// dropped with the next publish, since its function is not known. Of two specs with one name the first
    /// counts.
    pub fn new(published: Snapshot<S>, indices: Vec<AnyIndex<S>>) -> Self {
        let mut store = Self {
            working: published.frame().clone(),
            published,
            functions: Vec::new(),
            building: VecDeque::new(),
            keyed: None,
            replacing: None,
            waiting: VecDeque::new(),
            successors: Vec::new(),
            brought: Vec::new(),
            draft: Draft::default(),
        };
        let behind: Vec<SourceId> = store.working.behind().keys().cloned().collect();
        behind.iter().for_each(|source| store.settle_if_reached(source));
        let kept = std::mem::take(store.working.indices_mut());
        for index in indices {
            if let Some(table) = kept.iter().find(|table| table.name() == index.name()) {
                store.add_index(index, table.clone());
            } else if store.working.len() == 0 {
                let table = index.empty();
                store.add_index(index, table);
            } else {
                let _first_counts = store.begin_index(index);
            }
        }
        store
    }

    /// The last snapshot handed out; never a half-applied Replace.
    pub fn snapshot(&self) -> Snapshot<S> {
        self.published.clone()
    }

    /// Applies parts in order and returns the one snapshot that follows. The caller bounds their number
    /// (250).
    ///
    /// A Replace that is under way is completed first, in this call, to keep the order of parts and lists. It
    /// shares this publish, whose changes are then those of a list. A caller that bounds its work calls this
    /// only when not [`Self::is_replacing`].
    pub fn apply_parts(
        &mut self,
        parts: impl IntoIterator<Item = (SourceId, WatchPart<S>), IntoIter: ExactSizeIterator>,
    ) -> Publish<S> {
        let parts = parts.into_iter();
        self.draft.expect_parts(parts.len());
        self.complete();
        for (source, part) in parts {
            if let Some(version) = part.reached() {
                self.note_first(&source);
                self.working.reach(&source, version);
            }
            self.apply_part(&source, part);
            self.note_behind(source);
        }
        self.settle_noted();
        self.publish()
    }

    /// Takes parts in the order of their keys; [`Self::advance`] applies them and returns one snapshot for
    /// each slice. With the last slice their sources reach the versions `reached`. That is empty while parts
    /// of other keys are still to come: then the snapshot holds newer objects than its version says, and
    /// never older ones. Work that is under way is completed first, in this call.
    pub fn begin_keyed(
        &mut self,
        parts: Vec<(SourceId, WatchPart<S>)>,
        reached: Vec<(SourceId, ResourceVersion)>,
    ) {
        self.complete();
        self.keyed = Some(PartsByKey::new(parts, reached));
    }

    /// Takes a whole list of one source; [`Self::advance`] applies it, after a Replace that is under way.
    pub fn begin_replace(&mut self, source: SourceId, replacement: Replacement<S>) {
        self.waiting.push_back(Waiting::List(source, replacement));
    }

    /// Removes a source; [`Self::advance`] visits the objects that it holds. An object that no other source
    /// holds is deleted (not exactly, as by a relist), unless it is newer than all that one of the
    /// `successors` has brought: then it passes to that one, which may bring it. The versions and undecodable
    /// entries of the source are gone with the next publish. The caller applies nothing of it afterwards,
    /// unless the source is added again: then it starts with a first list.
    pub fn begin_remove_source(&mut self, source: SourceId, successors: Successors) {
        self.waiting.push_back(Waiting::Remove(source, successors));
    }

    /// Adds an index; [`Self::advance`] builds it, and parts may be applied in between. The publish that
    /// completes it and all later ones have the index, with all objects.
    ///
    /// # Errors
    /// [`IndexExists`] if there is an index of that name, complete or being built; that one is not changed.
    pub fn begin_index(&mut self, index: impl Into<AnyIndex<S>>) -> Result<(), IndexExists> {
        let index = index.into();
        let mut known = self.functions.iter().chain(self.building.iter().map(Building::index));
        if known.any(|known| known.name() == index.name()) {
            return Err(IndexExists(index.name().to_string()));
        }
        self.building.push_back(Building::new(index));
        Ok(())
    }

    /// Continues parts by key, a Replace or, without them, an index; handles at most `budget` objects (at
    /// least one).
    pub fn advance(&mut self, budget: usize) -> Progress<S> {
        let budget = budget.max(1);
        if self.keyed.is_some() {
            self.advance_keyed(budget);
            return Progress::Done(self.publish());
        }
        if self.is_replacing() {
            return if self.advance_replace(budget) {
                Progress::Done(self.publish())
            } else {
                Progress::More
            };
        }
        if self.building.is_empty() {
            return Progress::Idle;
        }
        if self.advance_building(budget) { Progress::Done(self.publish()) } else { Progress::More }
    }

    /// What is under way, so that [`Self::advance`] has work.
    pub fn under_way(&self) -> UnderWay {
        if self.keyed.is_some() || self.is_replacing() {
            UnderWay::InOrder
        } else if self.building.is_empty() {
            UnderWay::Nothing
        } else {
            UnderWay::Index
        }
    }

    /// Whether a Replace, or the removal of a source, is under way: parts have to wait for it.
    pub fn is_replacing(&self) -> bool {
        self.replacing.is_some() || !self.waiting.is_empty()
    }

    fn complete(&mut self) {
        self.advance_keyed(usize::MAX);
        while self.is_replacing() {
            self.advance_replace(usize::MAX);
        }
    }

    fn index(&mut self, object: &Object<S>) {
        for (table, index) in self.working.indices_mut().iter_mut().zip(&self.functions) {
            self.draft.index(table, index, object);
        }
        for building in &mut self.building {
            building.follow(object, &mut self.draft);
        }
    }

    fn release(&mut self, key: &ObjectKey, source: &SourceId) -> Option<Object<S>> {
        let old = self.working.objects_mut().release(key, source)?;
        for table in self.working.indices_mut() {
            table.forget(key);
        }
        for building in &mut self.building {
            building.forget(key);
        }
        self.draft.discard(old.clone());
        Some(old)
    }

    /// Call before a source reaches a version: the publish names its first.
    fn note_first(&mut self, source: &SourceId) {
        if self.working.version(source).is_none() {
            self.draft.note_first(source.clone());
        }
    }

    fn add_index(&mut self, index: AnyIndex<S>, table: NamedTable) {
        if self.functions.iter().all(|known| known.name() != index.name()) {
            self.working.indices_mut().push(table);
            self.functions.push(index);
        }
    }

    fn publish(&mut self) -> Publish<S> {
        let after = self.published.with(self.working.clone());
        let before = std::mem::replace(&mut self.published, after.clone());
        let applied = std::mem::take(&mut self.draft).finish(before, after);
        debug_assert!(
            !matches!(&applied.changes, Some(Changes::Parts(parts)) if parts.len() <= 16)
                || invariants::replays_to(&applied),
            "the changes of a publish lead from the snapshot before to the one after"
        );
        applied
    }
}

impl<S> Snapshot<S> {
    /// A snapshot of these objects, with these indices: what an informer would publish after a watch that
    /// brought the objects, of several states of a key the newest. Each source has reached the newest version
    /// of its objects. O(n log n); the functions of the indices are called here.
    ///
    /// ```
    /// # use informer_core::face as actix_informer;
    /// use actix_informer::informer::Index;
    /// use actix_informer::object::{Meta, Object, ObjectKey, ResourceVersion, Snapshot, SourceId};
    ///
    /// let version = ResourceVersion::from_number(7).expect("not zero");
    /// let meta = Meta::new(ObjectKey::namespaced("shop", "web"), version, SourceId::default());
    /// let by_text = Index::<String>::new("text", |object| [object.body().clone()]);
    /// let snapshot = Snapshot::of([Object::new(meta, "red".to_owned())], [(&by_text).into()]);
    /// assert_eq!(by_text.get(&snapshot, "red")?.count(), 1);
    /// # Ok::<(), actix_informer::informer::UnknownIndex>(())
    /// ```
    pub fn of(
        objects: impl IntoIterator<Item = Object<S>>,
        indices: impl IntoIterator<Item = AnyIndex<S>>,
    ) -> Self {
        let parts: Vec<_> =
            objects.into_iter().map(|object| (object.source().clone(), WatchPart::Applied(object))).collect();
        Store::new(Self::empty(), indices.into_iter().collect()).apply_parts(parts).snapshot
    }
}

crate::debug_as!([S] Store<S>, self,
    published = self.published,
    working = self.working.len(),
    is_replacing = self.is_replacing(),
    building = self.building.len()
);

#[cfg(test)]
mod tests;
