//! One program of the control plane as a child process: its log, its signals, and the guarantee that it ends.
//!
//! Question: what may happen to a process, and how do we know that it has? It does not know what the program does.
//! 1. Dropping a `Process` kills it and waits for it, also while a test panics.
//! 2. If this test process ends without dropping anything (SIGKILL, abort, a value in a static), the guard kills the
//!    child and removes its directory: a shell that waits for the end of a pipe which only we hold open. A
//!    parent-death signal would need unsafe code, and would come when the *thread* that started the child ends.
//! 3. `freeze` returns when the process has stopped, not when the signal was sent.
//!
//! Read next: `control_plane.rs`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::{Error, StartError, wait};

const LOG_TAIL: u64 = 4096;

/// A running child process.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    guard: Child,
    log: PathBuf,
}

impl Process {
    /// Runs `program`; what it writes is appended to `log`.
    pub(crate) fn spawn(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        log: PathBuf,
    ) -> Result<Self, StartError> {
        let out = OpenOptions::new().create(true).append(true).open(&log).map_err(StartError::Directory)?;
        let error_out = out.try_clone().map_err(StartError::Directory)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(error_out)
            .spawn()
            .map_err(|source| StartError::Spawn { process: name, source })?;
        let leftovers = log.parent().unwrap_or_else(|| Path::new(""));
        match guard(&child, leftovers) {
            Ok(guard) => Ok(Self { name, child, guard, log }),
            Err(source) => {
                // Without a guard it could outlast us. It is our child and not waited for: the signal finds
                // it.
                let _ = child.kill();
                let _ = child.wait();
                Err(StartError::Spawn { process: "sh", source })
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `ready` returns Ok; its errors are what the process answered instead.
    pub(crate) fn await_ready(
        &mut self,
        limit: Duration,
        mut ready: impl FnMut() -> Result<(), String>,
    ) -> Result<(), StartError> {
        let mut answer = String::new();
        let outcome = wait::until(limit, || match self.child.try_wait() {
            Ok(Some(status)) => Some(Err(status)),
            _ => match ready() {
                Ok(()) => Some(Ok(())),
                Err(other) => {
                    answer = other;
                    None
                }
            },
        });
        match outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(status)) => Err(self.exited(status)),
            None => Err(StartError::NotReady { process: self.name, limit, answer, log: self.log_tail() }),
        }
    }

    /// Asks the process to end (SIGTERM), and kills it if it has not ended after `limit`.
    pub(crate) fn stop(mut self, limit: Duration) -> Result<(), Error> {
        self.signal(Signal::TERM)?;
        // A frozen process would keep the request pending.
        self.signal(Signal::CONT)?;
        match wait::until(limit, || self.child.try_wait().transpose()) {
            Some(Ok(_)) => Ok(()),
            Some(Err(source)) => Err(Error::Io { action: "wait for a process", source }),
            None => Err(Error::Stop { process: self.name, limit, log: self.log_tail() }),
        }
    }

    /// Stops the process where it is (SIGSTOP): its connections stay open and nothing answers.
    pub(crate) fn freeze(&self) -> Result<(), Error> {
        self.signal(Signal::STOP)?;
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()), options).map_err(|error| Error::Io {
            action: "wait for a process to stand still",
            source: error.into(),
        })?;
        Ok(())
    }

    /// Lets a frozen process go on (SIGCONT); has no effect on one that runs.
    pub(crate) fn thaw(&self) -> Result<(), Error> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        kill_process(self.pid(), signal)
            .map_err(|error| Error::Io { action: "send a signal to a process", source: error.into() })
    }

    /// The id is ours until we wait for the process, so no other process can have it.
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn exited(&self, status: ExitStatus) -> StartError {
        StartError::Exited { process: self.name, status, log: self.log_tail() }
    }

    fn log_tail(&self) -> String {
        read_tail(&self.log).unwrap_or_else(|error| format!("(the log cannot be read: {error})"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Each of these fails only when the process has already ended, which is what is wanted. The guard
        // ends before the child is waited for: after that its process id may belong to another process.
        let _ = self.child.kill();
        if let Some(mut pipe) = self.guard.stdin.take() {
            let _ = pipe.write_all(b"dismissed\n");
        }
        let _ = self.guard.wait();
        let _ = self.child.wait();
    }
}

/// A shell that waits for the end of its standard input; if that comes without a line, this process is gone,
/// and the shell kills `child` and removes the directory that nothing else will remove.
///
/// Each process has a guard, and both remove: what one cannot yet because the other's process still writes,
/// it tries again, a few times. It ignores what a terminal or a `timeout` sends to us and all our children at
/// once: otherwise nothing would end a process that hangs in its orderly end.
fn guard(child: &Child, leftovers: &Path) -> io::Result<Child> {
    const SCRIPT: &str = r#"trap '' HUP INT TERM
        read -r _ && exit
        kill -KILL "$0"
        for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" && exit; sleep 0.2; done"#;
    Command::new("/bin/sh")
        .args(["-c", SCRIPT, &child.id().to_string()])
        .arg(leftovers)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

fn read_tail(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
