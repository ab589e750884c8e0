//! The policy `Every`: all events in one line, up to a bound of bytes.
//!
//! Answers "which event is next, and what if there are too many?". A late join, a list, a restart and a resync are one
//! debt each, a cursor in the line that weighs nothing; nothing overtakes anything. Invariants:
//! 1. Up to the bound every recorded event is told, in the order of recording, none merged.
//! 2. Beyond it what waits is dropped and counted: the journal closes, or it restates, which leads from what was told
//!    to the snapshot of the publish that was too much. Events told before and after replay to exactly that.
//! 3. A cursor that has begun to tell is never dropped, so what was told is always a state that can be named: the one
//!    that the cursor leads to, or else `told`.
//!
//! Bounds: the bytes; [`CURSORS`] lists and restarts, beyond which it is full, too; to restate, one map of objects,
//! shared with the snapshots it came from. Read next: `listener/cursor.rs`.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::cursor::{Cursor, Purpose, from_nothing};
use super::{BacklogStats, CURSORS, WhenFull};
use crate::delta::{Cause, Change};
use crate::snapshot::{DiffCursor, Frame, Snapshot};

/// What an event weighs beside its object.
const EVENT_BYTES: usize = 64;

pub(super) struct Journal<S> {
    bound: usize,
    when_full: WhenFull,
    line: VecDeque<Entry<S>>,
    /// What the first cursor gave beyond what was asked for.
    surplus: VecDeque<Change<S>>,
    cursors: usize,
    bytes: usize,
    state: State,
    /// The state of all that was recorded, and whether changes that lead beyond it were recorded since.
    seen: Snapshot<S>,
    is_between: bool,
    /// The publish being recorded is that of a list, of this cause.
    listed: Option<Cause>,
    /// The state that was told, unless a cursor has begun; kept only to restate.
    told: Frame<S>,
    initial: Initial,
    now: Duration,
    arrivals: u64,
    delivered: u64,
    dropped: u64,
}

enum Entry<S> {
    Event { change: Change<S>, arrival: u64, since: Duration },
    Cursor(Cursor<S>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Events are dropped until the publish that they belong to is complete.
    Restating,
    Closed,
}

/// How far the recipient is with the events that the subscription began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Initial {
    Waiting,
    InFlight,
    Delivered,
}

impl<S> Journal<S> {
    pub(super) fn starting_from((bound, when_full): (usize, WhenFull), now: Snapshot<S>) -> Self {
        let mut journal = Self {
            bound,
            when_full,
            line: VecDeque::new(),
            surplus: VecDeque::new(),
            cursors: 0,
            bytes: 0,
            state: State::Open,
            seen: now.clone(),
            is_between: false,
            listed: None,
            told: Frame::default(),
            initial: Initial::Waiting,
            now: Duration::ZERO,
            arrivals: 0,
            delivered: 0,
            dropped: 0,
        };
        journal.owe(Purpose::InitialList, from_nothing(now));
        journal.latch();
        journal
    }

    pub(super) const fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    pub(super) fn record(&mut self, changes: &[Change<S>]) {
        let first = changes.first().filter(|_| !self.is_between).map(Change::cause);
        self.listed = self.listed.or_else(|| first.filter(|cause| is_list(*cause)));
        self.is_between = true;
        if self.listed.is_some() && self.state == State::Open {
            return;
        }
        for (at, change) in changes.iter().enumerate() {
            let bytes = weight(change);
            if self.state == State::Open && self.bytes > 0 && self.bytes + bytes > self.bound {
                self.overflow_now();
            }
            if self.state != State::Open {
                self.dropped += (changes.len() - at) as u64;
                return;
            }
            self.bytes += bytes;
            self.arrivals += 1;
            let (arrival, since) = (self.arrivals, self.now);
            self.line.push_back(Entry::Event { change: change.clone(), arrival, since });
        }
    }

    /// The difference to the snapshot that [`Self::recorded`] brings is that of a list.
    pub(super) fn record_list(&mut self, cause: Cause) {
        self.is_between = true;
        self.listed = Some(cause);
    }

    pub(super) fn recorded(&mut self, snapshot: &Snapshot<S>) {
        let seen = std::mem::replace(&mut self.seen, snapshot.clone());
        self.is_between = false;
        if let (Some(cause), State::Open) = (self.listed.take(), self.state) {
            self.owe(Purpose::Listed(cause), DiffCursor::by_identity(seen, snapshot.clone()));
            self.check_cursors();
        }
        if self.state == State::Restating {
            self.state = State::Open;
            let from = match self.line.back() {
                Some(Entry::Cursor(cursor)) => cursor.newer().clone(),
                _ => Snapshot::publish(self.told.objects_only()),
            };
            self.owe(Purpose::Gap, DiffCursor::by_identity(from, snapshot.clone()));
        }
        self.catch_up();
    }

    pub(super) fn reattach(&mut self, seen: Snapshot<S>, now: Snapshot<S>) {
        let from = match self.line.back() {
            // Nothing was recorded since the last restart: one gap with it.
            Some(Entry::Cursor(gap)) if gap.purpose() == Purpose::Gap && !gap.has_begun() => {
                let from = gap.newer().ptr_eq(&seen).then(|| gap.older().clone());
                if from.is_some() {
                    self.cursors -= 1;
                    self.line.pop_back();
                }
                from
            }
            _ => None,
        };
        if self.state == State::Open {
            self.owe(Purpose::Gap, DiffCursor::by_identity(from.unwrap_or(seen), now.clone()));
        }
        self.check_cursors();
        self.recorded(&now);
    }

    pub(super) fn resync(&mut self, snapshot: Snapshot<S>) {
        let is_telling_all =
            |entry: &Entry<S>| matches!(entry, Entry::Cursor(cursor) if cursor.purpose().tells_all());
        if self.state == State::Open && !(self.cursors > 0 && self.line.iter().any(is_telling_all)) {
            self.owe(Purpose::Resync, from_nothing(snapshot));
        }
    }

    pub(super) fn take(&mut self, max: usize) -> Vec<Change<S>> {
        let mut taken: Vec<Change<S>> = self.surplus.drain(..self.surplus.len().min(max)).collect();
        let mut visits = max.saturating_mul(4);
        // Who takes all that there is has been told what was recorded: no need to go through it.
        let is_all = !self.is_between && self.cursors == 0 && self.line.len() <= max - taken.len();
        while taken.len() < max && visits > 0 {
            match self.line.pop_front() {
                None => break,
                Some(Entry::Event { change, .. }) => {
                    self.bytes -= weight(&change);
                    if !is_all {
                        self.tell(&change);
                    }
                    taken.push(change);
                }
                Some(Entry::Cursor(cursor)) => {
                    let keys = (max - taken.len()).min(visits);
                    visits -= keys;
                    self.pull(cursor, keys);
                    let count = self.surplus.len().min(max - taken.len());
                    taken.extend(self.surplus.drain(..count));
                }
            }
        }
        self.delivered += taken.len() as u64;
        self.catch_up();
        self.latch();
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.surplus.is_empty() && self.state != State::Restating
    }

    pub(super) fn acknowledge(&mut self) {
        if self.initial == Initial::InFlight {
            self.initial = Initial::Waiting;
        }
        self.latch();
        if self.is_empty() {
            // As under `Coalesce`: an idle subscription holds no room for what is not there.
            (self.line, self.surplus) = (VecDeque::new(), VecDeque::new());
        }
    }

    pub(super) fn initial_delivered(&self) -> bool {
        self.initial == Initial::Delivered
    }

    pub(super) fn owed_at_most(&self) -> u64 {
        let owed = self.line.iter().map(|entry| match entry {
            Entry::Cursor(cursor) => cursor.at_most(),
            Entry::Event { .. } => 1,
        });
        (owed.sum::<usize>() + self.surplus.len()) as u64
    }

    pub(super) fn overflow(&self) -> Option<u64> {
        (self.state == State::Closed).then_some(self.dropped)
    }

    pub(super) fn stats(&self) -> BacklogStats {
        let (oldest, oldest_since) = match self.line.front() {
            None => (None, None),
            Some(Entry::Event { arrival, since, .. }) => (Some(*arrival), Some(*since)),
            Some(Entry::Cursor(cursor)) => (Some(cursor.place().arrival), Some(cursor.since())),
        };
        BacklogStats {
            depth: self.events() + self.remaining(),
            events: self.events(),
            cursors: self.cursors,
            dropped: self.dropped,
            bytes: self.bytes,
            delivered: self.delivered,
            oldest,
            oldest_since,
            ..BacklogStats::default()
        }
    }

    fn events(&self) -> usize {
        self.line.len() - self.cursors + self.surplus.len()
    }

    /// How many keys the cursors have yet to tell, as far as that is known.
    fn remaining(&self) -> usize {
        if self.cursors == 0 {
            return 0;
        }
        let cursors = self.line.iter().map(|entry| match entry {
            Entry::Cursor(cursor) => cursor.remaining(),
            Entry::Event { .. } => 0,
        });
        cursors.sum()
    }

    fn owe(&mut self, purpose: Purpose, diff: DiffCursor<S>) {
        self.arrivals += 1;
        let cursor = Cursor::new(purpose, diff, self.arrivals, self.now);
        if !cursor.is_settled() {
            self.cursors += 1;
            self.line.push_back(Entry::Cursor(cursor));
        }
    }

    /// Too many snapshots are held for the recipient: full. First lists do not count, each source has one.
    fn check_cursors(&mut self) {
        let counts = |entry: &&Entry<S>| match entry {
            Entry::Event { .. } => false,
            Entry::Cursor(cursor) => match cursor.purpose() {
                Purpose::Gap | Purpose::Relist => true,
                Purpose::Listed(cause) => cause != Cause::InitialList,
                Purpose::InitialList | Purpose::Resync => false,
            },
        };
        if self.cursors > CURSORS && self.line.iter().filter(counts).count() > CURSORS {
            self.overflow_now();
        }
    }

    /// Lets the first cursor pass some keys; when it is over, what was told is what it led to.
    fn pull(&mut self, mut cursor: Cursor<S>, keys: usize) {
        let changes = cursor.advance(keys).into_iter().map(|(change, _)| change);
        self.surplus.extend(changes);
        if cursor.purpose() == Purpose::InitialList && !self.surplus.is_empty() {
            self.initial = Initial::InFlight;
        }
        if cursor.is_settled() {
            self.cursors -= 1;
            self.knows(cursor.newer());
        } else {
            self.line.push_front(Entry::Cursor(cursor));
        }
    }

    /// Believes an event that is told, as its recipient does.
    fn tell(&mut self, change: &Change<S>) {
        if self.when_full != WhenFull::Restate {
            return;
        }
        match change.object() {
            Some(object) => drop(self.told.insert(object.clone())),
            None => drop(self.told.remove(change.key())),
        }
    }

    /// With nothing left to tell, what was told is what was recorded.
    fn catch_up(&mut self) {
        if self.line.is_empty() && !self.is_between {
            self.knows(&self.seen.clone());
        }
    }

    fn knows(&mut self, told: &Snapshot<S>) {
        if self.when_full == WhenFull::Restate {
            self.told = told.frame().objects_only();
        }
    }

    /// Drops what waits, but for a cursor that has begun: that one ends in a state that can be named. The initial list
    /// stays in any case, so that it is told as such.
    fn overflow_now(&mut self) {
        let begun = match self.when_full {
            WhenFull::Restate => self.line.pop_front_if(|entry| match entry {
                Entry::Cursor(cursor) => cursor.has_begun() || cursor.purpose() == Purpose::InitialList,
                Entry::Event { .. } => false,
            }),
            WhenFull::Disconnect => None,
        };
        self.cursors -= usize::from(begun.is_some());
        let lost = self.line.len() - self.cursors + self.remaining();
        self.dropped += lost as u64;
        self.line.clear();
        self.line.extend(begun);
        self.cursors = self.line.len();
        self.bytes = 0;
        self.state = State::Restating;
        if self.when_full == WhenFull::Disconnect {
            self.dropped += std::mem::take(&mut self.surplus).len() as u64;
            self.state = State::Closed;
        }
    }

    fn latch(&mut self) {
        // Nothing comes before the initial list, so it is first in the line as long as it is there.
        let is_listing = matches!(
            self.line.front(),
            Some(Entry::Cursor(cursor)) if cursor.purpose() == Purpose::InitialList
        );
        if self.initial == Initial::Waiting && !is_listing && self.state != State::Closed {
            self.initial = Initial::Delivered;
        }
    }
}

/// Whether a change of this cause comes with a list: then so do all others of its publish.
fn is_list(cause: Cause) -> bool {
    matches!(cause, Cause::InitialList | Cause::Relist | Cause::Rewind)
}

fn weight<S>(change: &Change<S>) -> usize {
    let (Change::Added { object: subject, .. }
    | Change::Updated { object: subject, .. }
    | Change::Deleted { last: subject, .. }) = change;
    EVENT_BYTES + subject.wire_bytes() as usize
}

impl<S> fmt::Debug for Journal<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("when_full", &self.when_full)
            .field("state", &self.state)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
