//! The phases and flags of the reflector's machine, and which of them go together.
//!
//! Answers "what can this machine be doing, and what does it remember?" as data; the transitions are in the files named
//! in the last column.
//!
//! | phase | open requests | waits for | ends in |
//! |---|---|---|---|
//! | `Idle` | none | `start` | `AwaitingPermit` (`list.rs`) |
//! | `AwaitingPermit` | none | the list budget; no timer | `Listing` (`list.rs`), `InitialEvents` (`watch_list.rs`) |
//! | `Listing` | one page of a list | its next part, `list_deadline` | `Watching`, `AwaitingPermit`, `Waiting` (`list.rs`) |
//! | `InitialEvents` | one watch | a new object, `initial_events_deadline` | `Gathering`, `AwaitingPermit`, `Waiting` (`watch_list.rs`) |
//! | `Gathering` | the same watch | the next `poll_effect` | `Watching` (`watch_list.rs`) |
//! | `Watching` | see below | frames, one [`WatchTimer`](super::watch::WatchTimer) | `Watching`, `AwaitingPermit`, `Waiting` (`watch.rs`) |
//! | `Waiting` | none | `until` | by [`Next`]: `AwaitingPermit`, `Watching` (`retry.rs`) |
//!
//! `Watching` has four legal combinations of its fields; `watch_timer` names the deadline of each:
//!
//! | `stream.head_at` | `question_until` | `renewal` | meaning | deadline |
//! |---|---|---|---|---|
//! | none | none | none | the watch is being opened | head |
//! | some | some | none | the server's version is asked for; parts wait in `held` | question |
//! | some | none | none | the watch is followed | silence, then a renewal opens |
//! | some | none | some | a second watch is being opened because of silence | head of the renewal |
//!
//! Every flag of [`RetryHints`] names who sets and who clears it. `without_limit` is true only while `list_at_latest`
//! is. `rewinding` and `after_rewind` may both be true: a second rewind before the list after the first. All other
//! flags are independent of each other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::freeing::{Content, Rest};
use super::{Moment, RelistCounters, StreamId};
use crate::chunks::Chunks;
use crate::delta::{Undecodable, WatchPart};
use crate::meta::{Object, ResourceVersion};
use crate::off_arbiter::OffArbiter;
use crate::request::{AskedVersion, ListRequest};

/// What the machine is doing; the table above describes each phase.
pub(super) enum Phase<S> {
    /// Before the start; also for a moment inside a handler, while one phase is replaced by another.
    Idle,
    Waiting {
        until: Duration,
        next: Next,
    },
    AwaitingPermit,
    Listing(Listing<S>),
    InitialEvents(InitialEvents<S>),
    Gathering(Gathering<S>),
    Watching(Watching<S>),
}

/// A list under way.
pub(super) struct Listing<S> {
    pub(super) asked: AskedVersion,
    pub(super) limit: Option<u32>,
    pub(super) everything: bool,
    /// When the list has failed, unless something new arrives before.
    pub(super) deadline: Duration,
    /// The token of the page under way; none for the first.
    pub(super) token: Option<String>,
    pub(super) page: Page,
    /// The lowest version of the pages that are whole: a watch from there misses nothing.
    pub(super) version: Option<ResourceVersion>,
    pub(super) objects: OffArbiter<Chunks<Object<S>>>,
    pub(super) undecodable: OffArbiter<Chunks<Undecodable>>,
    pub(super) bytes: usize,
    pub(super) received: u64,
}

/// How far the page under way has come.
pub(super) enum Page {
    Open,
    Whole { next: Option<String> },
}

impl<S> Listing<S> {
    pub(super) fn request(&self) -> ListRequest {
        let version = if self.token.is_some() { AskedVersion::Latest } else { self.asked.clone() };
        ListRequest { version, limit: self.limit, token: self.token.clone(), name: None }
    }

    pub(super) fn close_page(&mut self, version: ResourceVersion, next: Option<String>) {
        self.page = Page::Whole { next: next.filter(|token| !token.is_empty()) };
        self.version = Some(match self.version.take() {
            Some(before) => before.min(version),
            None => version,
        });
    }
}

/// A watch-list before its end bookmark.
pub(super) struct InitialEvents<S> {
    pub(super) stream: Stream,
    pub(super) asked: AskedVersion,
    pub(super) deadline: Duration,
    pub(super) content: OffArbiter<Content<S>>,
    /// The most objects that `content` has held.
    pub(super) most: usize,
    pub(super) received: u64,
    /// The bytes of all parts received.
    pub(super) bytes: usize,
}

/// A watch-list whose end bookmark has come, while its net result becomes a Replace.
pub(super) struct Gathering<S> {
    pub(super) stream: Stream,
    pub(super) version: ResourceVersion,
    pub(super) rest: OffArbiter<Rest<S>>,
    pub(super) objects: OffArbiter<Chunks<Object<S>>>,
    pub(super) undecodable: OffArbiter<Chunks<Undecodable>>,
    pub(super) bytes: usize,
    /// The parts after the end bookmark.
    pub(super) live: Vec<WatchPart<S>>,
    pub(super) at: Moment,
}

/// One watch stream, from its request on.
pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) opened_at: Duration,
    /// When the response head arrived.
    pub(super) head_at: Option<Duration>,
    pub(super) timeout: Duration,
}

/// A plain watch, or a watch-list after its end bookmark.
pub(super) struct Watching<S> {
    pub(super) stream: Stream,
    /// Whether the stream brought a frame.
    pub(super) had_frames: bool,
    /// The deadline for the answer to the rewind question; `None` when it is not open.
    pub(super) question_until: Option<Duration>,
    /// Parts that came while the question was open.
    pub(super) held: Vec<WatchPart<S>>,
    /// The second stream of a renewal, until its head arrives.
    pub(super) renewal: Option<Stream>,
    /// When silence has lasted long enough for a renewal.
    pub(super) renew_at: Duration,
}

impl<S> Watching<S> {
    pub(super) fn new(stream: Stream, renew_at: Duration) -> Self {
        Self { stream, had_frames: false, question_until: None, held: Vec::new(), renewal: None, renew_at }
    }
}

/// What the machine asks for after a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A list or watch-list.
    Listing,
    /// A watch from the newest version.
    Watch,
}

/// Why a source that has delivered is listed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RelistReason {
    Resumed,
    Expired,
    Failed,
    Refused,
    Unreadable,
    Stale,
    Rewind,
    Asked,
}

impl RelistReason {
    /// Whether it leads to a relist without a wait the first time.
    pub(super) fn needs_no_wait(self) -> bool {
        matches!(self, Self::Expired | Self::Unreadable | Self::Stale | Self::Rewind | Self::Asked)
    }

    pub(super) fn count(self, counters: &mut RelistCounters) {
        let counter = match self {
            Self::Resumed => &mut counters.resumed,
            Self::Expired => &mut counters.expired,
            Self::Failed => &mut counters.failed,
            Self::Refused => &mut counters.refused,
            Self::Unreadable => &mut counters.unreadable,
            Self::Stale => &mut counters.stale,
            Self::Rewind => &mut counters.rewind,
            Self::Asked => &mut counters.asked,
        };
        *counter += 1;
    }
}

/// What earlier answers say about the next requests.
pub(super) struct RetryHints {
    /// The next list asks at `""`. Set when a list or watch-list was expired or too large; cleared by that next list.
    pub(super) list_at_latest: bool,
    /// The next list has no limit. Set when a page had expired; cleared by that next list.
    pub(super) without_limit: bool,
    /// The server went back to this version: lists ask at `""` and decode every object. Set by a rewind; cleared by its
    /// Replace.
    pub(super) rewinding: Option<ResourceVersion>,
    /// The last Replace was that of a rewind: the next list decodes every object, too. Set and cleared by a Replace.
    pub(super) after_rewind: bool,
    /// Lists instead of watch-lists. Set when a watch-list failed or a selector was rejected; cleared by a
    /// Replace.
    pub(super) skip_watch_list: bool,
    /// The source does not know watch-lists. Cleared only if the list that followed was refused because of its selector:
    /// that may have been what the watch-list was refused for.
    pub(super) watch_list_refused: bool,
    /// The server pages lists at `"0"`, so it has no watch cache and honours limits. Never cleared.
    pub(super) paged: bool,
    /// The server may be another one, or restored, since it last proved its version: the next watch is followed by the
    /// rewind question. Set by a failure or an early end; cleared by a Replace or by the answer.
    pub(super) version_unproven: bool,
    /// Which reasons led to a relist without a wait. Cleared by an object or bookmark.
    pub(super) relisted_for: BTreeSet<RelistReason>,
    /// Which reason the next relist is counted and logged under. Set by whatever leads to a relist.
    pub(super) relist_reason: RelistReason,
}

impl RetryHints {
    pub(super) fn new() -> Self {
        Self {
            list_at_latest: false,
            without_limit: false,
            rewinding: None,
            after_rewind: false,
            skip_watch_list: false,
            watch_list_refused: false,
            paged: false,
            version_unproven: false,
            relisted_for: BTreeSet::new(),
            relist_reason: RelistReason::Resumed,
        }
    }
}

/// What a stream is to the machine in its present phase.
#[derive(Clone, Copy)]
pub(super) enum StreamRole {
    /// It brings initial events.
    Initial,
    /// It is followed, or is being opened for that.
    Live,
    /// It is the second watch of a renewal.
    Renewal,
    /// It is not open: what it brings is ignored.
    Closed,
}
