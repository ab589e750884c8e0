//! The decisions of a controller about each key, without user code or a clock. Here: what follows from each
//! result, and which failures are warnings.

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

/// What a successful reconcile returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// The key is in order. It is reconciled again when something happens to it.
    #[default]
    Done,
    /// The key is in order for now. It is reconciled again after this time, or earlier when something happens
    /// to it. Zero is [`Self::Done`], as in controller-runtime: a reconcile that always returns it does not
    /// spin.
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
    /// With an error that another attempt would not fix.
    Terminal,
    /// With an error that only a change of its object would fix.
    UntilChanged,
    /// With a panic.
    Panicked,
    /// It took longer than its limit.
    TimedOut,
    /// The controller stopped, or what ran it ended.
    Cancelled,
}

impl Ended {
    /// In words, for the path of the key.
    pub const fn name(self) -> &'static str {
        match self {
            Self::With(_) => "in order",
            Self::Failed => "failed",
            Self::Terminal | Self::UntilChanged => "failed for good",
            Self::Panicked => "panicked",
            Self::TimedOut => "took too long",
            Self::Cancelled => "was cancelled",
        }
    }
}

/// What happens to the key next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "what carries it out must know all of them")]
pub enum Next {
    /// The rate limiter forgets its failures; it waits for the next event.
    Done,
    /// Its failures are forgotten; it is added after this time.
    After(Duration),
    /// One more failure: it is added after the delay of the rate limiter.
    Retry,
    /// As [`Self::Done`], and it rests until its object changes.
    Rest,
}

impl Ended {
    /// What happens to the key next.
    ///
    /// ```
    /// # use informer_operator::controller::machine::{Ended, Next, Outcome};
    /// # use std::time::Duration;
    /// assert_eq!(Ended::With(Outcome::Done).next(), Next::Done);
    /// assert_eq!(Ended::With(Outcome::RequeueAfter(Duration::ZERO)).next(), Next::Done);
    /// assert_eq!(Ended::Panicked.next(), Next::Retry);
    /// assert_eq!(Ended::Terminal.next(), Next::Done);
    /// assert_eq!(Ended::UntilChanged.next(), Next::Rest);
    /// ```
    pub const fn next(self) -> Next {
        match self {
            Self::With(Outcome::Done | Outcome::RequeueAfter(Duration::ZERO)) | Self::Terminal => Next::Done,
            Self::With(Outcome::RequeueAfter(delay)) => Next::After(delay),
            Self::UntilChanged => Next::Rest,
            Self::Failed | Self::Panicked | Self::TimedOut | Self::Cancelled => Next::Retry,
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

// The first failure of a key is a warning, and each with another cause than the last. The causes of at most
// [`MOST_FAILING`] keys are remembered; failures of further keys are one warning in [`WARN_EVERY`], with
// their number.

/// How many failing keys are remembered with their last reason.
pub const MOST_FAILING: usize = 4_096;

/// The shortest time between two warnings of one cause that concerns no single key.
pub const WARN_EVERY: Duration = Duration::from_secs(600);

/// How a failure is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Telling {
    /// As a warning: it is new.
    Warning,
    /// As a warning that stands for this number of failures, this one included, of keys that are not
    /// remembered.
    WarningOfMany(u64),
    /// As a debug line: it was logged before.
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

/// A warning that is logged at most once in [`WARN_EVERY`], with the number of times it was due.
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
    /// Counts one more. Returns the number to log now, if it is due.
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
