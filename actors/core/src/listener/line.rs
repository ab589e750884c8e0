//! The events that wait under `Every`, in one line up to a bound of bytes.
//!
//! Answers "which event is next, how much do they weigh, and what has the recipient been told?". Invariants:
//! 1. None is merged, and they leave in the order in which they came.
//! 2. Beyond the bound an event is refused, unless none other waits.
//! 3. Only to restate is it kept what was told: one map of objects, shared with the snapshots it came from.
//!
//! Read next: `listener.rs`, which decides what happens when it is full.

use std::collections::VecDeque;
use std::time::Duration;

use super::WhenFull;
use crate::delta::Change;
use crate::off_arbiter::Freeing;
use crate::snapshot::{Frame, Snapshot};

/// What an event weighs beside its object.
const EVENT_BYTES: usize = 64;

/// Events with their arrivals, and since when they wait.
pub(super) type Events<S> = VecDeque<(u64, Duration, Change<S>)>;

pub(super) struct Line<S> {
    bound: usize,
    pub(super) when_full: WhenFull,
    events: Events<S>,
    /// How events are freed that nobody is told any more.
    freeing: Freeing<Events<S>>,
    pub(super) bytes: usize,
    /// The state that was told, unless a cursor has begun; kept only to restate.
    told: Frame<S>,
    /// It was full, and the subscription ends over it.
    pub(super) is_closed: bool,
}

impl<S> Line<S> {
    pub(super) fn new(bound: usize, when_full: WhenFull) -> Self {
        let (told, freeing) = (Frame::default(), Freeing::in_place());
        Self { bound, when_full, events: VecDeque::new(), freeing, bytes: 0, told, is_closed: false }
    }

    /// Takes an event in; false if that is too much.
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

    /// Has events that nobody is told any more freed in this way.
    pub(super) fn free_by(&mut self, freeing: &Freeing<Events<S>>) {
        self.freeing = freeing.clone();
    }

    /// Drops all that waits.
    pub(super) fn clear(&mut self) {
        let (events, bytes) = (std::mem::take(&mut self.events), std::mem::take(&mut self.bytes));
        if !events.is_empty() {
            let mut dropped = self.freeing.keep(events);
            dropped.weigh(bytes);
        }
    }

    /// Believes an event that is told, as its recipient does.
    pub(super) fn tell(&mut self, change: &Change<S>) {
        if self.when_full != WhenFull::Restate {
            return;
        }
        match change.object() {
            Some(object) => drop(self.told.insert(object.clone())),
            None => drop(self.told.remove(change.key())),
        }
    }

    /// What was told is this state.
    pub(super) fn knows(&mut self, told: &Snapshot<S>) {
        if self.when_full == WhenFull::Restate {
            self.told = told.frame().objects_only();
        }
    }

    /// The state that was told.
    pub(super) fn told(&self) -> Snapshot<S> {
        Snapshot::publish(self.told.objects_only())
    }
}

fn weight<S>(change: &Change<S>) -> usize {
    let (Change::Added { object: subject, .. }
    | Change::Updated { object: subject, .. }
    | Change::Deleted { last: subject, .. }) = change;
    EVENT_BYTES + subject.wire_bytes() as usize
}
