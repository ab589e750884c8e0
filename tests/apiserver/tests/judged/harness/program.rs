//! Programs and libraries as steps of a script: kubectl, Go's own clients and kube-rs, run against the server of the session.
//!
//! Answers: what did the program print, line by line, and how did it end?
//! 1. Ages, widths of columns and versions in texts are removed here: they differ between two runs on one server.
//! 2. A program that does not end in time is killed, and that is its end.
//! 3. The log of client-go's reflector is not compared: it depends on how long a watch lasted.
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use informer_control_plane::Binaries;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use regex_lite::Regex;
use serde_json::{Value, json};

use super::session::{EVENT_LIMIT, Session};
use super::transcript::Step;

/// How long a program may take: more than a loaded machine needs.
const LIMIT: Duration = Duration::from_secs(300);

/// The output of a program.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A program that is still running, and whose lines are read one by one.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    step: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It fails only if the program has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Splits at blanks; blanks within single quotes belong to a word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars().chain([' ']) {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => word.push(other),
        }
    }
    words
}

impl Session {
    /// Runs kubectl in the script's namespace; the line is split at blanks.
    pub(crate) fn kubectl(&mut self, line: &str) -> Output {
        self.kubectl_reading(line, "")
    }

    /// Runs kubectl with this on its standard input.
    pub(crate) fn kubectl_reading(&mut self, line: &str, input: &str) -> Output {
        let label = self.transcript.label("kubectl", line);
        let Some(command) = self.kubectl_command(line) else { return Output::default() };
        let output = run(command, &self.filled(input));
        let content = self.said(&output);
        self.transcript.push(Step { label, content });
        output
    }

    /// Runs kubectl for its effect, without comparing its output; it must succeed.
    pub(crate) fn kubectl_prepare(&mut self, line: &str) {
        let Some(command) = self.kubectl_command(line) else { return };
        let output = run(command, "");
        assert_eq!(output.code, Some(0), "kubectl {line}: {}{}", output.stdout, output.stderr);
    }

    /// Runs kubectl with an editor that changes the file it is given.
    pub(crate) fn kubectl_edit(&mut self, line: &str, editor: &str) {
        let label = self.transcript.label("kubectl", line);
        let Some(mut command) = self.kubectl_command(line) else { return };
        command.env("KUBE_EDITOR", editor);
        let content = self.said(&run(command, ""));
        self.transcript.push(Step { label, content });
    }

    /// The output of kubectl, only for the script.
    pub(crate) fn kubectl_text(&mut self, line: &str) -> String {
        self.kubectl_command(line).map(|command| run(command, "").stdout).unwrap_or_default()
    }

    /// Starts a kubectl that does not end by itself.
    pub(crate) fn kubectl_start(&mut self, line: &str) -> Option<Running> {
        let label = self.transcript.label("kubectl", line);
        let mut child =
            self.kubectl_command(line)?.stdout(Stdio::piped()).spawn().expect("kubectl can be run");
        let out = child.stdout.take().expect("its output is piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            // The output is not read any more: the program is about to be killed.
            let _ = lines.map(|line| sender.send(line)).find(Result::is_err);
        });
        let step = self.transcript.steps.len();
        self.transcript.push(Step { label, content: json!({"events": []}) });
        Some(Running { child, lines, step })
    }

    /// Runs a scenario of the Go clients.
    pub(crate) fn go(&mut self, scenario: &str, encoding: &str) {
        let label = self.transcript.label("go", &format!("{scenario} {encoding}"));
        let Some(program) = binaries().and_then(|binaries| binaries.go_clients().map(Path::to_owned)) else {
            return;
        };
        let mut command = Command::new(program);
        command.arg(self.home().join("config")).arg(self.namespace()).args([scenario, encoding]);
        let mut output = run(command, "");
        if output.code == Some(0) {
            // The libraries' logs are not compared; errors are kept.
            output.stderr.clear();
        }
        let content = self.said(&output);
        self.transcript.push(Step { label, content });
    }

    /// Runs a script that uses kube-rs; its output, or its error, becomes a step.
    pub(crate) fn kube<S, F, E>(&mut self, what: &str, script: S)
    where
        S: Fn(Client, String) -> F,
        F: Future<Output = Result<Vec<String>, E>>,
        E: std::fmt::Display,
    {
        let label = self.transcript.label("kube-rs", what);
        let kubeconfig = Kubeconfig::from_yaml(self.kubeconfig()).expect("a kubeconfig is one to kube-rs");
        let namespace = self.namespace().to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let told = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            let client = Client::try_from(config.expect("a configuration")).expect("a client");
            script(client, namespace).await
        });
        let content = match told {
            Ok(lines) => json!({"told": lines}),
            Err(error) => json!({"failed": error.to_string()}),
        };
        self.transcript.push(Step { label, content });
    }

    fn kubectl_command(&mut self, line: &str) -> Option<Command> {
        let home = self.home();
        let mut command = Command::new(binaries()?.kubectl());
        let everywhere = ["-A", "-n ", "--raw", "config "].iter().any(|flag| line.contains(flag));
        if !everywhere {
            command.args(["--namespace", self.namespace()]);
        }
        command
            .args(words(&self.filled(line)))
            .env("KUBECONFIG", home.join("config"))
            .env("KUBECACHEDIR", home.join("cache"))
            .env("KUBERC", "off")
            .env("HOME", &home)
            .current_dir(&home);
        Some(command)
    }

    fn said(&self, output: &Output) -> Value {
        let out = match serde_json::from_str::<Value>(&output.stdout) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => json,
            _ => lines(&output.stdout, self.namespace()),
        };
        json!({"exit": output.code, "stdout": out, "stderr": lines(&output.stderr, self.namespace())})
    }
}

impl Running {
    /// Waits for this many lines; missing ones are recorded in the transcript as missing.
    pub(crate) fn lines(&mut self, session: &mut Session, count: usize) {
        for _ in 0..count {
            let line = self.lines.recv_timeout(EVENT_LIMIT);
            let line = line.map_or_else(|_| "nothing in time".to_owned(), |line| steady(&line));
            session.transcript.event(self.step, line.into());
        }
    }
}

fn binaries() -> Option<Binaries> {
    Binaries::find_or_skip()
}

fn run(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be run");
    if let Some(mut pipe) = child.stdin.take() {
        // A program that ends early prints the reason itself.
        let _ = pipe.write_all(input.as_bytes());
    }
    let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let stdout = out.recv_timeout(LIMIT);
    let in_time = stdout.is_ok();
    if !in_time {
        let _ = child.kill();
    }
    let status = child.wait().expect("the program can be waited for");
    let stderr = err.recv_timeout(LIMIT).unwrap_or_default();
    Output { code: in_time.then(|| status.code()).flatten(), stdout: stdout.unwrap_or_default(), stderr }
}

/// Reads a pipe to its end on another thread.
fn drain(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // After an error, the bytes read so far are used.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// The lines of a text, without those of other scripts' definitions and of the reflector's log.
fn lines(text: &str, namespace: &str) -> Value {
    let foreign = |line: &&str| line.contains(".example.com") && !line.contains(namespace);
    let log =
        Regex::new(r"^[EWI][0-9]{4} [0-9:.]+ +[0-9]+ reflector\.go:[0-9]+\]").expect("a pattern of ours");
    let told = text.lines().filter(|line| !foreign(line) && !log.is_match(line)).map(steady);
    without_repairs(told.collect()).into()
}

#[test]
fn the_log_of_a_reflector_about_a_watch_that_ended_at_its_timeout_is_not_compared() {
    // It comes if the watch began less than a second before the end, and if the program does not end first.
    let slow = "I1122 13:29:53.248452   28255 reflector.go:664] \"Warning: watch ended with error\" err=\"very short watch\"\n\
        error: timed out waiting for the condition on configmaps/held\n";
    assert_eq!(lines(slow, "ns"), json!(["error: timed out waiting for the condition on configmaps/held"]));
    let other = "E1122 13:29:53.248452   28255 memcache.go:265] \"Unhandled Error\"";
    assert_eq!(lines(other, "ns"), json!(["<klog> \"Unhandled Error\""]));
}

/// Without the events of a loop in a real server that sometimes sees new services before their addresses.
fn without_repairs(mut told: Vec<String>) -> Vec<String> {
    let all = told.len();
    told.retain(|line| !line.contains("ipallocator-repair-controller"));
    // A table of nothing else: its title, its head and the rule below it.
    if told.len() < all && told.last().is_some_and(|line| line.starts_with("  ----")) {
        told.truncate(told.len().saturating_sub(3));
        told.push("Events:  <none>".to_owned());
    }
    told
}

/// A line without what differs from run to run.
fn steady(line: &str) -> String {
    let replace = |text: &str, pattern: &str, with: &str| {
        Regex::new(pattern).expect("a pattern of ours").replace_all(text, with).into_owned()
    };
    let indent = line.len() - line.trim_start_matches(' ').len();
    let text = replace(line.trim(), " {2,}", "  ");
    let text = replace(&text, r"(^|\s)([0-9]+[dhms])+(\s|$)", "$1<age>$3");
    let text =
        replace(&text, r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} [+-][0-9]{4}", "<date>");
    let text = replace(&text, r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} [+-][0-9]{4} UTC", "<date>");
    let text = replace(&text, r#"(resourceVersion"?: ?)"[0-9]+""#, "$1<version>");
    let text = replace(&text, r"^(Resource Version:) +[0-9]+$", "$1  <version>");
    let text = replace(&text, r"^[EWI][0-9]{4} [0-9:.]+ +[0-9]+ [a-z_]+\.go:[0-9]+\]", "<klog>");
    let text = replace(&text, r"/tmp/[^ ]+", "<file>");
    let text = replace(&text, r"[0-9:]{8}\.[0-9]{9} \+0000", "<time>");
    format!("{}{text}", " ".repeat(indent))
}
