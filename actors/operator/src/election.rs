//! A leader election: of several replicas of a program, one works, as long as it renews its lease.
//!
//! One supervised actor renews the lease on its own thread, so that no list and no callback delays it. Each
//! call of a handle, a term or a [`Validity`] reads a clock that counts suspensions: the answer is true also
//! while the actor is stuck or after the process was stopped. After a shutdown, the drop of the last handle,
//! or the end of the runtime nothing leads and every wait ends, also if the thread is blocked.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use tokio_util::sync::DropGuard;

pub use crate::election::machine::{
    CandidateRecord, Effect as Request, ElectionFigures, LeaseRecord, Read, Settings, SettingsError, WhyNot,
};
pub use cell::ElectionStatus;
pub(crate) use start::RegisteredElection;
pub use term::{LeaseAnswer, LeaseLock, LockError, MakeLock, Term, TermWork, Validity};

use actor::{Begin, ElectionActor, ShutDown};
use cell::Cell;
use informer_actors::inner::{ask, within};
use informer_actors::runtime::{Runtime, RuntimeError};

mod actor;
mod cell;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod machine;
mod start;
mod term;
#[cfg(test)]
mod tests;

/// An election that cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The settings do not fit together.
    #[error("leader election {lease}: {source}")]
    Settings {
        /// The lease.
        lease: Arc<str>,
        /// What is wrong.
        source: SettingsError,
    },
    /// The system has no thread.
    #[error("leader election {lease}: {source}")]
    Thread {
        /// The lease.
        lease: Arc<str>,
        /// Why not.
        source: RuntimeError,
    },
}

/// The election has ended, so this process will not lead any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("leader election {lease} has ended")]
#[non_exhaustive]
pub struct ElectionOver {
    /// The lease.
    pub lease: Arc<str>,
}

/// The lease was not given back when the time was up: others have to wait until it has run out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("leader election {lease}: the lease was not given back{}", because(.last_error))]
#[non_exhaustive]
pub struct NotReleased {
    /// The lease.
    pub lease: Arc<str>,
    /// The last failure of a request.
    pub last_error: Option<Arc<str>>,
}

/// A liveness probe should fail: nothing of the election goes on, and a restart of the process helps. A
/// server that does not answer is no such reason: the term was ended, and the next one begins when the server
/// answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unhealthy {
    /// The term is over, and the actor has not ended it: its thread is blocked. A guarded client sends
    /// nothing, and the leader's work does not know of the end.
    #[error(
        "leader election {lease} is stuck: its term was over {late:?} ago, and its actor has not ended it"
    )]
    Stuck {
        /// The lease.
        lease: Arc<str>,
        /// The time since the end of the term.
        late: Duration,
    },
    /// For more than ten minutes the process could have led, but work of its former term has not ended. As
    /// long as it goes on, the process does not lead.
    #[error(
        "leader election {lease}: work of its former term has kept this process from leading for {since:?}"
    )]
    FormerWork {
        /// The lease.
        lease: Arc<str>,
        /// For how long.
        since: Duration,
    },
    /// Its actor was given up, or its runtime has ended.
    #[error("leader election {lease} has ended without a shutdown")]
    Ended {
        /// The lease.
        lease: Arc<str>,
    },
}

/// A name for a candidate that no other has: the host's, and random digits. In simulation they come from the
/// seed.
///
/// ```
/// # use informer_operator::election::unique_identity;
/// # use informer_actors::runtime::Runtime;
/// let runtime = Runtime::threads().start()?;
/// assert_ne!(unique_identity(&runtime, "web-0"), unique_identity(&runtime, "web-0"));
/// # Ok::<(), informer_actors::runtime::RuntimeError>(())
/// ```
pub fn unique_identity(runtime: &Runtime, host: &str) -> String {
    format!("{host}-{:016x}", runtime.unique_number())
}

fn because(error: &Option<Arc<str>>) -> String {
    error.as_deref().map(|error| format!(": {error}")).unwrap_or_default()
}

/// A candidate of an election. Cloning is cheap. When the last handle is dropped, a term ends at once and the
/// lease is left to run out; [`Self::shutdown`] gives it back.
#[derive(Clone)]
pub struct Election {
    cell: Arc<Cell>,
    address: Addr<ElectionActor>,
    _stop: Arc<DropGuard>,
}

impl Election {
    /// Starts a candidate for the lease of this name, on a thread of its own. `lock` is called there, and
    /// again after a panic of the actor.
    ///
    /// # Errors
    /// When the settings do not fit together, or the system has no thread.
    pub fn start(
        runtime: &Runtime,
        lease: impl Into<Arc<str>>,
        settings: Settings,
        lock: MakeLock,
    ) -> Result<Self, StartError> {
        let election = Self::declare(runtime, lease, settings, lock)?;
        election.begin();
        Ok(election)
    }

    /// As [`Self::start`], but the candidate takes part only from [`Self::begin`] on.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn declare(
        runtime: &Runtime,
        lease: impl Into<Arc<str>>,
        settings: Settings,
        lock: MakeLock,
    ) -> Result<Self, StartError> {
        start::declare(runtime, lease.into(), settings, lock)
    }

    /// A declared candidate takes part from here on. Changes nothing for one that does already. Does not
    /// block.
    pub fn begin(&self) {
        if self.cell.set_begun() {
            #[expect(clippy::disallowed_methods, reason = "one message in the life of an election")]
            self.address.do_send(Begin);
        }
    }

    /// Whether work may begin now. Cheap, does not block.
    pub fn is_leader(&self) -> bool {
        self.fence().is_some()
    }

    /// The fencing number of the term that lasts now: the transitions of the lease. As long as nobody deletes
    /// the lease, each term has a greater one than all terms before, of any candidate. `None` if this process
    /// does not lead. Cheap, does not block.
    pub fn fence(&self) -> Option<u64> {
        self.cell.leading().map(|leading| leading.fence)
    }

    /// Waits until this process leads.
    ///
    /// # Errors
    /// When the election ends before: by its shutdown, with its runtime, or because its actor was given up.
    pub async fn acquired(&self) -> Result<Term, ElectionOver> {
        let ongoing = self.cell.until(|| self.cell.term()).await;
        let term = ongoing.map(|ongoing| Term { cell: Arc::clone(&self.cell), ongoing });
        term.ok_or_else(|| ElectionOver { lease: Arc::clone(&self.cell.lease) })
    }

    /// Waits until it was known once who leads: the server has answered that another one holds the lease, or
    /// has accepted a write of it by this process.
    ///
    /// # Errors
    /// When the election ends before, as [`Self::acquired`].
    pub async fn answered(&self) -> Result<(), ElectionOver> {
        let answered = self.cell.until(|| self.cell.is_answered().then_some(())).await;
        answered.ok_or_else(|| ElectionOver { lease: Arc::clone(&self.cell.lease) })
    }

    /// Waits until this process does not lead; returns at once if it does not.
    pub async fn lost(&self) {
        // Also ready at the end of the election: then no term lasts.
        let _lost = self.cell.until(|| self.cell.term().is_none().then_some(())).await;
    }

    /// What must be checked before each request of a leader. It keeps no thread and no lease alive.
    pub fn validity(&self) -> Validity {
        Validity::of_any_term(Arc::clone(&self.cell))
    }

    /// Whether a liveness probe may report success. Fails if the election has ended without a shutdown, if
    /// work of a former term has kept this process from leading for more than ten minutes, or if the lease of
    /// a term ran out more than `tolerance` ago and the actor has still not ended that term. After a
    /// suspension of the machine the actor may take one renew deadline to notice. Cheap, does not block.
    ///
    /// # Errors
    /// What is wrong.
    pub fn health(&self, tolerance: Duration) -> Result<(), Unhealthy> {
        self.cell.health(tolerance)
    }

    /// Who leads, why this process does not, and what was counted. Does not block.
    pub fn status(&self) -> ElectionStatus {
        self.cell.status()
    }

    /// Ends the term at once, gives the lease back so that others need not wait, and ends the election, for
    /// at most `limit`. Stop the leader's work before: from here on nothing of it may begin, and what is
    /// under way may land after another has begun to lead.
    ///
    /// # Errors
    /// When the lease was held and could not be given back in time. The election has ended all the same.
    pub async fn shutdown(&self, limit: Duration) -> Result<(), NotReleased> {
        self.cell.begin_end();
        let asked = async {
            // The request fails if the actor dies; the next one reads the end from the cell.
            tokio::select! {
                biased;
                () = self.cell.over() => return,
                _ = ask(&self.address, ShutDown) => {}
            }
            self.cell.over().await;
        };
        let _ = within(limit, asked).await;
        self.cell.stop.cancel();
        let ElectionStatus { last_error, .. } = self.status();
        match self.cell.is_released() {
            true => Ok(()),
            false => Err(NotReleased { lease: Arc::clone(&self.cell.lease), last_error }),
        }
    }

    /// Ends the term and the election at once, without a request to the server: others wait until the lease
    /// has run out. The drop of the last handle does the same. Does not block, and does not wait for the
    /// actor.
    pub fn abandon(&self) {
        self.cell.stop.cancel();
    }
}

informer_core::debug_as!(Election, self, lease = self.cell.lease);
