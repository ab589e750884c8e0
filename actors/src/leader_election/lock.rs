//! The lease, as an election reaches it.
//!
//! Answers "what must a server, or anything else that keeps one record, do for an election?". Invariants:
//! 1. An update succeeds only if nobody has written since this lock has read or written last.
//! 2. What others have put into the lease, and is none of the record's fields, stays.
//!
//! Read next: `actor.rs`, which sends one request at a time.

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use informer_core::leader_election::{CandidateRecord, Effect, LeaseRecord};

/// Sends the requests of an election, one at a time. Made and used on the election's thread.
pub trait LeaseLock: 'static {
    /// Sends one request. Dropping the future cancels it.
    fn send(&self, request: Effect) -> LocalBoxFuture<'static, Result<Answer, LockError>>;
}

/// Makes the lock, on the election's thread.
pub type MakeLock = Arc<dyn Fn() -> Box<dyn LeaseLock> + Send + Sync>;

/// What a lock answers to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each request has one of these answers")]
pub enum Answer {
    /// To a read of the lease; `None` if there is none.
    Lease(Option<LeaseRecord>),
    /// To a read of the candidate's registration; `None` if there is none.
    Candidate(Option<CandidateRecord>),
    /// To any write.
    Written,
}

/// Why a request has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Nothing was written: another writer was faster, or the object is there already, or not any more.
    #[error("somebody else has written it")]
    Conflict,
    /// The request failed; a write may have been carried out.
    #[error("{0}")]
    Failed(Arc<str>),
}
