//! The invariants of a publish, for `debug_assert` and tests. [`replays_to`] costs as much as the changes.

use std::collections::BTreeMap;

use super::Publish;
use crate::delta::{Change, Changes};
use crate::meta::{Object, ObjectKey};
use crate::snapshot::Difference;

/// What a publish changed, one by one: of a list, the difference of its two snapshots.
pub fn changes_of<S>(applied: &Publish<S>) -> Vec<Change<S>> {
    match &applied.changes {
        None => Vec::new(),
        Some(Changes::Parts(changes)) => changes.to_vec(),
        Some(Changes::Listed { before, after, cause, .. }) => {
            let cause = *cause;
            let change = |difference: Difference<S>| match difference {
                Difference::Added(object) => Change::Added { object, cause },
                Difference::Updated { old, new, .. } => Change::Updated { old, object: new, cause },
                Difference::Deleted(old) => Change::Deleted { last: old.clone(), old, exact: false, cause },
            };
            before.diff(after).map(change).collect()
        }
    }
}

/// Whether the changes, applied in order to the snapshot before, result in the snapshot after; each must fit
/// the state that it meets.
pub fn replays_to<S>(applied: &Publish<S>) -> bool {
    let (before, after) = (&applied.before, &applied.snapshot);
    if let Some(Changes::Parts(changes)) = &applied.changes
        && let [only] = &**changes
    {
        // Most publishes are this one. It allocates nothing: tests count the store's allocations.
        let key = only.key();
        return fits(only, before.get(key))
            && is_one(only.object(), after.get(key))
            && before.differs_only_in(after, |differs| differs == key);
    }
    let mut touched: BTreeMap<ObjectKey, Option<Object<S>>> = BTreeMap::new();
    for change in &changes_of(applied) {
        let key = change.key();
        let state = touched.entry(key.clone()).or_insert_with(|| before.get(key).cloned());
        if !fits(change, state.as_ref()) {
            return false;
        }
        *state = change.object().cloned();
    }
    touched.iter().all(|(key, state)| is_one(state.as_ref(), after.get(key)))
        && before.differs_only_in(after, |differs| touched.contains_key(differs))
}

fn fits<S>(change: &Change<S>, state: Option<&Object<S>>) -> bool {
    match (change, state) {
        (Change::Added { .. }, None) => true,
        (Change::Updated { old, object, .. }, Some(held)) => old.ptr_eq(held) && old.is_same_life_as(object),
        (Change::Deleted { old, .. }, Some(held)) => old.ptr_eq(held),
        _ => false,
    }
}

fn is_one<S>(one: Option<&Object<S>>, other: Option<&Object<S>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.ptr_eq(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
pub(crate) use whole::{index_matches, is_consistent, keeps_pointers, versions_advance};

#[cfg(test)]
mod whole {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::index::Index;
    use crate::meta::{Object, ObjectKey};
    use crate::snapshot::Snapshot;

    /// Whether objects of one state and one history are the very same in both.
    pub(crate) fn keeps_pointers<S>(before: &Snapshot<S>, after: &Snapshot<S>) -> bool {
        let changed: BTreeSet<ObjectKey> = before.diff(after).map(|differs| differs.key().clone()).collect();
        after
            .iter()
            .filter(|object| !changed.contains(object.key()))
            .all(|object| before.get(object.key()).is_some_and(|old| old.ptr_eq(object)))
    }

    /// A rewind, or an older list, is the exception.
    pub(crate) fn versions_advance<S>(before: &Snapshot<S>, after: &Snapshot<S>) -> bool {
        before.versions().iter().all(|(source, old)| after.version(source).is_some_and(|new| new >= old))
    }

    pub(crate) fn is_consistent<S>(snapshot: &Snapshot<S>) -> bool {
        let objects: Vec<&Object<S>> = snapshot.iter().collect();
        objects.len() == snapshot.len()
            && objects.windows(2).all(|pair| pair[0].key() < pair[1].key())
            && objects
                .iter()
                .all(|object| snapshot.get(object.key()).is_some_and(|found| found.ptr_eq(object)))
            && snapshot.frame().objects().is_consistent()
            && snapshot.undecodable().count() == snapshot.undecodable_len()
            && snapshot.versions().iter().is_sorted_by(|one, next| one.0 < next.0)
    }

    pub(crate) fn index_matches<S, V: Ord + Send + Sync + 'static>(
        snapshot: &Snapshot<S>,
        index: &Index<S, V>,
    ) -> bool {
        let mut expected: BTreeMap<V, Vec<&ObjectKey>> = BTreeMap::new();
        for object in snapshot.iter() {
            for value in index.values_of(object).unwrap_or_default() {
                expected.entry(value).or_default().push(object.key());
            }
        }
        let Ok(values) = index.values(snapshot) else {
            return false;
        };
        let found = |value: &V| -> Option<Vec<&ObjectKey>> {
            Some(index.get(snapshot, value).ok()?.map(Object::key).collect())
        };
        values.eq(expected.keys()) && expected.iter().all(|(value, keys)| found(value).as_ref() == Some(keys))
    }
}
