//! The bounded history of one resource, from which watches resume and old versions are listed.
//!
//! Answers: what happened after version n, and what did the table look like at n? It does not deliver events.
//! 1. Events are in strictly rising order of revisions.
//! 2. Every event with a revision above `floor` is here; events at or below it are not promised to new watches.
//! 3. At most `window` events lie above `floor`. Up to `retained` older ones are kept for watches that follow this ring
//!    and have not taken them yet.
//!
//! Next: `table.rs` holds one of these beside the current state.
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::encoding::{Encoding, Representation};
use super::kind::Kind;
use super::object::Object;
use super::representation::Form;

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One committed change: before and after, with the lines watchers send, each encoded once.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) key: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) old: Option<Arc<Object>>,
    pub(crate) new: Option<Arc<Object>>,
    stamped: OnceLock<Arc<Object>>,
    lines: Lines,
    /// The same in protobuf, if anyone watches so.
    frames: OnceLock<Box<Lines>>,
}

/// One for each type of event, whole and metadata only.
type Lines = [OnceLock<Bytes>; 6];

impl Event {
    pub(crate) fn new(
        key: Arc<str>,
        revision: u64,
        old: Option<Arc<Object>>,
        new: Option<Arc<Object>>,
    ) -> Self {
        debug_assert!(old.is_some() || new.is_some(), "an event has a state before or after");
        Self {
            key,
            revision,
            old,
            new,
            stamped: OnceLock::new(),
            lines: Lines::default(),
            frames: OnceLock::new(),
        }
    }

    /// The object that an event of this type carries; a deletion carries the last state with the new version.
    pub(crate) fn object(&self, event_type: EventType, kind: &Kind) -> &Arc<Object> {
        match (event_type, &self.new, &self.old) {
            (EventType::Added | EventType::Modified, Some(new), _) => new,
            (_, _, Some(old)) => self.stamped.get_or_init(|| Arc::new(old.stamped(kind, self.revision))),
            (EventType::Deleted, Some(new), None) => new,
            (_, None, None) => unreachable!("an event has a state before or after"),
        }
    }

    /// About how many bytes this event has.
    pub(crate) fn weight(&self) -> usize {
        self.new.as_ref().or(self.old.as_ref()).map_or(0, |object| object.body.len())
    }

    /// The line or frame of this event, encoded at its first use and shared by all watchers.
    ///
    /// `shared` is false for a version of a custom kind that is not the stored one: its lines are made each time.
    pub(crate) fn line(
        &self,
        event_type: EventType,
        kind: &Kind,
        told: Representation,
        shared: bool,
    ) -> Bytes {
        let encode = || told.event(event_type.as_str(), kind, self.object(event_type, kind));
        if !shared || matches!(told.form, Form::Table(_)) {
            return encode();
        }
        let slot = event_type as usize * 2 + usize::from(told.form == Form::Metadata);
        let lines = match told.encoding {
            Encoding::Protobuf => &**self.frames.get_or_init(Box::default),
            Encoding::Json | Encoding::Yaml => &self.lines,
        };
        lines[slot].get_or_init(encode).clone()
    }
}

/// The ring of one resource.
#[derive(Debug, Clone)]
pub(crate) struct History {
    events: VecDeque<Arc<Event>>,
    floor: u64,
    window: usize,
    retained: usize,
}

impl History {
    /// `window` events are promised; a watch may fall behind by `behind` more than when it resumed.
    pub(crate) fn new(window: usize, behind: usize, floor: u64) -> Self {
        let window = window.max(1);
        Self { events: VecDeque::new(), floor, window, retained: window + behind + 1 }
    }

    /// The highest revision whose successors are no longer all known.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    pub(crate) fn push(&mut self, event: Arc<Event>) {
        debug_assert!(self.events.back().is_none_or(|last| last.revision < event.revision), "revisions rise");
        self.events.push_back(event);
        if self.events.len() > self.retained {
            self.events.pop_front();
        }
        if let Some(forgotten) = self.events.len().checked_sub(self.window + 1) {
            self.floor = self.floor.max(self.events[forgotten].revision);
        }
    }

    /// Ends the promise of events up to and including `revision`, and drops those up to `taken`, for which no
    /// watch waits.
    pub(crate) fn compact(&mut self, revision: u64, taken: u64) {
        self.floor = self.floor.max(revision);
        while self.events.front().is_some_and(|event| event.revision <= revision.min(taken)) {
            self.events.pop_front();
        }
    }

    /// The events after `revision`, oldest first.
    pub(crate) fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let from = self.events.partition_point(|event| event.revision <= revision);
        self.events.range(from..)
    }
}
