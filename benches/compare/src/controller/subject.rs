//! A client in a process of its own, and the pipe by which it is asked for its figures.
//!
//! Answers "what has this client done and cost until now?". The protocol is the same for all clients, so that one may be
//! a program in another language: it prints `{"ready":true}` when its caches are synced; then for each line `report` on
//! its standard input one line with its figures, all since its start; it ends with its standard input. Invariant:
//! 1. The processor time and the memory are those of the client's process alone.
//!
//! Read next: `informer.rs`, `kube.rs`, the clients; `drive.rs`, which asks.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use super::informer::Form;
use super::{Client, informer, kube};
use crate::meter;

pub(super) const LONG: Duration = Duration::from_secs(120);

/// What a client has done and cost since its start.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) reconciles: u64,
    pub(super) errors: u64,
    pub(super) cpu_ms: f64,
    pub(super) resident_kib: u64,
    pub(super) anonymous_kib: u64,
    pub(super) peak_kib: u64,
}

/// Calls of the reconcile function.
#[derive(Debug, Default)]
pub(super) struct Counts {
    reconciles: AtomicU64,
    errors: AtomicU64,
}

impl Counts {
    /// Counts a call by its result.
    pub(super) fn count<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
        self.reconciles.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(result.is_err()), Ordering::Relaxed);
        result
    }

    fn figures(&self) -> anyhow::Result<Figures> {
        Ok(Figures {
            reconciles: self.reconciles.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            cpu_ms: meter::processor_time().as_secs_f64() * 1_000.0,
            resident_kib: meter::resident()?,
            anonymous_kib: meter::anonymous()?,
            peak_kib: meter::peak()?,
        })
    }
}

/// Runs one client and answers until standard input ends.
pub(crate) fn client(url: &str, client: Client, workers: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let counts = Arc::new(Counts::default());
    let _running = runtime.block_on(async {
        match client {
            Client::Informer => informer::start(url, workers, &counts, Form::Plain).await.map(Some),
            Client::InformerLazy => informer::start(url, workers, &counts, Form::Lazy).await.map(Some),
            Client::InformerTuned => informer::start(url, workers, &counts, Form::Tuned).await.map(Some),
            Client::InformerChildren => {
                informer::start(url, workers, &counts, Form::Children).await.map(Some)
            }
            Client::Kube => kube::start(url, workers, &counts, false).await.map(|()| None),
            Client::KubeTuned => kube::start(url, workers, &counts, true).await.map(|()| None),
            Client::Go => bail!("controller-runtime's is a program of its own"),
        }
    })?;
    println!("{{\"ready\":true}}");
    for line in std::io::stdin().lines() {
        ensure!(line?.trim() == "report", "the only question is: report");
        println!("{}", serde_json::to_string(&counts.figures()?)?);
    }
    // What runs is not stopped in order: the process ends.
    std::process::exit(0)
}

/// A client that ends when this is dropped.
pub(super) struct Subject {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Subject {
    /// Starts it; returns when it is ready.
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the client's output is piped")?;
        let mut subject = Self { child, input, output: BufReader::new(output) };
        let ready: serde_json::Value =
            serde_json::from_str(&subject.line()?).context("the client's first line")?;
        ensure!(ready["ready"] == true, "the client says that it is not ready: {ready}");
        Ok(subject)
    }

    /// Its figures.
    pub(super) fn report(&mut self) -> anyhow::Result<Figures> {
        let input = self.input.as_mut().context("the client's input is piped")?;
        input.write_all(b"report\n")?;
        input.flush()?;
        serde_json::from_str(&self.line()?).context("the client's figures")
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the client has ended");
        Ok(line)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends by itself now; if it is gone already, there is nothing to wait for.
        let _gone = self.child.wait();
    }
}
