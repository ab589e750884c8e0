//! What becomes of a key when its reconcile has ended, however it ended.
//!
//! Answers "is it tried again, and when?" as a table. Read next: `ledger.rs`, what is remembered of it.

use std::time::Duration;

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
    /// # use informer_core::controller::{Ended, Next, Outcome};
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
