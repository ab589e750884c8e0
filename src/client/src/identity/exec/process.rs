//! Runs one program to its end, or kills it.
//!
//! Answers "what did the program print?" and knows nothing of credentials. Invariants:
//! 1. It returns within the limit, and the second that pipes may stay open after the program ended.
//! 2. What is kept of its output is bounded; a program that prints more to stdout is killed.
//! 3. The program has a process group of its own, which is killed as a whole at the limit; an interactive one stays in the
//!    group of this process, since only that group may read the terminal, and is killed alone. What a program leaves
//!    running when it has ended (a browser, an agent) is left alone, as by client-go, unless that keeps the program's stdout
//!    open: then the output has no end, which is an error, and the group is killed so that tries do not pile up.
//! 4. What an interactive program prints to stderr is shown at once: it may be the question that a person has to answer.
//!
//! Only Unix has process groups; elsewhere the program itself is killed. Read next: `exec.rs`.

use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use super::PluginError;

/// More than a token, a certificate chain and a key need.
const STDOUT_LIMIT: usize = 1 << 20;
/// The end of stderr that is kept.
const STDERR_LIMIT: usize = 4 << 10;
/// At most this many characters of stderr stand in an error.
const QUOTED: usize = 500;
/// How long the pipes may stay open after the program ended: a child of its own may hold them.
const AFTER_THE_END: Duration = Duration::from_secs(1);
/// How often the program is asked whether it has ended while its pipes are silent.
const POLL: Duration = Duration::from_millis(20);

enum Printed {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    TooMuch,
}

/// Runs `command` and returns what it printed to stdout. Blocks.
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
    // One place for each message that can be sent, so that no reader ever waits.
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
    /// It has ended, and with its output: what is left of its group goes on.
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
                // Both readers have ended: what is left is the program itself.
                Err(RecvTimeoutError::Disconnected) => std::thread::park_timeout(POLL),
            }
            if status.is_none() {
                status = self.child.try_wait().map_err(lost)?;
                if status.is_some() {
                    deadline = deadline.or_sooner(AFTER_THE_END);
                }
            }
            // What stderr says counts only where the program failed; a process that it started may hold it open.
            let is_whole = stderr.is_some() || status.is_some_and(|status| status.success());
            match (status, &stdout) {
                (Some(status), Some(_)) if is_whole || deadline.has_passed() => {
                    self.has_ended = true;
                    return Ok((status, stdout.unwrap_or_default(), stderr.unwrap_or_default()));
                }
                // Another process holds its pipes; what the program printed cannot be separated from what that process
                // prints.
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
    /// Leaves no zombie, and no process of a program that was stopped.
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        #[cfg(unix)]
        if self.has_group {
            // The group's number is the child's, which is free for others only after the last of the group has gone.
            let group = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program runs in real time, also where the runtime's time is simulated.
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
        // Read to its end whatever its length: a full pipe would stop the program.
        while let Some(Ok(length @ 1..)) = pipe.as_mut().map(|pipe| pipe.read(&mut piece)) {
            if is_shown {
                // Nobody sees it, if it cannot be shown.
                let _ = std::io::stderr().write_all(&piece[..length]);
            }
            end.extend_from_slice(&piece[..length]);
            end.drain(..end.len().saturating_sub(STDERR_LIMIT));
        }
        let _ = sender.send(Printed::Stderr(end));
    };
    start(read);
}

/// A reader that cannot be started drops its sender: the program is then waited for until its limit.
fn start(read: impl FnOnce() + Send + 'static) {
    let _ = std::thread::Builder::new().name("informer-plugin".to_owned()).spawn(read);
}
