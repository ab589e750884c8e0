//! The events that wait under `Every`, in order of arrival, up to a bound of bytes. Invariants:
//! 1. Beyond the bound an event is refused, unless no other waits.
//! 2. The delivered state is kept only for a restatement: one map of objects, shared with the snapshots.

use std::collections::VecDeque;
use std::time::Duration;

use super::WhenFull;
use crate::delta::Change;
use crate::off_arbiter::Freeing;
use crate::snapshot::{Frame, Snapshot};

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
    /// It was full, and the subscription ends for that reason.
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
