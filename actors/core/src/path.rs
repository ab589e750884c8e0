//! The path of one object: marks of the places that a change has passed, each with its time.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::meta::{ObjectKey, ResourceVersion};
use crate::words::{QUOTED, one_line};

mod marks;

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

    /// With the source, subscription, informer or outcome.
    pub fn by(mut self, by: impl Into<Arc<str>>) -> Self {
        self.by = Some(by.into());
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
    /// A mark's number tells the order of marks of one time.
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

/// Of each key.
pub const MOST_STATES: usize = 20;
/// Of all texts of one key.
pub const MOST_STATE_BYTES: usize = 128 * 1_024;

/// One state of an object that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastState {
    /// When it came, as time since the runtime's start.
    pub at: Duration,
    /// The informer that it came to.
    pub informer: Arc<str>,
    /// Its version.
    pub version: ResourceVersion,
    /// What there is of it.
    pub body: PastBody,
}

/// What there is of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PastBody {
    /// The object as JSON, as far as its source shows it: of a Secret no values.
    Object(Arc<str>),
    /// The object was deleted.
    Deleted,
    /// The object has so many bytes that it is not kept: more than 128 KiB.
    TooLarge(usize),
}

impl PastState {
    /// A state that has come now.
    pub fn new(at: Duration, informer: Arc<str>, version: ResourceVersion, body: PastBody) -> Self {
        let body = match body {
            PastBody::Object(text) if text.len() > MOST_STATE_BYTES => PastBody::TooLarge(text.len()),
            body => body,
        };
        Self { at, informer, version, body }
    }

    fn bytes(&self) -> usize {
        match &self.body {
            PastBody::Object(text) => text.len(),
            PastBody::Deleted | PastBody::TooLarge(_) => 0,
        }
    }
}

/// The newest states of each key that is followed.
#[derive(Debug, Default)]
pub struct History(BTreeMap<ObjectKey, VecDeque<PastState>>);

impl History {
    /// Keeps a state. The oldest of the same key go while there are more than [`MOST_STATES`] or
    /// [`MOST_STATE_BYTES`]. The caller does not add keys without a bound.
    pub fn add(&mut self, key: &ObjectKey, state: PastState) {
        let states = self.0.entry(key.clone()).or_default();
        states.push_back(state);
        let mut bytes: usize = states.iter().map(PastState::bytes).sum();
        while states.len() > MOST_STATES || bytes > MOST_STATE_BYTES {
            let Some(oldest) = states.pop_front() else { break };
            bytes -= oldest.bytes();
        }
    }

    /// The states of a key, the oldest first.
    pub fn of(&self, key: &ObjectKey) -> Vec<PastState> {
        self.0.get(key).into_iter().flatten().cloned().collect()
    }

    /// Forgets a key that is followed no longer.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(history: &mut History, number: u64, bytes: usize) {
        let version = ResourceVersion::from_number(number).expect("not zero");
        let body = PastBody::Object("x".repeat(bytes).into());
        history.add(&key(), PastState::new(Duration::from_secs(number), "pods".into(), version, body));
    }

    fn key() -> ObjectKey {
        ObjectKey::namespaced("a", "web")
    }

    #[test]
    fn marks_of_another_runtime_are_put_between_by_their_time() {
        let mark = |at: u64| Mark::new(Hop::Handled, "pods".into(), key()).at(Duration::from_secs(at));
        let mut path = Path::of(vec![(0, mark(1)), (1, mark(4))], false);
        path.add(Path::of(vec![(0, mark(0)), (1, mark(3))], true));
        let times: Vec<u64> = path.marks.iter().map(|mark| mark.at.as_secs()).collect();
        assert_eq!((times, path.is_cut), (vec![0, 1, 3, 4], true));
    }

    #[test]
    fn the_newest_states_are_kept_up_to_a_number_and_to_their_bytes() {
        let mut history = History::default();
        (1..=30).for_each(|number| add(&mut history, number, 1));
        let states = history.of(&key());
        assert_eq!((states.len(), states[0].at.as_secs()), (MOST_STATES, 11));
        add(&mut history, 31, MOST_STATE_BYTES - 3);
        assert_eq!(history.of(&key()).len(), 4, "three small ones have room beside it");
        add(&mut history, 32, MOST_STATE_BYTES + 1);
        let states = history.of(&key());
        assert_eq!(states[4].body, PastBody::TooLarge(MOST_STATE_BYTES + 1));
        history.forget(&key());
        assert_eq!(history.of(&key()), []);
    }
}
