//! What is handed out of a term: the term itself, work that belongs to it, and whether something of it may begin.
//!
//! Answers "does this belong to the term that lasts?". Invariants:
//! 1. A term that has ended stays ended, also if this process leads again.
//! 2. While a [`TermWork`] exists, no other term of its election begins.
//!
//! Read next: `cell.rs`, which is asked.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::cell::{Cell, Ongoing};

/// One time of leading, from its beginning to its end. Cloning is cheap. It keeps no lease and no thread alive.
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
    /// The number of the term, if it is bound to one.
    term: Option<u64>,
}

impl Term {
    /// The fencing number of the term.
    pub fn fence(&self) -> u64 {
        self.ongoing.fence
    }

    /// Waits until the term has ended: the lease was lost, or the election was shut down. The actor of the election wakes
    /// it; requests are kept from beginning by [`Validity`], which asks the clock.
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

    /// Work of this term begins. When the term ends, the work has to end, too; until what is returned here is dropped, this
    /// election does not lead again. So no work goes on from one term into the next one, between which another process may
    /// have led. Others may lead meanwhile, and a shutdown gives the lease back all the same. What goes on for more than ten
    /// minutes where the process could lead makes it unhealthy. `None` if the term does not last now. Cheap, does not block.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
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
    /// Of any term of this election.
    pub(super) fn of_any_term(cell: Arc<Cell>) -> Self {
        Self { cell, term: None }
    }

    /// Whether work may begin now, by a clock that also runs while the machine is suspended. Cheap, does not block.
    pub fn may_begin(&self) -> bool {
        self.bound().is_some()
    }

    /// The same, bound to the term that lasts now: it says no when that has ended, also if the next one has begun. `None` if
    /// nothing may begin now. Cheap, does not block.
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

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term").field("fence", &self.fence()).field("has_ended", &self.has_ended()).finish()
    }
}

impl fmt::Debug for TermWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TermWork").field("lease", &self.0.lease).finish_non_exhaustive()
    }
}

impl fmt::Debug for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validity")
            .field("lease", self.lease())
            .field("term", &self.term)
            .field("may_begin", &self.may_begin())
            .finish()
    }
}
