//! What differs between two snapshots, at once or a chunk at a time.
//!
//! Answers "what turns this state into that one?" for a late join (from nothing), a restart of the group and a
//! restated backlog; why it changed is not known here. Invariants:
//! 1. Applying `diff(older, newer)` to `older` gives `newer`; equal life and version is no difference, unless the
//!    source was rewound in between.
//! 2. Differences come in key order; a new life of a key is a deletion, then an addition.
//! 3. A [`DiffCursor`] run to its end has given exactly what [`super::Snapshot::diff`] gives, whatever the chunks.
//!
//! Bounds: a chunk makes at most the visits it was allowed; a part of the map that both snapshots share, from 32 objects
//! to many namespaces, is one visit.

use std::fmt;
use std::iter::from_fn;

use super::Snapshot;
use super::holders::Held;
use super::objects::Names;
use super::walk::{Pair, Pairs};
use crate::meta::{Object, ObjectKey};

/// How far a lazy diff looks ahead.
const LAZY: usize = 64;

/// One difference between two snapshots.
#[derive(Debug)]
#[non_exhaustive]
pub enum Difference<S> {
    /// The key, or this life of it, is only in the newer one.
    Added(Object<S>),
    /// The same life in another version.
    Updated {
        /// In the older snapshot.
        old: Object<S>,
        /// In the newer snapshot.
        new: Object<S>,
        /// Whether its source was rewound in between: then the version may be lower, or equal and still another
        /// state.
        is_rewound: bool,
    },
    /// The key, or this life of it, is only in the older one.
    Deleted(Object<S>),
}

impl<S> Difference<S> {
    /// The key that differs.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added(object) | Self::Deleted(object) | Self::Updated { new: object, .. } => object.key(),
        }
    }
}

impl<S> Clone for Difference<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(object.clone()),
            Self::Updated { old, new, is_rewound } => {
                Self::Updated { old: old.clone(), new: new.clone(), is_rewound: *is_rewound }
            }
            Self::Deleted(object) => Self::Deleted(object.clone()),
        }
    }
}

/// The differences of one key: none, one, or a deletion and an addition.
fn compare<S>(old: Option<&Held<S>>, new: Option<&Held<S>>) -> impl Iterator<Item = Difference<S>> + use<S> {
    let deleted = |old: &Held<S>| Difference::Deleted(old.object().clone());
    let added = |new: &Held<S>| Difference::Added(new.object().clone());
    let (first, second) = match (old, new) {
        (None, None) => (None, None),
        (None, Some(new)) => (Some(added(new)), None),
        (Some(old), None) => (Some(deleted(old)), None),
        (Some(old), Some(new)) if old.is_same_as(new) => (None, None),
        (Some(old), Some(new)) if old.object().is_same_life_as(new.object()) => {
            let is_rewound = old.rewinds() != new.rewinds();
            let (old, new) = (old.object().clone(), new.object().clone());
            (Some(Difference::Updated { old, new, is_rewound }), None)
        }
        (Some(old), Some(new)) => (Some(deleted(old)), Some(added(new))),
    };
    first.into_iter().chain(second)
}

/// All differences, lazily, skipping what both share.
pub(super) fn differences<'a, S>(
    older: &'a Snapshot<S>,
    newer: &'a Snapshot<S>,
) -> impl Iterator<Item = Difference<S>> + use<'a, S> {
    let mut cursor = DiffCursor::new(older.clone(), newer.clone());
    let chunks = from_fn(move || {
        let mut chunk = Vec::new();
        (!cursor.is_finished()).then(|| {
            cursor.next_chunk(LAZY, &mut chunk);
            chunk
        })
    });
    chunks.flatten()
}

/// A diff that can be left and taken up again: differences in key order, a chunk at a time.
///
/// Its place is a key, so the newer snapshot can be exchanged on the way ([`Self::lead_to`]). It holds both
/// snapshots; what they alone hold is freed when it is dropped.
pub struct DiffCursor<S> {
    older: Snapshot<S>,
    newer: Snapshot<S>,
    /// Every key up to this one is passed.
    place: Option<ObjectKey>,
    until: Option<ObjectKey>,
    is_finished: bool,
}

impl<S> DiffCursor<S> {
    /// Starts before the first key. O(1).
    pub fn new(older: Snapshot<S>, newer: Snapshot<S>) -> Self {
        Self::between(older, newer, None, None)
    }

    /// The differences of the keys after one key, up to and with another; `None` leaves that side open. O(1).
    pub fn between(
        older: Snapshot<S>,
        newer: Snapshot<S>,
        after: Option<ObjectKey>,
        until: Option<ObjectKey>,
    ) -> Self {
        let is_empty = until.is_some() && after >= until;
        let is_finished = is_empty || older.ptr_eq(&newer);
        Self { older, newer, place: after, until, is_finished }
    }

    /// Leads to another snapshot from now on and keeps its place: what it gave led to the snapshot before, what it
    /// will give leads to this one. Gives back the snapshot before. O(1); a finished cursor stays finished.
    pub fn lead_to(&mut self, newer: Snapshot<S>) -> Snapshot<S> {
        std::mem::replace(&mut self.newer, newer)
    }

    /// Makes at most this many visits and appends what differs; false when there is nothing more to visit, which only
    /// a visit that was left over shows. A visit is a key, or a part of the map that both snapshots share.
    ///
    /// Of a new life, both differences come in one chunk, so up to twice `max_visits` are appended.
    pub fn next_chunk(&mut self, max_visits: usize, out: &mut Vec<Difference<S>>) -> bool {
        if !self.is_finished {
            let mut visits = Visits { cursor: self, left: max_visits, last: None, out };
            let is_finished = visits.visit();
            let last = visits.last.cloned();
            self.place = last.or_else(|| self.place.take());
            self.is_finished = is_finished;
        }
        !self.is_finished
    }

    /// The key up to which all is passed: the one it visited last, or the one it began after.
    pub fn place(&self) -> Option<&ObjectKey> {
        self.place.as_ref()
    }

    /// Whether this key does not lie ahead: its difference has been given, or there is none.
    pub fn has_passed(&self, key: &ObjectKey) -> bool {
        self.is_finished || self.place.as_ref().is_some_and(|place| key <= place)
    }

    /// Whether this key lies ahead and within the range: its difference is still to be given, if there is one.
    pub fn covers(&self, key: &ObjectKey) -> bool {
        !self.has_passed(key) && self.until.as_ref().is_none_or(|until| key <= until)
    }

    /// The difference of one key, wherever the cursor stands: at most a deletion and an addition.
    pub fn at(&self, key: &ObjectKey) -> Vec<Difference<S>> {
        let (older, newer) = (self.older.frame().objects(), self.newer.frame().objects());
        compare(older.held(key), newer.held(key)).collect()
    }

    /// Whether every key has been visited.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The snapshot that the differences lead from.
    pub fn older(&self) -> &Snapshot<S> {
        &self.older
    }

    /// The snapshot that the differences lead to.
    pub fn newer(&self) -> &Snapshot<S> {
        &self.newer
    }

    /// Whether all of the range is passed when this key is.
    fn ends_with(&self, key: &ObjectKey) -> bool {
        self.until.as_ref().is_some_and(|until| key >= until)
    }
}

/// A chunk under way: the visits that are left, and the key visited last.
struct Visits<'a, 'o, S> {
    cursor: &'a DiffCursor<S>,
    left: usize,
    last: Option<&'a ObjectKey>,
    out: &'o mut Vec<Difference<S>>,
}

impl<'a, S> Visits<'a, '_, S> {
    /// Visits what lies ahead; whether that was all.
    fn visit(&mut self) -> bool {
        let cursor = self.cursor;
        let (old, new) = (cursor.older.frame().objects(), cursor.newer.frame().objects());
        let place = cursor.place.as_ref();
        if let Some(place) = place {
            // What is left of the scope in which it stands.
            if !self.visit_names(old.names(place), new.names(place), Some(place.name())) {
                return self.is_at_end();
            }
        }
        let mut scopes = Pairs::after(Some(old.scopes()), Some(new.scopes()), place.map(ObjectKey::scope));
        loop {
            if self.left == 0 || self.is_at_end() {
                return self.is_at_end();
            }
            let Some(pair) = scopes.next() else { return true };
            let (old, new) = match pair {
                Pair::Shared(last) => (Some(last), Some(last)),
                Pair::Items(old, new) => (old, new),
            };
            let (old, new) = (old.map(|old| &old.names), new.map(|new| &new.names));
            let is_passed = match old.zip(new).filter(|(old, new)| old.is_shared_with(new)) {
                Some((shared, _)) => self.pass(shared.last()),
                None => self.visit_names(old, new, None),
            };
            if !is_passed {
                return self.is_at_end();
            }
        }
    }

    /// Visits the objects of a scope after a name; whether those were all.
    fn visit_names(
        &mut self,
        old: Option<&'a Names<S>>,
        new: Option<&'a Names<S>>,
        after: Option<&str>,
    ) -> bool {
        let mut names = Pairs::after(old, new, after);
        loop {
            if self.left == 0 || self.is_at_end() {
                return false;
            }
            let Some(pair) = names.next() else { return true };
            match pair {
                Pair::Shared(last) => {
                    self.pass(Some(last));
                }
                Pair::Items(old, new) => {
                    let key = new.or(old).map(|held| held.object().key());
                    let is_outside = self.cursor.until.as_ref().filter(|until| key > Some(*until));
                    if is_outside.is_some() {
                        self.last = is_outside;
                        return false;
                    }
                    self.out.extend(compare(old, new));
                    self.pass(new.or(old));
                }
            }
        }
    }

    /// All up to this one is passed.
    fn pass(&mut self, last: Option<&'a Held<S>>) -> bool {
        self.left = self.left.saturating_sub(1);
        self.last = last.map(|held| held.object().key()).or(self.last);
        true
    }

    fn is_at_end(&self) -> bool {
        self.last.is_some_and(|last| self.cursor.ends_with(last))
    }
}

impl<S> fmt::Debug for DiffCursor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiffCursor")
            .field("older", &self.older)
            .field("newer", &self.newer)
            .field("place", &self.place)
            .field("until", &self.until)
            .field("is_finished", &self.is_finished)
            .finish()
    }
}
