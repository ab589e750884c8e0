//! What went otherwise than a faithful source and a correct program would have it.
//!
//! Answers "what has to be counted, by which reason, and logged with which key?"; nothing here stops an informer.

use std::fmt;
use std::sync::Arc;

use crate::delta::SetAside;
use crate::index::IndexError;
use crate::meta::{ObjectKey, ResourceVersion, SourceId};

/// Why something is reported: what it is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "whoever counts must have a counter for every reason")]
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
    SetAside,
    /// An index function failed or panicked.
    IndexFailed,
}

impl Reason {
    /// Every reason there is.
    pub const ALL: [Self; 9] = [
        Self::DeletedUnknown,
        Self::Duplicate,
        Self::Unchanged,
        Self::StaleVersion,
        Self::OlderListed,
        Self::OlderReplace,
        Self::ForeignSource,
        Self::SetAside,
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
            Self::SetAside => "set_aside",
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
    /// Whose data; `None` where several are counted together.
    pub source: Option<SourceId>,
    /// What was odd.
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
    /// A deletion of a key that the store does not hold: no change, the version moved on.
    DeletedUnknown(ObjectKey),
    /// A key twice in one Replace; the higher version counts.
    Duplicate(ObjectKey),
    /// A watch told a state that the store holds already: no change.
    Unchanged(ObjectKey),
    /// A part older than what the store holds: not applied.
    StaleVersion {
        /// Whose.
        key: ObjectKey,
        /// The version in the store.
        stored: ResourceVersion,
        /// The version of the part.
        told: ResourceVersion,
    },
    /// A list, not of a rewind, holds an older version than the store. The list is right: applied.
    OlderListed {
        /// Whose.
        key: ObjectKey,
        /// The version in the store until now.
        stored: ResourceVersion,
        /// The version in the list.
        listed: ResourceVersion,
    },
    /// A list, not of a rewind, is older than what its source had reached. The list is right: applied.
    OlderReplace {
        /// Whose list.
        source: SourceId,
        /// The version reached until now.
        published: ResourceVersion,
        /// The version of the list.
        listed: ResourceVersion,
    },
    /// An object came from a source under another source's name: stored, and held by the source that brought it.
    ForeignSource {
        /// Whose.
        key: ObjectKey,
        /// The source that brought it.
        source: SourceId,
    },
    /// An object that could not be read: its last good version stays.
    SetAside(SetAside),
    /// An index function failed or panicked: the object is stored and told, and is not in that index.
    IndexFailed {
        /// The index.
        index: Arc<str>,
        /// The object.
        key: ObjectKey,
        /// What the function said.
        error: IndexError,
    },
    /// More of the same in one publish, not reported one by one.
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
            Self::SetAside(_) => Reason::SetAside,
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
            Self::SetAside(aside) => Some(&aside.key),
            Self::OlderReplace { .. } | Self::Omitted { .. } => None,
        }
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeletedUnknown(key) => write!(f, "{key} was deleted and is not in the store"),
            Self::Duplicate(key) => write!(f, "{key} is twice in one list"),
            Self::Unchanged(key) => write!(f, "{key} was told again unchanged"),
            Self::StaleVersion { key, stored, told } => {
                write!(f, "{key} was told at version {told}, the store holds {stored}")
            }
            Self::OlderListed { key, stored, listed } => {
                write!(f, "{key} is listed at version {listed}, the store held {stored}")
            }
            Self::OlderReplace { source, published, listed } => {
                write!(f, "list of source {source} at version {listed}, published was {published}")
            }
            Self::ForeignSource { key, source } => write!(f, "{key} of another source came from {source}"),
            Self::SetAside(aside) => {
                write!(f, "{} set aside at {}: {}", aside.key, aside.version, aside.error)
            }
            Self::IndexFailed { index, key, error } => write!(f, "index {index} failed for {key}: {error}"),
            Self::Omitted { reason, count } => write!(f, "{count} more of {reason}"),
        }
    }
}
