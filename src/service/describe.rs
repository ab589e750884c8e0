//! What an object is and what changed in it, in words.
//!
//! Answers "what would a person want to know of this change?" in a few short phrases. It compares two states that it
//! is given; it never guesses. Invariants:
//! 1. Two states that differ give at least one phrase.
//! 2. Where values are hidden, and of annotations that copy the whole object, only the names of keys are told.
//! 3. What comes out is raw: `lines/text.rs` escapes it, in the one place where a line is made.
//!
//! Read next: `describe/pod.rs`, the words for pods; `describe/dynamic.rs`, those for any kind.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::text::shortened;

mod dynamic;
mod pod;

/// At most this much of a value is shown: annotations can be whole documents.
const VALUE: usize = 60;
/// The annotation in which kubectl keeps a copy of the object, Secrets too; others keep theirs under the same name.
const LAST_APPLIED: &str = "last-applied-configuration";

/// Whether values of an object may be told, or only the names of what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Shown,
    Hidden,
}

/// Says what it is and what has changed.
pub(super) trait Describe {
    /// What it is now, in one phrase; empty if there is nothing to say.
    fn outline(&self) -> String;

    /// What is different from `old`, a phrase each.
    fn changes(&self, old: &Self, values: Values) -> Vec<String>;
}

/// What is different in the metadata, without versions, generations and managers, which change with everything else.
pub(super) fn metadata_changes(old: &ObjectMeta, new: &ObjectMeta, values: Values) -> Vec<String> {
    let mut changes = map_changes("label", (old.labels.as_ref(), new.labels.as_ref()), Values::Shown);
    changes.extend(map_changes("annotation", (old.annotations.as_ref(), new.annotations.as_ref()), values));
    if old.deletion_timestamp.is_none() && new.deletion_timestamp.is_some() {
        changes.push("being deleted".to_owned());
    }
    if old.finalizers != new.finalizers {
        changes.push("finalizers changed".to_owned());
    }
    if old.owner_references != new.owner_references {
        changes.push("owners changed".to_owned());
    }
    changes
}

type Texts = BTreeMap<String, String>;

fn map_changes(what: &str, (old, new): (Option<&Texts>, Option<&Texts>), values: Values) -> Vec<String> {
    let empty = Texts::new();
    let (old, new) = (old.unwrap_or(&empty), new.unwrap_or(&empty));
    let is_hidden = |key: &str| values == Values::Hidden || key.rsplit('/').next() == Some(LAST_APPLIED);
    let set = new.iter().filter_map(|(key, value)| match old.get(key) {
        Some(before) if before == value => None,
        before if is_hidden(key) => {
            Some(format!("{what} {key} {}", if before.is_some() { "changed" } else { "added" }))
        }
        Some(before) => Some(format!("{what} {key}: {} -> {}", short(before), short(value))),
        None => Some(format!("{what} {key}={} added", short(value))),
    });
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    set.chain(gone.map(|key| format!("{what} {key} removed"))).collect()
}

fn short(text: &str) -> String {
    shortened(text, VALUE)
}

/// `old -> new`, with `none` for what is not there.
pub(super) fn arrow(what: &str, old: Option<&str>, new: Option<&str>) -> Option<String> {
    let text = |value: Option<&str>| value.map_or_else(|| "none".to_owned(), short);
    (old != new).then(|| format!("{what} {} -> {}", text(old), text(new)))
}
