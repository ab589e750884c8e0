//! The events that wait, in the form of their policy. Under `Every` a bound of bytes holds: beyond it an event is
//! refused, unless no other waits. The delivered state is kept only for a restatement: one map of objects, shared
//! with the snapshots.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::coalesce::standing;
use super::pending::Pending;
use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::off_arbiter::Freeing;
use crate::snapshot::{Frame, Snapshot};

/// How events wait that the subscriber has not taken yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The newest state of each key: a recipient that lags does not receive the states between. It does
    /// receive the last object of a key that was created and deleted in between ([`MOST_BRIEF_LIVES`]). One
    /// that keeps up receives every event as it came.
    #[default]
    Coalesce,
    /// Every event, one by one, in order, none coalesced.
    Every {
        /// How much may wait: for each event the object's bytes as they came from the wire and 64 more. An
        /// event that is larger than this is taken if no other waits. A list is a cursor, and counts as
        /// nothing.
        bytes: usize,
        /// What happens beyond it.
        when_full: WhenFull,
    },
    /// Every key that was touched, and no object: what waits keeps none alive. A key waits once, however
    /// often it is touched; also one whose object came and went. For a subscriber that looks objects up when
    /// it gets to them, as a work queue does.
    Keys,
}

/// What becomes of a subscription to every event whose backlog is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It ends, and says how many events were dropped, at least. It also ends when more than four lists with
    /// events wait, since each keeps a state of the store in memory.
    Disconnect,
    /// What waits is dropped and counted; then the difference between the delivered and the current state is
    /// delivered, with cause `Relist`.
    Restate,
}

/// The most keys for which the last object is kept that was created and deleted while the recipient was
/// behind.
pub const MOST_BRIEF_LIVES: usize = 4_096;

/// The numbers of one backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BacklogStats {
    /// Keys with something that waits, each counted once (under `Every`, events): those whose events are
    /// written out, and those that a first list has yet to deliver. During a resync, and while other lists
    /// wait, the larger of both numbers: they may have keys in common. What other lists and restarts have yet
    /// to deliver is not known before their cursor gets there, and is not counted. A filter judges a key when
    /// a cursor gets there, so keys that it will drop are counted until then.
    pub depth: usize,
    /// Events written out, or keys under `Keys`: under `Coalesce` at most four a key, besides those of one
    /// publish, at most 250, that are delivered as they came if nothing follows them.
    pub events: usize,
    /// Unfinished cursors: at most four, and while they are walked one more for each gap between them; under
    /// `Every` besides those of first lists and of a resync, and of lists that may have no events.
    pub cursors: usize,
    /// Events that were left out because a newer one replaced them.
    pub coalesced: u64,
    /// Events that were dropped because the backlog was full: under `Coalesce` those of brief lives beyond
    /// the bound.
    pub dropped: u64,
    /// Changes that a filter dropped. An object of a list that does not pass counts too.
    pub filtered: u64,
    /// What the events written out weigh, as [`Policy::Every`] counts it; zero under `Coalesce`.
    pub bytes: usize,
    /// Events handed out.
    pub delivered: u64,
    /// Changes that could not follow what was pending: zero, or the store has a fault.
    pub impossible: u64,
    /// The number of the oldest waiting entry; entries are numbered in order of arrival.
    pub oldest: Option<u64>,
    /// When the oldest entry arrived.
    pub oldest_since: Option<Duration>,
}

pub(super) enum Waiting<S> {
    /// `Some` only while something waits: idle subscriptions are small.
    Coalesced {
        pending: Option<Box<Pending<S>>>,
        most_briefs: usize,
    },
    Every(Box<Line<S>>),
    Keys(Box<Keys>),
}

impl<S> Waiting<S> {
    pub(super) fn first(&self) -> Option<(u64, Duration)> {
        match self {
            Self::Coalesced { pending, .. } => pending.as_ref()?.first(),
            Self::Every(line) => line.first(),
            Self::Keys(keys) => keys.first(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Coalesced { pending, .. } => pending.as_ref().map_or(0, |pending| pending.len()),
            Self::Every(line) => line.len(),
            Self::Keys(keys) => keys.len(),
        }
    }

    /// Always false where nothing merges.
    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Coalesced { pending, .. } => pending.as_ref().is_some_and(|pending| pending.contains(key)),
            Self::Keys(keys) => keys.contains(key),
            Self::Every(_) => false,
        }
    }

    pub(super) const fn is_of_keys(&self) -> bool {
        matches!(self, Self::Keys(_))
    }

    pub(super) const fn is_every(&self) -> bool {
        matches!(self, Self::Every(_))
    }

    pub(super) fn shrink(&mut self) {
        match self {
            Self::Coalesced { pending, .. } => *pending = None,
            Self::Every(line) => line.clear(),
            Self::Keys(keys) => **keys = Keys::default(),
        }
    }

    pub(super) fn set_delivered(&mut self, delivered: &Snapshot<S>) {
        if let Self::Every(line) = self {
            line.set_delivered(delivered);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Keys {
    waiting: BTreeMap<ObjectKey, Waits>,
    order: VecDeque<ObjectKey>,
}

#[derive(Debug, Clone, Copy)]
struct Waits {
    arrival: u64,
    since: Duration,
    cause: Cause,
}

impl Keys {
    /// False if the key waits already.
    pub(super) fn touch(&mut self, key: &ObjectKey, cause: Cause, arrival: u64, since: Duration) -> bool {
        if let Some(waits) = self.waiting.get_mut(key) {
            waits.cause = standing(waits.cause, cause);
            return false;
        }
        self.waiting.insert(key.clone(), Waits { arrival, since, cause });
        self.order.push_back(key.clone());
        true
    }

    pub(super) fn first(&self) -> Option<(u64, Duration)> {
        let waits = self.waiting.get(self.order.front()?)?;
        Some((waits.arrival, waits.since))
    }

    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.waiting.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn take_first(&mut self) -> Option<(ObjectKey, Cause)> {
        let key = self.order.pop_front()?;
        let cause = self.waiting.remove(&key)?.cause;
        Some((key, cause))
    }
}

/// Counted for an event beside its object.
const EVENT_BYTES: usize = 64;

/// Each with its arrival, and since when it waits.
pub(super) type Events<S> = VecDeque<(u64, Duration, Change<S>)>;

pub(super) struct Line<S> {
    bound: usize,
    pub(super) when_full: WhenFull,
    events: Events<S>,
    freeing: Freeing<Events<S>>,
    pub(super) bytes: usize,
    /// The state that was delivered, unless a cursor has begun.
    delivered: Frame<S>,
    /// It was full, so the subscription ends.
    pub(super) is_closed: bool,
}

impl<S> Line<S> {
    pub(super) fn new(bound: usize, when_full: WhenFull) -> Self {
        let (delivered, freeing) = (Frame::default(), Freeing::in_place());
        Self { bound, when_full, events: VecDeque::new(), freeing, bytes: 0, delivered, is_closed: false }
    }

    /// False if the event is too much.
    pub(super) fn push(&mut self, change: &Change<S>, arrival: u64, since: Duration) -> bool {
        let bytes = weight(change);
        if self.bytes > 0 && self.bytes + bytes > self.bound {
            return false;
        }
        self.bytes += bytes;
        self.events.push_back((arrival, since, change.clone()));
        true
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Duration, Change<S>)> {
        let event = self.events.pop_front()?;
        self.bytes -= weight(&event.2);
        Some(event)
    }

    pub(super) fn first(&self) -> Option<(u64, Duration)> {
        self.events.front().map(|(arrival, since, _)| (*arrival, *since))
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn free_by(&mut self, freeing: &Freeing<Events<S>>) {
        self.freeing = freeing.clone();
    }

    pub(super) fn clear(&mut self) {
        let (events, bytes) = (std::mem::take(&mut self.events), std::mem::take(&mut self.bytes));
        if !events.is_empty() {
            let dropped = self.freeing.keep(events);
            dropped.weigh(bytes);
        }
    }

    pub(super) fn apply_delivered(&mut self, change: &Change<S>) {
        if self.when_full != WhenFull::Restate {
            return;
        }
        match change.object() {
            Some(object) => drop(self.delivered.insert(object.clone())),
            None => drop(self.delivered.remove(change.key())),
        }
    }

    pub(super) fn set_delivered(&mut self, delivered: &Snapshot<S>) {
        if self.when_full == WhenFull::Restate {
            self.delivered = delivered.frame().objects_only();
        }
    }

    pub(super) fn delivered_state(&self) -> Snapshot<S> {
        Snapshot::publish(self.delivered.objects_only())
    }
}

fn weight<S>(change: &Change<S>) -> usize {
    let (Change::Added { object: subject, .. }
    | Change::Updated { object: subject, .. }
    | Change::Deleted { last: subject, .. }) = change;
    EVENT_BYTES + subject.wire_bytes() as usize
}
