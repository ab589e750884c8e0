//! What to ask a source next, given what happened: the `ListWatchMachine`.
//!
//! skeleton
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::delta::{ListPart, WatchPart};
use crate::list_watch_error::ListWatchError;
use crate::meta::ResourceVersion;

pub use config::{LEAST_WATCH_TIMEOUT, ReflectorConfig};
pub use effect::{Delivery, Effect, StreamId};
pub use state::{RelistCounters, SourceCounters, SourceState};

mod config;
mod effect;
mod state;

/// The time and the chance that come with whatever happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Since the start of the runtime.
    pub now: Duration,
    /// In [0, 1), drawn for this call.
    pub chance: f64,
}

/// Decides what to ask one source next.
pub struct ListWatchMachine<S> {
    config: ReflectorConfig,
    newest: Option<ResourceVersion>,
    effects: VecDeque<Effect<S>>,
    state: SourceState,
    counters: SourceCounters,
    last_error: Option<ListWatchError>,
    last_frame_at: Option<Duration>,
}

impl<S> fmt::Debug for ListWatchMachine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatchMachine").field("config", &self.config).finish_non_exhaustive()
    }
}

impl<S> ListWatchMachine<S> {
    /// A machine that has asked nothing yet. `resume` is the newest version that this source has put into the
    /// queue or published; `None` if there never was one.
    pub fn new(config: ReflectorConfig, resume: Option<ResourceVersion>) -> Self {
        Self {
            config,
            newest: resume,
            effects: VecDeque::new(),
            state: SourceState::Starting,
            counters: SourceCounters::default(),
            last_error: None,
            last_frame_at: None,
        }
    }

    /// Begins with the first request.
    pub fn start(&mut self, _at: Moment) {}

    /// Ends: open streams are closed, nothing more is asked or delivered.
    pub fn stop(&mut self) {}

    /// The next thing to do; to be drained after each call that tells what happened.
    pub fn poll_effect(&mut self) -> Option<Effect<S>> {
        self.effects.pop_front()
    }

    /// When `handle_timeout` is due; `None` while nothing is waited for.
    pub fn poll_timeout(&self) -> Option<Duration> {
        None
    }

    /// The time of `poll_timeout` has come.
    pub fn handle_timeout(&mut self, _at: Moment) {}

    /// A piece of the list under way.
    pub fn handle_list_part(&mut self, _part: ListPart<S>, _at: Moment) {}

    /// The list's stream has ended.
    pub fn handle_list_end(&mut self, _result: Result<(), ListWatchError>, _at: Moment) {}

    /// Parts of a watch; an empty vector says that the response head has arrived.
    pub fn handle_watch_parts(&mut self, _stream: StreamId, _parts: Vec<WatchPart<S>>, _at: Moment) {}

    /// A watch has ended.
    pub fn handle_watch_end(&mut self, _stream: StreamId, _result: Result<(), ListWatchError>, _at: Moment) {}

    /// The answer to `AskVersion`.
    pub fn handle_version(&mut self, _answer: Result<ResourceVersion, ListWatchError>, _at: Moment) {}

    /// Whether the session should read that stream; false while the rewind question is open.
    pub fn wants_watch_input(&self, _stream: StreamId) -> bool {
        false
    }

    /// What the source is doing.
    pub fn state(&self) -> &SourceState {
        &self.state
    }

    /// What it did so far.
    pub fn counters(&self) -> &SourceCounters {
        &self.counters
    }

    /// The newest version delivered or resumed from.
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
}
