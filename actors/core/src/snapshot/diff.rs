//! The differences between two snapshots, at once or a chunk at a time. `diff(older, newer)` applied to `older` gives
//! `newer`.

use std::iter::from_fn;

use super::Snapshot;
use super::holders::Held;
use super::objects::NameTree;
use crate::meta::{Object, ObjectKey};
use crate::tree::walk::{Pair, Pairs};

/// Visits of a lazy diff at a time.
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
        /// Whether its source was rewound in between: then the version may be lower, or equal with another
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

/// Allocates nothing.
pub(super) fn for_each<S>(older: &Snapshot<S>, newer: &Snapshot<S>, mut give: impl FnMut(Difference<S>)) {
    let cursor = DiffCursor::new(older.clone(), newer.clone());
    if !cursor.is_finished() {
        Visits { cursor: &cursor, left: usize::MAX, last: None, give: &mut give }.visit();
    }
}

/// A diff that can be interrupted and resumed: differences in key order, a chunk at a time.
///
/// Its position is a key, so the newer snapshot can be exchanged between chunks ([`Self::lead_to`]). It keeps
/// both snapshots in memory until it is dropped.
pub struct DiffCursor<S> {
    older: Snapshot<S>,
    newer: Snapshot<S>,
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

    /// Exchanges the newer snapshot and keeps the position. The differences returned so far lead to the
    /// snapshot before; those still to come lead to this one. Returns the snapshot before. O(1); a finished
    /// cursor stays finished.
    pub fn lead_to(&mut self, newer: Snapshot<S>) -> Snapshot<S> {
        std::mem::replace(&mut self.newer, newer)
    }

    /// Makes at most this many visits and appends the differences. Returns false when nothing is left to
    /// visit; the cursor knows that only if it had a visit left. A visit is a key, or a part of the map that
    /// both snapshots share.
    ///
    /// Both differences of a new life come in one chunk, so up to twice `max_visits` are appended.
    pub fn next_chunk(&mut self, max_visits: usize, out: &mut Vec<Difference<S>>) -> bool {
        if !self.is_finished {
            let mut give = |difference| out.push(difference);
            let mut visits = Visits { cursor: self, left: max_visits, last: None, give: &mut give };
            let is_finished = visits.visit();
            let last = visits.last.cloned();
            self.place = last.or_else(|| self.place.take());
            self.is_finished = is_finished;
        }
        !self.is_finished
    }

    /// The position: the key visited last, or the key that the cursor began after.
    pub fn place(&self) -> Option<&ObjectKey> {
        self.place.as_ref()
    }

    /// Whether this key is at or before the position: its difference has been given, or there is none.
    pub fn has_passed(&self, key: &ObjectKey) -> bool {
        self.is_finished || self.place.as_ref().is_some_and(|place| key <= place)
    }

    /// Whether this key is after the position and within the range: its difference is still to come, if there
    /// is one.
    pub fn covers(&self, key: &ObjectKey) -> bool {
        !self.has_passed(key) && self.until.as_ref().is_none_or(|until| key <= until)
    }

    /// The difference of one key, for any position of the cursor: at most a deletion and an addition.
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

    fn ends_with(&self, key: &ObjectKey) -> bool {
        self.until.as_ref().is_some_and(|until| key >= until)
    }
}

struct Visits<'a, 'o, S> {
    cursor: &'a DiffCursor<S>,
    left: usize,
    last: Option<&'a ObjectKey>,
    give: &'o mut dyn FnMut(Difference<S>),
}

impl<'a, S> Visits<'a, '_, S> {
    fn visit(&mut self) -> bool {
        let cursor = self.cursor;
        let (old, new) = (cursor.older.frame().objects(), cursor.newer.frame().objects());
        let place = cursor.place.as_ref();
        if let Some(place) = place {
            // The rest of the scope of the position.
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

    fn visit_names(
        &mut self,
        old: Option<&'a NameTree<S>>,
        new: Option<&'a NameTree<S>>,
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
                    compare(old, new).for_each(&mut *self.give);
                    self.pass(new.or(old));
                }
            }
        }
    }

    fn pass(&mut self, last: Option<&'a Held<S>>) -> bool {
        self.left = self.left.saturating_sub(1);
        self.last = last.map(|held| held.object().key()).or(self.last);
        true
    }

    fn is_at_end(&self) -> bool {
        self.last.is_some_and(|last| self.cursor.ends_with(last))
    }
}

crate::debug_as!([S] DiffCursor<S>, self,
    older = self.older,
    newer = self.newer,
    place = self.place,
    until = self.until,
    is_finished = self.is_finished
);
