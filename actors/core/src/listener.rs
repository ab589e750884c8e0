//! The events of one subscription that wait to be delivered. Invariants:
//! 1. Once nothing waits, the events of [`Backlog::take`] have led to the newest state. Every step passes
//!    [`invariants::Replay`].
//! 2. Entries leave in order of arrival. A list, a late join, a restart and a resync are cursors: O(1) memory.
//! 3. Under `Coalesce` events of one key merge, or a cursor that has yet to pass the key stands for them. Under
//!    `Every` nothing merges.
//! 4. The initial events end when all that waited at the first list of the last source is handled.
//!
//! ```text
//!  publish ──▶ pending.rs (by key) or waiting.rs (Every) ──┐
//!  first list, relist, reattach, resync ──▶ cursor.rs ─────┴─ by arrival ─▶ ready ─▶ take ─▶ acknowledge
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::delta::{Cause, Change, Changes};
use crate::meta::SourceId;
use crate::off_arbiter::Freeing;
use crate::snapshot::{Snapshot, SourceVersions};

mod coalesce;
mod cursor;
mod entries;
mod filter;
pub mod invariants;
mod keys;
pub mod machine;
mod pending;
mod progress;
mod waiting;

pub use filter::{ChangeFilter, Filter};
pub use keys::Notifications;
pub use progress::{FeedProgress, TAKEN_AT_ONCE};
pub use waiting::{BacklogStats, MOST_BRIEF_LIVES, Policy, WhenFull};

use cursor::{Cursor, Purpose};
use filter::Filtering;
use pending::Pending;
use waiting::{Events, Line, Waiting};

/// Beyond this number, unfinished cursors are walked, or make an `Every` subscription full if they have events.
const CURSORS: usize = 4;

const CHUNK: usize = 250;

/// The events of one subscription that wait to be delivered: single events, and cursors that stand for many.
///
/// ```
/// # use informer_core::listener::{Backlog, Policy};
/// # use informer_core::snapshot::Snapshot;
/// let backlog = Backlog::<()>::starting_from(Policy::Coalesce, [], Snapshot::empty());
/// assert!(backlog.is_empty() && backlog.initial_delivered());
/// ```
pub struct Backlog<S> {
    newest: Snapshot<S>,
    ready: VecDeque<(u64, Duration, Change<S>)>,
    cursors: VecDeque<Cursor<S>>,
    waiting: Waiting<S>,
    filter: Option<Box<Filtering<S>>>,
    /// The versions of the last list: an older life was in it.
    listed: Option<Box<SourceVersions>>,
    /// `None` once the initial events are delivered.
    initial: Option<Box<Initial>>,
    /// A resync runs while something that arrived up to this waits.
    resync_until: u64,
    is_under_way: bool,
    separates_initial: bool,
    arrivals: u64,
    now: Duration,
    counters: Counters,
}

#[derive(Debug)]
struct Initial {
    missing: Vec<SourceId>,
    /// What arrived up to this is handled first.
    until: u64,
}

#[derive(Debug, Default)]
struct Counters {
    coalesced: u64,
    delivered: u64,
    dropped: u64,
    impossible: u64,
}

impl<S> Backlog<S> {
    /// Adds an `Added{InitialList}` for every object of `now`, the snapshot that the subscription begins
    /// with, and waits for the first lists of those `sources` that it does not hold. O(1).
    pub fn starting_from(
        policy: Policy,
        sources: impl IntoIterator<Item = SourceId>,
        now: Snapshot<S>,
    ) -> Self {
        let missing = sources.into_iter().collect();
        let mut backlog = Self::empty(policy, Some(Box::new(Initial { missing, until: 1 })));
        backlog.add_list(Snapshot::empty(), &now, Cause::InitialList);
        backlog.reach(now);
        backlog
    }

    /// For a subscriber that has everything up to `seen` by an earlier backlog: adds what leads from there to
    /// `now`, with cause `Relist`. O(1).
    pub fn resumed_from(policy: Policy, seen: Snapshot<S>, now: Snapshot<S>) -> Self {
        let mut backlog = Self { newest: seen, ..Self::empty(policy, None) };
        backlog.reattach(now);
        backlog
    }

    fn empty(policy: Policy, initial: Option<Box<Initial>>) -> Self {
        let waiting = match policy {
            Policy::Coalesce => Waiting::Coalesced { pending: None, most_briefs: MOST_BRIEF_LIVES },
            Policy::Keys => Waiting::Keys(Box::default()),
            Policy::Every { bytes, when_full } => Waiting::Every(Box::new(Line::new(bytes, when_full))),
        };
        Self {
            newest: Snapshot::empty(),
            ready: VecDeque::new(),
            cursors: VecDeque::new(),
            waiting,
            filter: None,
            listed: None,
            initial,
            resync_until: 0,
            is_under_way: false,
            separates_initial: false,
            arrivals: 0,
            now: Duration::ZERO,
            counters: Counters::default(),
        }
    }

    pub(crate) fn free_by(mut self, freeing: &Freeing<Events<S>>) -> Self {
        if let Waiting::Every(line) = &mut self.waiting {
            line.free_by(freeing);
        }
        self
    }

    /// Delivers only what passes this filter. Set it before anything is taken or published.
    #[must_use]
    pub fn filtered_by(mut self, filter: Option<Arc<Filter<S>>>) -> Self {
        self.filter = filter.map(|filter| Box::new(Filtering { filter, dropped: 0 }));
        self
    }

    /// Sets for how many keys, at most, the last object is kept that was created and deleted before it was
    /// delivered. Default: [`MOST_BRIEF_LIVES`].
    #[must_use]
    pub fn with_brief_lives(mut self, most: usize) -> Self {
        if let Waiting::Coalesced { most_briefs, .. } = &mut self.waiting {
            *most_briefs = most;
        }
        self
    }

    /// Sets the arrival time of all that is added from here on; only statistics show it.
    pub fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// Adds the changes of a publish, whose state is `snapshot`: at most 250 parts, logarithmic each, or a
    /// list, O(1).
    pub fn publish<'a>(&mut self, changes: impl IntoIterator<Item = &'a Changes<S>>, snapshot: &Snapshot<S>)
    where
        S: 'a,
    {
        let mut lost = 0;
        for change in changes {
            match change {
                Changes::Parts(changes) => lost += self.add_events(changes),
                Changes::Listed { before, after, cause, .. } => self.add_list(before.clone(), after, *cause),
            }
        }
        if lost > 0 || self.has_too_many_lists() {
            self.overflow_now(lost, snapshot);
        }
        self.reach(snapshot.clone());
    }

    /// Adds what leads from the state of the last publish to `now`, with cause `Relist`: the group has
    /// restarted, and this listener was not sent what happened in between. O(1).
    pub fn reattach(&mut self, now: Snapshot<S>) {
        self.add_list(self.newest.clone(), &now, Cause::Relist);
        if self.has_too_many_lists() {
            self.overflow_now(0, &now);
        }
        self.reach(now);
    }

    /// Adds an `Updated{cause: Resync}`, old and new the same, for each object. If an object changes before
    /// the resync gets there, or its change still waits then, the change is delivered instead. Ignored while
    /// an earlier resync is running, and while the initial events are delivered, since they hold every
    /// object. O(1).
    pub fn resync(&mut self) {
        let is_running = self.oldest().is_some_and(|(arrival, _)| arrival <= self.resync_until);
        if !self.is_delivering_initial() && !is_running && !self.is_closed() {
            let states = (Snapshot::empty(), self.newest.clone());
            self.push_cursor(Cursor::new(Purpose::Resync, states, (None, None)));
            self.resync_until = self.arrivals;
        }
    }

    /// Sets the present sources. Until the initial events are delivered, the first list of each of them is
    /// waited for, also of one that was added since, and not of one that was removed. Call it before the
    /// changes of a newer state are added, and before [`Self::acknowledge`].
    pub fn follow_sources(&mut self, sources: impl IntoIterator<Item = SourceId>) {
        if let Some(initial) = &mut self.initial {
            let unlisted = sources.into_iter().filter(|source| self.newest.version(source).is_none());
            initial.missing = unlisted.collect();
        }
        self.latch();
    }

    /// The next changes to deliver, at most `max`; none under [`Policy::Keys`]. It visits at most four times
    /// as many keys, so it may return fewer, or none, while something waits: then call again.
    pub fn take(&mut self, max: usize) -> Vec<Change<S>> {
        let mut visits = if max == 0 { 0 } else { max.saturating_mul(4).saturating_add(1) };
        let is_all = self.cursors.is_empty() && self.waiting.len() + self.ready.len() <= max;
        // Looks for one more behind a cursor, so that its end shows.
        while visits > 0 && (self.ready.len() < max || (self.ready.len() == max && self.is_cursor_next())) {
            if !self.make_ready(max + 1 - self.ready.len(), &mut visits, is_all) {
                break;
            }
        }
        let count = self.takeable(max);
        let taken: Vec<Change<S>> = self.ready.drain(..count).map(|(_, _, change)| change).collect();
        self.counters.delivered += taken.len() as u64;
        self.is_under_way |= !taken.is_empty();
        self.latch();
        taken
    }

    /// From now on initial events are not taken together with later ones, so that there is a moment between
    /// them.
    pub fn separate_initial(&mut self) {
        self.separates_initial = true;
    }

    fn takeable(&self, max: usize) -> usize {
        match &self.initial {
            Some(initial) if self.separates_initial && initial.missing.is_empty() => {
                let is_initial = |(arrival, ..): &&(u64, Duration, Change<S>)| *arrival <= initial.until;
                self.ready.iter().take(max).take_while(is_initial).count()
            }
            _ => self.ready.len().min(max),
        }
    }

    /// Whether nothing waits at all.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.cursors.is_empty() && self.waiting.len() == 0
    }

    /// The state up to which everything was taken and handled; `None` while something waits or is under way.
    /// A later backlog can go on from there: [`Self::resumed_from`].
    pub fn settled(&self) -> Option<&Snapshot<S>> {
        let is_waiting = !self.is_empty() || self.is_under_way;
        let is_settled = self.initial.is_none() && !is_waiting;
        is_settled.then_some(&self.newest)
    }

    /// The recipient has handled everything taken so far.
    pub fn acknowledge(&mut self) {
        self.is_under_way = false;
        self.latch();
        if self.is_empty() {
            (self.ready, self.cursors, self.listed) = (VecDeque::new(), VecDeque::new(), None);
            self.waiting.shrink();
        }
    }

    /// Whether the recipient has handled the initial events: the first list of every source, or what a newer
    /// state made of it. Latched.
    pub const fn initial_delivered(&self) -> bool {
        self.initial.is_none()
    }

    /// How many events were dropped, if the subscription has to end for that reason: nothing waits any more
    /// then.
    pub fn overflow(&self) -> Option<u64> {
        self.is_closed().then_some(self.counters.dropped)
    }

    /// How many events were handed out.
    pub const fn delivered(&self) -> u64 {
        self.counters.delivered
    }

    fn is_closed(&self) -> bool {
        matches!(&self.waiting, Waiting::Every(line) if line.is_closed)
    }

    fn oldest(&self) -> Option<(u64, Duration)> {
        let ready = self.ready.front().map(|(arrival, since, _)| (*arrival, *since));
        ready.or_else(|| self.next_waiting())
    }

    fn next_waiting(&self) -> Option<(u64, Duration)> {
        let cursor = self.cursors.front().map(|cursor| (cursor.arrival, cursor.since));
        match (cursor, self.waiting.first()) {
            (Some(cursor), Some(event)) => Some(cursor.min(event)),
            (cursor, event) => cursor.or(event),
        }
    }

    /// An entry that was put back keeps the arrival of its cursor, and comes before it.
    fn is_cursor_next(&self) -> bool {
        let cursor = self.cursors.front().map(|cursor| cursor.arrival);
        let event = self.waiting.first().map(|(arrival, _)| arrival);
        cursor.is_some_and(|cursor| event.is_none_or(|event| cursor < event))
    }

    fn is_delivering_initial(&self) -> bool {
        let is_pending = |until| self.oldest().is_some_and(|(arrival, _)| arrival <= until);
        self.initial.as_ref().is_some_and(|initial| self.is_under_way || is_pending(initial.until))
    }

    fn latch(&mut self) {
        let is_listed = self.initial.as_ref().is_some_and(|initial| initial.missing.is_empty());
        if is_listed && !self.is_closed() && !self.is_delivering_initial() {
            self.initial = None;
        }
    }
}

crate::debug_as!([S] Backlog<S>, self, stats = self.stats(), initial = self.initial);

#[cfg(test)]
mod tests;
