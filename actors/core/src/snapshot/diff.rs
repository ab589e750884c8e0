//! What differs between two snapshots, at once or a chunk at a time.
//!
//! Answers "what turns this state into that one?" for a late join (from nothing), a restart of the group and a
//! restated backlog; why it changed is not known here. Invariants:
//! 1. Applying `diff(older, newer)` to `older` gives `newer`; equal life and version is no difference.
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
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Deleted(object) => Self::Deleted(object.clone()),
        }
    }
}

/// What makes two objects of a key no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sameness {
    /// Equal life and version.
    State,
    /// Being the very same object: after a rewind equal versions prove nothing.
    Identity,
}

/// The differences of one key: none, one, or a deletion and an addition.
fn between<S>(
    sameness: Sameness,
    old: Option<&Object<S>>,
    new: Option<&Object<S>>,
) -> impl Iterator<Item = Difference<S>> + use<S> {
    let (first, second) = match (old, new) {
        (None, None) => (None, None),
        (None, Some(new)) => (Some(Difference::Added(new.clone())), None),
        (Some(old), None) => (Some(Difference::Deleted(old.clone())), None),
        (Some(old), Some(new)) if old.ptr_eq(new) => (None, None),
        (Some(old), Some(new)) if sameness == Sameness::State && old.is_same_as(new) => (None, None),
        (Some(old), Some(new)) if old.is_same_life_as(new) => {
            (Some(Difference::Updated { old: old.clone(), new: new.clone() }), None)
        }
        (Some(old), Some(new)) => {
            (Some(Difference::Deleted(old.clone())), Some(Difference::Added(new.clone())))
        }
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
        between(Sameness::State, old.map(Held::object), new.map(Held::object))
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
/// It holds both snapshots, so what it pins is freed when it is dropped.
pub struct DiffCursor<S> {
    older: Snapshot<S>,
    newer: Snapshot<S>,
    sameness: Sameness,
    place: Place,
}

/// Everything before it has been visited.
enum Place {
    /// In a namespace (`None`: that of cluster-scoped objects), behind a name (`None`: before all names).
    Within {
        namespace: Option<Arc<str>>,
        behind: Option<Arc<str>>,
    },
    End,
}

impl<S> DiffCursor<S> {
    /// Starts before the first key. O(1).
    pub fn new(older: Snapshot<S>, newer: Snapshot<S>) -> Self {
        let place =
            if older.ptr_eq(&newer) { Place::End } else { Place::Within { namespace: None, behind: None } };
        Self { older, newer, sameness: Sameness::State, place }
    }

    /// The same, but that an object which was told anew in an equal version is a difference, too: it was so after a
    /// rewind. Both snapshots must be of one informer, where an unchanged object is the very same one. O(1).
    pub fn by_identity(older: Snapshot<S>, newer: Snapshot<S>) -> Self {
        Self { sameness: Sameness::Identity, ..Self::new(older, newer) }
    }

    /// Visits at most this many keys and appends what differs; false when there is nothing more to visit.
    ///
    /// A call that visits nothing new appends nothing. Of a new life, both differences come in one chunk, so up
    /// to twice `max_keys_visited` are appended.
    pub fn next_chunk(&mut self, max_keys_visited: usize, out: &mut Vec<Difference<S>>) -> bool {
        let mut left = max_keys_visited;
        while left > 0 && !self.is_finished() {
            left -= self.visit_names(left, out);
        }
        !self.is_finished()
    }

    /// Whether this key lies behind the cursor: its difference has been given, or there is none.
    pub fn has_passed(&self, key: &ObjectKey) -> bool {
        let Place::Within { namespace, behind } = &self.place else {
            return true;
        };
        match key.namespace().cmp(&namespace.as_deref()) {
            Ordering::Less => true,
            Ordering::Equal => behind.as_deref().is_some_and(|behind| key.name() <= behind),
            Ordering::Greater => false,
        }
    }

    /// The difference of one key, wherever the cursor stands: at most a deletion and an addition.
    pub fn at(&self, key: &ObjectKey) -> Vec<Difference<S>> {
        between(self.sameness, self.older.get(key), self.newer.get(key)).collect()
    }

    /// Whether every key has been visited.
    pub fn is_finished(&self) -> bool {
        matches!(self.place, Place::End)
    }

    /// What makes two objects of a key no difference here.
    pub(crate) fn sameness(&self) -> Sameness {
        self.sameness
    }

    /// The snapshot that the differences lead from.
    pub fn older(&self) -> &Snapshot<S> {
        &self.older
    }

    /// The snapshot that the differences lead to.
    pub fn newer(&self) -> &Snapshot<S> {
        &self.newer
    }

    /// Goes on within one namespace, or past it; gives how many keys it visited, and at least one for the step.
    fn visit_names(&mut self, most: usize, out: &mut Vec<Difference<S>>) -> usize {
        let Place::Within { namespace, behind } = &mut self.place else {
            return 0;
        };
        let old = self.older.frame().names(namespace.as_deref());
        let new = self.newer.frame().names(namespace.as_deref());
        let mut visited = 0;
        let is_shared = old.zip(new).is_some_and(|(old, new)| old.is_shared_with(new));
        if !is_shared {
            let mut last = None;
            for (old, new) in side_by_side(old, new, behind.as_deref()).take(most) {
                visited += 1;
                out.extend(between(self.sameness, old, new));
                last = new.or(old);
            }
            if let Some(object) = last {
                *behind = Some(Arc::clone(object.key().shared_name()));
            }
            if visited == most {
                return visited;
            }
        }
        self.place = self.next_namespace();
        visited.max(1)
    }

    fn next_namespace(&self) -> Place {
        let Place::Within { namespace, .. } = &self.place else {
            return Place::End;
        };
        let after = |frame: &Frame<S>| {
            frame.namespaces_after(namespace.as_deref()).next().map(|(namespace, _)| Arc::clone(namespace))
        };
        let nearest = match (after(self.older.frame()), after(self.newer.frame())) {
            (Some(old), Some(new)) => Some(old.min(new)),
            (old, new) => old.or(new),
        };
        nearest.map_or(Place::End, |namespace| Place::Within { namespace: Some(namespace), behind: None })
    }
}

impl<S> fmt::Debug for DiffCursor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cursor = f.debug_struct("DiffCursor");
        cursor.field("older", &self.older).field("newer", &self.newer);
        match &self.place {
            Place::Within { namespace, behind } => {
                cursor.field("namespace", namespace).field("behind", behind).finish()
            }
            Place::End => cursor.field("finished", &true).finish(),
        }
    }
}

/// The objects of a key on both sides.
type Sides<'a, S> = (Option<&'a Object<S>>, Option<&'a Object<S>>);

/// The objects of two namespaces side by side, in the order of their names, behind a name.
fn side_by_side<'a, S>(
    old: Option<&'a Names<S>>,
    new: Option<&'a Names<S>>,
    behind: Option<&str>,
) -> impl Iterator<Item = Sides<'a, S>> + use<'a, S> {
    let after =
        |names: Option<&'a Names<S>>| names.map(|names| names.after(behind)).into_iter().flatten().peekable();
    let (mut old, mut new) = (after(old), after(new));
    from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.key().name().cmp(new.key().name()),
        };
        let left = if order.is_le() { old.next() } else { None };
        let right = if order.is_ge() { new.next() } else { None };
        Some((left, right))
    })
}
