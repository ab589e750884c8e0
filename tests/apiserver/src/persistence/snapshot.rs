//! Writing a snapshot: the whole state into a new file, a step at a time.
//!
//! Answers: how does a generation begin? The caller decides when, and on which thread.
//! 1. A step writes some of the objects and waits for the disk, so that the log never waits for a large write.
//! 2. The file gets its name when it is complete and on the disk; only then are older ones removed.
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::disk::Disk;
use super::generations::{NEW_SNAPSHOT, remove_before, snapshot_name};
use super::record::{Record, frame};
use crate::cluster::store::Frozen;

/// What a snapshot is of.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) generation: u64,
    pub(super) state: Frozen,
    /// Up to which version the log has reserved.
    pub(super) reserved: u64,
    /// About how many bytes are written before the disk is waited for.
    pub(super) step: usize,
}

impl Snapshot {
    /// Writes it; returns its length, or none if it was stopped before the end.
    ///
    /// # Errors Those of the disk. The files before it are still valid then.
    pub(super) fn write(&self, disk: &dyn Disk, stop: &AtomicBool) -> io::Result<Option<u64>> {
        let mut file = disk.create(NEW_SNAPSHOT)?;
        let (mut bytes, mut length) = (Vec::new(), 0);
        frame(&mut bytes, [Record::Reserved(self.reserved)]);
        for change in self.state.changes() {
            frame(&mut bytes, [change.record()]);
            if bytes.len() < self.step {
                continue;
            }
            file.append(&bytes)?;
            file.sync()?;
            length += bytes.len() as u64;
            bytes.clear();
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        frame(&mut bytes, [Record::Complete]);
        file.append(&bytes)?;
        file.sync()?;
        length += bytes.len() as u64;
        disk.rename(NEW_SNAPSHOT, &snapshot_name(self.generation))?;
        // Files that cannot be removed are not read any more; the removal is tried again after the next
        // snapshot.
        let _some_are_left = remove_before(disk, self.generation);
        Ok(Some(length))
    }
}
