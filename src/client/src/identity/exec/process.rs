//! Runs one program and returns its stdout.
//!
//! 1. It returns within the limit, and at most one second after the program's end.
//! 2. The program has its own process group, which is killed at the limit. An interactive program stays in
//!    this process's group, since only that group may read the terminal; it is killed alone, like every
//!    program outside Unix.
//! 3. Processes that an ended program leaves (a browser, an agent) keep running, as in client-go. If one
//!    keeps stdout open, that is an error, and the group is killed so that tries do not pile up.

use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use super::PluginError;

/// In bytes; more than credentials need.
const STDOUT_LIMIT: usize = 1 << 20;
/// In bytes, of its end.
const STDERR_LIMIT: usize = 4 << 10;
/// Characters of stderr in an error.
const QUOTED: usize = 500;
/// Children of the program may hold its pipes.
const AFTER_THE_END: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);

enum Printed {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    TooMuch,
}

pub(super) fn output(
    mut command: Command,
    is_interactive: bool,
    limit: Duration,
) -> Result<Vec<u8>, PluginError> {
    command.stdin(if is_interactive { Stdio::inherit() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    if !is_interactive {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
    }
    let not_started =
        |error: std::io::Error| PluginError::NotStarted { reason: error.to_string(), hint: None };
    let child = command.spawn().map_err(not_started)?;
    let mut running = Running { child, has_group: !is_interactive, has_ended: false };
    // One place for each message: no reader ever waits.
    let (sender, printed) = mpsc::sync_channel(4);
    read_stdout(running.child.stdout.take(), sender.clone());
    read_stderr(running.child.stderr.take(), is_interactive, sender);
    let ended = running.wait(&printed, limit);
    let (status, stdout, stderr) = ended?;
    if status.success() { Ok(stdout) } else { Err(failed(status, &stderr)) }
}

struct Running {
    child: Child,
    has_group: bool,
    /// It ended and its output is complete: its group goes on.
    has_ended: bool,
}

impl Running {
    fn wait(
        &mut self,
        printed: &Receiver<Printed>,
        limit: Duration,
    ) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), PluginError> {
        let mut deadline = Deadline::after(limit);
        let (mut stdout, mut stderr, mut status) = (None, None, None);
        loop {
            match printed.recv_timeout(POLL) {
                Ok(Printed::Stdout(text)) => stdout = Some(text),
                Ok(Printed::Stderr(text)) => stderr = Some(text),
                Ok(Printed::TooMuch) => return Err(PluginError::TooLarge(STDOUT_LIMIT)),
                Err(RecvTimeoutError::Timeout) => {}
                // Both readers have ended; only the program is left.
                Err(RecvTimeoutError::Disconnected) => std::thread::park_timeout(POLL),
            }
            if status.is_none() {
                status = self.child.try_wait().map_err(lost)?;
                if status.is_some() {
                    deadline = deadline.or_sooner(AFTER_THE_END);
                }
            }
            // A child of the program may hold stderr open: it matters only if the program failed.
            let is_whole = stderr.is_some() || status.is_some_and(|status| status.success());
            match (status, &stdout) {
                (Some(status), Some(_)) if is_whole || deadline.has_passed() => {
                    self.has_ended = true;
                    return Ok((status, stdout.unwrap_or_default(), stderr.unwrap_or_default()));
                }
                // Another process holds stdout: its output cannot be told from the program's.
                (Some(_), ..) if deadline.has_passed() => {
                    return Err(PluginError::Malformed(
                        "it ended, and a process that it started keeps its output open".to_owned(),
                    ));
                }
                _ if deadline.has_passed() => return Err(PluginError::TimedOut(limit)),
                _ => {}
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        #[cfg(unix)]
        if self.has_group {
            // The group has the child's number, which is not reused while the group has a member.
            let group = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Deadline(Option<Instant>);

impl Deadline {
    fn after(limit: Duration) -> Self {
        Self(now().checked_add(limit))
    }

    fn or_sooner(self, limit: Duration) -> Self {
        let other = Self::after(limit);
        Self([self.0, other.0].into_iter().flatten().min())
    }

    fn has_passed(&self) -> bool {
        self.0.is_some_and(|at| at <= now())
    }
}

#[expect(clippy::disallowed_methods, reason = "a program runs in real time, also where time is simulated")]
fn now() -> Instant {
    Instant::now()
}

fn lost(error: std::io::Error) -> PluginError {
    PluginError::Malformed(format!("its end cannot be observed: {error}"))
}

fn failed(status: ExitStatus, stderr: &[u8]) -> PluginError {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(3);
    let printable = lines[from..].join("; ").replace(char::is_control, " ");
    // The reason stands at the end.
    let skipped = printable.chars().count().saturating_sub(QUOTED);
    let stderr = printable.chars().skip(skipped).collect();
    PluginError::Failed { status: status.to_string(), stderr }
}

fn read_stdout(pipe: Option<impl Read + Send + 'static>, sender: SyncSender<Printed>) {
    let read = move || {
        let mut text = Vec::new();
        let limit = u64::try_from(STDOUT_LIMIT).unwrap_or(u64::MAX);
        let _ = pipe.map(|pipe| pipe.take(limit + 1).read_to_end(&mut text));
        let is_whole = text.len() <= STDOUT_LIMIT;
        let _ = sender.send(if is_whole { Printed::Stdout(text) } else { Printed::TooMuch });
    };
    start(read);
}

fn read_stderr(pipe: Option<impl Read + Send + 'static>, is_shown: bool, sender: SyncSender<Printed>) {
    let read = move || {
        let mut end = Vec::new();
        let mut piece = [0; STDERR_LIMIT];
        let mut pipe = pipe;
        // Read to the end: a full pipe would stop the program.
        while let Some(Ok(length @ 1..)) = pipe.as_mut().map(|pipe| pipe.read(&mut piece)) {
            if is_shown {
                // It may be a question to the user.
                let _ = std::io::stderr().write_all(&piece[..length]);
            }
            end.extend_from_slice(&piece[..length]);
            end.drain(..end.len().saturating_sub(STDERR_LIMIT));
        }
        let _ = sender.send(Printed::Stderr(end));
    };
    start(read);
}

/// A reader that cannot start drops its sender: its output is then incomplete.
fn start(read: impl FnOnce() + Send + 'static) {
    let _ = std::thread::Builder::new().name("informer-plugin".to_owned()).spawn(read);
}
