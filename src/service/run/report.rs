//! What has come of a run: the summary, as data.
//!
//! Answers "what was told, what is cached, and did it end well?". It is what JSON's `summary` holds, member by member.
//! 1. Members are added, never renamed.

use serde::Serialize;

/// Why it ended.
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
    /// Nobody read the output any more.
    OutputClosed,
}

impl Ending {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interrupted => "SIGINT",
            Self::Terminated => "SIGTERM",
            Self::TimeOver => "time over",
            Self::OutputClosed => "output closed",
        }
    }
}

/// What has come of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// Why it ended.
    pub ending: Ending,
    /// How long it ran.
    pub seconds: f64,
    /// Whether everything owed was delivered in time; a kind that never synced was owed nothing.
    pub clean: bool,
    /// Each kind.
    pub informers: Vec<InformerReport>,
}

impl Report {
    /// Whether every kind has had all its objects at some time.
    pub fn synced(&self) -> bool {
        self.informers.iter().all(|informer| informer.synced)
    }
}

/// What has come of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InformerReport {
    /// Its name, as in the lines.
    pub kind: String,
    /// Whether it has ever had all objects.
    pub synced: bool,
    /// Objects in the cache at the end.
    pub objects: usize,
    /// The version that the cache is at.
    pub resource_version: Option<String>,
    /// The newest version of an object in the cache.
    pub newest_object: Option<String>,
    /// Notifications told, by event.
    pub events: EventCounts,
    /// Notifications told, by cause.
    pub causes: CauseCounts,
    /// In which order changes reached the cache, as the configuration calls it.
    pub discipline: &'static str,
    /// What was told while the output was slow, as the configuration calls it.
    pub policy: &'static str,
    /// Notifications that were merged into later ones because the output was slow.
    pub coalesced: u64,
    /// Notifications that were dropped because more waited than may.
    pub dropped: u64,
    /// Restarts after panics.
    pub restarts: u64,
    /// Lists after the first.
    pub relists: u64,
    /// Objects that could not be decoded, at the end.
    pub set_aside: usize,
    /// The newest failure, overcome or not.
    pub last_error: Option<String>,
}

/// Notifications by event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct EventCounts {
    /// New objects.
    pub added: u64,
    /// Changed ones.
    pub updated: u64,
    /// Those that are gone.
    pub deleted: u64,
}

/// Notifications by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct CauseCounts {
    /// There at the beginning.
    pub initial_list: u64,
    /// Live.
    pub watch: u64,
    /// Found by listing again.
    pub relist: u64,
    /// The server had gone back.
    pub rewind: u64,
    /// Told again.
    pub resync: u64,
}
