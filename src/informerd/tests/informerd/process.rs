//! One informerd process: its arguments, its lines, its end.
//!
//! Answers "how does a test use the binary?". Invariants:
//! 1. The process does not see any cluster of the machine it runs on.
//! 2. Every wait ends: with what it waits for, or after four minutes with everything that was printed.
//! 3. A process that a test leaves behind is killed.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Far more time than anything here takes, also on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) struct Informerd {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// Every line of stdout that was read.
    pub(crate) seen: Vec<String>,
}

/// The command with these arguments, without the environment's clusters.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informerd"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "RUST_LOG", "NO_COLOR"] {
        command.env_remove(variable);
    }
    command.env("TZ", "UTC").current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command
}

impl Informerd {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut this = Self::spawn(command(arguments));
        let stdout = this.child.stdout.take().unwrap();
        this.stdout = lines_of(stdout);
        this
    }

    pub(crate) fn start_with(arguments: &[&str], variable: (&str, &str)) -> Self {
        let mut command = command(arguments);
        command.env(variable.0, variable.1);
        Self::run(command)
    }

    pub(crate) fn run(command: Command) -> Self {
        let mut this = Self::spawn(command);
        let stdout = this.child.stdout.take().unwrap();
        this.stdout = lines_of(stdout);
        this
    }

    /// A process whose stdout only the caller reads.
    pub(crate) fn start_unread(arguments: &[&str]) -> (Self, ChildStdout) {
        let mut this = Self::spawn(command(arguments));
        let stdout = this.child.stdout.take().unwrap();
        (this, stdout)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = lines_of(child.stderr.take().unwrap());
        Self { child, stdout: channel().1, stderr, seen: Vec::new() }
    }

    /// Reads stdout up to a line that satisfies `wanted`, and returns it.
    pub(crate) fn line(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = patience_over();
        loop {
            let Ok(line) = self.stdout.recv_timeout(left(deadline)) else {
                panic!("no such line in:\n{}\nstderr: {:?}", self.seen.join("\n"), self.rest_of_stderr());
            };
            self.seen.push(line.clone());
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Reads stdout until there was a line for each of these, in any order, that contains all its texts.
    pub(crate) fn lines_with(&mut self, wanted: &[&[&str]]) {
        let is = |line: &str, texts: &[&str]| texts.iter().all(|text| line.contains(text));
        let mut missing = wanted.to_vec();
        while !missing.is_empty() {
            let line = self.line(|line| missing.iter().any(|texts| is(line, texts)));
            missing.retain(|texts| !is(&line, texts));
        }
    }

    /// Reads stdout to its end.
    pub(crate) fn all(&mut self) -> &[String] {
        let deadline = patience_over();
        loop {
            match self.stdout.recv_timeout(left(deadline)) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return &self.seen,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it has not ended, and said:\n{}", self.seen.join("\n"))
                }
            }
        }
    }

    /// Reads stderr up to the line that contains `wanted`.
    pub(crate) fn written_on_stderr(&mut self, wanted: &str) -> String {
        let deadline = patience_over();
        loop {
            let line =
                self.stderr.recv_timeout(left(deadline)).unwrap_or_else(|_| panic!("no {wanted} on stderr"));
            if line.contains(wanted) {
                return line;
            }
        }
    }

    /// All of stderr; the process must be about to end.
    pub(crate) fn rest_of_stderr(&mut self) -> String {
        let _ended = self.child.kill();
        self.stderr.iter().collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<String>, String) {
        self.all();
        let stderr = self.stderr.iter().collect::<Vec<_>>().join("\n");
        (self.child.wait().unwrap(), std::mem::take(&mut self.seen), stderr)
    }

    /// Where the probes listen, from the line that it prints at the start.
    pub(crate) fn probes(&mut self) -> String {
        let line = self.written_on_stderr("probes at");
        let from = line.find("http://").unwrap() + "http://".len();
        line[from..].split('/').next().unwrap().to_owned()
    }
}

impl Drop for Informerd {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of a real process gives up in real time")]
fn patience_over() -> Instant {
    Instant::now() + PATIENCE
}

#[expect(clippy::disallowed_methods, reason = "a test of a real process gives up in real time")]
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (lines, inbox) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    inbox
}

/// The status code and body of a GET.
pub(crate) fn http_get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let code = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    (code, body)
}

/// Repeats the request until the answer has this code.
pub(crate) fn wait_for_code(address: &str, path: &str, code: u16) {
    let deadline = patience_over();
    loop {
        let (now, body) = http_get(address, path);
        if now == code {
            return;
        }
        assert!(!left(deadline).is_zero(), "{path} stays {now}: {body}");
        std::thread::yield_now();
    }
}
