//! What a term hands out. A term that has ended stays ended, also if this process leads again.

use std::future::Future;
use std::sync::Arc;

use crate::election::machine::{CandidateRecord, Effect, LeaseRecord};
use futures_util::future::LocalBoxFuture;

use super::cell::{Cell, Ongoing};

/// One time of leading, from its beginning to its end. A term that has ended stays ended: if this process
/// leads again, that is another term. Cloning is cheap. It keeps no lease and no thread alive.
#[derive(Clone)]
pub struct Term {
    pub(super) cell: Arc<Cell>,
    pub(super) ongoing: Ongoing,
}

/// Work of a term that goes on, made by [`Term::begin_work`]. It ends when this is dropped.
#[must_use = "the work has ended when this is dropped"]
pub struct TermWork(Arc<Cell>);

/// Whether this process may begin work of a leader: at all, or of one term. Cloning is cheap.
#[derive(Clone)]
pub struct Validity {
    cell: Arc<Cell>,
    /// None: any term.
    term: Option<u64>,
}

impl Term {
    /// The fencing number of the term.
    pub fn fence(&self) -> u64 {
        self.ongoing.fence
    }

    /// Waits until the term has ended: the lease was lost, or the election was shut down. The actor of the
    /// election wakes this wait. Requests are refused earlier by [`Validity`], which reads the clock.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.ongoing.ended.clone().cancelled_owned()
    }

    /// Whether it is known to have ended.
    pub fn has_ended(&self) -> bool {
        self.ongoing.ended.is_cancelled()
    }

    /// Whether something of this term may begin.
    pub fn validity(&self) -> Validity {
        Validity { cell: Arc::clone(&self.cell), term: Some(self.ongoing.number) }
    }

    /// Work of this term begins. When the term ends, the work has to end, too; until the returned value is
    /// dropped, this election does not lead again. So no work goes on from one term into the next one,
    /// between which another process may have led. While the work goes on others may lead, and a shutdown
    /// gives the lease back all the same. Work that goes on for more than ten minutes while the process could
    /// lead makes it unhealthy. `None` if the term does not last now. Cheap, does not block.
    ///
    /// ```
    /// # use actix_informer::leader_election::{ElectionOver, LeaderElection};
    /// async fn lead(election: &LeaderElection) -> Result<(), ElectionOver> {
    ///     loop {
    ///         let term = election.acquired().await?;
    ///         let Some(work) = term.begin_work() else { continue };
    ///         let task = tokio::spawn(async move {
    ///             // what only the leader does
    ///             drop(work);
    ///         });
    ///         term.ended().await;
    ///         task.abort(); // `work` is dropped when nothing of it is left
    ///     }
    /// }
    /// ```
    pub fn begin_work(&self) -> Option<TermWork> {
        self.cell.begin_work(self.ongoing.number).then(|| TermWork(Arc::clone(&self.cell)))
    }
}

impl Drop for TermWork {
    fn drop(&mut self) {
        self.0.end_work();
    }
}

impl Validity {
    pub(super) fn of_any_term(cell: Arc<Cell>) -> Self {
        Self { cell, term: None }
    }

    /// Whether work may begin now, by a clock that also runs while the machine is suspended. Cheap, does not
    /// block.
    pub fn may_begin(&self) -> bool {
        self.bound().is_some()
    }

    /// The same, bound to the term that lasts now: it refuses when that has ended, also if the next one has
    /// begun. `None` if nothing may begin now. Cheap, does not block.
    pub fn bound(&self) -> Option<Self> {
        let lasting = self.cell.term()?.number;
        let is_other = self.term.is_some_and(|number| number != lasting);
        (!is_other).then(|| Self { cell: Arc::clone(&self.cell), term: Some(lasting) })
    }

    /// The lease, as `namespace/name`.
    pub fn lease(&self) -> &Arc<str> {
        &self.cell.lease
    }
}

informer_core::debug_as!(Term, self, fence = self.fence(), has_ended = self.has_ended());

informer_core::debug_as!(TermWork, self, lease = self.0.lease);

informer_core::debug_as!(
    Validity,
    self,
    lease = self.lease(),
    term = self.term,
    may_begin = self.may_begin()
);

// A lock's update succeeds only if nobody has written since it last read or wrote.

/// Sends the requests of an election, one at a time. Made and used on the election's thread.
pub trait LeaseLock: 'static {
    /// Sends one request. Dropping the future cancels it.
    fn send(&self, request: Effect) -> LocalBoxFuture<'static, Result<LeaseAnswer, LockError>>;
}

/// Makes the lock, on the election's thread.
pub type MakeLock = Arc<dyn Fn() -> Box<dyn LeaseLock> + Send + Sync>;

/// What a lock answers to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each request has one of these answers")]
pub enum LeaseAnswer {
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
