//! What to ask a source next, given what happened: the `ListWatchMachine`.
//!
//! Answers "list or watch, from which version, when, and what of the answers goes into the queue?" for one source.
//! It sends, reads and waits for nothing itself: `handle_*` tells it what happened, `poll_effect` says what to do,
//! `poll_timeout` when to call again. Time and chance come with each call, so a script replays exactly.
//!
//! ```text
//!              ┌── watch-list ──▶ initial events ──┐ end bookmark                 silent: renewal
//!  permit ─────┤      │ refused, failed            ├──▶ Replace ──▶ watching ◀──┐ ended well: at once
//!     ▲        └──────┴─▶ list, page by page ──────┘                  │    └────┘ failed: after a wait
//!     └── at once, or after a wait ◀─── expired, unreadable, stale, ERROR, rewind
//! ```
//! Invariants, over all files of this module:
//! 1. Versions delivered never go back, except by a Replace with cause `Rewind`.
//! 2. A Replace is delivered only when the list or the initial events were complete.
//! 3. One request is open at a time; a second watch only while a renewal awaits its head.
//! 4. In every phase something is due: the permit, or `poll_timeout`.
//! 5. A list or watch-list is asked for only with the permit of the list budget, which is needed until it is whole or
//!    has failed; no deadline runs while the permit is waited for.
//!
//! Read next: `reflector/watch_list.rs` and `reflector/list.rs`, then `watch.rs`, `renewal.rs`, `rewind.rs`, and
//! `retry.rs` for what failures cost, and `log.rs` for what of it is logged.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::delta::{ListPart, WatchPart};
use crate::list_watch_error::ListWatchError;
use crate::meta::ResourceVersion;
use crate::off_arbiter::Release;

pub use config::{LEAST_DEADLINE, LEAST_WATCH_TIMEOUT, ReflectorConfig};
pub use effect::{Delivery, Effect, StreamId};
pub use log::{LogLevel, LogLine};
pub use state::{RelistCounters, SourceCounters, SourceState};

use freeing::ListFreeing;
use list::Listing;
use log::SourceLog;
use retry::{Next, RelistReason};
use watch::Watching;
use watch_list::{Gathering, InitialEvents};

mod config;
mod effect;
mod freeing;
mod list;
mod log;
mod renewal;
mod retry;
mod rewind;
mod state;
mod watch;
mod watch_list;

/// The time and the chance that come with whatever happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Since the start of the runtime; never less than in the call before.
    pub now: Duration,
    /// In [0, 1), drawn for this call: waits and timeouts are drawn with it.
    pub chance: f64,
}

/// Decides what to ask one source next; see the module.
///
/// ```
/// use informer_core::reflector::{Effect, ListWatchMachine, Moment, ReflectorConfig};
/// use std::time::Duration;
/// let config = ReflectorConfig { watch_list: false, ..ReflectorConfig::new("pods") };
/// let mut machine = ListWatchMachine::<String>::new(config, None);
/// machine.start();
/// assert!(matches!(machine.poll_effect(), Some(Effect::AcquireListPermit)));
/// machine.handle_list_permit(Moment { now: Duration::ZERO, chance: 0.5 });
/// let Some(Effect::List { request, .. }) = machine.poll_effect() else { panic!("not a list") };
/// assert_eq!((request.version.to_string().as_str(), request.limit), ("0", Some(500)));
/// ```
pub struct ListWatchMachine<S> {
    config: ReflectorConfig,
    phase: Phase<S>,
    newest: Option<ResourceVersion>,
    lessons: Lessons,
    backoff: Backoff,
    /// Failures since a stream last ended well.
    failed_in_a_row: u32,
    /// The silence after which the live stream is renewed.
    renew_interval: Duration,
    last_connect_at: Option<Duration>,
    /// When a relist that needs no wait last began.
    last_relist_at: Option<Duration>,
    streams: u32,
    effects: VecDeque<Effect<S>>,
    state: SourceState,
    counters: SourceCounters,
    last_error: Option<ListWatchError>,
    last_frame_at: Option<Duration>,
    log: SourceLog,
    freeing: ListFreeing<S>,
}

/// What is under way.
enum Phase<S> {
    /// Before the start; also for a moment while one phase is being left for another.
    Idle,
    Waiting {
        until: Duration,
        next: Next,
    },
    /// For the list budget.
    AwaitingPermit,
    Listing(Listing<S>),
    InitialEvents(InitialEvents<S>),
    Gathering(Gathering<S>),
    Watching(Watching<S>),
    Stopped,
}

/// What earlier answers say about the next requests.
struct Lessons {
    /// The next list asks at `""`: the one before was expired or too large.
    latest: bool,
    /// The next list has no limit: a page of the one before had expired.
    full: bool,
    /// The server went back; until a Replace says so, lists are at `""` and skip nothing.
    rewinding: bool,
    /// The last Replace was of a rewind.
    settling: bool,
    /// A watch-list failed: list, until something is delivered.
    list_only: bool,
    /// The source does not know watch-lists.
    watch_list_refused: bool,
    /// The server pages lists at `"0"`, so it has no watch cache and honours limits.
    paged: bool,
    /// The server may have been another since it last proved its version.
    unsure: bool,
    /// What led to a relist at once since the last object or bookmark.
    relisted_for: BTreeSet<RelistReason>,
    /// What the next relist is counted as.
    reason: RelistReason,
}

impl<S> ListWatchMachine<S> {
    /// A machine that has asked nothing yet. `resume` is the newest version that this source has put into the
    /// queue, or published; `None` if there never was one.
    pub fn new(config: ReflectorConfig, resume: Option<ResourceVersion>) -> Self {
        let config = config.raised();
        let lessons = Lessons {
            latest: false,
            full: false,
            rewinding: false,
            settling: false,
            list_only: false,
            watch_list_refused: false,
            paged: false,
            unsure: false,
            relisted_for: BTreeSet::new(),
            reason: RelistReason::Resumed,
        };
        Self {
            phase: Phase::Idle,
            newest: resume,
            lessons,
            backoff: Backoff::new(config.backoff),
            failed_in_a_row: 0,
            renew_interval: config.renew_after,
            last_connect_at: None,
            last_relist_at: None,
            streams: 0,
            effects: VecDeque::new(),
            state: SourceState::Starting,
            counters: SourceCounters::default(),
            last_error: None,
            last_frame_at: None,
            log: SourceLog::new(config.resource.clone()),
            freeing: ListFreeing::in_place(),
            config,
        }
    }

    /// The same, whose lists are freed by `release` instead of where they are dropped.
    #[must_use]
    pub fn releasing_to(self, release: &Arc<dyn Release>) -> Self
    where
        S: Send + Sync + 'static,
    {
        Self { freeing: ListFreeing::by(release), ..self }
    }

    /// The same, which counts on from what another has counted: the life before, of the same source.
    #[must_use]
    pub fn counting_from(self, counters: SourceCounters) -> Self {
        Self { counters, ..self }
    }

    /// Begins with the first request; a second call does nothing. Spreading starts over time is the caller's: it
    /// calls this late.
    pub fn start(&mut self) {
        if matches!((&self.phase, &self.state), (Phase::Idle, SourceState::Starting)) {
            self.begin_listing();
        }
    }

    /// Ends: what is open is closed, nothing more is asked or delivered, no failure is counted.
    pub fn stop(&mut self) {
        self.effects.clear();
        match &self.phase {
            Phase::Listing(_) => self.effects.push_back(Effect::CloseList),
            Phase::InitialEvents(initial) => self.effects.push_back(Effect::Close(initial.stream.id)),
            Phase::Gathering(gathering) => self.effects.push_back(Effect::Close(gathering.stream.id)),
            Phase::Watching(_) => self.close_watch(),
            Phase::Idle | Phase::Waiting { .. } | Phase::AwaitingPermit | Phase::Stopped => {}
        }
        self.phase = Phase::Stopped;
        self.state = SourceState::Stopped;
    }

    /// The next thing to do; to be drained after each call that tells what happened.
    pub fn poll_effect(&mut self) -> Option<Effect<S>> {
        if self.effects.is_empty() {
            self.gather_slice();
        }
        self.effects.pop_front()
    }

    /// When `handle_timeout` is due; `None` while only the source or the list budget can bring things forward.
    pub fn poll_timeout(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Waiting { until, .. } => Some(*until),
            Phase::Listing(listing) => Some(listing.deadline),
            Phase::InitialEvents(initial) => Some(initial.deadline),
            Phase::Watching(watching) => Some(self.watch_timer(watching).1),
            Phase::Idle | Phase::AwaitingPermit | Phase::Gathering(_) | Phase::Stopped => None,
        }
    }

    /// The time of `poll_timeout` has come; a call before it does nothing.
    pub fn handle_timeout(&mut self, at: Moment) {
        if self.poll_timeout().is_none_or(|due| at.now < due) {
            return;
        }
        match &self.phase {
            Phase::Waiting { next: Next::Listing, .. } => self.begin_listing(),
            Phase::Waiting { next: Next::Watch, .. } => self.open_watch(at),
            Phase::Listing(_) => self.list_late(at),
            Phase::InitialEvents(_) => self.initial_events_late(at),
            Phase::Watching(watching) => {
                let (timer, _) = self.watch_timer(watching);
                self.watch_timeout(timer, at);
            }
            Phase::Idle | Phase::AwaitingPermit | Phase::Gathering(_) | Phase::Stopped => {}
        }
    }

    /// The answer to `AcquireListPermit`: the list budget has room for this list. Ignored when no permit is awaited.
    pub fn handle_list_permit(&mut self, at: Moment) {
        if matches!(self.phase, Phase::AwaitingPermit) {
            self.open_listing(at);
        }
    }

    /// Whether a permit of the list budget is awaited, or in use: from `AcquireListPermit` until the list or watch-list
    /// is whole or has failed, all pages and what starts over at once included. Once it is false, the permit is to be
    /// given back: at the latest when no effect is left, and before a `Deliver`.
    pub fn needs_list_permit(&self) -> bool {
        matches!(self.phase, Phase::AwaitingPermit | Phase::Listing(_) | Phase::InitialEvents(_))
    }

    /// A piece of the list under way.
    pub fn handle_list_part(&mut self, part: ListPart<S>, at: Moment) {
        self.list_part(part, at);
    }

    /// The list's stream has ended. `Ok` before a `ListPart::End` is a failure all the same.
    pub fn handle_list_end(&mut self, result: Result<(), ListWatchError>, at: Moment) {
        self.list_end(result, at);
    }

    /// Parts of a watch, in its order; an empty vector says that the response head has arrived, and is the first of
    /// every stream. What a stream brings after its `Close` is ignored.
    pub fn handle_watch_parts(&mut self, stream: StreamId, parts: Vec<WatchPart<S>>, at: Moment) {
        self.gather_rest();
        match self.place_of(stream) {
            Place::Initial => self.initial_parts(parts, at),
            Place::Live => self.live_parts(parts, at),
            Place::Renewal => {
                self.take_over(at);
                self.live_parts(parts, at);
            }
            Place::Nowhere => {}
        }
    }

    /// A watch has ended by itself: `Ok` cleanly, else by what cut, refused or failed it. The end of a stream after
    /// its `Close` is ignored.
    pub fn handle_watch_end(&mut self, stream: StreamId, result: Result<(), ListWatchError>, at: Moment) {
        self.gather_rest();
        match self.place_of(stream) {
            Place::Initial => self.initial_events_failed(result, at),
            Place::Live => self.watch_ended(result, at),
            Place::Renewal => self.renewal_failed(result, at),
            Place::Nowhere => {}
        }
    }

    /// The answer to `AskVersion`: the version of the answering list. Ignored when no question is open.
    pub fn handle_version(&mut self, answer: Result<ResourceVersion, ListWatchError>, at: Moment) {
        self.version_told(answer, at);
    }

    /// Whether the session should read that stream: false for one that is not open, and while the rewind question
    /// is, since nothing that the stream says is believed before the answer.
    pub fn wants_watch_input(&self, stream: StreamId) -> bool {
        match (&self.phase, self.place_of(stream)) {
            (_, Place::Nowhere) => false,
            (Phase::Watching(watching), Place::Live) => watching.question_until.is_none(),
            _ => true,
        }
    }

    /// What the source is doing.
    pub fn state(&self) -> &SourceState {
        &self.state
    }

    /// What it did so far.
    pub fn counters(&self) -> &SourceCounters {
        &self.counters
    }

    /// The newest version delivered, or else the one resumed from.
    pub fn resource_version(&self) -> Option<&ResourceVersion> {
        self.newest.as_ref()
    }

    /// The newest failure, also when it is over.
    pub fn last_error(&self) -> Option<&ListWatchError> {
        self.last_error.as_ref()
    }

    /// When the source last brought something: a frame, a bookmark or a part of a list.
    pub fn last_frame_at(&self) -> Option<Duration> {
        self.last_frame_at
    }

    fn place_of(&self, stream: StreamId) -> Place {
        match &self.phase {
            Phase::InitialEvents(initial) if initial.stream.id == stream => Place::Initial,
            Phase::Watching(watching) if watching.stream.id == stream => Place::Live,
            Phase::Watching(watching) if watching.renewal.as_ref().is_some_and(|open| open.id == stream) => {
                Place::Renewal
            }
            _ => Place::Nowhere,
        }
    }
}

/// What a stream is to the machine.
#[derive(Clone, Copy)]
enum Place {
    Initial,
    Live,
    Renewal,
    Nowhere,
}

impl<S> fmt::Debug for ListWatchMachine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatchMachine")
            .field("resource", &self.config.resource)
            .field("state", &self.state)
            .field("version", &self.newest)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
