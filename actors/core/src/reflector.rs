//! The reflector's state machine: it decides what to request next from one source.
//!
//! ```text
//!              ┌── watch-list ──▶ initial events ──┐ end bookmark                 silent: renewal
//!  permit ─────┤      │ refused, failed            ├──▶ Replace ──▶ watching ◀──┐ ended well: at once
//!     ▲        └──────┴─▶ list, page by page ──────┘                  │    └────┘ failed: after a wait
//!     └── at once, or after a wait ◀─── expired, unreadable, stale, ERROR, rewind
//! ```
//! Invariants of all files of this module:
//! 1. Delivered versions never go back, except by a Replace with cause `Rewind`.
//! 2. A Replace is delivered only after a complete list or complete initial events.
//! 3. One request is open at a time; a second watch only while a renewal awaits its head.
//! 4. Every phase between start and stop waits for the permit, `poll_timeout` or the next `poll_effect`.
//! 5. A list or watch-list needs a permit of the list budget, from its request until it is whole or has failed. No
//!    deadline runs while the machine waits for the permit.
//! 6. A handler does nothing in another phase than its own: an answer may arrive after its request was closed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::delta::WatchPart;
use crate::list_watch_error::ListWatchError;
use crate::meta::ResourceVersion;
use crate::off_arbiter::Release;

pub use config::{LEAST_DEADLINE, LEAST_WATCH_TIMEOUT, ReflectorConfig};
pub use effect::{Delivery, Effect, StreamId};
pub use log::{LogLevel, LogLine};
pub use state::{RelistCounters, SourceCounters, SourceState};

use freeing::ListFreeing;
use log::SourceLog;
use phase::{Next, Phase, RetryHints, StreamRole};
use retry::EarlyRetries;

mod config;
mod effect;
mod freeing;
mod list;
mod log;
mod phase;
mod renewal;
mod retry;
mod rewind;
mod state;
mod watch;
mod watch_list;

/// The time of an event, and the random number to use for the decisions about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Since the start of the runtime; never less than in the call before.
    pub now: Duration,
    /// A random number in [0, 1), drawn for this call. Waits and timeouts are spread by it.
    pub chance: f64,
}

/// Decides what to ask one source next; the module's documentation describes it.
///
/// ```
/// # use informer_core::reflector::{Effect, ListWatchMachine, Moment, ReflectorConfig};
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
    /// The next list must not be older.
    floor: Option<ResourceVersion>,
    hints: RetryHints,
    backoff: Backoff,
    early: EarlyRetries,
    /// Failures since a stream last ended without a failure.
    failed_in_a_row: u32,
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

impl<S> ListWatchMachine<S> {
    /// A machine that has sent no request yet. `resume` is the newest version that this source has put into
    /// the queue, or published; `None` if there never was one.
    pub fn new(config: ReflectorConfig, resume: Option<ResourceVersion>) -> Self {
        let config = config.raised();
        Self {
            phase: Phase::Idle,
            newest: resume,
            floor: None,
            hints: RetryHints::new(),
            backoff: Backoff::new(config.backoff),
            early: EarlyRetries::default(),
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

    /// The same machine, whose lists are freed by `release` instead of where they are dropped.
    #[must_use]
    pub fn releasing_to(self, release: &Arc<dyn Release>) -> Self
    where
        S: Send + Sync + 'static,
    {
        Self { freeing: ListFreeing::by(release), ..self }
    }

    /// The same machine, which continues these counters: those of the machine that followed the source
    /// before.
    #[must_use]
    pub fn counting_from(self, counters: SourceCounters) -> Self {
        Self { counters, ..self }
    }

    /// The next list must not be older than this: a source that takes over from others has to be as far as
    /// they are.
    pub fn not_older_than(&mut self, floor: Option<ResourceVersion>) {
        self.floor = floor;
    }

    /// Begins with the first request; a second call does nothing. To spread starts over time, the caller
    /// calls this later.
    pub fn start(&mut self) {
        if matches!((&self.phase, &self.state), (Phase::Idle, SourceState::Starting)) {
            self.begin_listing();
        }
    }

    /// The next thing to do. Call it until it returns `None` after each call of a `handle_*` method.
    pub fn poll_effect(&mut self) -> Option<Effect<S>> {
        if self.effects.is_empty() {
            self.gather_slice();
        }
        self.effects.pop_front()
    }

    /// When `handle_timeout` is due; `None` while the machine waits for the source or for the list budget
    /// alone.
    pub fn poll_timeout(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Waiting { until, .. } => Some(*until),
            Phase::Listing(listing) => Some(listing.deadline),
            Phase::InitialEvents(initial) => Some(initial.deadline),
            Phase::Watching(watching) => Some(self.watch_timer(watching).1),
            Phase::Idle | Phase::AwaitingPermit | Phase::Gathering(_) => None,
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
            Phase::Listing(_) => self.list_timed_out(at),
            Phase::InitialEvents(_) => self.initial_events_timed_out(at),
            Phase::Watching(watching) => {
                let (timer, _) = self.watch_timer(watching);
                self.watch_timeout(timer, at);
            }
            Phase::Idle | Phase::AwaitingPermit | Phase::Gathering(_) => {}
        }
    }

    /// The answer to `AcquireListPermit`: the list budget has room for this list. Ignored when no permit is
    /// awaited.
    pub fn handle_list_permit(&mut self, at: Moment) {
        if matches!(self.phase, Phase::AwaitingPermit) {
            self.open_listing(at);
        }
    }

    /// Whether a permit of the list budget is awaited, or in use: from `AcquireListPermit` until the list or
    /// watch-list is whole or has failed. That includes all pages, and lists that start over without a wait.
    /// Once it is false, the caller gives the permit back: at the latest when no effect is left, and before a
    /// `Deliver`.
    pub fn needs_list_permit(&self) -> bool {
        matches!(self.phase, Phase::AwaitingPermit | Phase::Listing(_) | Phase::InitialEvents(_))
    }

    /// The request of this watch is sent now. A full queue may have delayed it since the machine decided to send it.
    pub fn handle_watch_sent(&mut self, stream: StreamId, at: Moment) {
        if let Phase::Watching(watching) = &mut self.phase
            && watching.stream.id == stream
        {
            watching.stream.opened_at = at.now;
            self.last_connect_at = Some(at.now);
        }
    }

    /// Parts of a watch, in the order of the stream. The first vector of every stream is empty: it says that
    /// the response head has arrived. Parts that come after the stream's `Close` are ignored.
    pub fn handle_watch_parts(&mut self, stream: StreamId, parts: Vec<WatchPart<S>>, at: Moment) {
        self.gather_rest();
        match self.role_of(stream) {
            StreamRole::Initial => self.initial_parts(parts, at),
            StreamRole::Live => self.live_parts(parts, at),
            StreamRole::Renewal => {
                self.take_over(at);
                self.live_parts(parts, at);
            }
            StreamRole::Closed => {}
        }
    }

    /// A watch has ended by itself: `Ok` if it ended cleanly, else the error that refused, cut or failed it.
    /// The end of a stream after its `Close` is ignored.
    pub fn handle_watch_end(&mut self, stream: StreamId, result: Result<(), ListWatchError>, at: Moment) {
        self.gather_rest();
        match self.role_of(stream) {
            StreamRole::Initial => self.initial_events_failed(result, at),
            StreamRole::Live => self.watch_ended(result, at),
            StreamRole::Renewal => self.renewal_failed(result, at),
            StreamRole::Closed => {}
        }
    }

    /// Whether the session should read that stream: false for a stream that is not open, and while the rewind
    /// question is open, since parts of the stream are delivered only after its answer.
    pub fn wants_watch_input(&self, stream: StreamId) -> bool {
        match (&self.phase, self.role_of(stream)) {
            (_, StreamRole::Closed) => false,
            (Phase::Watching(watching), StreamRole::Live) => watching.question_until.is_none(),
            _ => true,
        }
    }

    /// What the source is doing.
    pub fn state(&self) -> &SourceState {
        &self.state
    }

    /// What the source did so far.
    pub fn counters(&self) -> &SourceCounters {
        &self.counters
    }

    /// The newest version delivered, or the version that the machine resumed from if nothing was delivered
    /// yet.
    pub fn resource_version(&self) -> Option<&ResourceVersion> {
        self.newest.as_ref()
    }

    /// The newest failure, also after the source has recovered from it.
    pub fn last_error(&self) -> Option<&ListWatchError> {
        self.last_error.as_ref()
    }

    /// When the newest frame, bookmark or part of a list arrived.
    pub fn last_frame_at(&self) -> Option<Duration> {
        self.last_frame_at
    }

    fn role_of(&self, stream: StreamId) -> StreamRole {
        match &self.phase {
            Phase::InitialEvents(initial) if initial.stream.id == stream => StreamRole::Initial,
            Phase::Watching(watching) if watching.stream.id == stream => StreamRole::Live,
            Phase::Watching(watching) if watching.renewal.as_ref().is_some_and(|open| open.id == stream) => {
                StreamRole::Renewal
            }
            _ => StreamRole::Closed,
        }
    }
}

crate::debug_as!([S] ListWatchMachine<S>, self,
    resource = self.config.resource,
    state = self.state,
    version = self.newest,
    counters = self.counters
);

#[cfg(test)]
mod tests;
