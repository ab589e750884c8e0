//! One watcher: what it watches, its pending events, and how it sees a change.
//!
//! Answers: does this change concern this watcher, and as which type of event?
//!
//! Next: `watch.rs` begins, feeds and ends watches, and has the rules for them.
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::encoding::Representation;
use super::history::{Event, EventType};
use super::kind::Kind;
use super::selector::Selector;
use super::table::{Scope, Table};

/// From this many bytes on no more is handed over at once.
const HEAVY: usize = 64 * 1024;

/// Why a watch is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchEnd {
    /// A complete answer: the last chunk is sent.
    Clean,
    /// The connection is reset in the middle of a line.
    Reset,
}

/// One pending item of a watcher.
#[derive(Debug, Clone)]
pub(crate) enum Delivery {
    Event(Arc<Event>, EventType),
    /// Bytes a fault switch wants on the wire as they are.
    Raw(Bytes),
}

/// One registered watcher.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(super) kind: Arc<Kind>,
    pub(super) scope: Scope,
    pub(super) selector: Selector,
    pub(super) after: u64,
    /// Events queued only for this watch; they come before those of the history.
    pub(super) queue: VecDeque<Delivery>,
    /// Whether everything in the history after `taken` is pending too.
    pub(super) follows: bool,
    pub(super) taken: u64,
    /// How many events are there.
    pub(super) behind: usize,
    pub(super) bound: usize,
    /// Whether the stream has been woken since nothing was pending.
    pub(super) woken: bool,
    pub(super) end: Option<WatchEnd>,
}

impl Watch {
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() + self.behind >= self.bound
    }

    /// Takes up to `most` of the pending events from the history.
    pub(super) fn followed(&mut self, table: &Table, most: usize) -> Vec<Delivery> {
        let count = self.behind.min(most);
        let mut pending = Vec::with_capacity(count);
        let mut weight = 0;
        for event in table.history.after(self.taken).take(count) {
            pending.push(Delivery::Event(Arc::clone(event), plain_type(event)));
            self.taken = event.revision;
            weight += event.weight();
            if weight >= HEAVY && most != usize::MAX {
                break;
            }
        }
        debug_assert!(weight >= HEAVY || pending.len() == count, "the history keeps what is not taken");
        self.behind -= pending.len();
        pending
    }

    /// Takes up to `most` of the queued events.
    pub(super) fn own(&mut self, most: usize) -> Vec<Delivery> {
        let (mut pending, mut weight) = (Vec::new(), 0);
        while pending.len() < most
            && weight < HEAVY
            && let Some(delivery) = self.queue.pop_front()
        {
            weight += delivery.weight();
            pending.push(delivery);
        }
        pending
    }

    /// As which event this watcher sees the change, if at all.
    pub(super) fn sees(&self, event: &Event) -> Option<EventType> {
        if event.revision <= self.after {
            return None;
        }
        let matches =
            |object: &Option<Arc<_>>| object.as_ref().is_some_and(|object| self.selector.matches(object));
        match (matches(&event.old), matches(&event.new)) {
            (false, false) => None,
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
        }
    }
}

/// Without a selector: as which event everyone sees the change.
fn plain_type(event: &Event) -> EventType {
    match (&event.old, &event.new) {
        (None, _) => EventType::Added,
        (Some(_), Some(_)) => EventType::Modified,
        (Some(_), None) => EventType::Deleted,
    }
}

impl Delivery {
    fn weight(&self) -> usize {
        match self {
            Self::Event(event, _) => event.weight(),
            Self::Raw(bytes) => bytes.len(),
        }
    }

    /// The bytes of this delivery for a watcher of `kind`.
    pub(crate) fn line(&self, kind: &Kind, told: Representation, shared: bool) -> Bytes {
        match self {
            Self::Event(event, event_type) => event.line(*event_type, kind, told, shared),
            Self::Raw(bytes) => bytes.clone(),
        }
    }
}
