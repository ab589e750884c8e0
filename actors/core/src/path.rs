//! The path of one object: marks of the places that a change of it has passed, each with its time.
//!
//! `marks.rs` decides which changes leave marks, and which marks are kept; `history.rs`, which states.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::meta::{ObjectKey, ResourceVersion};
use crate::words::{QUOTED, one_line};

mod history;
mod marks;

pub use history::{History, MOST_STATE_BYTES, MOST_STATES, PastBody, PastState};
pub use marks::{Choice, MOST_KEYS, MOST_MARKS, Marks, Passage, SLOW, SLOW_EVERY};

/// A place that a change passes, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Hop {
    /// Its bytes were read from the connection.
    Read,
    /// They were cut into events.
    Scanned,
    /// It is decoded, and with the Reflector.
    Decoded,
    /// It waits in the DeltaFifo.
    Queued,
    /// It is in the published snapshot: listers see it.
    Published,
    /// The Processor has handed it to the listeners.
    Distributed,
    /// A listener has handed it to its subscriber.
    Delivered,
    /// The subscriber has handled it, with all that it got at once.
    Handled,
    /// A key was added to the queue of a controller because of it.
    KeyAdded,
    /// A worker has taken the key.
    KeyTaken,
    /// The reconcile of the key has ended.
    Reconciled,
    /// A reconcile has written the object.
    Written,
    /// The caches have shown what the reconcile wrote, or the wait for that is over.
    Seen,
}

impl Hop {
    /// Its name, in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Scanned => "scanned",
            Self::Decoded => "decoded",
            Self::Queued => "queued",
            Self::Published => "published",
            Self::Distributed => "distributed",
            Self::Delivered => "delivered",
            Self::Handled => "handled",
            Self::KeyAdded => "key added",
            Self::KeyTaken => "key taken",
            Self::Reconciled => "reconciled",
            Self::Written => "written",
            Self::Seen => "seen",
        }
    }
}

/// One mark on the path of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mark {
    /// When, as time since the runtime's start.
    pub at: Duration,
    /// Where.
    pub hop: Hop,
    /// The informer, or the controller.
    pub place: Arc<str>,
    /// The source, the subscription, or the informer of the event. Of a reconcile, how it has ended.
    pub by: Option<Arc<str>>,
    /// The object; of hops of a queue, its key.
    pub key: ObjectKey,
    /// The version of the object.
    pub version: Option<ResourceVersion>,
    /// Whether it is of a change as it happens: false for a resync and for the first events of a subscriber.
    pub is_live: bool,
    /// The other object: of an added key, the object of the event; of a write, the key of the reconcile.
    pub other: Option<ObjectKey>,
}

impl Mark {
    /// A mark at this hop of this place.
    pub fn new(hop: Hop, place: Arc<str>, key: ObjectKey) -> Self {
        Self { at: Duration::ZERO, hop, place, by: None, key, version: None, is_live: true, other: None }
    }

    /// At this time.
    pub fn at(mut self, at: Duration) -> Self {
        self.at = at;
        self
    }

    /// At another hop.
    pub fn hop(mut self, hop: Hop) -> Self {
        self.hop = hop;
        self
    }

    /// With the source, subscription, informer or outcome.
    pub fn by(mut self, by: impl Into<Arc<str>>) -> Self {
        self.by = Some(by.into());
        self
    }

    /// Of a change that happened before.
    pub fn not_live(mut self) -> Self {
        self.is_live = false;
        self
    }

    /// With the version.
    pub fn version(mut self, version: Option<ResourceVersion>) -> Self {
        self.version = version;
        self
    }

    /// With the other object.
    pub fn other(mut self, other: ObjectKey) -> Self {
        self.other = Some(other);
        self
    }
}

/// The marks of one object, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path {
    /// The marks.
    pub marks: Vec<Mark>,
    /// Whether older marks may be gone: an informer keeps those of its newest 1,024 changes, a controller its
    /// newest 4,096.
    pub is_cut: bool,
}

impl Path {
    /// Of marks with their numbers, which tell the order of marks of one time.
    fn of(mut marks: Vec<(u64, Mark)>, is_cut: bool) -> Self {
        marks.sort_unstable_by_key(|(number, mark)| (mark.at, *number));
        Self { marks: marks.into_iter().map(|(_, mark)| mark).collect(), is_cut }
    }

    /// Adds the marks of another runtime with the same clock.
    pub fn add(&mut self, other: Self) {
        self.marks.extend(other.marks);
        self.marks.sort_by_key(|mark| mark.at);
        self.is_cut |= other.is_cut;
    }
}

/// One line for each mark: the time since the first one, the time since the one before, the hop and its
/// place.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.marks.first() else { return f.write_str("no marks") };
        let mut before = first.at;
        if self.is_cut {
            writeln!(f, "older marks are gone")?;
        }
        for mark in &self.marks {
            let since = mark.at.saturating_sub(first.at).as_secs_f64() * 1e3;
            let step = mark.at.saturating_sub(before).as_secs_f64() * 1e3;
            before = mark.at;
            let key = mark.key.to_string();
            write!(f, "{since:10.3} ms  +{step:<9.3} {:<11} {}", mark.hop.name(), one_line(&key, QUOTED))?;
            mark.version.iter().try_for_each(|version| write!(f, " version {version}"))?;
            write!(f, " in {}", mark.place)?;
            mark.by.iter().try_for_each(|by| write!(f, ", {by}"))?;
            let other = mark.other.as_ref().map(ToString::to_string);
            other.iter().try_for_each(|other| write!(f, ", {}", one_line(other, QUOTED)))?;
            writeln!(f)?;
        }
        Ok(())
    }
}
