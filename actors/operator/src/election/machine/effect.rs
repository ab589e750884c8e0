//! What an election requests of its actor, and what it says about itself. Every reason reads after "not the
//! leader: ".

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::election::machine::settings::LeaseRecord;
use informer_core::words::{Brief, QUOTED, one_line};

/// The time of an event, and the random number for the decisions about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// By a clock that also runs while the machine is suspended; never less than in the call before.
    pub now: Duration,
    /// The time of day, since 1970. Others see it in the lease; nothing is decided by it.
    pub wall: Duration,
    /// A random number in [0, 1), drawn for this call.
    pub chance: f64,
}

/// One request. Answers to the lease go to `handle_read` and `handle_written`, those to the candidate's
/// registration to `handle_candidate` and `handle_candidate_written`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the actor must send every request")]
pub enum Effect {
    /// Read the lease.
    Read,
    /// Create the lease.
    Create(LeaseRecord),
    /// Write the lease, if nobody has written it since it was read or written here.
    Update(LeaseRecord),
    /// Read the registration of this candidate.
    ReadCandidate,
    /// Register this candidate, at this time of day.
    CreateCandidate(Duration),
    /// Answer the controller's question, with this time of day.
    RenewCandidate(Duration),
    /// Delete the registration: nobody should choose this candidate any more.
    WithdrawCandidate,
}

/// The answer to a read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is there, it is not, or it is not known")]
pub enum Read<R> {
    /// What it says.
    Found(R),
    /// The server has none of this name.
    Absent,
    /// The request failed.
    Failed,
}

/// The answer to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is written, it is not, or it is not known")]
pub enum LeaseWritten {
    /// It is written.
    Done,
    /// It is not written: somebody else was faster, or it is not there any more.
    Conflict,
    /// The request failed. It may have been written.
    Failed,
}

/// Why a candidate is not the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyNot {
    /// It was declared, and does not take part yet.
    NotBegun,
    /// No request was answered yet.
    NotTried,
    /// The last request failed, or its answer came too late.
    Failed,
    /// Somebody else holds the lease.
    HeldBy(Arc<str>),
    /// The lease was deleted while somebody else held it, who may still work.
    DeletedWhileHeld(Arc<str>),
    /// It has led, and could not renew the lease in time.
    NotRenewed(Duration),
    /// It has led, and is to hand over to this candidate.
    HandsOver(Arc<str>),
    /// It could lead again, and work of its former term goes on.
    FormerWork,
    /// Nobody holds the lease, and it tries to take it.
    Free,
    /// A controller has to choose the leader, and has not.
    NotChosen,
    /// The election has ended.
    ShutDown,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |name: &str| one_line(name, QUOTED);
        match self {
            Self::NotBegun => f.write_str("it does not take part in the election yet"),
            Self::NotTried => f.write_str("the server has not answered yet"),
            Self::Failed => f.write_str("the last request failed"),
            Self::HeldBy(holder) => write!(f, "{} holds the lease", quoted(holder)),
            Self::DeletedWhileHeld(holder) => {
                write!(f, "the lease was deleted while {} held it, who may still work", quoted(holder))
            }
            Self::NotRenewed(deadline) => write!(f, "it could not renew the lease for {}", Brief(*deadline)),
            Self::HandsOver(next) => write!(f, "it hands over to {}", quoted(next)),
            Self::FormerWork => f.write_str("work of its former term has not ended"),
            Self::Free => f.write_str("nobody holds the lease, and it tries to take it"),
            Self::NotChosen => f.write_str("no leader has been chosen"),
            Self::ShutDown => f.write_str("the election has ended"),
        }
    }
}

/// A term that lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leading {
    /// The fencing number: the lease's transitions. As long as nobody deletes the lease, each term has a
    /// greater one than all terms before.
    pub fence: u64,
    /// Work may begin before this time, by the clock of [`Moment::now`].
    pub until: Duration,
}

/// What has been counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElectionFigures {
    /// Terms that have begun: changes of `leader_election_master_status` from 0 to 1.
    pub terms: u64,
    /// Terms that have ended before the shutdown.
    pub lost: u64,
    /// Renewals that were written.
    pub renewals: u64,
    /// Renewals that had to read the lease first: `leader_election_slowpath_total`.
    pub slow_paths: u64,
    /// Writes that were refused because somebody else was faster.
    pub conflicts: u64,
    /// Requests that failed.
    pub failures: u64,
}
