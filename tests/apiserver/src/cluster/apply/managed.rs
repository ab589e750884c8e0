//! `metadata.managedFields`: who owns which fields of an object, since when and by which kind of request.
//!
//! Answers: what do the entries of an object contain, and how are they written? It does not decide who owns what.
//! 1. An owner is a manager with its operation and subresource; an updater is a different owner in each version, an
//!    applier is the same owner in all.
//! 2. Entries stand in the order of operation, time, manager, version, subresource.
//! 3. At most ten owners update; beyond that the oldest of a version are merged into `ancient-changes`.
//!
//! Next: `mod.rs` decides.
use std::fmt::Write as _;

use serde_json::Value;

use super::element::write_text;
use super::set::{self, FieldSet, FieldsError};
use crate::cluster::metadata::timestamp;

/// How many owners that update an object may have.
const MOST_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Who owns fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) manager: String,
    /// Whether by server-side apply; else by creates, updates and patches.
    pub(crate) applied: bool,
    /// The apiVersion of the fields.
    pub(crate) version: String,
    pub(crate) subresource: String,
}

/// One owner with its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) owner: Owner,
    /// Seconds since 1970.
    pub(crate) time: Option<i64>,
    pub(crate) fields: FieldSet,
}

/// All owners of an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Managed {
    pub(crate) entries: Vec<Entry>,
}

/// Why a value is not `managedFields`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ManagedError {
    #[error("managedFields is a list of objects")]
    NotEntries,
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    NoVersion,
    #[error("fieldsType {0:?} is not `FieldsV1`")]
    FieldsType(String),
    #[error("time {0:?} is no time")]
    Time(String),
    #[error("error decoding set")]
    Fields(#[from] FieldsError),
}

impl Owner {
    /// Whether both are one owner.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.applied == other.applied
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.applied || self.version == other.version)
    }

    fn operation(&self) -> &'static str {
        if self.applied { "Apply" } else { "Update" }
    }
}

impl Managed {
    /// Reads the entries; an absent list has none.
    ///
    /// # Errors If an entry does not have the form of the API.
    pub(crate) fn decode(value: Option<&Value>) -> Result<Self, ManagedError> {
        let mut managed = Self::default();
        let items = match value {
            None | Some(Value::Null) => return Ok(managed),
            Some(value) => value.as_array().ok_or(ManagedError::NotEntries)?,
        };
        for item in items {
            let entry = Entry::decode(item)?;
            managed.entries.retain(|known| !known.owner.is(&entry.owner));
            managed.entries.push(entry);
        }
        Ok(managed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes the entry of this owner out.
    pub(crate) fn take(&mut self, owner: &Owner) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.owner.is(owner))?;
        Some(self.entries.remove(at))
    }

    /// Adds an entry, if it owns anything.
    pub(crate) fn put(&mut self, entry: Entry) {
        if !entry.fields.is_empty() {
            self.entries.push(entry);
        }
    }

    /// The fields of all owners.
    pub(crate) fn all_fields(&self) -> FieldSet {
        self.entries.iter().fold(FieldSet::default(), |all, entry| all.union(entry.fields.clone()))
    }

    /// Whether both have the same owners of the same fields, without regard to times.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let found = |entry: &Entry| {
            other.entries.iter().any(|other| other.owner == entry.owner && other.fields == entry.fields)
        };
        self.entries.len() == other.entries.len() && self.entries.iter().all(found)
    }

    /// Merges the oldest owners that update until there are at most ten.
    pub(crate) fn cap(&mut self) {
        let mut count = self.entries.iter().filter(|entry| !entry.owner.applied).count();
        if count <= MOST_UPDATERS {
            return;
        }
        let mut updaters: Vec<Owner> = self.sorted().into_iter().map(|entry| entry.owner.clone()).collect();
        updaters.retain(|owner| !owner.applied);
        let mut first_of_version: Vec<Owner> = Vec::new();
        for owner in updaters {
            if count <= MOST_UPDATERS {
                return;
            }
            match first_of_version.iter().find(|first| first.version == owner.version) {
                None => first_of_version.push(owner),
                Some(first) => {
                    self.put_together(first, &owner);
                    count -= 1;
                }
            }
        }
    }

    fn put_together(&mut self, first: &Owner, owner: &Owner) {
        let ancient = Owner {
            manager: ANCIENT.to_owned(),
            applied: false,
            version: owner.version.clone(),
            subresource: String::new(),
        };
        let Some(entry) = self.take(owner) else { return };
        let bucket = self.take(&ancient).or_else(|| self.take(first));
        let fields = bucket.map(|bucket| bucket.fields).unwrap_or_default().union(entry.fields);
        self.put(Entry { owner: ancient, time: entry.time, fields });
    }

    fn sorted(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_by_key(|entry| {
            let Owner { manager, version, subresource, .. } = &entry.owner;
            (entry.owner.operation(), entry.time.unwrap_or(0), manager, version, subresource)
        });
        entries
    }

    /// Writes the list as JSON.
    pub(crate) fn encode(&self) -> String {
        let mut out = String::from("[");
        for (at, entry) in self.sorted().into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            entry.encode(&mut out);
        }
        out.push(']');
        out
    }
}

impl Entry {
    fn decode(value: &Value) -> Result<Self, ManagedError> {
        let entry = value.as_object().ok_or(ManagedError::NotEntries)?;
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let applied = match text("operation") {
            "Apply" => true,
            "Update" => false,
            _ => return Err(ManagedError::Operation),
        };
        if text("apiVersion").is_empty() {
            return Err(ManagedError::NoVersion);
        }
        if text("fieldsType") != "FieldsV1" {
            return Err(ManagedError::FieldsType(text("fieldsType").to_owned()));
        }
        let time = match text("time") {
            "" => None,
            text => {
                let time: jiff::Timestamp = text.parse().map_err(|_| ManagedError::Time(text.to_owned()))?;
                Some(time.as_second())
            }
        };
        let owner = Owner {
            manager: text("manager").to_owned(),
            applied,
            version: text("apiVersion").to_owned(),
            subresource: text("subresource").to_owned(),
        };
        let fields = set::decode(entry.get("fieldsV1").unwrap_or(&Value::Null))?;
        Ok(Self { owner, time, fields })
    }

    fn encode(&self, out: &mut String) {
        let owner = &self.owner;
        out.push('{');
        let member = |name: &str, value: &str, out: &mut String| {
            if !value.is_empty() {
                let _infallible = write!(out, "\"{name}\":");
                write_text(value, out);
                out.push(',');
            }
        };
        member("manager", &owner.manager, out);
        member("operation", owner.operation(), out);
        member("apiVersion", &owner.version, out);
        member("time", &self.time.map(timestamp).unwrap_or_default(), out);
        out.push_str("\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
        set::encode(&self.fields, out);
        if !owner.subresource.is_empty() {
            out.push_str(",\"subresource\":");
            write_text(&owner.subresource, out);
        }
        out.push('}');
    }
}
