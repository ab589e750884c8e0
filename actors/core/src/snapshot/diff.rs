//! What differs between two snapshots, at once or a chunk at a time.
//!
//! Answers "what turns this state into that one?" for a late join (from nothing), a restart of the group and a
//! restated backlog; why it changed is not known here. Invariants:
//! 1. Applying `diff(older, newer)` to `older` gives `newer`; equal life and version is no difference, unless the
//!    source was rewound in between.
//! 2. Differences come in key order; a new life of a key is a deletion, then an addition.
//! 3. A [`DiffCursor`] run to its end has given exactly what [`super::Snapshot::diff`] gives, whatever the chunks.
//!
//! Bounds: a chunk visits at most the keys it was allowed; a namespace that both snapshots share is one visit.

use std::cmp::Ordering;
use std::fmt;
use std::iter::{from_fn, once};
use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::Snapshot;
use super::frame::{Frame, Held, Names};
use crate::meta::{Object, ObjectKey};

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
        (Some(old), Some(new)) if old == new => (None, None),
        (Some(old), Some(new)) if old.object().is_same_life_as(new.object()) => {
            let is_rewound = old.rewinds() != new.rewinds();
            let (old, new) = (old.object().clone(), new.object().clone());
            (Some(Difference::Updated { old, new, is_rewound }), None)
        }
        (Some(old), Some(new)) => (Some(deleted(old)), Some(added(new))),
    };
    first.into_iter().chain(second)
}

/// All differences, lazily, skipping what both frames share.
pub(super) fn differences<'a, S>(
    older: &'a Frame<S>,
    newer: &'a Frame<S>,
) -> impl Iterator<Item = Difference<S>> + use<'a, S> {
    let namespaces = older.namespaces().diff(newer.namespaces()).map(sides);
    once((Some(older.cluster()), Some(newer.cluster())))
        .chain(namespaces)
        .flat_map(|(old, new)| differences_of_names(old, new))
}

fn differences_of_names<'a, S>(
    old: Option<&'a Names<S>>,
    new: Option<&'a Names<S>>,
) -> impl Iterator<Item = Difference<S>> + use<'a, S> {
    let (both, deleted, added) = match (old, new) {
        (Some(old), Some(new)) => (Some(old.map().diff(new.map())), None, None),
        (old, new) => (None, old, new),
    };
    let in_both = both.into_iter().flatten().flat_map(|item| {
        let (old, new) = sides(item);
        compare(old, new)
    });
    let in_one = deleted.into_iter().flat_map(Names::iter).map(|object| Difference::Deleted(object.clone()));
    let in_other = added.into_iter().flat_map(Names::iter).map(|object| Difference::Added(object.clone()));
    in_both.chain(in_one).chain(in_other)
}

fn sides<'a, K, V>(item: DiffItem<'a, 'a, K, V>) -> (Option<&'a V>, Option<&'a V>) {
    match item {
        DiffItem::Add(_, new) => (None, Some(new)),
        DiffItem::Update { old: (_, old), new: (_, new) } => (Some(old), Some(new)),
        DiffItem::Remove(_, old) => (Some(old), None),
    }
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

    /// Makes at most this many visits and appends what differs; false when there is nothing more to visit. A visit is
    /// a key, or a part of the map that both snapshots share.
    ///
    /// Of a new life, both differences come in one chunk, so up to twice `max_visits` are appended.
    pub fn next_chunk(&mut self, max_visits: usize, out: &mut Vec<Difference<S>>) -> bool {
        let mut left = max_visits;
        while left > 0 && !self.is_finished {
            left -= self.visit_names(left, out);
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
        compare(self.older.frame().held(key), self.newer.frame().held(key)).collect()
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

    /// Goes on within one namespace, then past it; gives how many visits that took, at least one.
    fn visit_names(&mut self, most: usize, out: &mut Vec<Difference<S>>) -> usize {
        let namespace = self.place.as_ref().and_then(ObjectKey::namespace);
        let name = self.place.as_ref().map(ObjectKey::name);
        let (old, new) = (self.older.frame().names(namespace), self.newer.frame().names(namespace));
        let mut visited = 0;
        let mut last = None;
        if old.zip(new).is_none_or(|(old, new)| !old.is_shared_with(new)) {
            for (old, new) in side_by_side(old, new, name).take(most) {
                let Some(held) = new.or(old) else { continue };
                if self.until.as_ref().is_some_and(|until| held.object().key() > until) {
                    self.is_finished = true;
                    return visited.max(1);
                }
                visited += 1;
                out.extend(compare(old, new));
                last = Some(held.object().key());
            }
        }
        if visited < most {
            // The namespace is passed: go to just before the next one.
            let namespace = namespace.map(Arc::from);
            let Some(next) = self.next_namespace(namespace.as_deref()) else {
                self.is_finished = true;
                return visited.max(1);
            };
            let before_all = ObjectKey::namespaced(next, "");
            self.is_finished = self.until.as_ref().is_some_and(|until| before_all > *until);
            self.place = Some(before_all);
            return visited.max(1);
        }
        self.place = last.cloned();
        visited
    }

    fn next_namespace(&self, namespace: Option<&str>) -> Option<Arc<str>> {
        let after = |frame: &Frame<S>| {
            frame.namespaces_after(namespace).next().map(|(namespace, _)| Arc::clone(namespace))
        };
        match (after(self.older.frame()), after(self.newer.frame())) {
            (Some(old), Some(new)) => Some(old.min(new)),
            (old, new) => old.or(new),
        }
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

/// What both sides hold under a key.
type Sides<'a, S> = (Option<&'a Held<S>>, Option<&'a Held<S>>);

/// The objects of two namespaces side by side, in the order of their names, behind a name.
fn side_by_side<'a, S>(
    old: Option<&'a Names<S>>,
    new: Option<&'a Names<S>>,
    behind: Option<&str>,
) -> impl Iterator<Item = Sides<'a, S>> + use<'a, S> {
    let after = |names: Option<&'a Names<S>>| {
        names.map(|names| names.held_after(behind)).into_iter().flatten().peekable()
    };
    let (mut old, mut new) = (after(old), after(new));
    from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.object().key().name().cmp(new.object().key().name()),
        };
        let left = if order.is_le() { old.next() } else { None };
        let right = if order.is_ge() { new.next() } else { None };
        Some((left, right))
    })
}
