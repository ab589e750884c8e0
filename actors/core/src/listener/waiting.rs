//! The events that wait, in the form that their policy needs.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::coalesce::standing;
use super::line::Line;
use super::pending::Pending;
use crate::delta::Cause;
use crate::meta::ObjectKey;
use crate::snapshot::Snapshot;

pub(super) enum Waiting<S> {
    /// `Some` only while something waits, to keep idle subscriptions small.
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

    /// Sets the delivered state, which only a restatement needs.
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
    /// Makes a key wait; false if it does already.
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
