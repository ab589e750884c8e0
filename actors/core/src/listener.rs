//! What one subscription is owed, and what it is told next.
//!
//! Answers "what does this recipient have to be told next, and when has it seen the beginning?". A slow recipient
//! costs memory for the keys it is behind on (`Coalesce`) or up to a bound (`Every`), never for a list, and nobody
//! waits for it. Who sends and when is the actor's. Invariants:
//! 1. Told in order and replayed, what [`Ledger::take`] gives is the newest state once nothing is owed, and every step
//!    of it passes [`invariants::Replay`].
//! 2. Debts leave in order of arrival. A list, a late join, a restart and a resync are cursors, and cost O(1) memory.
//! 3. Under `Coalesce` lists' cursors lead to the newest state: a live event of a key that one has yet to pass costs
//!    nothing and is told with the cursor's cause. Of another key, events that wait merge. Under `Every` nothing does.
//! 4. The initial events are delivered when all that was owed at the first list of the last source has been handled.
//!
//! ```text
//!  publish ──▶ pending.rs (merged by key) or line.rs (Every) ─┐
//!  first list, relist, reattach, resync ──▶ cursor.rs ────────┴─ by arrival ─▶ ready ─▶ take ─▶ acknowledge
//! ```
//! Read next: `coalesce.rs`, the table; `cursor.rs`; then `listener/machine.rs`, when what is delivered.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::delta::{Cause, Change, Changes};
use crate::meta::{ResourceVersion, SourceId};
use crate::off_arbiter::Freeing;
use crate::snapshot::Snapshot;

mod coalesce;
mod cursor;
mod debts;
pub mod invariants;
mod line;
pub mod machine;
mod pending;
mod policy;

pub use policy::{BacklogStats, MOST_BRIEF_LIVES, Policy, WhenFull};

use cursor::{Cursor, Purpose};
use line::{Events, Line};
use pending::Pending;

/// More unfinished cursors than this are written out a chunk at a time, or make an `Every` subscription full.
const CURSORS: usize = 4;

/// How many keys of a surplus cursor are written out in one call.
const CHUNK: usize = 250;

/// What one subscription is owed.
///
/// ```
/// use informer_core::listener::{Ledger, Policy};
/// use informer_core::snapshot::Snapshot;
/// let ledger = Ledger::<()>::starting_from(Policy::Coalesce, [], Snapshot::empty());
/// assert!(ledger.is_empty() && ledger.initial_delivered());
/// ```
pub struct Ledger<S> {
    /// The state of all that is owed or was told.
    newest: Snapshot<S>,
    /// Told next, in this order, before everything else.
    ready: VecDeque<(u64, Duration, Change<S>)>,
    /// In order of arrival.
    cursors: VecDeque<Cursor<S>>,
    waiting: Waiting<S>,
    /// The versions of the last list: a life that is older was in it.
    listed: Box<[(SourceId, ResourceVersion)]>,
    /// `None` once the initial events are delivered.
    initial: Option<Box<Initial>>,
    /// Something was taken and is not acknowledged.
    is_under_way: bool,
    arrivals: u64,
    now: Duration,
    counters: Counters,
}

/// The events that wait: all that a policy decides.
enum Waiting<S> {
    /// Boxed, and there only while something waits: an idle subscription is to cost little.
    Coalesced {
        pending: Option<Box<Pending<S>>>,
        most_briefs: usize,
    },
    Every(Box<Line<S>>),
}

/// How far the recipient is with the events that the subscription began with.
#[derive(Debug)]
struct Initial {
    /// Sources of which no list has come.
    missing: Vec<SourceId>,
    /// What arrived up to this is to be handled first.
    until: u64,
}

#[derive(Debug, Default)]
struct Counters {
    coalesced: u64,
    delivered: u64,
    dropped: u64,
    impossible: u64,
}

impl<S> Ledger<S> {
    /// Owes `Added{InitialList}` for every object of `now`, the snapshot that the subscription begins with, and waits
    /// for the first lists of those `sources` that it does not hold. O(1).
    pub fn starting_from(
        policy: Policy,
        sources: impl IntoIterator<Item = SourceId>,
        now: Snapshot<S>,
    ) -> Self {
        let waiting = match policy {
            Policy::Coalesce => Waiting::Coalesced { pending: None, most_briefs: MOST_BRIEF_LIVES },
            Policy::Every { bytes, when_full } => Waiting::Every(Box::new(Line::new(bytes, when_full))),
        };
        let missing = sources.into_iter().collect();
        let mut ledger = Self {
            newest: Snapshot::empty(),
            ready: VecDeque::new(),
            cursors: VecDeque::new(),
            waiting,
            listed: Box::default(),
            initial: Some(Box::new(Initial { missing, until: 1 })),
            is_under_way: false,
            arrivals: 0,
            now: Duration::ZERO,
            counters: Counters::default(),
        };
        ledger.owe_list(Snapshot::empty(), &now, Cause::InitialList);
        ledger.reach(now);
        ledger
    }

    /// Has events that nobody is told any more freed in this way.
    pub(crate) fn free_by(mut self, freeing: &Freeing<Events<S>>) -> Self {
        if let Waiting::Every(line) = &mut self.waiting {
            line.free_by(freeing);
        }
        self
    }

    /// Of so many keys at most a life that came and went is kept to be told: [`MOST_BRIEF_LIVES`] if nothing is said.
    #[must_use]
    pub fn with_brief_lives(mut self, most: usize) -> Self {
        if let Waiting::Coalesced { most_briefs, .. } = &mut self.waiting {
            *most_briefs = most;
        }
        self
    }

    /// Tells the time that debts which arrive from here on are stamped with; only statistics show it.
    pub fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// Owes what a publish changed, which is `snapshot` now: parts, at most 250, logarithmic each, or a list, O(1).
    pub fn publish<'a>(&mut self, changes: impl IntoIterator<Item = &'a Changes<S>>, snapshot: &Snapshot<S>)
    where
        S: 'a,
    {
        let mut lost = 0;
        for change in changes {
            match change {
                Changes::Parts(changes) => lost += self.owe_events(changes),
                Changes::Listed { before, after, cause, .. } => {
                    self.owe_list(before.clone(), after, *cause);
                }
            }
        }
        if lost > 0 || self.has_too_many_cursors() {
            self.overflow_now(lost, snapshot);
        }
        self.reach(snapshot.clone());
    }

    /// Owes what leads from the state of the last publish to `now`, with cause `Relist`: the group has restarted, and
    /// what happened in between was not told. O(1).
    pub fn reattach(&mut self, now: Snapshot<S>) {
        self.owe_list(self.newest.clone(), &now, Cause::Relist);
        if self.has_too_many_cursors() {
            self.overflow_now(0, &now);
        }
        self.reach(now);
    }

    /// Owes `Updated{cause: Resync}`, old and new the same, for each object. One that changes before the resync gets
    /// there, or whose change still waits then, is told that and no resync. Let go while an earlier resync is running,
    /// and while the initial events are told: then all is being told anyway. It looks through what is ready to be
    /// told: a chunk.
    pub fn resync(&mut self) {
        let is_resync = |cursor: &Cursor<S>| cursor.purpose == Purpose::Resync;
        let is_running = self.cursors.iter().any(is_resync)
            || self.ready.iter().any(|(_, _, change)| change.cause() == Cause::Resync);
        if !self.is_telling_initial() && !is_running && !self.is_closed() {
            let states = (Snapshot::empty(), self.newest.clone());
            self.push_cursor(Cursor::new(Purpose::Resync, states, (None, None)));
        }
    }

    /// Some sources may be no more: their first lists are not waited for.
    pub fn forget_sources(&mut self, is_gone: impl Fn(&SourceId) -> bool) {
        if let Some(initial) = &mut self.initial {
            initial.missing.retain(|missing| !is_gone(missing));
        }
        self.latch();
    }

    /// The next changes to tell, at most `max`. It visits at most four times as many keys, so it may give fewer, or
    /// none, while something is owed: then call again.
    pub fn take(&mut self, max: usize) -> Vec<Change<S>> {
        let mut visits = if max == 0 { 0 } else { max.saturating_mul(4).saturating_add(1) };
        let is_all = self.cursors.is_empty() && self.waiting.len() + self.ready.len() <= max;
        // One more than asked for is looked for behind a cursor, so that its end shows.
        while visits > 0 && (self.ready.len() < max || (self.ready.len() == max && self.is_cursor_next())) {
            if !self.make_ready(max + 1 - self.ready.len(), &mut visits, is_all) {
                break;
            }
        }
        let count = self.ready.len().min(max);
        let told: Vec<Change<S>> = self.ready.drain(..count).map(|(_, _, change)| change).collect();
        self.counters.delivered += told.len() as u64;
        self.is_under_way |= !told.is_empty();
        self.tidy();
        told
    }

    /// Whether nothing at all is owed.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.cursors.is_empty() && self.waiting.len() == 0
    }

    /// The recipient has handled everything taken so far.
    pub fn acknowledge(&mut self) {
        self.is_under_way = false;
        self.latch();
        if self.is_empty() {
            // Every subscription has one of these: an idle one holds no room for what is not there.
            (self.ready, self.cursors, self.listed) = (VecDeque::new(), VecDeque::new(), Box::default());
            self.waiting.shrink();
        }
    }

    /// Whether the recipient has handled the initial events: the first list of every source, or what a newer state
    /// made of it. Latched.
    pub const fn initial_delivered(&self) -> bool {
        self.initial.is_none()
    }

    /// How many events were dropped, if the subscription has to end over it: nothing more is owed then.
    pub fn overflow(&self) -> Option<u64> {
        self.is_closed().then_some(self.counters.dropped)
    }

    /// The numbers, without walking anything.
    pub fn stats(&self) -> BacklogStats {
        let remaining: usize = self.cursors.iter().map(Cursor::remaining).sum();
        let oldest = self.oldest();
        let (events, bytes) = match &self.waiting {
            Waiting::Coalesced { pending, .. } => (pending.as_ref().map_or(0, |pending| pending.events()), 0),
            Waiting::Every(line) => (line.len(), line.bytes),
        };
        BacklogStats {
            depth: self.ready.len() + self.waiting.len() + remaining,
            events: self.ready.len() + events,
            cursors: self.cursors.len(),
            coalesced: self.counters.coalesced,
            dropped: self.counters.dropped,
            bytes,
            delivered: self.counters.delivered,
            impossible: self.counters.impossible,
            oldest: oldest.map(|(arrival, _)| arrival),
            oldest_since: oldest.map(|(_, since)| since),
        }
    }

    fn is_closed(&self) -> bool {
        matches!(&self.waiting, Waiting::Every(line) if line.is_closed)
    }

    /// The oldest debt, and since when it waits.
    fn oldest(&self) -> Option<(u64, Duration)> {
        let ready = self.ready.front().map(|(arrival, since, _)| (*arrival, *since));
        ready.or_else(|| self.next_debt())
    }

    /// The oldest debt that is not ready.
    fn next_debt(&self) -> Option<(u64, Duration)> {
        let cursor = self.cursors.front().map(|cursor| (cursor.arrival, cursor.since));
        match (cursor, self.waiting.first()) {
            (Some(cursor), Some(event)) => Some(cursor.min(event)),
            (cursor, event) => cursor.or(event),
        }
    }

    fn is_cursor_next(&self) -> bool {
        let cursor = self.cursors.front().map(|cursor| cursor.arrival);
        cursor.is_some() && cursor == self.next_debt().map(|(arrival, _)| arrival)
    }

    /// Whether something that arrived with the initial events is owed or under way.
    fn is_telling_initial(&self) -> bool {
        let is_owed = |until| self.oldest().is_some_and(|(arrival, _)| arrival <= until);
        self.initial.as_ref().is_some_and(|initial| self.is_under_way || is_owed(initial.until))
    }

    fn latch(&mut self) {
        let is_listed = self.initial.as_ref().is_some_and(|initial| initial.missing.is_empty());
        if is_listed && !self.is_closed() && !self.is_telling_initial() {
            self.initial = None;
        }
    }
}

impl<S> fmt::Debug for Ledger<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("stats", &self.stats())
            .field("initial", &self.initial)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
