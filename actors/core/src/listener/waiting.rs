//! The events that wait, in the form of their policy. Under `Every` a bound of bytes holds: beyond it an event is
//! refused, unless no other waits. The delivered state is kept only for a restatement: one map of objects, shared
//! with the snapshots.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::WhenFull;
use super::coalesce::standing;
use super::pending::Pending;
use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::off_arbiter::Freeing;
use crate::snapshot::{Frame, Snapshot};

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
