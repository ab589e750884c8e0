//! Keeping the store over the end of the process: snapshots and append-only logs of what was committed, in a directory.
//!
//! Answers: what survives a crash, and what is promised to clients? Off unless the builder is given a directory.
//! 1. A write is answered only after its record is in the log (and on the disk, unless syncing was switched off). Once
//!    a write has failed no change is accepted any more: each is refused with 500 until the server is started again.
//! 2. Files cut off at any byte, at any moment, give a state that the store had, including every write that was
//!    answered.
//! 3. Versions are reserved ahead in the log and issued only below what is reserved; a restart begins above the
//!    reserve, so no version is ever issued twice, whether its write survived or not. Watches from before a start get
//!    410.
//! 4. Records that wait are written and synced together; the changes of one visit to the store are kept as a whole or
//!    not at all.
//! 5. The files stay below twice the size of their current content (or a minimum): beyond that a new snapshot is
//!    written while writes go on.
//!
//! Not kept: the past (old versions, watches), fault switches, the clock, the request log. Next: `generations.rs`
//! defines the files, `record.rs` is their format, `journal.rs` the thread that writes; `identity.rs` keeps keys and
//! the port.
mod disk;
mod generations;
mod identity;
mod journal;
mod record;
mod snapshot;

pub(crate) use disk::Directory;
pub(crate) use generations::Kept;
pub(crate) use identity::{Identity, Pems};
pub(crate) use journal::{Journal, Limits};
pub(crate) use record::Record;

use std::io;
use std::sync::Arc;

use crate::cluster::history::Event;
use crate::cluster::kind::ResourceId;

/// A change that the core sends to the log.
#[derive(Debug, Clone)]
pub(crate) enum Committed {
    Change(ResourceId, Arc<Event>),
    /// The whole store was replaced; all its objects follow as changes.
    Replaced,
}

/// Why changes are not kept, and so not accepted any more.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PersistenceError {
    /// The log cannot be written: the disk is full, or broken.
    #[error("the log cannot be written")]
    Write(#[source] Arc<io::Error>),
}

#[cfg(test)]
mod tests;
