//! Keeping the store over the end of the process: an append-only log of what was committed, in a directory.
//!
//! Answers: what survives a crash, and what is promised to whom? Off unless the builder is given a directory.
//! 1. A write is answered only after its record is in the log (and on the disk, unless syncing was switched off).
//! 2. A log cut off at any byte, or damaged, gives the state after its last whole record: a state the store had.
//! 3. Versions are reserved ahead in the log and issued only below what is reserved; a start begins at the reserve, so no
//!    version is ever issued twice, whether its write survived or not. Watches from before a start get 410.
//! 4. Records that wait are written and synced together.
//! 5. Each start rewrites the log to the live objects. Between two starts it only grows.
//!
//! Not kept: the past (old versions, watches), fault switches, the clock, the request log.
//! Next: `record.rs` is the format, `journal.rs` the thread that writes.
mod journal;
mod record;

pub(crate) use journal::{Journal, open};
pub(crate) use record::{Record, records};

use std::sync::Arc;

use crate::cluster::history::Event;
use crate::cluster::kind::ResourceId;

/// What the core hands to the log.
#[derive(Debug, Clone)]
pub(crate) enum Committed {
    Change(ResourceId, Arc<Event>),
    /// The whole store was replaced; all its objects follow as changes.
    Replaced,
}

#[cfg(test)]
mod tests;
