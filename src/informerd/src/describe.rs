//! Describes an object, and what changed in it, for people.
//!
//! Two different states give at least one phrase. Of hidden values only the keys are named. `lines/text.rs` escapes the phrases.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use informer_core::words::shortened;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::config::InformerConfig;

mod dynamic;
mod pod;

pub(super) use pod::ShownPod;

/// In characters: annotations can be documents.
const MAX_VALUE_CHARS: usize = 60;
/// `kubectl apply` keeps a copy of the object in it, also of a Secret. Other tools use another prefix.
const LAST_APPLIED: &str = "last-applied-configuration";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Shown,
    Hidden,
}

impl Values {
    pub(super) fn of(config: &InformerConfig) -> Self {
        if config.kind.holds_secrets() { Self::Hidden } else { Self::Shown }
    }
}

/// A kind that only the server knows. Values are hidden until it is known, and for ever if it has once held secrets: a name may
/// mean another kind later.
#[derive(Debug, Default)]
pub(super) struct LateKind {
    values: AtomicU8,
    name: OnceLock<String>,
}

impl LateKind {
    const SHOWN: u8 = 1;
    const HIDDEN: u8 = 2;

    /// Call before the first object of a found kind.
    pub(super) fn found(&self, name: String, values: Values) {
        let found = if values == Values::Shown { Self::SHOWN } else { Self::HIDDEN };
        self.values.fetch_max(found, Ordering::Relaxed);
        // The first name stays: a run prints one name.
        let _known = self.name.set(name);
    }

    /// `asked`, the configured word, until it is known.
    pub(super) fn name<'a>(&'a self, asked: &'a str) -> &'a str {
        self.name.get().map_or(asked, String::as_str)
    }

    pub(super) fn values(&self) -> Values {
        if self.values.load(Ordering::Relaxed) == Self::SHOWN { Values::Shown } else { Values::Hidden }
    }
}

pub(super) trait Describe {
    /// One phrase; may be empty.
    fn outline(&self) -> String;

    /// For each difference from `old`.
    fn changes(&self, old: &Self, values: Values) -> Vec<String>;
}

/// Without versions, generations and managers: they change with every change.
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
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    set.chain(removed.map(|key| format!("{what} {key} removed"))).collect()
}

fn short(text: &str) -> String {
    shortened(text, MAX_VALUE_CHARS)
}

pub(super) fn arrow(what: &str, old: Option<&str>, new: Option<&str>) -> Option<String> {
    let text = |value: Option<&str>| value.map_or_else(|| "none".to_owned(), short);
    (old != new).then(|| format!("{what} {} -> {}", text(old), text(new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_kind_that_is_found_late_are_shown_only_until_it_turns_out_to_hold_secrets() {
        let late = LateKind::default();
        assert_eq!((late.name("vaulted"), late.values()), ("vaulted", Values::Hidden), "it is not known yet");
        for (found, is) in [
            (Values::Shown, Values::Shown),
            (Values::Hidden, Values::Hidden),
            (Values::Shown, Values::Hidden),
        ] {
            late.found("Vault".to_owned(), found);
            assert_eq!((late.name("vaulted"), late.values()), ("Vault", is));
        }
    }
}
