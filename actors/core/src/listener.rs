//! What one subscription is owed: its backlog, under the policy `Coalesce`. For the others see `listener/ledger.rs`.
//!
//! Answers "what does this recipient have to be told next, and when has it seen the beginning?". A slow recipient
//! costs memory for the keys it is behind on, never for the events. Who sends and when is the actor's. Invariants:
//! 1. Told in order and replayed, what [`Backlog::take`] gives is the newest state once the backlog is empty, and
//!    every step of it passes [`invariants::Replay`].
//! 2. At most two events wait for a key, and only for keys that are live or owed a `Deleted`.
//! 3. Debts leave in order of arrival. A late join, a restart and a resync are one debt each, a cursor in that order
//!    and no queued events; a newer change of a key that a cursor has yet to tell first takes the key out of it.
//! 4. Each call is bounded work; nothing is ever dropped.
//!
//! ```text
//!  record ──▶ coalesce.rs ──▶ pending.rs ─┐
//!  starting_from, reattach, resync        ├─ by place ─▶ take ─▶ recipient ─▶ acknowledge
//!             └─────────────▶ cursor.rs ──┘
//! ```
//! Read next: `coalesce.rs`, the table; then `cursor.rs`; `ledger.rs`, the policies side by side.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::delta::{Cause, Change};
use crate::meta::ObjectKey;
use crate::snapshot::{DiffCursor, Sameness, Snapshot};

mod coalesce;
mod cursor;
mod every;
pub mod invariants;
mod ledger;
mod pending;

pub use ledger::{Ledger, Policy, WhenFull};

use cursor::{Cursor, Purpose, from_nothing};
use pending::{Arrival, Merged, Pending, Place};

/// More unfinished cursors than this are written out a chunk at a time, so that they and the snapshots they hold
/// stay few however often the group restarts under a recipient that does not move.
const CURSORS: usize = 4;

/// How many keys of a surplus cursor are written out in one call.
const CHUNK: usize = 250;

/// What one subscription is owed.
///
/// ```
/// use informer_core::delta::{Cause, Change};
/// use informer_core::listener::Backlog;
/// use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
/// use informer_core::snapshot::Snapshot;
/// let object = |number| {
///     let version = ResourceVersion::from_number(number).expect("not zero");
///     let key = ObjectKey::cluster("web");
///     Object::new(Meta { key, uid: None, version, source: SourceId::default(), wire_bytes: 0 }, ())
/// };
/// let mut backlog = Backlog::starting_from(Snapshot::empty());
/// backlog.record(&[Change::Added { object: object(1), cause: Cause::Watch }]);
/// backlog.record(&[Change::Updated { old: object(1), object: object(2), cause: Cause::Watch }]);
/// let told = backlog.take(64);
/// assert!(matches!(&told[..], [Change::Added { object, .. }] if object.version().to_string() == "2"));
/// ```
pub struct Backlog<S> {
    pending: Pending<S>,
    cursors: VecDeque<Cursor<S>>,
    initial: InitialEvents,
    arrivals: u64,
    now: Duration,
    counters: Counters,
}

/// The numbers of one backlog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BacklogStats {
    /// Keys that are owed something: those written out, and those that the initial list or a resync has yet to
    /// tell. What a restart still owes is not known before its cursor gets there, and not counted.
    pub depth: usize,
    /// Events written out: at most two a key under `Coalesce`.
    pub events: usize,
    /// Unfinished cursors.
    pub cursors: usize,
    /// Events that the recipient was spared because a newer one said more.
    pub coalesced: u64,
    /// Events that were dropped because the backlog was full: zero under `Coalesce`.
    pub dropped: u64,
    /// What the events written out weigh, as [`Policy::Every`] counts it; zero under `Coalesce`.
    pub bytes: usize,
    /// Events handed out.
    pub delivered: u64,
    /// Changes that could not follow what was pending: zero, or the store has a fault.
    pub impossible: u64,
    /// The number of the oldest debt; debts are numbered in order of arrival.
    pub oldest: Option<u64>,
    /// When the oldest debt arrived, by [`Backlog::set_now`].
    pub oldest_since: Option<Duration>,
}

#[derive(Debug, Default)]
struct Counters {
    coalesced: u64,
    delivered: u64,
    impossible: u64,
}

/// How far the recipient is with the events that the subscription began with.
#[derive(Debug, Default)]
struct InitialEvents {
    pending: usize,
    are_in_flight: bool,
    are_delivered: bool,
}

impl<S> Backlog<S> {
    /// Owes `Added{InitialList}` for every object of `now`, the snapshot that the subscription begins with. O(1).
    pub fn starting_from(now: Snapshot<S>) -> Self {
        let mut backlog = Self {
            pending: Pending::new(),
            cursors: VecDeque::new(),
            initial: InitialEvents::default(),
            arrivals: 0,
            now: Duration::ZERO,
            counters: Counters::default(),
        };
        backlog.owe(Purpose::InitialList, from_nothing(now));
        backlog.latch();
        backlog
    }

    /// Tells the time that debts which arrive from here on are stamped with; only statistics show it.
    pub fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// Owes live changes, in their order; logarithmic each, at most 250 a call by contract.
    pub fn record(&mut self, changes: &[Change<S>]) {
        for change in changes {
            self.settle(change.key());
            let place = Place { arrival: self.next_arrival(), step: 0 };
            let arrival = Arrival { place, since: self.now, is_initial: false, sameness: Sameness::State };
            self.merge(change.clone(), arrival);
        }
        self.tidy();
    }

    /// Owes what a list has changed, with its cause. O(1).
    pub(crate) fn record_list(&mut self, before: Snapshot<S>, after: Snapshot<S>, cause: Cause) {
        self.owe(Purpose::Listed(cause), DiffCursor::by_identity(before, after));
        self.tidy();
    }

    /// How many events have to be handed out at most until all that is owed now has been.
    pub(crate) fn owed_at_most(&self) -> usize {
        self.pending.len() + self.cursors.iter().map(Cursor::at_most).sum::<usize>()
    }

    /// Owes what leads from `seen`, the state of all that was recorded, to `now`, with cause `Relist`: the group has
    /// restarted, and what happened in between was not recorded. What is owed already stays owed. O(1).
    pub fn reattach(&mut self, seen: Snapshot<S>, now: Snapshot<S>) {
        self.owe(Purpose::Relist, DiffCursor::by_identity(seen, now));
        self.tidy();
    }

    /// Owes `Updated{cause: Resync}`, old and new the same, for each object of `snapshot`, the state of all that was
    /// recorded. A key whose change is owed, or comes before the resync gets there, is told that and no resync. Let
    /// go while an earlier resync is running, and while the initial list is: then all is being told anyway. O(1).
    pub fn resync(&mut self, snapshot: Snapshot<S>) {
        if !self.cursors.iter().any(|cursor| cursor.purpose().tells_all()) {
            self.owe(Purpose::Resync, from_nothing(snapshot));
            self.tidy();
        }
    }

    /// The next changes to tell, at most `max`. It visits at most four times as many keys, so it may give fewer, or
    /// none, while something is owed: then call again.
    pub fn take(&mut self, max: usize) -> Vec<Change<S>> {
        let mut told = Vec::new();
        let mut visits = max.saturating_mul(4);
        while told.len() < max && visits > 0 {
            match self.next_debt() {
                Debt::None => break,
                Debt::Cursor => {
                    let keys = (max - told.len()).min(visits);
                    visits -= keys;
                    self.pull(keys);
                }
                Debt::Pending(key) => {
                    visits -= 1;
                    self.settle(&key);
                    told.extend(self.take_pending(&key));
                }
            }
        }
        self.tidy();
        told
    }

    /// Whether nothing at all is owed.
    pub fn is_empty(&self) -> bool {
        self.pending.len() == 0 && self.cursors.is_empty()
    }

    /// The recipient has handled everything taken so far.
    pub fn acknowledge(&mut self) {
        self.initial.are_in_flight = false;
        self.latch();
        if self.is_empty() {
            // Every subscription has one of these: an idle one holds no room for what is not there.
            (self.pending, self.cursors) = (Pending::new(), VecDeque::new());
        }
    }

    /// Whether the recipient has handled the last of the initial events: those of the snapshot that the
    /// subscription began with. Latched; true at once if that was empty.
    pub fn initial_delivered(&self) -> bool {
        self.initial.are_delivered
    }

    /// The numbers, without walking anything.
    pub fn stats(&self) -> BacklogStats {
        let oldest_is_cursor = matches!(self.next_debt(), Debt::Cursor);
        let first_place = self.pending.first().map(|(place, _)| place);
        let cursor = self.cursors.front().filter(|_| oldest_is_cursor);
        let remaining: usize = self.cursors.iter().map(Cursor::remaining).sum();
        BacklogStats {
            depth: self.pending.len() + remaining,
            events: self.pending.events(),
            cursors: self.cursors.len(),
            coalesced: self.counters.coalesced,
            dropped: 0,
            bytes: 0,
            delivered: self.counters.delivered,
            impossible: self.counters.impossible,
            oldest: cursor.map(Cursor::place).or(first_place).map(|place| place.arrival),
            oldest_since: cursor.map(Cursor::since).or_else(|| self.pending.first_since()),
        }
    }

    fn owe(&mut self, purpose: Purpose, diff: DiffCursor<S>) {
        let arrival = self.next_arrival();
        let cursor = Cursor::new(purpose, diff, arrival, self.now);
        if !cursor.is_settled() {
            self.cursors.push_back(cursor);
        }
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    fn next_debt(&self) -> Debt {
        match (self.cursors.front(), self.pending.first()) {
            (None, None) => Debt::None,
            (Some(cursor), Some((place, key))) if place < cursor.place() => Debt::Pending(key.clone()),
            (Some(_), _) => Debt::Cursor,
            (None, Some((_, key))) => Debt::Pending(key.clone()),
        }
    }

    /// Writes out what the cursors owe for one key, because something newer of it is about to follow.
    fn settle(&mut self, key: &ObjectKey) {
        for index in 0..self.cursors.len() {
            if self.cursors[index].purpose() == Purpose::Resync {
                continue;
            }
            for (change, arrival) in self.cursors[index].overtake(key) {
                self.merge(change, arrival);
            }
        }
    }

    /// Lets the first cursor pass some keys and writes out what it owes for them.
    fn pull(&mut self, keys: usize) {
        let Some(mut cursor) = self.cursors.pop_front() else { return };
        for (change, arrival) in cursor.advance(keys) {
            self.merge(change, arrival);
        }
        if !cursor.is_settled() {
            self.cursors.push_front(cursor);
        }
    }

    fn merge(&mut self, change: Change<S>, arrival: Arrival) {
        let key = change.key().clone();
        let events = self.pending.events() + 1;
        let merged = self.pending.merge(change, arrival);
        self.counters.coalesced += (events - self.pending.events()) as u64;
        match merged {
            Merged::Alone => self.initial.pending += usize::from(arrival.is_initial),
            Merged::Together => {}
            Merged::Nothing { was_initial } => {
                self.initial.pending -= usize::from(was_initial);
                self.needs_no_resync(&key);
            }
            Merged::Impossible => {
                self.counters.impossible += 1;
                debug_assert!(false, "a change of {key} cannot follow what is pending");
            }
        }
    }

    /// Takes the first pending event, if it is still one of this key.
    fn take_pending(&mut self, key: &ObjectKey) -> Option<Change<S>> {
        if self.pending.first().is_none_or(|(_, first)| first != key) {
            return None;
        }
        let taken = self.pending.take_first()?;
        self.counters.delivered += 1;
        if taken.is_initial {
            self.initial.pending -= usize::from(taken.is_last);
            self.initial.are_in_flight = true;
        }
        if taken.is_last {
            self.needs_no_resync(key);
        }
        Some(taken.change)
    }

    /// A key whose pending change has left needs no resync that was due before: it was told, or its state in the
    /// resync's snapshot is no longer the one told last.
    fn needs_no_resync(&mut self, key: &ObjectKey) {
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.purpose() == Purpose::Resync) {
            cursor.overtake(key);
        }
    }

    fn tidy(&mut self) {
        if self.cursors.len() > CURSORS {
            self.pull(CHUNK);
        }
        self.cursors.retain(|cursor| !cursor.is_settled());
        self.latch();
    }

    fn latch(&mut self) {
        let is_listing = self.cursors.iter().any(|cursor| cursor.purpose() == Purpose::InitialList);
        if !is_listing && self.initial.pending == 0 && !self.initial.are_in_flight {
            self.initial.are_delivered = true;
        }
    }
}

/// What is to be told next.
enum Debt {
    None,
    Cursor,
    Pending(ObjectKey),
}

impl<S> fmt::Debug for Backlog<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backlog").field("stats", &self.stats()).field("initial", &self.initial).finish()
    }
}

#[cfg(test)]
mod tests;
