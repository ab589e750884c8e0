//! What an informer is doing, and why it is not synced: one value, readable and awaitable.
//!
//! Answers "how is this informer?" for people, probes and tests. Actors show what they do in the cells of `board.rs`;
//! handles read copies and await changes. It decides nothing. Invariants:
//! 1. State is per source; the informer's is the worst of them.
//! 2. After the informer has stopped, every wait on the board ends.
//! 3. Figures, versions and `synced` change in one step with the published snapshot; a source's state has moved on from
//!    `Listing` before what was listed is published.
//! 4. A change of state is seen by a waiter even if the next one follows at once only if it looks in between; the
//!    counters never miss one.

use std::sync::Arc;
use std::time::Duration;

use informer_core::delta_fifo::Discipline;
use informer_core::indexer::{Incident, Reason};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::reflector::{ListWatchMachine, SourceCounters, SourceState};

pub use crate::pipeline::figures::{QueueStatus, TIMING_BOUNDS, Timing, WatchEnds};
use crate::runtime::Stuck;

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
    /// How often its reflector has been restarted after a panic.
    pub restarts: u64,
    /// The questions for single objects that could not be read.
    pub repairs: RepairCounters,
    /// Its next list waits until enough of what earlier lists and states held is free; see
    /// [`Runtime::bytes_to_free`](crate::runtime::Runtime::bytes_to_free).
    pub awaits_memory: bool,
    /// Bytes of the objects that it has sent, as they came from the wire: those of lists and of watches, also of objects
    /// that were known already. What frames weigh beside their objects, and bookmarks, do not count.
    pub wire_bytes: u64,
    /// How its watches have ended.
    pub watch_ends: WatchEnds,
    /// How long the newest list or watch-list took that was delivered, from its beginning to its last object.
    pub last_list_took: Option<Duration>,
    /// When the list that is under way began.
    pub(crate) listing_since: Option<Duration>,
}

/// What came of asking for set-aside objects one by one, over all lives of a reflector. One question is open at a time,
/// and at most one a second begins. What was asked and is neither `repaired` nor `in_vain` is open, or was taken back
/// by a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairCounters {
    /// GETs sent.
    pub asked: u64,
    /// Answers with an object that could be read: it is handed to the store.
    pub repaired: u64,
    /// Answers, or none in time, after which the object is still set aside.
    pub in_vain: u64,
}

impl SourceStatus {
    pub(crate) fn new(source: SourceId) -> Self {
        Self {
            source,
            wire_bytes: 0,
            watch_ends: WatchEnds::default(),
            last_list_took: None,
            listing_since: None,
            state: SourceState::Starting,
            counters: SourceCounters::default(),
            last_error: None,
            version: None,
            last_frame_at: None,
            restarts: 0,
            repairs: RepairCounters::default(),
            awaits_memory: false,
        }
    }
}

impl SourceStatus {
    /// Takes over what the source's machine shows, and what has come since the last time; true if a waiter could be
    /// waiting for it.
    pub(crate) fn follow<S>(
        &mut self,
        machine: &ListWatchMachine<S>,
        came: &mut Came,
        now: Duration,
    ) -> bool {
        let Came { wire_bytes, watch_ends } = std::mem::take(came);
        self.wire_bytes += wire_bytes;
        self.watch_ends.add(watch_ends);
        self.time_list(machine.state(), now);
        let counters = machine.counters();
        let news = !same_state(&self.state, machine.state()) || self.counters != *counters;
        if news {
            self.state = machine.state().clone();
            self.counters = counters.clone();
            self.last_error = machine.last_error().cloned().or_else(|| self.last_error.take());
        }
        self.last_frame_at = machine.last_frame_at().or(self.last_frame_at);
        news
    }
}

/// What a source has brought since it was shown last.
#[derive(Debug, Default)]
pub(crate) struct Came {
    /// Bytes of objects as they came from the wire.
    pub(crate) wire_bytes: u64,
    pub(crate) watch_ends: WatchEnds,
}

impl SourceStatus {
    /// Notes how long a list has taken when it is over.
    fn time_list(&mut self, state: &SourceState, now: Duration) {
        match state {
            SourceState::Listing { .. } => {
                self.listing_since.get_or_insert(now);
            }
            SourceState::Streaming => {
                let took = self.listing_since.take().map(|since| now.saturating_sub(since));
                self.last_list_took = took.or(self.last_list_took);
            }
            _ => self.listing_since = None,
        }
    }
}

fn same_state(a: &SourceState, b: &SourceState) -> bool {
    match (a, b) {
        (SourceState::Listing { received: a }, SourceState::Listing { received: b }) => a == b,
        (
            SourceState::Backoff { attempts: a, until: at, .. },
            SourceState::Backoff { attempts: b, until, .. },
        ) => a == b && at == until,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// What was odd in the data, counted by reason; each is logged with its key where it happens, up to 250 of one publish.
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
    /// Objects set aside, ever.
    pub set_aside: u64,
    /// Index entries lost to a failing index function.
    pub index_failures: u64,
    /// Messages of an older epoch that were ignored: nothing of the data, and under no [`Reason`].
    pub stale_messages: u64,
}

impl DataCounters {
    /// How often something was reported for this reason.
    pub const fn count_of(&self, reason: Reason) -> u64 {
        match reason {
            Reason::DeletedUnknown => self.deleted_unknown,
            Reason::Duplicate => self.duplicates,
            Reason::Unchanged => self.unchanged,
            Reason::StaleVersion => self.stale_parts,
            Reason::OlderListed => self.older_listed,
            Reason::OlderReplace => self.older_replaces,
            Reason::ForeignSource => self.foreign_sources,
            Reason::SetAside => self.set_aside,
            Reason::IndexFailed => self.index_failures,
        }
    }

    /// Every reason with its count, those that never happened included.
    pub fn by_reason(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().map(|reason| (reason, self.count_of(reason)))
    }

    pub(crate) fn count(&mut self, incident: &Incident) {
        let counter = match incident.reason() {
            Reason::DeletedUnknown => &mut self.deleted_unknown,
            Reason::Duplicate => &mut self.duplicates,
            Reason::Unchanged => &mut self.unchanged,
            Reason::StaleVersion => &mut self.stale_parts,
            Reason::OlderListed => &mut self.older_listed,
            Reason::OlderReplace => &mut self.older_replaces,
            Reason::ForeignSource => &mut self.foreign_sources,
            Reason::SetAside => &mut self.set_aside,
            Reason::IndexFailed => &mut self.index_failures,
        };
        *counter += incident.count() as u64;
    }
}

/// How an informer is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerStatus {
    /// The informer's name.
    pub name: Arc<str>,
    /// In which order parts leave the queue between reflectors and store.
    pub discipline: Discipline,
    /// Each source, in the order they were given.
    pub sources: Vec<SourceStatus>,
    /// What waits between the reflectors and the store.
    pub queue: QueueStatus,
    /// Objects in the published snapshot.
    pub objects: usize,
    /// Objects set aside at present.
    pub set_aside: usize,
    /// Whether every source's first list is published. Latched.
    pub synced: bool,
    /// How long that took from the start of the informer.
    pub sync_took: Option<Duration>,
    /// Restarts after panics: reflectors and groups together.
    pub restarts: u64,
    /// What was odd in the data.
    pub data: DataCounters,
    /// What blocks one of the threads that its actors and closures run on, or which of its actors makes no progress
    /// although there is work, while that lasts.
    pub stuck: Option<Stuck>,
    /// Why supervision has given up on a part of this informer, if it has.
    pub failed: Option<Arc<str>>,
    /// Whether it has stopped. Nothing changes after this.
    pub stopped: bool,
}

impl InformerStatus {
    /// The state of the worst source: GivenUp before Denied, Denied and Gone before Backoff, Backoff before Listing,
    /// Streaming last. Stopped only when the whole informer has stopped.
    pub fn state(&self) -> SourceState {
        if self.stopped {
            return SourceState::Stopped;
        }
        self.worst().map_or(SourceState::Starting, |source| source.state.clone())
    }

    /// The source of this name.
    pub fn source(&self, name: &SourceId) -> Option<&SourceStatus> {
        self.sources.iter().find(|source| source.source == *name)
    }

    /// The source in the worst state.
    pub fn worst(&self) -> Option<&SourceStatus> {
        self.sources.iter().max_by_key(|source| severity(&source.state))
    }

    /// A source that is given up without having listed: because of it the informer will never be synced.
    pub(crate) fn lost(&self) -> Option<(&SourceId, &Arc<str>)> {
        let lost = |source: &'_ SourceStatus| !self.synced && source.version.is_none();
        self.sources.iter().find_map(|source| match &source.state {
            SourceState::GivenUp { reason } if lost(source) => Some((&source.source, reason)),
            _ => None,
        })
    }

    /// The error of the worst source, or else the newest one that any source remembers.
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
        SourceState::Starting => 1,
        SourceState::Listing { .. } => 2,
        SourceState::Backoff { .. } => 3,
        SourceState::Gone { .. } => 4,
        SourceState::Denied { .. } => 5,
        SourceState::GivenUp { .. } => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::SourceState;
    use crate::pipeline::board::StatusBoard;
    use informer_core::delta_fifo::Discipline;
    use informer_core::list_watch_error::ListWatchError;
    use informer_core::meta::SourceId;
    use std::time::Duration;

    #[test]
    fn the_state_of_an_informer_is_that_of_its_worst_source() {
        let sources = [SourceId::new("a"), SourceId::new("b")];
        let mut status =
            StatusBoard::new("pods".into(), Discipline::InOrder, &sources, Duration::ZERO).read();
        status.sources[0].state = SourceState::Streaming;
        status.sources[1].state = SourceState::Denied { error: ListWatchError::Denied("no".into()) };
        assert!(matches!(status.state(), SourceState::Denied { .. }));
        assert_eq!(status.worst().map(|worst| worst.source.as_str()), Some("b"));
        status.sources[1].state = SourceState::Listing { received: 3 };
        assert!(matches!(status.state(), SourceState::Listing { received: 3 }));
    }
}
