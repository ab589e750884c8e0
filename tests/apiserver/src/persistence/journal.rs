//! The thread that writes the log, and the callers that wait for it.
//!
//! Answers: when is a change safe, and when is it time for a new snapshot? Changes are only records here;
//! `cluster/recover.rs` knows their meaning.
//! 1. All waiting changes are written with one call and synced once. If that fails, no change is safe any more, and
//!    all waiting callers get the error.
//! 2. When more than half of the bytes in the files are outdated, and more than `slack`, the next visit to the store
//!    sends its state along: the log goes on in the next generation from exactly there, and a thread of its own writes
//!    the snapshot.
//! 3. A snapshot that fails costs nothing but space: the files before it still hold, and it is tried again later.
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use tokio::sync::watch;

use super::disk::{Append, Disk};
use super::generations::log_name;
use super::record::{Record, frame};
use super::snapshot::Snapshot;
use super::{Committed, PersistenceError};
use crate::cluster::history::Event;
use crate::cluster::kind::ResourceId;
use crate::cluster::object::Object;
use crate::cluster::store::Frozen;

/// How far ahead versions are reserved; the next reserve is written when half of it is used.
const RESERVE: u64 = 1_000_000;
/// About what a record costs beside its texts.
const RECORD: usize = 96;

/// How a log is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Whether a change waits for the disk.
    pub(crate) sync: bool,
    /// Up to this many outdated bytes are always allowed.
    pub(crate) slack: u64,
    /// About how many bytes of a snapshot are written at once.
    pub(crate) step: usize,
}

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    told: Option<mpsc::Sender<Told>>,
    safe: Arc<Safe>,
    thread: Option<JoinHandle<()>>,
}

/// The messages to the thread.
#[derive(Debug)]
enum Told {
    /// The store's version after these changes, and the changes.
    Changes(u64, Vec<Committed>),
    State(Frozen),
}

/// How far the log has got.
#[derive(Debug)]
struct Safe {
    progress: Mutex<Progress>,
    watched: watch::Sender<Progress>,
    more: Condvar,
    sent: Mutex<u64>,
    wants_state: AtomicBool,
}

#[derive(Debug, Clone, Default)]
struct Progress {
    /// How many batches are safe.
    batches: u64,
    failed: Option<PersistenceError>,
}

impl Progress {
    /// Whether this many batches are safe; none while it is not known.
    fn reaches(&self, sent: u64) -> Option<Result<(), PersistenceError>> {
        if self.batches >= sent { Some(Ok(())) } else { self.failed.clone().map(Err) }
    }
}

impl Journal {
    /// Writes the generation of this number, which begins with `state`, and goes on from there. Blocks on the disk.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        generation: u64,
        state: Frozen,
        limits: Limits,
    ) -> io::Result<Self> {
        let reserved = state.revision() + RESERVE;
        let live = state.changes().map(|change| weight(&change).1).sum();
        let snapshot = Snapshot { generation, state, reserved, step: limits.step };
        let length = snapshot.write(&*disk, &AtomicBool::new(false))?.unwrap_or_default();
        let log = disk.create(&log_name(generation))?;
        let safe = Arc::new(Safe {
            progress: Mutex::default(),
            watched: watch::Sender::new(Progress::default()),
            more: Condvar::new(),
            sent: Mutex::new(0),
            wants_state: AtomicBool::new(false),
        });
        let writer = Writer {
            disk,
            limits,
            log,
            generation,
            reserved,
            held: length,
            since: 0,
            live,
            not_before: 0,
            snapshot: None,
            asked: false,
            stop: Arc::default(),
            safe: Arc::clone(&safe),
        };
        let (told, incoming) = mpsc::channel();
        let name = "apiserver-log".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || writer.run(&incoming))?;
        Ok(Self { told: Some(told), safe, thread: Some(thread) })
    }

    /// Hands changes over, in the order of this call. `revision` is the store's after them.
    pub(crate) fn send(&self, revision: u64, changes: Vec<Committed>) {
        let mut sent = self.safe.sent.lock().unwrap_or_else(PoisonError::into_inner);
        // A writer that has failed has ended: what is sent to it is counted, and never becomes safe.
        *sent += 1;
        if let Some(told) = &self.told {
            let _ended = told.send(Told::Changes(revision, changes));
        }
    }

    /// Whether the thread needs the state of the store now, after all that was sent. It asks once.
    pub(crate) fn wants_state(&self) -> bool {
        self.safe.wants_state.load(Ordering::Relaxed) && self.safe.wants_state.swap(false, Ordering::Relaxed)
    }

    /// Hands over the state.
    pub(crate) fn send_state(&self, state: Frozen) {
        if let Some(told) = &self.told {
            let _ended = told.send(Told::State(state));
        }
    }

    /// Whether changes are still kept.
    ///
    /// # Errors The reason why they are not.
    pub(crate) fn kept(&self) -> Result<(), PersistenceError> {
        self.progress().failed.map_or(Ok(()), Err)
    }

    /// Waits until everything sent so far is safe.
    ///
    /// # Errors If it will never be safe.
    pub(crate) async fn settled(&self) -> Result<(), PersistenceError> {
        let sent = self.sent();
        let mut watched = self.safe.watched.subscribe();
        let reached = watched.wait_for(|progress| progress.reaches(sent).is_some()).await;
        // The sender lives in `self`, so the wait does not end without an answer.
        reached.ok().and_then(|progress| progress.reaches(sent)).unwrap_or(Ok(()))
    }

    /// As `settled`, for callers that are not async.
    ///
    /// # Errors If it will never be safe.
    pub(crate) fn settle(&self) -> Result<(), PersistenceError> {
        let sent = self.sent();
        let mut progress = self.safe.progress.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match progress.reaches(sent) {
                Some(known) => return known,
                None => progress = self.safe.more.wait(progress).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn sent(&self) -> u64 {
        *self.safe.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> Progress {
        self.safe.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        drop(self.told.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Safe {
    fn moves(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut progress);
        self.watched.send_replace(progress.clone());
        self.more.notify_all();
    }
}

#[derive(Debug)]
struct Writer {
    disk: Arc<dyn Disk>,
    limits: Limits,
    log: Box<dyn Append>,
    generation: u64,
    reserved: u64,
    /// The bytes of all files that count.
    held: u64,
    /// Those of them that came after the snapshot that is being written.
    since: u64,
    /// About how many of them are of objects that are stored now.
    live: u64,
    /// No snapshot before so many bytes are held: the last one failed.
    not_before: u64,
    snapshot: Option<JoinHandle<io::Result<Option<u64>>>>,
    /// Whether a state was requested and has not come yet.
    asked: bool,
    stop: Arc<AtomicBool>,
    safe: Arc<Safe>,
}

impl Writer {
    fn run(mut self, incoming: &mpsc::Receiver<Told>) {
        while let Ok(first) = incoming.recv() {
            if let Err(error) = self.take(std::iter::once(first).chain(incoming.try_iter())) {
                eprintln!(
                    "informer-apiserver: the log cannot be written, no change is taken any more: {error}"
                );
                let failed = PersistenceError::Write(Arc::new(error));
                self.safe.moves(|progress| progress.failed = Some(failed));
                break;
            }
            self.look_after_snapshot();
        }
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.snapshot.take() {
            let _in_vain_or_done = thread.join();
        }
    }

    /// Writes what there is to write, up to a state.
    fn take(&mut self, told: impl Iterator<Item = Told>) -> io::Result<()> {
        let (mut bytes, mut batches, mut state) = (Vec::new(), 0, None);
        for one in told {
            match one {
                Told::Changes(revision, changes) => {
                    self.encode(revision, &changes, &mut bytes);
                    batches += 1;
                }
                Told::State(frozen) => {
                    state = Some(frozen);
                    break;
                }
            }
        }
        self.append(&bytes, self.limits.sync)?;
        self.safe.moves(|progress| progress.batches += batches);
        state.map_or(Ok(()), |state| self.go_on_after(state))
    }

    fn encode(&mut self, revision: u64, changes: &[Committed], bytes: &mut Vec<u8>) {
        if revision + RESERVE / 2 > self.reserved {
            self.reserved = revision + RESERVE;
            frame(bytes, [Record::Reserved(self.reserved)]);
        }
        frame(bytes, changes.iter().map(Committed::record));
        for change in changes {
            let (old, new) = weight(change);
            self.live = match change {
                Committed::Replaced => 0,
                Committed::Change(..) => (self.live + new).saturating_sub(old),
            };
        }
    }

    fn append(&mut self, bytes: &[u8], sync: bool) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.log.append(bytes)?;
        self.held += bytes.len() as u64;
        self.since += bytes.len() as u64;
        if sync { self.log.sync() } else { Ok(()) }
    }

    /// Lets the log go on in the next generation, and begins to write the snapshot of this state.
    fn go_on_after(&mut self, state: Frozen) -> io::Result<()> {
        self.asked = false;
        let generation = self.generation + 1;
        let log = match self.disk.create(&log_name(generation)) {
            Ok(log) => log,
            Err(error) => {
                self.snapshot_failed(&error);
                return Ok(());
            }
        };
        let mut bytes = Vec::new();
        frame(&mut bytes, [Record::Continued]);
        // Also where no change waits for the disk: a log must not have a gap before the next one.
        self.append(&bytes, true)?;
        (self.log, self.generation, self.since) = (log, generation, 0);
        let snapshot = Snapshot { generation, state, reserved: self.reserved, step: self.limits.step };
        let (disk, stop) = (Arc::clone(&self.disk), Arc::clone(&self.stop));
        let thread = std::thread::Builder::new().name("apiserver-snapshot".to_owned());
        match thread.spawn(move || snapshot.write(&*disk, &stop)) {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => self.snapshot_failed(&error),
        }
        Ok(())
    }

    /// Handles the end of a snapshot, and requests the next one when it is time.
    fn look_after_snapshot(&mut self) {
        if let Some(thread) = self.snapshot.take_if(|thread| thread.is_finished()) {
            match thread.join() {
                Ok(Ok(length)) => (self.held, self.not_before) = (length.unwrap_or(0) + self.since, 0),
                Ok(Err(error)) => self.snapshot_failed(&error),
                Err(_panicked) => self.snapshot_failed(&io::Error::other("the thread panicked")),
            }
        }
        let void = self.held.saturating_sub(self.live);
        let due = void > self.live.max(self.limits.slack) && self.held >= self.not_before;
        if self.snapshot.is_none() && due && !self.asked {
            self.asked = true;
            self.safe.wants_state.store(true, Ordering::Relaxed);
        }
    }

    fn snapshot_failed(&mut self, error: &io::Error) {
        eprintln!("informer-apiserver: no snapshot could be written, the log goes on growing: {error}");
        self.not_before = self.held + self.live.max(self.limits.slack);
    }
}

/// About how many bytes of the files the states before and after a change take.
fn weight(change: &Committed) -> (u64, u64) {
    let Committed::Change(resource, event) = change else { return (0, 0) };
    let of = |object: &Option<Arc<Object>>| {
        object.as_ref().map_or(0, |object| object_weight(resource, event, object) as u64)
    };
    (of(&event.old), of(&event.new))
}

fn object_weight(resource: &ResourceId, event: &Event, object: &Object) -> usize {
    RECORD + resource.group.len() + resource.plural.len() + event.key.len() + object.body.len()
}
