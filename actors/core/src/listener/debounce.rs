//! Events that are held until their key has been quiet for a while.
//!
//! Answers "which keys have been quiet for long enough, and when is the next one?". What a key went through meanwhile is
//! coalesced as it is among the events that wait. The time comes with the call.
//! Invariants:
//! 1. A key is held until nothing has happened to it for `quiet`, and at most [`MOST_PERIODS`] times as long.
//! 2. Initial lists, relists, restarts and resyncs are not held. A list or a restart ends the wait of every key, since its
//!    cursor leads on from the state that they come to; a resync does not, and leaves the held keys out.
//! 3. What is held keeps no drain waiting: it is released at once.
//!
//! Read next: `pending.rs`, which merges; `machine.rs`, which asks for a timer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::coalesce::standing;
use super::pending::Pending;
use super::{Backlog, MOST_BRIEF_LIVES, Waiting};
use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;

/// A key that is never quiet is held for so many quiet periods at most.
pub const MOST_PERIODS: u32 = 10;

/// The keys that are held, and what has happened to them.
pub(super) struct Debounce<S> {
    quiet: Duration,
    /// When the newest publish came here: that of its events may be older.
    now: Duration,
    /// Since when each key is held, and until when.
    held: BTreeMap<ObjectKey, (Duration, Duration)>,
    due: BTreeSet<(Duration, ObjectKey)>,
    /// How many keys are held since when.
    sinces: BTreeMap<Duration, usize>,
    /// Their events; of subscribers of keys, the reasons alone.
    events: Pending<S>,
    causes: BTreeMap<ObjectKey, Cause>,
    /// The caller was told when to come back.
    alarm: Option<Duration>,
    /// Nothing is held any more.
    is_over: bool,
}

impl<S> Debounce<S> {
    pub(super) fn new(quiet: Duration) -> Self {
        Self {
            quiet,
            now: Duration::ZERO,
            held: BTreeMap::new(),
            due: BTreeSet::new(),
            sinces: BTreeMap::new(),
            events: Pending::new(MOST_BRIEF_LIVES),
            causes: BTreeMap::new(),
            alarm: None,
            is_over: false,
        }
    }

    /// How many keys are held.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.held.contains_key(key)
    }

    fn touch(&mut self, key: &ObjectKey, now: Duration) {
        let since = self.held.get(key).map_or(now, |(since, _)| *since);
        let latest = since.saturating_add(self.quiet.saturating_mul(MOST_PERIODS));
        let until = now.saturating_add(self.quiet).min(latest);
        if let Some((_, before)) = self.held.insert(key.clone(), (since, until)) {
            self.due.remove(&(before, key.clone()));
        } else {
            *self.sinces.entry(since).or_default() += 1;
        }
        self.due.insert((until, key.clone()));
    }

    /// The key that is due first, if it is by then, and since when it was held.
    fn pop_due(&mut self, now: Duration) -> Option<(ObjectKey, Duration)> {
        let (until, key) = self.due.first().filter(|(until, _)| *until <= now).cloned()?;
        self.due.remove(&(until, key.clone()));
        let (since, _) = self.held.remove(&key)?;
        if let Some(count) = self.sinces.get_mut(&since) {
            *count -= 1;
            if *count == 0 {
                self.sinces.remove(&since);
            }
        }
        Some((key, since))
    }
}

impl<S> Backlog<S> {
    /// Holds the events of a key until it has been quiet for so long. Without effect under `Every`.
    #[must_use]
    pub fn debounced_by(mut self, quiet: Option<Duration>) -> Self {
        let quiet = quiet.filter(|quiet| !quiet.is_zero() && !self.waiting.is_every());
        self.debounce = quiet.map(|quiet| Box::new(Debounce::new(quiet)));
        self
    }

    /// The time at which a key is touched by what is published next.
    pub(super) fn set_touched_at(&mut self, now: Duration) {
        if let Some(debounce) = &mut self.debounce {
            debounce.now = now;
        }
    }

    /// Lets a live change wait, after its key has been quiet if that was asked for.
    pub(super) fn merge_later(&mut self, change: Change<S>) {
        let arrived = self.now;
        match self.debounce.as_mut().filter(|debounce| !debounce.is_over) {
            Some(debounce) => debounce.touch(change.key(), debounce.now.max(arrived)),
            None => return self.merge(change),
        }
        self.hold(change);
    }

    /// Adds a change to what is held of its key, whose wait goes on.
    pub(super) fn hold(&mut self, change: Change<S>) {
        let (arrival, since) = (self.arrivals, self.now);
        let Some(debounce) = &mut self.debounce else { return };
        if self.waiting.is_of_keys() {
            let before = debounce.causes.get(change.key()).copied();
            self.counters.coalesced += u64::from(before.is_some());
            let cause = before.map_or_else(|| change.cause(), |first| standing(first, change.cause()));
            debounce.causes.insert(change.key().clone(), cause);
            return;
        }
        let before = debounce.events.events() + 1;
        let is_possible = debounce.events.merge(change, arrival, since);
        debug_assert!(is_possible || self.filter.is_some(), "a change that cannot follow what is held");
        self.counters.impossible += u64::from(!is_possible);
        self.counters.coalesced += (before - debounce.events.events()) as u64;
        self.counters.dropped += debounce.events.drop_surplus();
    }

    /// Whether events of this key are held.
    pub(super) fn holds(&self, key: &ObjectKey) -> bool {
        self.debounce.as_ref().is_some_and(|debounce| debounce.contains(key))
    }

    /// How many keys are held, each of which counts in the depth.
    pub(super) fn held(&self) -> usize {
        self.debounce.as_ref().map_or(0, |debounce| debounce.len())
    }

    /// Since when the key is held that has been held the longest.
    pub(super) fn held_since(&self) -> Option<Duration> {
        self.debounce.as_ref()?.sinces.first_key_value().map(|(since, _)| *since)
    }

    /// When to call [`Self::release_due`]; `None` if nothing is held, or if the caller knows already.
    pub fn poll_alarm(&mut self) -> Option<Duration> {
        let debounce = self.debounce.as_mut().filter(|debounce| debounce.alarm.is_none())?;
        debounce.alarm = debounce.due.first().map(|(until, _)| *until);
        debounce.alarm
    }

    /// The time that was asked for has come: what has been quiet waits to be delivered.
    pub fn release_due(&mut self, now: Duration) {
        if let Some(debounce) = &mut self.debounce {
            debounce.alarm = None;
        }
        self.release_until(now);
    }

    /// Releases everything, and holds nothing more.
    pub fn stop_holding(&mut self) {
        if let Some(debounce) = &mut self.debounce {
            debounce.is_over = true;
        }
        self.release_until(Duration::MAX);
    }

    pub(super) fn release_until(&mut self, now: Duration) {
        if self.held() == 0 {
            return;
        }
        self.put_back();
        let newest = self.now;
        while let Some((key, since)) = self.debounce.as_mut().and_then(|debounce| debounce.pop_due(now)) {
            // The age of an event counts from when it began to be held.
            self.now = since;
            self.release(&key);
        }
        self.now = newest;
    }

    fn release(&mut self, key: &ObjectKey) {
        self.arrivals += 1;
        let (arrival, since) = (self.arrivals, self.now);
        let Some(debounce) = &mut self.debounce else { return };
        if let Waiting::Keys(keys) = &mut self.waiting {
            let cause = debounce.causes.remove(key);
            let is_new = cause.is_none_or(|cause| keys.touch(key, cause, arrival, since));
            self.counters.coalesced += u64::from(!is_new);
            return;
        }
        let events = debounce.events.take(key);
        for change in events.into_iter().flat_map(super::coalesce::KeyEvents::into_changes) {
            self.merge(change);
        }
    }
}
