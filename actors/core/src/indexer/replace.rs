//! How a whole list of one source changes the store, a slice at a time.
//!
//! Answers "which keys are new, changed, unchanged or vanished?" in three walks: put the listed objects into the
//! working frame, go through the frame beside the one before (telling what differs, taking out what was not
//! listed), drop set-aside entries that were not listed. Invariants:
//! 1. Nothing is published before the last walk ends; each slice handles at most its budget.
//! 2. Only objects of the Replace's own source vanish, and none that it set aside.
//! 3. An unchanged object keeps its pointer, unless the cause is a rewind: then equal versions prove nothing.
//! 4. A list that is behind a fetched object does not take it back.
//! 5. A key listed twice is stored and told once, in its higher version.
//!
//! Bounds: beyond the list itself it keeps one word for each object listed and not yet walked past, none on a
//! source's first list.

use std::collections::BTreeSet;

use super::{Incident, Store};
use crate::delta::{Cause, Change, Replacement, SetAside};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::off_arbiter::OffArbiter;
use crate::snapshot::{Aside, Snapshot};

pub(super) struct Replacing<S> {
    source: SourceId,
    version: ResourceVersion,
    cause: Cause,
    /// The frame that the changes lead from.
    base: Snapshot<S>,
    /// The frame's number of this Replace: its own set-aside entries carry it.
    round: u64,
    set_aside: OffArbiter<Vec<SetAside>>,
    set_aside_stored: usize,
    /// All that was listed, kept whole to be freed elsewhere, and how many of them are stored.
    objects: OffArbiter<Vec<Object<S>>>,
    stored: usize,
    listed: Listed,
    walk: Walk,
}

/// Which stored objects this Replace has listed.
enum Listed {
    /// The source's first list: every object of the source is of this Replace.
    All,
    /// The addresses of listed objects that the walk has not reached.
    Addresses(BTreeSet<usize>),
}

/// What is left to do; keys up to the one held are done.
enum Walk {
    Store,
    Compare(Option<ObjectKey>),
    DropSetAside(Option<ObjectKey>),
}

impl<S> Replacing<S> {
    fn new(base: Snapshot<S>, source: SourceId, replacement: Replacement<S>) -> Self {
        let Replacement { version, cause, objects, set_aside, .. } = replacement;
        let is_first = base.newest_version(&source).is_none();
        Self {
            round: base.frame().replaces() + 1,
            listed: if is_first { Listed::All } else { Listed::Addresses(BTreeSet::new()) },
            base,
            source,
            version,
            cause,
            set_aside,
            set_aside_stored: 0,
            objects,
            stored: 0,
            walk: Walk::Store,
        }
    }

    fn is_listed(&self, stored: &Object<S>) -> bool {
        match &self.listed {
            Listed::All => stored.source() == &self.source,
            Listed::Addresses(addresses) => addresses.contains(&stored.address()),
        }
    }

    fn list(&mut self, stored: &Object<S>) {
        if let Listed::Addresses(addresses) = &mut self.listed {
            addresses.insert(stored.address());
        }
    }

    /// Forgets a listed object and says whether it was one.
    fn unlist(&mut self, stored: &Object<S>) -> bool {
        match &mut self.listed {
            Listed::All => stored.source() == &self.source,
            Listed::Addresses(addresses) => addresses.remove(&stored.address()),
        }
    }

    /// Whether the stored object was fetched: it is newer than the list, and than all that the source had told.
    fn is_behind(&self, stored: &Object<S>) -> bool {
        let told = self.base.version(&self.source);
        *stored.version() > self.version && told.is_some_and(|told| told < stored.version())
    }

    fn is_rewind(&self) -> bool {
        self.cause == Cause::Rewind
    }
}

impl<S> Store<S> {
    /// Goes on with the Replace under way, or the next one waiting; true when it is ready to be published.
    pub(super) fn advance_replace(&mut self, budget: usize) -> bool {
        let next = self.replacing.take().or_else(|| {
            let (source, replacement) = self.waiting.pop_front()?;
            self.report_older_replace(&source, &replacement);
            let base = self.published.with(self.working.clone());
            if replacement.cause == Cause::Rewind {
                self.working.count_rewind();
            }
            Some(Replacing::new(base, source, replacement))
        });
        let Some(mut replacing) = next else {
            return false;
        };
        let mut left = budget;
        while left > 0 {
            let is_over = match &replacing.walk {
                Walk::Store => self.store_listed(&mut replacing, &mut left),
                Walk::Compare(_) => self.compare(&mut replacing, &mut left),
                Walk::DropSetAside(_) => self.drop_set_aside(&mut replacing, &mut left),
            };
            if is_over {
                self.working.set_replaces(replacing.round);
                self.working.set_version(replacing.source, replacing.version);
                return true;
            }
        }
        self.replacing = Some(replacing);
        false
    }

    fn report_older_replace(&mut self, source: &SourceId, replacement: &Replacement<S>) {
        let published = self.working.newest(source).cloned();
        let older = published.filter(|published| replacement.version < *published);
        if let (Some(published), true) = (older, replacement.cause != Cause::Rewind) {
            let (of, listed) = (source.clone(), replacement.version.clone());
            self.draft.report(source, Incident::OlderReplace { source: of, published, listed });
        }
    }

    fn store_listed(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        while *left > 0 {
            if let Some(told) = replacing.set_aside.get(replacing.set_aside_stored).cloned() {
                replacing.set_aside_stored += 1;
                self.draft.report(&replacing.source, Incident::SetAside(told.clone()));
                let entry = Aside { source: replacing.source.clone(), round: replacing.round, told };
                self.working.set_aside_mut().insert(entry.told.key.clone(), entry);
            } else if let Some(object) = replacing.objects.get(replacing.stored).cloned() {
                replacing.stored += 1;
                self.store_one(replacing, object);
            } else {
                replacing.walk = Walk::Compare(None);
                return false;
            }
            *left -= 1;
        }
        false
    }

    fn store_one(&mut self, replacing: &mut Replacing<S>, object: Object<S>) {
        self.end_set_aside(object.key(), object.version());
        let Some(stored) = self.working.get(object.key()).cloned() else {
            return self.store_new(replacing, object);
        };
        if replacing.is_listed(&stored) {
            return self.store_duplicate(replacing, &stored, object);
        }
        if !replacing.is_rewind() && (stored.is_same_as(&object) || replacing.is_behind(&stored)) {
            return replacing.list(&stored);
        }
        let is_older = stored.is_same_life_as(&object) && object.version() < stored.version();
        if is_older && !replacing.is_rewind() {
            let (key, stored, listed) =
                (object.key().clone(), stored.version().clone(), object.version().clone());
            self.draft.report(&replacing.source, Incident::OlderListed { key, stored, listed });
        }
        self.store_new(replacing, object);
    }

    fn store_new(&mut self, replacing: &mut Replacing<S>, object: Object<S>) {
        if object.source() != &replacing.source {
            let (key, source) = (object.key().clone(), replacing.source.clone());
            self.draft.report(&replacing.source, Incident::ForeignSource { key, source });
        }
        replacing.list(&object);
        if replacing.is_rewind() { self.hold_rewound(object) } else { self.hold(object) }
    }

    /// The second of one key in one list: the higher version stays, as the frame before knew it if it did.
    fn store_duplicate(&mut self, replacing: &mut Replacing<S>, stored: &Object<S>, object: Object<S>) {
        self.draft.report(&replacing.source, Incident::Duplicate(object.key().clone()));
        if object.version() <= stored.version() {
            return;
        }
        replacing.unlist(stored);
        let known = replacing.base.get(object.key());
        let known = known.filter(|known| known.is_same_as(&object) && !replacing.is_rewind()).cloned();
        self.store_new(replacing, known.unwrap_or(object));
    }

    /// Goes through the working frame beside the one before: tells what differs, takes out what has vanished.
    fn compare(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        let Walk::Compare(passed) = std::mem::replace(&mut replacing.walk, Walk::Store) else {
            return false;
        };
        let base = replacing.base.clone();
        let mut before = base.frame().after(passed.as_ref()).peekable();
        let mut vanished = Vec::new();
        let mut last = None;
        let mut now = self.working.after(passed.as_ref());
        for object in now.by_ref().take(*left) {
            while before.next_if(|old| old.key() < object.key()).is_some() {}
            let old = before.next_if(|old| old.key() == object.key());
            let was_listed = replacing.unlist(object);
            let is_told_anew = was_listed && replacing.is_rewind();
            if is_told_anew || old.is_none_or(|old| !old.ptr_eq(object)) {
                tell(old, object, replacing.cause)
                    .into_iter()
                    .flatten()
                    .for_each(|change| self.draft.change(change));
            } else if !was_listed && self.has_vanished(replacing, object) {
                let cause = replacing.cause;
                let (old, last) = (object.clone(), object.clone());
                self.draft.change(Change::Deleted { old, last, exact: false, cause });
                vanished.push(object.key().clone());
            }
            *left -= 1;
            last = Some(object.key());
        }
        let passed = last.cloned().or(passed);
        let is_over = now.next().is_none();
        drop(now);
        vanished.iter().for_each(|key| self.remove(key));
        replacing.walk = if is_over { Walk::DropSetAside(None) } else { Walk::Compare(passed) };
        false
    }

    /// Whether an object that was not listed is gone: if it is of this source, and not set aside by this list.
    fn has_vanished(&self, replacing: &Replacing<S>, object: &Object<S>) -> bool {
        let entry = self.working.set_aside().get(object.key());
        object.source() == &replacing.source && entry.is_none_or(|aside| aside.round != replacing.round)
    }

    /// Drops entries of this source that this list did not set aside again.
    fn drop_set_aside(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        let Walk::DropSetAside(passed) = &mut replacing.walk else {
            return false;
        };
        let from = passed.as_ref().map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let mut entries = self.working.set_aside().range::<_, ObjectKey>((from, std::ops::Bound::Unbounded));
        let mut outdated = Vec::new();
        let mut last = None;
        for (key, aside) in entries.by_ref().take(*left) {
            if aside.source == replacing.source && aside.round != replacing.round {
                outdated.push(key.clone());
            }
            *left -= 1;
            last = Some(key.clone());
        }
        let is_over = entries.next().is_none();
        drop(entries);
        *passed = last.or_else(|| passed.take());
        for key in &outdated {
            self.working.set_aside_mut().remove(key);
        }
        is_over
    }
}

/// What became of a key that is stored now and differs from before.
fn tell<S>(old: Option<&Object<S>>, object: &Object<S>, cause: Cause) -> [Option<Change<S>>; 2] {
    let object = object.clone();
    match old.cloned() {
        None => [Some(Change::Added { object, cause }), None],
        Some(old) if old.is_same_life_as(&object) => [Some(Change::Updated { old, object, cause }), None],
        Some(old) => {
            let ended = Change::Deleted { last: old.clone(), old, exact: false, cause };
            [Some(ended), Some(Change::Added { object, cause })]
        }
    }
}
