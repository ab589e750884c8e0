//! What an object is and what changed in it, in words.
//!
//! Answers "what would a person want to know of this change?" in a few short phrases. It compares two states that it
//! is given; it never guesses. Invariants:
//! 1. Two states that differ give at least one phrase.
//!
//! Read next: `describe/pod.rs`, the words for pods; `describe/dynamic.rs`, those for any kind.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

mod dynamic;
mod pod;

/// Says what it is and what has changed.
pub(super) trait Describe {
    /// What it is now, in one phrase; empty if there is nothing to say.
    fn outline(&self) -> String;

    /// What is different from `old`, a phrase each.
    fn changes(&self, old: &Self) -> Vec<String>;
}

/// What is different in the metadata, without versions, generations and managers, which change with everything else.
pub(super) fn metadata_changes(old: &ObjectMeta, new: &ObjectMeta) -> Vec<String> {
    let mut changes = map_changes("label", old.labels.as_ref(), new.labels.as_ref());
    changes.extend(map_changes("annotation", old.annotations.as_ref(), new.annotations.as_ref()));
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

fn map_changes(what: &str, old: Option<&Texts>, new: Option<&Texts>) -> Vec<String> {
    let empty = Texts::new();
    let (old, new) = (old.unwrap_or(&empty), new.unwrap_or(&empty));
    let set = new.iter().filter_map(|(key, value)| match old.get(key) {
        Some(before) if before == value => None,
        Some(before) => Some(format!("{what} {key}: {} -> {}", short(before), short(value))),
        None => Some(format!("{what} {key}={} added", short(value))),
    });
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    set.chain(gone.map(|key| format!("{what} {key} removed"))).collect()
}

/// At most 60 characters, in one line: annotations can be whole documents.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 60;
    let line: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(MOST).collect();
    if text.chars().nth(MOST).is_some() { format!("{line}...") } else { line }
}

/// `old -> new`, with `none` for what is not there.
pub(super) fn arrow(what: &str, old: Option<&str>, new: Option<&str>) -> Option<String> {
    let text = |value: Option<&str>| value.map_or_else(|| "none".to_owned(), short);
    (old != new).then(|| format!("{what} {} -> {}", text(old), text(new)))
}
