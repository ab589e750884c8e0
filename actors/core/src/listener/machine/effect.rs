//! What passes between a listener's machine and its actor.

use std::sync::Arc;
use std::time::Duration;

use super::super::{Filter, Notifications, Policy};
use crate::meta::SourceId;
use crate::snapshot::Snapshot;

/// What one listener is.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the actor sets all of it")]
pub struct ListenerConfig<S> {
    /// How events wait that its subscriber has not taken.
    pub policy: Policy,
    /// The sources that the informer has when it is built, each of which lists first.
    pub sources: Arc<[SourceId]>,
    /// What its subscriber asked for, if that is not everything.
    pub filter: Option<Arc<Filter<S>>>,
    /// The most notifications in one window, at least one.
    pub window: usize,
    /// Whether its subscriber asks for each window, as a stream does.
    pub is_pulled: bool,
    /// What its subscriber has already, if it goes on where a listener that has failed had been.
    pub seen: Option<Snapshot<S>>,
}

/// What the actor does next.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the actor does all of it")]
pub enum ListenerEffect<S> {
    /// Ask the Processor to attach the listener; it sends a snapshot, see
    /// [`ListenerMachine::handle_start`](super::ListenerMachine::handle_start).
    Attach,
    /// Give this window to the subscriber;
    /// [`ListenerMachine::handle_handled`](super::ListenerMachine::handle_handled) or the next request says
    /// that it is handled.
    Deliver(Notifications<S>),
    /// Let other actors have a turn, then call
    /// [`ListenerMachine::handle_turn`](super::ListenerMachine::handle_turn).
    Yield,
    /// Show these figures.
    Show(Figures),
    /// Look after a while whether the stream was polled:
    /// [`ListenerMachine::handle_waited_for_poll`](super::ListenerMachine::handle_waited_for_poll).
    AwaitPoll,
    /// Answer all waiting drains.
    AnswerDrains,
    /// The subscription ends: this many events were dropped.
    End {
        /// How many.
        dropped: u64,
    },
}

/// The figures of a listener for its status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Whether the subscriber has handled its initial events. Latched.
    pub synced: bool,
    /// Events that wait to be delivered.
    pub depth: usize,
    /// Since when the oldest of them waits.
    pub oldest_since: Option<Duration>,
    /// Events that are with the subscriber.
    pub in_flight: usize,
    /// Events that were left out because a newer one replaced them.
    pub coalesced: u64,
    /// Events that were dropped because too many waited.
    pub dropped: u64,
    /// Changes that its filter dropped.
    pub filtered: u64,
    /// Events that the subscriber has handled.
    pub delivered: u64,
}
