//! The status of an informer: what it is doing, and why it is not synced.
//!
//! 1. After the informer has stopped, every wait on the board ends.
//! 2. Figures, versions and `synced` change in one step with the published snapshot. A source leaves
//!    `Listing` before its list is published.
//! 3. A wait may miss a short state; the counters miss none.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::delta_fifo::QueueOrder;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::reflector::{ListWatchMachine, SourceCounters, SourceState};

pub use crate::pipeline::ending::InformerReport;
pub use crate::pipeline::figures::{LastRestart, QueueStatus, WatchEnds};
pub use crate::pipeline::status_text::NamespacesStatus;
use crate::runtime::Stuck;
pub use crate::runtime::{FieldBytes, InformerMemory, MemoryReport, SavedStatus};
pub use informer_core::indexer::DataCounters;
pub use informer_core::timing::{TIMING_BOUNDS, Timing};

/// How one source is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceStatus {
    /// Which source.
    pub source: SourceId,
    /// What it is doing.
    pub state: SourceState,
    /// What it has done so far, over all lives of its reflector.
    pub counters: SourceCounters,
    /// The newest failure, kept after it has been overcome.
    pub last_error: Option<ListWatchError>,
    /// The version that the source has reached in the published snapshot.
    pub version: Option<ResourceVersion>,
    /// When the last frame or bookmark came, as time since the runtime's start.
    pub last_frame_at: Option<Duration>,
    /// Since when it fails, as time since the runtime's start: from the first failure until it is followed
    /// again.
    pub failing_since: Option<Duration>,
    /// How often its reflector has been restarted after a panic.
    pub restarts: u64,
    /// The GETs for single objects that could not be decoded.
    pub repairs: RepairCounters,
    /// Its next list waits until enough memory of earlier lists and states is freed; see
    /// [`Runtime::bytes_to_free`](crate::runtime::Runtime::bytes_to_free).
    pub waits_for_memory: bool,
    /// It waits for the receiver to which it passes on what it brings: see [`passing`](crate::runtime::passing).
    pub waits_for_receiver: bool,
    /// Bytes on the wire of the objects that it has sent, in lists and watches, including objects that were
    /// known already. The rest of a frame beside its object, and bookmarks, do not count.
    pub wire_bytes: u64,
    /// Events of its watches: added, modified and deleted objects, not bookmarks.
    pub watch_events: u64,
    /// How its watches have ended.
    pub watch_ends: WatchEnds,
    /// How long the newest delivered list or watch-list took, from its beginning to its last object.
    pub last_list_took: Option<Duration>,
    /// Why its first list was empty, if it has sent nothing since; for example, its namespace does not exist.
    pub hint: Option<Arc<str>>,
    pub(crate) listing_since: Option<Duration>,
    /// The time of a list that is not in the informer's figures yet.
    pub(crate) listed: Option<Duration>,
}

/// The results of the GETs for undecodable objects, also before restarts of the reflector. One GET is open at
/// a time, and at most one begins in a second. A GET that is neither `repaired` nor `not_repaired` is open,
/// or was cancelled by a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairCounters {
    /// GETs sent.
    pub asked: u64,
    /// Answers with an object that could be decoded: it goes to the store.
    pub repaired: u64,
    /// Answers, or none in time, after which the object is still undecodable.
    pub not_repaired: u64,
}

impl SourceStatus {
    pub(crate) fn new(source: SourceId) -> Self {
        Self {
            source,
            wire_bytes: 0,
            watch_events: 0,
            listed: None,
            watch_ends: WatchEnds::default(),
            last_list_took: None,
            listing_since: None,
            state: SourceState::Starting,
            counters: SourceCounters::default(),
            last_error: None,
            version: None,
            last_frame_at: None,
            failing_since: None,
            restarts: 0,
            repairs: RepairCounters::default(),
            waits_for_memory: false,
            waits_for_receiver: false,
            hint: None,
        }
    }
}

impl SourceStatus {
    /// `came` is what the source has sent since the last call. True if a wait could be for this change.
    pub(crate) fn follow<S>(
        &mut self,
        machine: &ListWatchMachine<S>,
        came: &mut Came,
        now: Duration,
    ) -> bool {
        let Came { wire_bytes, watch_events, watch_ends } = std::mem::take(came);
        self.wire_bytes += wire_bytes;
        self.watch_events += watch_events;
        if wire_bytes > 0 {
            self.hint = None;
        }
        self.watch_ends.add(watch_ends);
        self.time_list(machine.state(), now);
        let counters = machine.counters();
        let news = !same_state(&self.state, machine.state()) || self.counters != *counters;
        if news {
            self.state = machine.state().clone();
            match &self.state {
                SourceState::Streaming => self.failing_since = None,
                state if state.error().is_some() => {
                    self.failing_since.get_or_insert(now);
                }
                _ => {}
            }
            self.counters = counters.clone();
            self.last_error = machine.last_error().cloned().or_else(|| self.last_error.take());
        }
        self.last_frame_at = machine.last_frame_at().or(self.last_frame_at);
        news
    }
}

/// The resource of an informer, as Kubernetes names it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "a resource has no further name")]
pub struct ResourceName {
    /// Empty for the core group.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// The plural, such as `pods`.
    pub resource: String,
}

/// What all sources of an informer have done, those that were removed included: no number goes back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceTotals {
    /// Lists, watches and failures.
    pub counters: SourceCounters,
    /// How watches have ended.
    pub watch_ends: WatchEnds,
    /// Events of watches: added, modified and deleted objects, not bookmarks.
    pub watch_events: u64,
    /// See [`SourceStatus::wire_bytes`].
    pub wire_bytes: u64,
    /// GETs for undecodable objects.
    pub repairs: RepairCounters,
    /// Restarts of reflectors after panics.
    pub restarts: u64,
}

impl SourceTotals {
    pub(crate) fn add(&mut self, source: &SourceStatus) {
        self.counters.add(&source.counters);
        self.watch_ends.add(source.watch_ends);
        self.watch_events += source.watch_events;
        self.wire_bytes += source.wire_bytes;
        self.repairs.asked += source.repairs.asked;
        self.repairs.repaired += source.repairs.repaired;
        self.repairs.not_repaired += source.repairs.not_repaired;
        self.restarts += source.restarts;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) wire_bytes: u64,
    pub(crate) watch_events: u64,
    pub(crate) watch_ends: WatchEnds,
}

impl SourceStatus {
    fn time_list(&mut self, state: &SourceState, now: Duration) {
        match state {
            SourceState::Listing { .. } => {
                self.listing_since.get_or_insert(now);
            }
            SourceState::Streaming => {
                let took = self.listing_since.take().map(|since| now.saturating_sub(since));
                self.listed = took.or(self.listed);
                self.last_list_took = took.or(self.last_list_took);
            }
            _ => self.listing_since = None,
        }
    }
}

fn same_state(a: &SourceState, b: &SourceState) -> bool {
    match (a, b) {
        (SourceState::Listing { received: a }, SourceState::Listing { received: b }) => a == b,
        _ => {
            std::mem::discriminant(a) == std::mem::discriminant(b)
                && (a.attempts(), a.next_try()) == (b.attempts(), b.next_try())
        }
    }
}

/// How long what is read has been out of date, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stale {
    /// For how long.
    pub lasts: Duration,
    /// Why.
    pub why: Arc<str>,
}

impl Stale {
    /// Stale for this time, for this reason.
    pub fn new(lasts: Duration, why: impl Into<Arc<str>>) -> Self {
        Self { lasts, why: why.into() }
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stale for {}: {}", informer_core::words::Brief(self.lasts), self.why)
    }
}

/// How an informer is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerStatus {
    /// The informer's name.
    pub name: Arc<str>,
    /// The resource that it follows, if the source of its objects knows it from the start.
    pub resource: Option<Arc<ResourceName>>,
    /// In which order parts leave the queue between reflectors and store.
    pub queue_order: QueueOrder,
    /// Each source, in the order in which they were added.
    pub sources: Vec<SourceStatus>,
    /// What all sources have done, those that were removed included.
    pub totals: SourceTotals,
    /// How long delivered lists and watch-lists took, from their beginning to the last object.
    pub lists: Timing,
    /// What waits between the reflectors and the store.
    pub queue: QueueStatus,
    /// How long the store took for what it got at once, until it was published. Callbacks are not included.
    pub processing: Timing,
    /// Objects in the published snapshot.
    pub objects: usize,
    /// What these objects were on the wire, in bytes. A decoded object takes more memory, a pruned one less.
    pub bytes: usize,
    /// Objects that cannot be decoded at present.
    pub undecodable: usize,
    /// Whether every source's first list is published. Latched.
    pub synced: bool,
    /// When it was started, as time since the runtime's start; `None` while it is only declared.
    pub began_at: Option<Duration>,
    /// How long that took from the start of the informer, not from its declaration.
    pub sync_took: Option<Duration>,
    /// The bytes of objects that had come from the sources until then.
    pub sync_bytes: Option<u64>,
    /// Restarts after panics: reflectors and groups together.
    pub restarts: u64,
    /// The newest of them.
    pub last_restart: Option<LastRestart>,
    /// The incidents in the data.
    pub data: DataCounters,
    /// How each set of namespaces is followed, if the informer follows namespaces that may change.
    pub namespaces: Vec<NamespacesStatus>,
    /// How often a handler of failures has panicked, see
    /// [`Informer::on_error`](crate::informer::Informer::on_error).
    pub error_handler_panics: u64,
    /// What blocks one of the threads that its actors and closures run on, or which of its actors makes no
    /// progress although there is work. Set as long as that lasts.
    pub stuck: Option<Stuck>,
    /// Why supervision has given up on a part of this informer, if it has.
    pub failed: Option<Arc<str>>,
    /// Whether it has stopped. Nothing changes after this.
    pub stopped: bool,
    /// The file to which the cache is saved, if it is.
    pub saved: Option<SavedStatus>,
}

impl InformerStatus {
    /// The state of the worst source. From worst to best: GivenUp, Denied, SelectorRejected, Gone, Backoff,
    /// Listing, Starting, Declared, Streaming. Stopped only when the informer itself has stopped.
    pub fn state(&self) -> SourceState {
        if self.stopped {
            return SourceState::Stopped;
        }
        let without_sources = if self.synced { SourceState::Streaming } else { SourceState::Starting };
        self.worst().map_or(without_sources, |source| source.state.clone())
    }

    /// The source of this name.
    pub fn source(&self, name: &SourceId) -> Option<&SourceStatus> {
        self.sources.iter().find(|source| source.source == *name)
    }

    /// The source in the worst state.
    pub fn worst(&self) -> Option<&SourceStatus> {
        self.sources.iter().max_by_key(|source| severity(&source.state))
    }

    /// Whether what is read is out of date at `now`, a time since the runtime's start, because a source
    /// fails. This includes sources that were added later. The one that has failed for the longest time says
    /// why. `None` before the sync and after the stop.
    pub fn stale(&self, now: Duration) -> Option<Stale> {
        let failing = self.sources.iter().filter_map(|source| Some((source.failing_since?, source)));
        let (since, source) =
            failing.filter(|_| self.synced && !self.stopped).min_by_key(|(since, _)| *since)?;
        let name = match self.sources.len() {
            1 => String::new(),
            _ => format!("source {:?}: ", source.source.as_str()),
        };
        let error = source.last_error.as_ref().filter(|_| source.state.error().is_none());
        let error =
            error.map(|error| format!("; its last error: {}", error.with_causes())).unwrap_or_default();
        Some(Stale::new(now.saturating_sub(since), format!("{name}{}{error}", source.state)))
    }

    /// The age of the oldest data: that of the source from which nothing came for the longest time, or that of saved
    /// objects until their source has caught up. `None` if
    /// a source has sent nothing yet, or there is no source.
    pub fn age(&self, now: Duration) -> Option<Duration> {
        let heard = self.sources.iter().map(|source| source.last_frame_at).min().flatten()?;
        let saved = self.saved.as_ref().and_then(|saved| saved.age(now)).unwrap_or_default();
        Some(now.saturating_sub(heard).max(saved))
    }

    /// The error of the worst source, or of any other source if that has none.
    pub fn last_error(&self) -> Option<&ListWatchError> {
        self.worst()
            .and_then(|source| source.last_error.as_ref())
            .or_else(|| self.sources.iter().find_map(|source| source.last_error.as_ref()))
    }

    /// Lists and watch-lists after the first published one, over all sources.
    pub fn relists(&self) -> u64 {
        self.sources.iter().map(|source| source.counters.relists).sum()
    }
}

fn severity(state: &SourceState) -> u8 {
    match state {
        SourceState::Streaming => 0,
        SourceState::Declared => 1,
        SourceState::Starting => 2,
        SourceState::Listing { .. } => 3,
        SourceState::Backoff { .. } => 4,
        SourceState::Gone { .. } => 5,
        SourceState::SelectorRejected { .. } => 6,
        SourceState::Denied { .. } => 7,
        SourceState::GivenUp { .. } => 8,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::board::StatusBoard;

    #[test]
    fn the_state_of_an_informer_is_that_of_its_worst_source() {
        let sources = [SourceId::new("a"), SourceId::new("b")];
        let mut status = StatusBoard::new(("pods".into(), None), QueueOrder::InOrder, &sources).read();
        status.sources[0].state = SourceState::Streaming;
        let error = ListWatchError::Denied("no".into());
        status.sources[1].state = SourceState::Denied { attempts: 1, error, until: Duration::ZERO };
        assert!(matches!(status.state(), SourceState::Denied { .. }));
        assert_eq!(status.worst().map(|worst| worst.source.as_str()), Some("b"));
        status.sources[1].state = SourceState::Listing { received: 3 };
        assert!(matches!(status.state(), SourceState::Listing { received: 3 }));
    }

    #[test]
    fn a_source_of_which_nothing_ever_came_fails_since_it_was_given_up() {
        let (source, reason) = (SourceId::new("a"), "it panics".into());
        let board = StatusBoard::new(("pods".into(), None), QueueOrder::InOrder, &[]);
        board.show_synced();
        board.add_source(&source);
        board.give_up("reflector/a: it panics".into(), Some((&source, &reason)), Duration::from_secs(5));
        assert_eq!(board.read().stale(Duration::from_secs(65)).unwrap().lasts, Duration::from_secs(60));
    }
}
