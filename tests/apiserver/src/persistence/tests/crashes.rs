//! Every moment of a run of writes at which the process may end, on a simulated disk that records each of its steps.
//!
//! They answer: are all acknowledged writes there after a crash, and nothing that never was, while logs are replaced by
//! snapshots all the time? And what happens when a step fails?
//! 1. A crash leaves the steps before it whole, and of an append any part; a power cut also loses what was not synced.
//! 2. The model knows the state after each write, and how many of them had been acknowledged at each step.
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::{View, settings, view};
use crate::cluster::delete::DeleteOptions;
use crate::cluster::patch::PatchKind;
use crate::cluster::store::{Call, Cluster};
use crate::persistence::disk::{Append, Disk};
use crate::persistence::journal::{Journal, Limits};
use crate::persistence::record::Frames;
use crate::persistence::{Kept, PersistenceError};

type Files = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Clone)]
enum Step {
    Create(String),
    Append(String, Vec<u8>),
    Sync(String),
    Rename(String, String),
    Remove(String),
    /// This many writes are acknowledged by now.
    Acknowledged(usize),
}

/// A disk in memory: its steps in their order.
#[derive(Debug, Default, Clone)]
struct Remembering {
    steps: Arc<Mutex<Vec<Step>>>,
    full: Arc<AtomicBool>,
}

impl Remembering {
    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, step: Step) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.steps().push(step);
        Ok(())
    }

    fn files(&self) -> Files {
        after(&self.steps(), false)
    }
}

/// The files after these steps; a power cut removes what was not synced.
fn after(steps: &[Step], power_cut: bool) -> Files {
    let (mut files, mut synced) = (Files::new(), BTreeMap::new());
    for step in steps {
        match step {
            Step::Create(name) => {
                files.insert(name.clone(), Vec::new());
                synced.insert(name.clone(), 0);
            }
            Step::Append(name, bytes) => files.entry(name.clone()).or_default().extend(bytes),
            Step::Sync(name) => {
                synced.insert(name.clone(), files[name].len());
            }
            Step::Rename(from, to) => {
                let (file, length) = (files.remove(from).unwrap(), synced.remove(from).unwrap());
                files.insert(to.clone(), file);
                synced.insert(to.clone(), length);
            }
            Step::Remove(name) => {
                files.remove(name);
                synced.remove(name);
            }
            Step::Acknowledged(_) => {}
        }
    }
    if power_cut {
        files.iter_mut().for_each(|(name, bytes)| bytes.truncate(synced[name]));
    }
    files
}

#[derive(Debug)]
struct File(Remembering, String);

impl Append for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.take(Step::Append(self.1.clone(), bytes.to_vec()))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.take(Step::Sync(self.1.clone()))
    }
}

impl Disk for Remembering {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.files().into_keys().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.files().remove(name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        self.take(Step::Create(name.to_owned()))?;
        Ok(Box::new(File(self.clone(), name.to_owned())))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.take(Step::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.take(Step::Remove(name.to_owned()))
    }
}

/// What files hold after a crash.
#[derive(Debug)]
struct Left(Files);

impl Disk for Left {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(self.0[name].clone())
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn Append>> {
        unreachable!("it is only read")
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        unreachable!("it is only read")
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        unreachable!("it is only read")
    }
}

const LIMITS: Limits = Limits { sync: true, slack: 3_000, step: 600 };

/// A store that is kept on such a disk.
struct Bench {
    disk: Remembering,
    cluster: Cluster,
    journal: Journal,
    states: Vec<View>,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let (disk, mut cluster) = (Remembering::default(), Cluster::new(settings(), 0));
        let journal = Journal::start(Arc::new(disk.clone()), 1, cluster.freeze(), limits).unwrap();
        cluster.record_changes();
        disk.steps().push(Step::Acknowledged(0));
        let states = vec![view(&cluster)];
        Self { disk, cluster, journal, states }
    }

    /// Makes a change and sends it, as `World` does.
    fn send(&mut self, number: usize) {
        let namespaces = self.cluster.registry.find("", "v1", "namespaces").cloned().unwrap();
        let maps = self.cluster.registry.find("", "v1", "configmaps").cloned().unwrap();
        let (namespace, name) = (format!("n{}", number % 3), format!("m{}", number % 5));
        let call = Call::plain(&maps, &namespace, &name, 0);
        let home = Call::plain(&namespaces, "", &namespace, 0);
        let text = "x".repeat(40 + number % 70);
        let patch = json!({"data": {"k": text, "n": number.to_string()}}).to_string();
        // A refused write changes nothing.
        let _refused = match number % 13 {
            12 => self.cluster.delete(&home, &DeleteOptions::default()).map(drop),
            7 => self.cluster.delete(&call, &DeleteOptions::default()).map(drop),
            _ => {
                drop(self.cluster.create(&home, json!({"metadata": {"name": namespace}})));
                drop(self.cluster.create(&call, json!({"metadata": {"name": name}})));
                self.cluster.patch(&call, PatchKind::Merge, patch.as_bytes()).map(drop)
            }
        };
        let changes = self.cluster.take_committed();
        if changes.is_empty() {
            return;
        }
        self.journal.send(self.cluster.revision(), changes);
        if self.journal.wants_state() {
            self.journal.send_state(self.cluster.freeze());
        }
        self.states.push(view(&self.cluster));
    }

    fn acknowledged(&mut self) {
        self.journal.settle().unwrap();
        self.disk.steps().push(Step::Acknowledged(self.states.len() - 1));
    }
}

fn recovered(files: Files) -> View {
    let kept = Kept::read(&Left(files)).unwrap();
    let mut cluster = Cluster::new(settings(), 0);
    cluster.recover(kept.told().unwrap().records.into_iter());
    cluster.resume_deletions(0);
    view(&cluster)
}

/// The last of these steps may be torn: all files that may be left, except those that read like earlier ones.
fn torn(steps: &[Step]) -> Vec<Files> {
    let (whole, cut) = (after(steps, false), after(steps, true));
    let Some(Step::Append(name, bytes)) = steps.last() else { return vec![whole, cut] };
    // An append begins where a frame begins, so its own bytes say how many frames of it can be read.
    let mut read = None;
    let mut different = |left: &usize| {
        let frames = Some(Frames::of(&bytes[..*left]).count());
        std::mem::replace(&mut read, frames) != frames
    };
    let lengths: Vec<usize> = (0..=bytes.len()).filter(&mut different).collect();
    let shorter = lengths.iter().flat_map(|left| [left.saturating_sub(1), *left]).map(|left| {
        let mut files = whole.clone();
        let file = files.get_mut(name).unwrap();
        file.truncate(file.len() - bytes.len() + left);
        files
    });
    shorter.chain([cut]).collect()
}

#[test]
fn a_crash_at_any_byte_of_any_step_loses_nothing_that_was_acknowledged() {
    let mut bench = Bench::new(LIMITS);
    // The thread that writes snapshots runs when it can.
    let replaced =
        |disk: &Remembering| disk.steps().iter().filter(|step| matches!(step, Step::Rename(..))).count();
    let mut number = 0;
    while number < 100 || replaced(&bench.disk) < 4 {
        bench.send(number);
        if number % 4 != 1 {
            bench.acknowledged();
        }
        number += 1;
    }
    bench.acknowledged();
    let Bench { disk, journal, states, .. } = bench;
    drop(journal);
    let steps = disk.steps().clone();
    let started = steps.iter().position(|step| matches!(step, Step::Acknowledged(_))).unwrap();
    let mut safe = 0;
    for end in started + 1..=steps.len() {
        if let Step::Acknowledged(count) = steps[end - 1] {
            safe = count;
            continue;
        }
        for files in torn(&steps[..end]) {
            let found = recovered(files);
            // Nothing older than what was acknowledged, and nothing that was never sent.
            assert!(states[safe..].contains(&found), "after step {end}, {:?}", steps[end - 1]);
        }
    }
    assert_eq!(recovered(disk.files()), states[states.len() - 1]);
}

#[test]
fn the_files_stay_small_while_the_same_few_objects_are_written_for_ever() {
    let mut bench = Bench::new(LIMITS);
    let mut too_many = 0;
    for number in 0..1_500 {
        // A snapshot takes time, and writes do not wait for it: for a while there may be more.
        while {
            bench.send(number);
            bench.acknowledged();
            let mut steps = bench.disk.steps();
            let files = after(&steps, false);
            let size: usize = files.values().map(Vec::len).sum();
            *steps = remaking(files);
            let live: usize = bench.states[bench.states.len() - 1].values().map(Vec::len).sum();
            size > 3 * live + 20_000
        } {
            too_many += 1;
            assert!(too_many < 100_000, "the files only grow");
            std::thread::yield_now();
        }
        bench.states.drain(..bench.states.len() - 1);
    }
}

/// Steps that make these files.
fn remaking(files: Files) -> Vec<Step> {
    let steps = files.into_iter().map(|(name, bytes)| {
        [Step::Create(name.clone()), Step::Append(name.clone(), bytes), Step::Sync(name)]
    });
    steps.flatten().collect()
}

#[test]
fn a_full_disk_is_reported_to_waiting_and_to_later_callers() {
    let mut bench = Bench::new(LIMITS);
    bench.send(0);
    bench.acknowledged();
    let safe = bench.states.len() - 1;
    bench.disk.full.store(true, Ordering::Relaxed);
    bench.send(1);
    let PersistenceError::Write(why) = bench.journal.settle().unwrap_err();
    assert_eq!(why.kind(), io::ErrorKind::StorageFull);
    bench.disk.full.store(false, Ordering::Relaxed);
    bench.send(2);
    assert!(bench.journal.settle().is_err(), "what comes after a gap is not kept either");
    assert!(bench.journal.kept().is_err());
    assert_eq!(recovered(bench.disk.files()), bench.states[safe]);
}

#[test]
fn a_damaged_snapshot_is_an_error_and_not_an_empty_store() {
    let bench = Bench::new(LIMITS);
    let files = bench.disk.files();
    for at in 0..files["snapshot.1"].len() {
        let mut damaged = files.clone();
        damaged.get_mut("snapshot.1").unwrap()[at] ^= 1;
        assert!(Kept::read(&Left(damaged)).unwrap().told().is_err(), "byte {at}");
    }
}
