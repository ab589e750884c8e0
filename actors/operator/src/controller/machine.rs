//! The decisions of a controller: what is known of a key between two of its reconciles.
//!
//! Answers "is this key to be reconciled, why, and what follows from the result?". It runs no code of a user and reads no
//! clock. Parts:
//! - `book.rs`: the queue, whose slots carry what is known of a key; `kept.rs`: what that is: the last state of its object if
//!   that is gone, whether it rests after a terminal error, what comes during its reconcile.
//! - `causes.rs`: why a key is reconciled; a bounded number is kept.
//! - here: which failures are warnings, and which are repeats.
//! - here: what becomes of a key after each result.
//! - `writes.rs`: what the cache has to show before the key may be reconciled again.
//!
//! Read next: `book.rs`. The actors and tasks are in `controller.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::ObjectKey;

pub use book::{Arrived, Begun, Book, Concluded};
pub use causes::{Arrival, Causes, EventKind, MOST_CAUSES, MOST_WITH_CAUSES, Reason, Why};
pub use kept::{Kept, KeptFigures, MOST_ANSWERED, MOST_DELETED, MOST_RESTING, Tally};
pub use writes::{Awaited, MOST_WRITES, Writes};

mod book;
mod causes;
mod kept;

// What becomes of a key when its reconcile has ended, however it ended.

/// What a reconcile says when it has done its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// The key is in order. It is reconciled again when something happens to it.
    #[default]
    Done,
    /// The key is in order for now. It is reconciled again after this time, or earlier when something happens to it. A
    /// time of zero is [`Self::Done`], as in controller-runtime: a reconcile that always asks for it does not spin.
    #[doc(alias = "requeue")]
    RequeueAfter(Duration),
}

/// How a reconcile has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each end must have its row in the table")]
pub enum Ended {
    /// With this outcome.
    With(Outcome),
    /// With an error.
    Failed,
    /// With an error that another try would not mend.
    Terminal,
    /// With a panic.
    Panicked,
    /// It took longer than its limit.
    TimedOut,
    /// The controller stopped, or what ran it ended.
    Cancelled,
}

/// What becomes of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "what carries it out must know all of them")]
pub enum Next {
    /// Its failures are forgotten; it waits for the next event.
    Done,
    /// Its failures are forgotten; it is added after this time.
    After(Duration),
    /// One more failure: it is added after the delay of the rate limiter.
    Backoff,
    /// As [`Self::Done`], and it rests until its object changes.
    Rest,
}

impl Ended {
    /// What becomes of the key.
    ///
    /// ```
    /// # use informer_operator::controller::machine::{Ended, Next, Outcome};
    /// # use std::time::Duration;
    /// assert_eq!(Ended::With(Outcome::Done).next(), Next::Done);
    /// assert_eq!(Ended::With(Outcome::RequeueAfter(Duration::ZERO)).next(), Next::Done);
    /// assert_eq!(Ended::Panicked.next(), Next::Backoff);
    /// assert_eq!(Ended::Terminal.next(), Next::Rest);
    /// ```
    pub const fn next(self) -> Next {
        match self {
            Self::With(Outcome::Done | Outcome::RequeueAfter(Duration::ZERO)) => Next::Done,
            Self::With(Outcome::RequeueAfter(delay)) => Next::After(delay),
            Self::Terminal => Next::Rest,
            Self::Failed | Self::Panicked | Self::TimedOut | Self::Cancelled => Next::Backoff,
        }
    }
}

/// A reconcile that has failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failure {
    /// Its key.
    pub key: ObjectKey,
    /// When, as time since the runtime's start.
    pub at: Duration,
    /// Why, in one line.
    pub why: Arc<str>,
}

// Which failures of reconciles are logged as warnings.
//
// Invariants:
// 1. The first failure of a key is a warning, and so is each one with another cause than the one before. Repeats are not.
// 2. A key is remembered until it is in order, and at most [`MOST_FAILING`] keys are. A failure of a further key is a
// warning at most once in [`WARN_EVERY`], which says how many there were.

/// Of how many keys that fail it is remembered what was said.
pub const MOST_FAILING: usize = 4_096;

/// How often a warning of one cause is logged at most, where it concerns no single key.
pub const WARN_EVERY: Duration = Duration::from_secs(600);

/// How a failure is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Telling {
    /// As a warning: it is new.
    Warning,
    /// As a warning that stands for so many failures, this one included, of keys of which nothing is remembered.
    WarningOfMany(u64),
    /// For debugging only: it was told before.
    Repeat,
}

/// The keys that fail, and why.
///
/// ```
/// # use informer_operator::controller::machine::{Failing, Telling};
/// # use informer_core::meta::ObjectKey;
/// use std::time::Duration;
/// let (mut failing, key) = (Failing::default(), ObjectKey::cluster("site"));
/// let mut fail = |why: &str| failing.handle_failure(&key, &why.into(), Duration::ZERO);
/// assert_eq!([fail("refused"), fail("refused"), fail("gone")], [Telling::Warning, Telling::Repeat, Telling::Warning]);
/// failing.handle_success(&key);
/// assert_eq!(failing.handle_failure(&key, &"gone".into(), Duration::ZERO), Telling::Warning);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Failing {
    why: BTreeMap<ObjectKey, Arc<str>>,
    others: Repeated,
}

impl Failing {
    /// A reconcile of this key has failed.
    pub fn handle_failure(&mut self, key: &ObjectKey, why: &Arc<str>, now: Duration) -> Telling {
        if let Some(former) = self.why.get_mut(key) {
            let is_repeat = former == why;
            former.clone_from(why);
            return if is_repeat { Telling::Repeat } else { Telling::Warning };
        }
        if self.why.len() < MOST_FAILING {
            self.why.insert(key.clone(), Arc::clone(why));
            return Telling::Warning;
        }
        self.others.count(now).map_or(Telling::Repeat, Telling::WarningOfMany)
    }

    /// A reconcile of this key was in order.
    pub fn handle_success(&mut self, key: &ObjectKey) {
        self.why.remove(key);
    }
}

/// A warning that is logged at most once in [`WARN_EVERY`], and says then how often it was due.
///
/// ```
/// # use informer_operator::controller::machine::{Repeated, WARN_EVERY};
/// use std::time::Duration;
/// let mut warning = Repeated::default();
/// assert_eq!(warning.count(Duration::ZERO), Some(1));
/// assert_eq!(warning.count(Duration::from_secs(1)), None);
/// assert_eq!(warning.count(WARN_EVERY), Some(2));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Repeated {
    quiet_until: Option<Duration>,
    count: u64,
}

impl Repeated {
    /// It is due once more. Returns for how many times it is to be logged now, if it is.
    pub fn count(&mut self, now: Duration) -> Option<u64> {
        self.count += 1;
        if self.quiet_until.is_some_and(|until| now < until) {
            return None;
        }
        self.quiet_until = Some(now.saturating_add(WARN_EVERY));
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests;
mod writes;

#[cfg(test)]
mod failing_tests {
    use super::*;

    #[test]
    fn what_is_remembered_of_failing_keys_is_bounded_and_further_ones_are_told_together() {
        let (mut failing, why) = (Failing::default(), Arc::from("refused"));
        let key = |number: usize| ObjectKey::cluster(number.to_string());
        let mut fail = |number, at| failing.handle_failure(&key(number), &why, Duration::from_secs(at));
        assert!((0..MOST_FAILING).all(|number| fail(number, 0) == Telling::Warning));
        assert_eq!(fail(MOST_FAILING, 0), Telling::WarningOfMany(1));
        assert!((1..100).all(|number| fail(MOST_FAILING + number, 1) == Telling::Repeat));
        assert_eq!(fail(MOST_FAILING, 600), Telling::WarningOfMany(100));
        assert_eq!(failing.why.len(), MOST_FAILING);
    }
}
