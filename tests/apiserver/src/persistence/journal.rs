//! The thread that writes the log, and those who wait for it.
//!
//! Answers: when is a change safe? It knows changes as bytes; what they mean is `record.rs` and `cluster/recover.rs`.
//! 1. One process has a directory at a time: the file `lock` in it is locked.
//! 2. A log is replaced by a complete new one and a rename, never rewritten in place.
//! 3. What waits is written with one call and synced once. If that fails, nothing is acknowledged any more.
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use tokio::sync::watch;

use super::{Committed, Record};

/// How far ahead versions are reserved; the next reserve is written when half of it is used.
const RESERVE: u64 = 1_000_000;
const LOG: &str = "log";
const NEW_LOG: &str = "log.new";

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    changes: Option<mpsc::Sender<(u64, Vec<Committed>)>>,
    safe: Arc<Safe>,
    thread: Option<JoinHandle<()>>,
    _lock: File,
}

/// How far the log has got.
#[derive(Debug)]
struct Safe {
    /// The number of batches that are safe; `u64::MAX` never comes.
    told: watch::Sender<u64>,
    batches: Mutex<u64>,
    more: Condvar,
    sent: Mutex<u64>,
}

/// Locks the directory and reads its log, empty if there is none.
///
/// # Errors
/// If another process has the directory, or it cannot be read or made.
pub(crate) fn open(directory: &Path) -> io::Result<(File, Vec<u8>)> {
    std::fs::create_dir_all(directory)?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(directory.join("lock"))?;
    lock.try_lock().map_err(|error| match error {
        std::fs::TryLockError::Error(error) => error,
        std::fs::TryLockError::WouldBlock => io::ErrorKind::ResourceBusy.into(),
    })?;
    match std::fs::read(directory.join(LOG)) {
        Ok(log) => Ok((lock, log)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((lock, Vec::new())),
        Err(error) => Err(error),
    }
}

impl Journal {
    /// Writes a new log that begins with `state` at `revision`, and goes on from there.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn start(
        directory: &Path,
        lock: File,
        (revision, state): (u64, Vec<Committed>),
        sync: bool,
    ) -> io::Result<Self> {
        let mut bytes = Vec::new();
        Record::Reserved(revision + RESERVE).write(&mut bytes);
        state.iter().for_each(|change| change.write(&mut bytes));
        let mut file = File::create(directory.join(NEW_LOG))?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(directory.join(NEW_LOG), directory.join(LOG))?;
        File::open(directory)?.sync_all()?;
        let safe = Arc::new(Safe {
            told: watch::Sender::new(0),
            batches: Mutex::new(0),
            more: Condvar::new(),
            sent: Mutex::new(0),
        });
        let (changes, incoming) = mpsc::channel();
        let told = Arc::clone(&safe);
        let writer = Writer { file, sync, reserved: revision + RESERVE };
        let thread = std::thread::Builder::new()
            .name("apiserver-log".to_owned())
            .spawn(move || writer.run(&incoming, &told))?;
        Ok(Self { changes: Some(changes), safe, thread: Some(thread), _lock: lock })
    }

    /// Hands changes over, in the order of this call. `revision` is the store's after them.
    pub(crate) fn send(&self, revision: u64, changes: Vec<Committed>) {
        let mut sent = self.safe.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = &self.changes
            && channel.send((revision, changes)).is_ok()
        {
            *sent += 1;
        }
    }

    fn sent(&self) -> u64 {
        *self.safe.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everything sent so far is safe.
    pub(crate) async fn settled(&self) {
        let sent = self.sent();
        let mut told = self.safe.told.subscribe();
        // The sender lives in `self`.
        let _reached = told.wait_for(|safe| *safe >= sent).await;
    }

    /// As `settled`, for callers that are not async.
    pub(crate) fn settle(&self) {
        let sent = self.sent();
        let mut batches = self.safe.batches.lock().unwrap_or_else(PoisonError::into_inner);
        while *batches < sent {
            batches = self.safe.more.wait(batches).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        drop(self.changes.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

struct Writer {
    file: File,
    sync: bool,
    reserved: u64,
}

impl Writer {
    fn run(mut self, incoming: &mpsc::Receiver<(u64, Vec<Committed>)>, safe: &Safe) {
        let mut bytes = Vec::new();
        while let Ok(first) = incoming.recv() {
            bytes.clear();
            let mut batches = 0;
            for (revision, changes) in std::iter::once(first).chain(incoming.try_iter()) {
                if revision + RESERVE / 2 > self.reserved {
                    self.reserved = revision + RESERVE;
                    Record::Reserved(self.reserved).write(&mut bytes);
                }
                changes.iter().for_each(|change| change.write(&mut bytes));
                batches += 1;
            }
            if let Err(error) = self.write(&bytes) {
                // A server whose disk fails stands still, as etcd does: no write is acknowledged that may be lost.
                eprintln!(
                    "informer-apiserver: the log cannot be written, no write is answered any more: {error}"
                );
                return;
            }
            let mut done = safe.batches.lock().unwrap_or_else(PoisonError::into_inner);
            *done += batches;
            safe.told.send_replace(*done);
            safe.more.notify_all();
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        if self.sync { self.file.sync_data() } else { Ok(()) }
    }
}
