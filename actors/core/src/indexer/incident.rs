//! Incidents: anomalies in the data of a source, and failures of index functions. No incident stops an
//! informer.

use std::fmt;
use std::sync::Arc;

use crate::delta::Undecodable;
use crate::index::IndexError;
use crate::meta::{ObjectKey, ResourceVersion, SourceId};

/// Why something is reported: what it is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A deletion of a key that the store does not hold.
    DeletedUnknown,
    /// A key twice in one list.
    Duplicate,
    /// A state that the store holds already.
    Unchanged,
    /// A part older than what the store holds.
    StaleVersion,
    /// A list holds an older version of an object than the store.
    OlderListed,
    /// A list is older than what its source had reached.
    OlderReplace,
    /// An object came under another source's name.
    ForeignSource,
    /// An object that does not decode.
    Undecodable,
    /// An index function failed or panicked.
    IndexFailed,
}

impl Reason {
    /// Every reason there is.
    pub const ALL: &[Self] = &[
        Self::DeletedUnknown,
        Self::Duplicate,
        Self::Unchanged,
        Self::StaleVersion,
        Self::OlderListed,
        Self::OlderReplace,
        Self::ForeignSource,
        Self::Undecodable,
        Self::IndexFailed,
    ];

    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeletedUnknown => "deleted_unknown",
            Self::Duplicate => "duplicate",
            Self::Unchanged => "unchanged",
            Self::StaleVersion => "stale_version",
            Self::OlderListed => "older_listed",
            Self::OlderReplace => "older_replace",
            Self::ForeignSource => "foreign_source",
            Self::Undecodable => "undecodable",
            Self::IndexFailed => "index_failed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An incident, and the source whose data it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reported {
    /// The source; `None` where incidents of several sources are counted together.
    pub source: Option<SourceId>,
    /// The incident.
    pub incident: Incident,
}

impl Reported {
    /// An incident in the data of one source.
    pub fn of(source: &SourceId, incident: Incident) -> Self {
        Self { source: Some(source.clone()), incident }
    }
}

/// Something to be counted by [`Incident::reason`] and logged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incident {
    /// A deletion of a key that the store does not hold: no change, but the version moved on.
    DeletedUnknown(ObjectKey),
    /// A key twice in one Replace; the higher version counts.
    Duplicate(ObjectKey),
    /// A watch sent a state that the store holds already: no change.
    Unchanged(ObjectKey),
    /// A part older than what the store holds: not applied.
    StaleVersion {
        /// The object.
        key: ObjectKey,
        /// The version in the store.
        stored: ResourceVersion,
        /// The version of the part.
        received: ResourceVersion,
    },
    /// A list, not of a rewind, has an older version of an object than the store. The list is applied.
    OlderListed {
        /// The object.
        key: ObjectKey,
        /// The version in the store until now.
        stored: ResourceVersion,
        /// The version in the list.
        listed: ResourceVersion,
    },
    /// A list, not of a rewind, is older than what its source had reached. The list is applied.
    OlderReplace {
        /// The source of the list.
        source: SourceId,
        /// The version reached until now.
        published: ResourceVersion,
        /// The version of the list.
        listed: ResourceVersion,
    },
    /// An object came from a source under another source's name: stored, and held by the source that brought
    /// it.
    ForeignSource {
        /// The object.
        key: ObjectKey,
        /// The source that brought it.
        source: SourceId,
    },
    /// An object that could not be decoded: the last version that decoded stays.
    Undecodable(Undecodable),
    /// An index function failed or panicked: the object is stored and delivered, but is not in that index.
    IndexFailed {
        /// The index.
        index: Arc<str>,
        /// The object.
        key: ObjectKey,
        /// The function's error.
        error: IndexError,
    },
    /// More incidents of one reason in one publish, not reported one by one.
    Omitted {
        /// The [`Incident::reason`] of each.
        reason: Reason,
        /// How many.
        count: usize,
    },
}

impl Incident {
    /// What to count it by.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::DeletedUnknown(_) => Reason::DeletedUnknown,
            Self::Duplicate(_) => Reason::Duplicate,
            Self::Unchanged(_) => Reason::Unchanged,
            Self::StaleVersion { .. } => Reason::StaleVersion,
            Self::OlderListed { .. } => Reason::OlderListed,
            Self::OlderReplace { .. } => Reason::OlderReplace,
            Self::ForeignSource { .. } => Reason::ForeignSource,
            Self::Undecodable(_) => Reason::Undecodable,
            Self::IndexFailed { .. } => Reason::IndexFailed,
            Self::Omitted { reason, .. } => *reason,
        }
    }

    /// How many incidents it stands for: one, but for [`Incident::Omitted`].
    pub fn count(&self) -> usize {
        if let Self::Omitted { count, .. } = self { *count } else { 1 }
    }

    /// The object it is about, if it is about one.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::DeletedUnknown(key) | Self::Duplicate(key) | Self::Unchanged(key) => Some(key),
            Self::StaleVersion { key, .. }
            | Self::OlderListed { key, .. }
            | Self::ForeignSource { key, .. }
            | Self::IndexFailed { key, .. } => Some(key),
            Self::Undecodable(undecodable) => Some(&undecodable.key),
            Self::OlderReplace { .. } | Self::Omitted { .. } => None,
        }
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeletedUnknown(key) => write!(f, "{key} was deleted and is not in the store"),
            Self::Duplicate(key) => write!(f, "{key} is twice in one list; its higher version is stored"),
            Self::Unchanged(key) => write!(f, "{key} was sent again unchanged; it is ignored"),
            Self::StaleVersion { key, stored, received } => {
                write!(f, "{key} was sent at version {received}, the store holds {stored}; it is ignored")
            }
            Self::OlderListed { key, stored, listed } => {
                write!(f, "{key} is listed at version {listed}, the store held {stored}; the list is applied")
            }
            Self::OlderReplace { source, published, listed } => {
                write!(
                    f,
                    "the list of source {source} is at version {listed}, older than the published {published}; it is applied"
                )
            }
            Self::ForeignSource { key, source } => write!(f, "{key} of another source came from {source}"),
            Self::Undecodable(undecodable) => {
                write!(
                    f,
                    "{} cannot be decoded at version {}: {}",
                    undecodable.key, undecodable.version, undecodable.error
                )
            }
            Self::IndexFailed { index, key, error } => write!(f, "index {index} failed for {key}: {error}"),
            Self::Omitted { reason, count } => write!(f, "{count} more of {reason}"),
        }
    }
}

/// Incidents in the data, counted by reason. Each is logged with its key, up to 250 of one publish.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataCounters {
    /// Deletions of keys that the store did not hold.
    pub deleted_unknown: u64,
    /// Keys that came twice in one list.
    pub duplicates: u64,
    /// States that the store held already.
    pub unchanged: u64,
    /// Parts older than the stored object.
    pub stale_parts: u64,
    /// Objects that a list held in an older version than the store.
    pub older_listed: u64,
    /// Lists older than what their source had reached.
    pub older_replaces: u64,
    /// Objects that came under the name of another source.
    pub foreign_sources: u64,
    /// Objects that could not be decoded, ever.
    pub undecodable: u64,
    /// Index entries lost to a failing index function.
    pub index_failures: u64,
    /// Messages of an older epoch that were ignored. They are not incidents in the data and have no
    /// [`Reason`].
    pub stale_messages: u64,
}

impl DataCounters {
    /// How often something was reported for this reason.
    pub fn count_of(&self, reason: Reason) -> u64 {
        *self.clone().counter(reason)
    }

    /// Every reason with its count, including those that never happened.
    pub fn by_reason(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().map(|reason| (*reason, self.count_of(*reason)))
    }

    /// Counts an incident; [`Incident::Omitted`] counts as many as it stands for.
    pub fn count(&mut self, incident: &Incident) {
        *self.counter(incident.reason()) += incident.count() as u64;
    }

    const fn counter(&mut self, reason: Reason) -> &mut u64 {
        match reason {
            Reason::DeletedUnknown => &mut self.deleted_unknown,
            Reason::Duplicate => &mut self.duplicates,
            Reason::Unchanged => &mut self.unchanged,
            Reason::StaleVersion => &mut self.stale_parts,
            Reason::OlderListed => &mut self.older_listed,
            Reason::OlderReplace => &mut self.older_replaces,
            Reason::ForeignSource => &mut self.foreign_sources,
            Reason::Undecodable => &mut self.undecodable,
            Reason::IndexFailed => &mut self.index_failures,
        }
    }
}
