//! The files of a directory, and which of them contain the state.
//!
//! Answers: what is read after a crash, in which order, and which files are outdated? A generation is a snapshot and
//! the log that follows it. The log goes on in the next generation before the snapshot of that one is written:
//!
//! ```text
//! snapshot.4  log.4 (ends with "continued")  log.5 ...        snapshot.5 is being written as snapshot.new
//!             snapshot.5                     log.5 ...        then renamed; what is older is removed
//! ```
//! 1. The newest snapshot counts, and the logs from its number on, as long as each one says that the next one
//!    continues it.
//! 2. A snapshot has its name only when it is complete; one that is damaged later is an error, never an empty store.
//! 3. Numbers are never used twice.
use std::collections::BTreeMap;
use std::io;

use super::disk::Disk;
use super::record::{Frames, Record};

/// A snapshot that is not complete yet.
pub(super) const NEW_SNAPSHOT: &str = "snapshot.new";

pub(super) fn snapshot_name(generation: u64) -> String {
    format!("snapshot.{generation}")
}

pub(super) fn log_name(generation: u64) -> String {
    format!("log.{generation}")
}

fn number(name: &str, kind: &str) -> Option<u64> {
    name.strip_prefix(kind)?.strip_prefix('.')?.parse().ok()
}

/// What a directory holds.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    snapshot: Option<(u64, Vec<u8>)>,
    logs: BTreeMap<u64, Vec<u8>>,
    /// A number no file has.
    pub(crate) next: u64,
}

/// Its content.
#[derive(Debug, Default)]
pub(crate) struct Told<'a> {
    pub(crate) records: Vec<Record<'a>>,
    /// How many bytes at the end of the last log are not whole.
    pub(crate) left_out: usize,
}

impl Kept {
    /// Reads what counts.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn read(disk: &dyn Disk) -> io::Result<Self> {
        let names = disk.names()?;
        let numbers = |kind: &'static str| names.iter().filter_map(move |name| number(name, kind));
        let next = numbers("snapshot").chain(numbers("log")).max().map_or(1, |last| last + 1);
        let newest = numbers("snapshot").max();
        let snapshot = newest.map(|number| disk.read(&snapshot_name(number)).map(|bytes| (number, bytes)));
        let logs = numbers("log").filter(|number| newest.is_none_or(|newest| *number >= newest));
        let logs = logs.map(|number| disk.read(&log_name(number)).map(|bytes| (number, bytes)));
        Ok(Self { snapshot: snapshot.transpose()?, logs: logs.collect::<io::Result<_>>()?, next })
    }

    /// All records that count, oldest first; none in a new directory.
    ///
    /// # Errors
    /// If the snapshot is damaged or missing.
    pub(crate) fn told(&self) -> io::Result<Told<'_>> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
        let Some((first, snapshot)) = &self.snapshot else {
            let empty = self.logs.is_empty();
            return if empty {
                Ok(Told::default())
            } else {
                Err(damaged("there is a log without a snapshot"))
            };
        };
        let mut frames = Frames::of(snapshot);
        let mut told = Told { records: frames.by_ref().flatten().collect(), left_out: 0 };
        if !frames.rest().is_empty() || !matches!(told.records.pop(), Some(Record::Complete)) {
            return Err(damaged("the snapshot is damaged"));
        }
        for log in (*first..).map_while(|number| self.logs.get(&number)) {
            let mut frames = Frames::of(log);
            told.records.extend(frames.by_ref().flatten());
            told.left_out = frames.rest().len();
            match told.records.pop() {
                Some(Record::Continued) => {}
                last => {
                    told.records.extend(last);
                    break;
                }
            }
        }
        Ok(told)
    }
}

/// Removes every file of an older generation, and incomplete ones.
///
/// # Errors Those of removing; files that are left are ignored at reading.
pub(super) fn remove_before(disk: &dyn Disk, generation: u64) -> io::Result<()> {
    for name in disk.names()? {
        let old = number(&name, "snapshot").or_else(|| number(&name, "log"));
        if old.is_some_and(|number| number < generation) {
            disk.remove(&name)?;
        }
    }
    Ok(())
}
