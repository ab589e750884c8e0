//! How a whole list of one source changes the store, a slice at a time.
//!
//! Answers "which keys are new, changed, unchanged or gone?" in walks, one after the other:
//!
//! | walk | visits | does |
//! |---|---|---|
//! | `Outdate` | the sources that hand over to this one, or take over; only after a rewind | notes what they brought as outdated |
//! | `Store` | the undecodable objects of the list, then its objects | stores each, notes the listed ones |
//! | `Release` | the stored objects of the source, by key | releases those not listed; skipped on a first list |
//! | `DropUndecodable` | the source's undecodable entries, by key | drops those that this list does not have |
//! | `Settle` | what others have told to the source, by key; without a list, alone | adds what it brought, ends what was lent |
//!
//! The removal of a source is the same without a list. The changes are the difference of the snapshots before and
//! after. Invariants:
//! 1. Nothing is published before the last walk ends; each slice handles at most its budget.
//! 2. Only objects that no source but this one holds are removed, and none that is undecodable in the list.
//! 3. An unchanged object keeps its pointer, unless the cause is a rewind: then an equal version may be another state.
//! 4. A stored object stays if it was fetched and is newer than the list, or if another source that holds it has sent a
//!    newer state than the list.
//! 5. A key listed twice is stored once, in its higher version.
//!
//! The `Release` walk must know which stored objects were listed. It compares addresses, since an address is one word
//! where a key is two pointers and a search. An address identifies an object as long as it is not freed: every listed
//! object is in `objects` or in `base`, and both are kept to the end, so no address is used again meanwhile.
//!
//! Bounds: beyond the list itself one word for each object listed and not yet visited by the `Release` walk; none on
//! a source's first list. That walk skips parts of the map that have nothing of the source.

use std::collections::BTreeSet;

use super::{Incident, Store, Successors, Waiting};
use crate::chunks::Chunks;
use crate::delta::{Cause, Replacement, Undecodable};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::off_arbiter::OffArbiter;
use crate::snapshot::{Held, Put, Snapshot};
use crate::tree::Sources;

pub(super) struct Replacing<S> {
    source: SourceId,
    kind: Kind,
    cause: Cause,
    /// The frame before it.
    base: Snapshot<S>,
    /// The number of this Replace in the frame; undecodable entries of this list carry it.
    round: u64,
    undecodable: OffArbiter<Chunks<Undecodable>>,
    undecodable_stored: usize,
    /// All listed objects, kept to the end so that their addresses stay unique, and how many of them are stored.
    objects: OffArbiter<Chunks<Object<S>>>,
    stored: usize,
    listed: Listed,
    /// The source, if what it held before is of a former history.
    was_outdated: Option<SourceId>,
    pub(super) walk: Walk,
}

/// What is done with the source.
enum Kind {
    /// It has listed everything, at this version.
    List(ResourceVersion),
    /// It is removed, and hands over to these.
    Removal(Successors),
    /// What others have told before it is settled.
    Settlement,
}

/// Which stored objects this Replace has listed.
enum Listed {
    /// The source's first list: every object that the source holds is listed.
    All,
    /// The addresses of listed objects that the `Release` walk has not visited.
    Addresses(BTreeSet<usize>),
}

/// The present walk; keys up to the one held here are done.
pub(super) enum Walk {
    /// The other sources of each exchange whose server went back, up to this one.
    Outdate(usize, Option<SourceId>),
    Store,
    Release(Option<ObjectKey>),
    DropUndecodable(Option<ObjectKey>),
    Settle,
}

impl<S> Replacing<S> {
    fn new(base: Snapshot<S>, waiting: Waiting<S>) -> Self {
        let nothing = || (OffArbiter::in_place(Chunks::new()), OffArbiter::in_place(Chunks::new()));
        let (source, kind, cause, (objects, undecodable), walk) = match waiting {
            Waiting::List(source, list) => {
                let is_rewind = list.cause == Cause::Rewind;
                let walk = if is_rewind { Walk::Outdate(0, None) } else { Walk::Store };
                (source, Kind::List(list.version), list.cause, (list.objects, list.undecodable), walk)
            }
            Waiting::Remove(source, successors) => {
                (source, Kind::Removal(successors), Cause::Relist, nothing(), Walk::Store)
            }
            Waiting::Settle(source) => (source, Kind::Settlement, Cause::Relist, nothing(), Walk::Settle),
        };
        let is_first = base.newest_version(&source).is_none() && matches!(kind, Kind::List(_));
        Self {
            round: base.frame().replaces() + 1,
            listed: if is_first { Listed::All } else { Listed::Addresses(BTreeSet::new()) },
            base,
            source,
            kind,
            cause,
            undecodable,
            undecodable_stored: 0,
            objects,
            stored: 0,
            was_outdated: None,
            walk,
        }
    }

    pub(super) fn source(&self) -> &SourceId {
        &self.source
    }

    /// The version of the list; `None` if there is none.
    pub(super) fn version(&self) -> Option<&ResourceVersion> {
        match &self.kind {
            Kind::List(version) => Some(version),
            Kind::Removal(_) | Kind::Settlement => None,
        }
    }

    fn is_listed(&self, held: &Held<S>) -> bool {
        match &self.listed {
            Listed::All => held.is_held_by(&self.source),
            Listed::Addresses(addresses) => addresses.contains(&held.object().address()),
        }
    }

    fn list(&mut self, stored: &Object<S>) {
        if let Listed::Addresses(addresses) = &mut self.listed {
            addresses.insert(stored.address());
        }
    }

    /// Whether the source holds this object and has not listed it. Removes the address of a listed one.
    fn lacks(&mut self, held: &Held<S>) -> bool {
        match &mut self.listed {
            Listed::All => false,
            Listed::Addresses(addresses) => {
                !addresses.remove(&held.object().address()) && held.is_held_by(&self.source)
            }
        }
    }

    /// Whether the stored object is newer than the list: it was fetched, and is newer than the list and than all that
    /// the source had sent; or another source that holds it has sent a newer state.
    fn is_behind(&self, held: &Held<S>, listed: &Object<S>) -> bool {
        let stored = held.object();
        let reached = self.base.version(&self.source);
        let is_fetched = self.version().is_some_and(|listed| stored.version() > listed)
            && reached.is_some_and(|reached| reached < stored.version());
        let is_own = held.is_held_by(&self.source);
        let is_of_other = !is_own || (stored.source() != &self.source && held.is_held_by(stored.source()));
        is_fetched || (is_of_other && listed.version() < stored.version())
    }

    fn is_rewind(&self) -> bool {
        self.cause == Cause::Rewind
    }
}

impl<S> Store<S> {
    /// Continues the Replace that is under way, or begins the next one; true when it is ready to be published.
    pub(super) fn advance_replace(&mut self, budget: usize) -> bool {
        let next = self.replacing.take().or_else(|| {
            let waiting = self.waiting.pop_front()?;
            if let Waiting::List(source, replacement) = &waiting {
                self.report_older_replace(source, replacement);
                self.begin_told(source, replacement.cause);
            }
            let base = self.published.with(self.working.clone());
            let mut replacing = Replacing::new(base, waiting);
            if replacing.version().is_some() && self.working.end_outdated(&replacing.source) {
                // Another source has noticed before: the others may have brought what is newer than this list.
                (replacing.walk, replacing.was_outdated) = (Walk::Store, Some(replacing.source.clone()));
            }
            if replacing.is_rewind() {
                self.working.objects_mut().count_rewind();
            }
            Some(replacing)
        });
        let Some(mut replacing) = next else {
            return false;
        };
        let mut left = budget;
        while left > 0 {
            let is_over = match &replacing.walk {
                Walk::Outdate(..) => self.outdate_others(&mut replacing, &mut left),
                Walk::Store => self.store_listed(&mut replacing, &mut left),
                Walk::Release(_) => self.release_missing(&mut replacing, &mut left),
                Walk::DropUndecodable(_) => self.drop_undecodable(&mut replacing, &mut left),
                Walk::Settle => self.advance_settle(&mut replacing, &mut left),
            };
            if is_over {
                self.end_replace(replacing);
                return true;
            }
        }
        self.replacing = Some(replacing);
        false
    }

    fn end_replace(&mut self, replacing: Replacing<S>) {
        self.working.set_replaces(replacing.round);
        self.draft.list(replacing.source.clone(), replacing.cause);
        match replacing.kind {
            Kind::List(version) => {
                self.working.list_behind(&replacing.source, &version);
                self.note_first(&replacing.source);
                self.working.set_version(&replacing.source, &version);
            }
            Kind::Removal(_) => self.working.forget_source(&replacing.source),
            Kind::Settlement => {}
        }
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
            if let Some(object) = replacing.undecodable.get(replacing.undecodable_stored).cloned() {
                replacing.undecodable_stored += 1;
                self.draft.report(&replacing.source, Incident::Undecodable(object.clone()));
                self.store_unread(replacing, object);
            } else if let Some(object) = replacing.objects.get(replacing.stored).cloned() {
                replacing.stored += 1;
                self.store_one(replacing, object);
            } else {
                let is_first = matches!(replacing.listed, Listed::All);
                replacing.walk = if is_first { Walk::DropUndecodable(None) } else { Walk::Release(None) };
                return false;
            }
            *left -= 1;
        }
        false
    }

    /// The source holds an entry that it has listed. What another source has brought of it, and is newer, stays.
    fn store_unread(&mut self, replacing: &mut Replacing<S>, object: Undecodable) {
        let source = &replacing.source;
        self.hold_unread(source, &object.key, replacing.version().unwrap_or(&object.version));
        let is_newer = |newest: &ResourceVersion| *newest > object.version && !replacing.is_rewind();
        let stored = self.working.get(&object.key).filter(|stored| stored.source() != source);
        if let Some(newer) = stored.filter(|stored| is_newer(stored.version())) {
            return replacing.list(newer);
        }
        let entry = self.working.undecodable().get(&object.key);
        let known = entry.filter(|one| one.is_held_by_others(source) && is_newer(&one.object.version));
        let newest = known.map_or(object, |known| known.object.clone());
        self.working.insert_undecodable(source, replacing.round, newest);
    }

    fn store_one(&mut self, replacing: &mut Replacing<S>, object: Object<S>) {
        self.end_undecodable(object.key(), object.version());
        let listed_at = replacing.version().filter(|_| !replacing.is_rewind());
        let Some(object) = self.unless_old_news(&replacing.source, object, listed_at) else { return };
        let Some(held) = self.working.objects().held(object.key()) else {
            return self.store_new(replacing, object);
        };
        let stored = held.object().clone();
        if replacing.is_listed(held) {
            return self.store_duplicate(replacing, &stored, object);
        }
        let is_former = self.is_former(object.key(), replacing.was_outdated.as_ref());
        let is_known = !is_former && (stored.is_same_as(&object) || replacing.is_behind(held, &object));
        if is_known && !replacing.is_rewind() {
            replacing.list(&stored);
            if !held.is_held_by(&replacing.source) {
                self.working.objects_mut().put(&replacing.source, &stored, |_| false);
            }
            return;
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
        let source = &replacing.source;
        if object.source() != source {
            let (key, of) = (object.key().clone(), source.clone());
            self.draft.report(source, Incident::ForeignSource { key, source: of });
        }
        self.index(&object);
        let is_former = self.is_former(object.key(), replacing.was_outdated.as_ref());
        let objects = self.working.objects_mut();
        let put = if is_former || replacing.is_rewind() {
            objects.put_rewound(source, &object)
        } else {
            objects.put(source, &object, |_| true)
        };
        if let Put::Replaced(old) = put {
            self.draft.discard_stored(&old);
        }
        replacing.list(&object);
    }

    /// The second object of a key in one list: the higher version stays, with the pointer of the frame before if that
    /// had this state.
    fn store_duplicate(&mut self, replacing: &mut Replacing<S>, stored: &Object<S>, object: Object<S>) {
        self.draft.report(&replacing.source, Incident::Duplicate(object.key().clone()));
        if object.version() <= stored.version() {
            return;
        }
        if let Listed::Addresses(addresses) = &mut replacing.listed {
            addresses.remove(&stored.address());
        }
        let known = replacing.base.get(object.key());
        let known = known.filter(|known| known.is_same_as(&object) && !replacing.is_rewind()).cloned();
        self.store_new(replacing, known.unwrap_or(object));
    }

    /// Releases the objects that the source held and did not list, except those that are undecodable in this list.
    fn release_missing(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        let Walk::Release(passed) = &mut replacing.walk else {
            return false;
        };
        let passed = passed.take();
        let mut objects = self.working.objects().after(passed.as_ref(), Sources::of(&replacing.source));
        let mut missing = Vec::new();
        let mut last = None;
        for held in objects.by_ref().take(*left) {
            let key = held.object().key();
            if replacing.lacks(held) {
                let entry = self.working.undecodable().get(key);
                if entry.is_none_or(|undecodable| undecodable.round != replacing.round) {
                    missing.push(key.clone());
                }
            }
            *left -= 1;
            last = Some(key);
        }
        let is_over = objects.next().is_none();
        let last = last.cloned().or(passed);
        drop(objects);
        for key in &missing {
            self.let_go(replacing, key);
        }
        replacing.walk = if is_over { Walk::DropUndecodable(None) } else { Walk::Release(last) };
        false
    }

    /// The source does not hold this object any more: it did not list it, or is removed.
    fn let_go(&mut self, replacing: &Replacing<S>, key: &ObjectKey) {
        let source = &replacing.source;
        match &replacing.kind {
            Kind::Removal(successors) => self.pass_on(key, source, successors),
            Kind::List(version) if self.lends(source, key, version) => return,
            Kind::List(version) => self.tell_deleted(source, key, version),
            Kind::Settlement => {}
        }
        self.release(key, source);
    }

    /// The source does not hold this entry any more.
    fn let_go_undecodable(&mut self, replacing: &Replacing<S>, key: &ObjectKey) {
        let source = &replacing.source;
        match &replacing.kind {
            Kind::Removal(successors) => self.pass_on(key, source, successors),
            Kind::List(version) if self.lends(source, key, version) => return,
            Kind::List(_) | Kind::Settlement => {}
        }
        self.working.release_undecodable(key, source);
    }

    /// Drops entries of this source that this list does not have.
    fn drop_undecodable(&mut self, replacing: &mut Replacing<S>, left: &mut usize) -> bool {
        let Walk::DropUndecodable(passed) = &replacing.walk else { return false };
        let keys: Vec<ObjectKey> =
            self.working.undecodable_by(&replacing.source, passed.as_ref()).take(*left).cloned().collect();
        let is_over = keys.len() < *left;
        *left -= keys.len();
        for key in &keys {
            let is_missing =
                self.working.undecodable().get(key).is_some_and(|entry| entry.round != replacing.round);
            if is_missing {
                self.let_go_undecodable(replacing, key);
            }
        }
        replacing.walk = Walk::DropUndecodable(keys.into_iter().next_back());
        is_over
    }
}
