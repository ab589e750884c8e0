//! Field ownership: which manager owns which field of an object, and server-side apply, which uses that.
//!
//! Answers: what are the fields of this object by its schema, what changed, who owned it, and what is the result of an
//! apply? Pure: objects are JSON values, the time is an argument.
//!
//! Reading order: `element` → `set` → `shape` → `compare`, `merge`, `prune`, `check` → `managed` → this file →
//! `last_applied`.
//!
//! 1. Only the schema divides an object; no kind is named here.
//! 2. Ownership is expressed in sets of paths (`FieldSet`), never in values.
//! 3. A field that a write changes is taken from all other owners; a removed field has no owner.
//! 4. An update owns what it changed, in addition to what its owner had. An apply owns what it sent, and nothing else.
//! 5. Only an apply can conflict: it is refused if it would change another's field, unless it is forced.
//! 6. What the server sets (`STRIPPED`), and what this endpoint does not write (`ignored`), has no owner.
//!
//! Next: `write.rs` and `patch.rs` of the cluster call this.

mod check;
mod compare;
mod element;
mod last_applied;
mod managed;
mod merge;
mod prune;
mod set;
mod shape;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use compare::{Comparison, compare};
use element::Element;
use managed::{Entry, Owner};
use merge::merge;
use prune::prune;

pub(crate) use check::{go, go_type};
pub(crate) use managed::Managed;
pub(crate) use set::{FieldSet, Path};
pub(crate) use shape::{Place, same};

/// The manager of all fields of an object that was stored before its owners were recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
const STRIPPED_META: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut set = FieldSet::of_fields(&[&["apiVersion"], &["kind"], &["metadata"]]);
    for name in STRIPPED_META {
        set = set.union(FieldSet::of_fields(&[&["metadata", name]]));
    }
    set
});

/// The request as the owner of its fields.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    /// The apiVersion of the request.
    pub(crate) version: &'a str,
    pub(crate) subresource: &'a str,
    /// Seconds since 1970.
    pub(crate) now: i64,
    /// The fields this endpoint does not write.
    pub(crate) ignored: &'a FieldSet,
    /// The object in each apiVersion that is served.
    pub(crate) places: &'a dyn Fn(&str) -> Option<Place<'a>>,
    /// A state of the object in another apiVersion.
    pub(crate) told: &'a dyn Fn(&str, &Value) -> Value,
}

/// A field that someone else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) owner: Owner,
    pub(crate) path: Vec<Element>,
}

/// Why an apply is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The object does not have the types of its schema.
    Untyped(String),
    Conflicts(Vec<Conflict>),
}

/// The result of an apply.
#[derive(Debug)]
pub(crate) struct Applied {
    /// The object to be stored; none if it did not change.
    pub(crate) object: Option<Value>,
    pub(crate) managed: Managed,
}

impl Writer<'_> {
    fn owner(&self, applied: bool) -> Owner {
        let manager = if self.manager.is_empty() { "unknown" } else { self.manager };
        Owner {
            manager: manager.to_owned(),
            applied,
            version: self.version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }

    fn place(&self) -> Place<'_> {
        (self.places)(self.version).unwrap_or(Place::Free)
    }

    /// Whether a state of a custom object does not have its types, for which it has no owners. Items may be there twice.
    fn is_untyped(&self, state: &Value) -> bool {
        let place = self.place();
        let custom = matches!(place, Place::Typed { schema, id, .. } if schema.name(id).is_none());
        custom && check::refuse(place, state).is_some_and(|why| !why.contains("duplicate entries for key"))
    }

    /// The time of an entry that is written now. A real server loses the time of a scale's entry when it
    /// writes the object.
    fn stamp(&self, before: Option<i64>) -> Option<i64> {
        if self.subresource == "scale" { before } else { Some(self.now) }
    }

    /// The owners after an update that made `new` of `old` (the zero value, for a creation).
    pub(crate) fn update(&self, old: &Value, new: &Value, mut managed: Managed) -> Managed {
        let changes = compare(self.place(), old, new).ignoring(self.ignored);
        if changes.is_same() || self.is_untyped(old) || self.is_untyped(new) {
            return managed;
        }
        let owner = self.owner(false);
        self.take_from_others(&mut managed, None, &changes, (old, new));
        let Comparison { added, modified, .. } = changes;
        let mut fields = added.union(modified).difference(&STRIPPED);
        if !fields.is_empty() {
            let before = managed.take(&owner);
            let time = self.stamp(before.as_ref().and_then(|before| before.time));
            if let Some(before) = before {
                fields = before.fields.union(fields);
            }
            managed.put(Entry { owner, time, fields });
        }
        managed.cap();
        managed
    }

    /// Takes changed and removed fields from all owners but `except`; returns what they lose by the change.
    fn take_from_others(
        &self,
        managed: &mut Managed,
        except: Option<&Owner>,
        changes: &Comparison,
        states: (&Value, &Value),
    ) -> Vec<Conflict> {
        let mut of_versions: BTreeMap<String, Option<(FieldSet, FieldSet)>> = BTreeMap::new();
        let sets = |changes: &Comparison| {
            (changes.added.clone().union(changes.modified.clone()), changes.removed.clone())
        };
        of_versions.insert(self.version.to_owned(), Some(sets(changes)));
        let mut conflicts = Vec::new();
        managed.entries.retain_mut(|entry| {
            if except.is_some_and(|except| entry.owner.is(except)) {
                return true;
            }
            let version = entry.owner.version.clone();
            let found = of_versions.entry(version).or_insert_with_key(|version| {
                let place = (self.places)(version)?;
                let (old, new) = ((self.told)(version, states.0), (self.told)(version, states.1));
                Some(sets(&compare(place, &old, &new).ignoring(self.ignored)))
            });
            // A version that is not served any more has no owners.
            let Some((changed, removed)) = found else { return false };
            let lost = entry.fields.intersection(changed);
            let conflict = |path| Conflict { owner: entry.owner.clone(), path };
            conflicts.extend(lost.paths().into_iter().map(conflict));
            entry.fields = std::mem::take(&mut entry.fields).difference(&lost).difference(removed);
            !entry.fields.is_empty()
        });
        conflicts
    }

    /// Merges `config` into `live`.
    ///
    /// # Errors
    /// If `config` is not of its types, or would change fields of others without force.
    pub(crate) fn apply(
        &self,
        live: (&Value, &Value),
        config: &Value,
        managed: Managed,
        force: bool,
    ) -> Result<Applied, Refused> {
        let (zero, live) = live;
        let place = self.place();
        if let Some(fault) = check::refuse(place, config) {
            return Err(Refused::Untyped(fault));
        }
        let mut managed = managed;
        if managed.is_empty() {
            managed = Writer { manager: BEFORE_FIRST_APPLY, ..*self }.update(zero, live, managed);
        }
        let owner = self.owner(true);
        let (last, time) = managed.take(&owner).map(|last| (last.fields, last.time)).unwrap_or_default();
        let fields = compare::fields(place, config).recursive_difference(self.ignored);
        managed.entries.push(Entry { owner: owner.clone(), time, fields });
        let object = prune(place, merge(place, live, config), &last, &managed.all_fields());
        let changes = compare(place, live, &object).ignoring(self.ignored);
        let conflicts = self.take_from_others(&mut managed, Some(&owner), &changes, (live, &object));
        if !force && !conflicts.is_empty() {
            return Err(Refused::Conflicts(conflicts));
        }
        let unchanged = same(live, &object);
        if let Some(mut entry) = managed.take(&owner) {
            entry.fields = entry.fields.difference(&STRIPPED);
            entry.time = if unchanged { time } else { self.stamp(time) };
            managed.put(entry);
        }
        Ok(Applied { object: (!unchanged).then_some(object), managed })
    }
}

#[cfg(test)]
mod tests;
