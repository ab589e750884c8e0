//! The summary of a run as data. It has the members of JSON's `summary`: added, never renamed.

use serde::Serialize;

/// Why the service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Ending {
    /// SIGINT, Ctrl-C.
    #[serde(rename = "SIGINT")]
    Interrupted,
    /// SIGTERM.
    #[serde(rename = "SIGTERM")]
    Terminated,
    /// The configured time was over.
    TimeOver,
    /// The reader of the output has closed it.
    OutputClosed,
}

impl Ending {
    /// As text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interrupted => "SIGINT",
            Self::Terminated => "SIGTERM",
            Self::TimeOver => "time over",
            Self::OutputClosed => "output closed",
        }
    }
}

/// The report of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// Why it ended.
    pub ending: Ending,
    /// How long it ran.
    pub seconds: f64,
    /// Whether every notification was delivered in time. A kind that never synced has none.
    pub clean: bool,
    /// Each kind.
    pub informers: Vec<InformerReport>,
}

impl Report {
    /// The kinds that were not followed at the end: their newest list or watch had failed. What had changed
    /// in the cluster since then was not delivered.
    pub fn not_followed(&self) -> impl Iterator<Item = &InformerReport> {
        self.informers.iter().filter(|informer| informer.failing)
    }

    /// Whether every kind has synced at some time.
    pub fn synced(&self) -> bool {
        self.informers.iter().all(|informer| informer.synced)
    }
}

/// The report of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InformerReport {
    /// Its name, as in the lines.
    pub kind: String,
    /// Whether its cache has ever held a complete list.
    pub synced: bool,
    /// Objects in the cache at the end.
    pub objects: usize,
    /// The resource version of the cache.
    pub resource_version: Option<String>,
    /// The newest version of an object in the cache.
    pub newest_object: Option<String>,
    /// Delivered notifications, by event.
    pub events: EventCounts,
    /// Delivered notifications, by cause.
    pub causes: CauseCounts,
    /// In which order changes reached the cache: the value of the setting `queue_order`.
    pub queue_order: &'static str,
    /// What was delivered while the output was slow: the value of the setting `policy`.
    pub policy: &'static str,
    /// Notifications that were merged into later ones because the output was slow.
    pub coalesced: u64,
    /// Notifications that were dropped because the backlog was full.
    pub dropped: u64,
    /// Restarts after panics.
    pub restarts: u64,
    /// Lists after the first.
    pub relists: u64,
    /// Objects that could not be decoded, at the end.
    pub undecodable: usize,
    /// The newest error, even if a retry has succeeded since.
    pub last_error: Option<String>,
    /// Whether a source was failing when the run was stopped.
    pub failing: bool,
    /// Why there may be nothing to see: of a namespace that does not exist.
    pub hints: Vec<String>,
}

/// Notifications by event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct EventCounts {
    /// New objects.
    pub added: u64,
    /// Changed objects.
    pub updated: u64,
    /// Deleted objects.
    pub deleted: u64,
}

/// Notifications by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct CauseCounts {
    /// Objects that existed at the start.
    pub initial_list: u64,
    /// Events of the watch.
    pub watch: u64,
    /// Differences found by a list after the first.
    pub relist: u64,
    /// Differences found after the server had gone back to an older state.
    pub rewind: u64,
    /// Repeated deliveries.
    pub resync: u64,
}
