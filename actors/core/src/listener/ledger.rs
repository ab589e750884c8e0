//! What one subscription is owed under its policy.
//!
//! Answers "what is told next?" for whoever does not care which policy was chosen, that is the actor; the policies
//! themselves are [`Backlog`] and `every.rs`. Invariants, of each policy:
//! 1. Told in order and replayed, what [`Ledger::take`] gives is the newest state once nothing is owed any more.
//! 2. Memory has a bound that the recipient cannot exceed by being slow, and nobody waits for it.
//!
//! Read next: `listener.rs` for `Coalesce`, `listener/every.rs` for `Every`.

use std::fmt;
use std::time::Duration;

use super::every::Journal;
use super::{Backlog, BacklogStats};
use crate::delta::{Change, Changes};
use crate::snapshot::Snapshot;

/// How a subscription is owed what its recipient has not taken yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The newest state of each key: a recipient that lags is spared what lies between.
    #[default]
    Coalesce,
    /// Every event, one by one, in order, none coalesced.
    Every {
        /// How much may wait: for each event the object's bytes as they came from the wire and 64 more. An event
        /// that is larger than this is taken if none other waits. A list is a cursor, and weighs nothing.
        bytes: usize,
        /// What happens beyond it.
        when_full: WhenFull,
    },
}

/// What becomes of a subscription to every event whose backlog is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It ends, and says how many events were dropped.
    Disconnect,
    /// What waits is dropped and counted; then the difference between what was told and the current state is told,
    /// with cause `Relist`.
    Restate,
}

/// What one subscription is owed.
///
/// ```
/// use informer_core::listener::{Ledger, Policy, WhenFull};
/// use informer_core::snapshot::Snapshot;
/// let policy = Policy::Every { bytes: 1 << 20, when_full: WhenFull::Restate };
/// let ledger = Ledger::<()>::starting_from(policy, Snapshot::empty());
/// assert!(ledger.is_empty() && ledger.initial_delivered());
/// ```
pub struct Ledger<S>(Kind<S>);

enum Kind<S> {
    Coalesce(Backlog<S>),
    // Boxed: most subscriptions coalesce, and an idle one is to cost little.
    Every(Box<Journal<S>>),
}

impl<S> Ledger<S> {
    /// Owes `Added{InitialList}` for every object of `now`, the snapshot that the subscription begins with. O(1).
    pub fn starting_from(policy: Policy, now: Snapshot<S>) -> Self {
        Self(match policy {
            Policy::Coalesce => Kind::Coalesce(Backlog::starting_from(now)),
            Policy::Every { bytes, when_full } => {
                Kind::Every(Box::new(Journal::starting_from((bytes, when_full), now)))
            }
        })
    }

    /// Tells the time that debts which arrive from here on are stamped with; only statistics show it.
    pub fn set_now(&mut self, now: Duration) {
        match &mut self.0 {
            Kind::Coalesce(backlog) => backlog.set_now(now),
            Kind::Every(journal) => journal.set_now(now),
        }
    }

    /// Owes what a publish changed: live changes in their order, at most 250 a call by contract, or the difference
    /// that a list made. When all of one publish is recorded, [`Self::recorded`] has to say so.
    pub fn owe(&mut self, changes: &Changes<S>) {
        match (&mut self.0, changes) {
            (_, Changes::Parts(changes)) => self.record(changes),
            (Kind::Coalesce(backlog), Changes::Listed { before, after, cause, .. }) => {
                backlog.record_list(before.clone(), after.clone(), *cause);
            }
            (Kind::Every(journal), Changes::Listed { cause, .. }) => journal.record_list(*cause),
        }
    }

    /// Owes live changes in their order.
    pub fn record(&mut self, changes: &[Change<S>]) {
        match &mut self.0 {
            Kind::Coalesce(backlog) => backlog.record(changes),
            Kind::Every(journal) => journal.record(changes),
        }
    }

    /// All that leads to `snapshot` has been recorded. O(1).
    pub fn recorded(&mut self, snapshot: &Snapshot<S>) {
        match &mut self.0 {
            Kind::Coalesce(_) => {}
            Kind::Every(journal) => journal.recorded(snapshot),
        }
    }

    /// Owes what leads from `seen`, the state of all that was recorded, to `now`, with cause `Relist`: the group has
    /// restarted, and what happened in between was not recorded. O(1).
    pub fn reattach(&mut self, seen: Snapshot<S>, now: Snapshot<S>) {
        match &mut self.0 {
            Kind::Coalesce(backlog) => backlog.reattach(seen, now),
            Kind::Every(journal) => journal.reattach(seen, now),
        }
    }

    /// Owes `Updated{cause: Resync}` for each object of `snapshot`, the state of all that was recorded; let go while
    /// all is being told anyway. O(1).
    pub fn resync(&mut self, snapshot: Snapshot<S>) {
        match &mut self.0 {
            Kind::Coalesce(backlog) => backlog.resync(snapshot),
            Kind::Every(journal) => journal.resync(snapshot),
        }
    }

    /// The next changes to tell, at most `max`; maybe none while something is owed: then call again.
    pub fn take(&mut self, max: usize) -> Vec<Change<S>> {
        match &mut self.0 {
            Kind::Coalesce(backlog) => backlog.take(max),
            Kind::Every(journal) => journal.take(max),
        }
    }

    /// Whether nothing at all is owed.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Kind::Coalesce(backlog) => backlog.is_empty(),
            Kind::Every(journal) => journal.is_empty(),
        }
    }

    /// The recipient has handled everything taken so far.
    pub fn acknowledge(&mut self) {
        match &mut self.0 {
            Kind::Coalesce(backlog) => backlog.acknowledge(),
            Kind::Every(journal) => journal.acknowledge(),
        }
    }

    /// Whether the recipient has handled the last of the events that the subscription began with. Latched.
    pub fn initial_delivered(&self) -> bool {
        match &self.0 {
            Kind::Coalesce(backlog) => backlog.initial_delivered(),
            Kind::Every(journal) => journal.initial_delivered(),
        }
    }

    /// How many events have to be handed out at most until all that is owed now has been: rather too many than too
    /// few.
    pub fn owed_at_most(&self) -> u64 {
        match &self.0 {
            Kind::Coalesce(backlog) => {
                let stats = backlog.stats();
                // While a cursor runs, the keys before it are counted too, and twice rather than not at all.
                let owed =
                    if stats.cursors == 0 { stats.events } else { backlog.owed_at_most() + stats.events };
                owed as u64
            }
            Kind::Every(journal) => journal.owed_at_most(),
        }
    }

    /// How many events were dropped, if the subscription has to end over it: nothing more is owed then.
    pub fn overflow(&self) -> Option<u64> {
        match &self.0 {
            Kind::Coalesce(_) => None,
            Kind::Every(journal) => journal.overflow(),
        }
    }

    /// The numbers, without walking anything.
    pub fn stats(&self) -> BacklogStats {
        match &self.0 {
            Kind::Coalesce(backlog) => backlog.stats(),
            Kind::Every(journal) => journal.stats(),
        }
    }
}

impl<S> fmt::Debug for Ledger<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Coalesce(backlog) => backlog.fmt(f),
            Kind::Every(journal) => journal.fmt(f),
        }
    }
}
