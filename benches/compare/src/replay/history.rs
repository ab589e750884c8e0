//! The data of the replay server: pods, and their future changes.
//!
//! Answers "which bytes is pod n at this moment, and which bytes is event m?" It sends nothing. Event m changes pod
//! m modulo the number of pods: its version, and its count of restarts. Invariants:
//! 1. A change replaces digits by as many digits: every pod keeps its length, and is copied, never formatted.
//! 2. Versions grow by one with each event and each expiry, so a version says what a client has seen.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::pod::pods;
use crate::state::State;

/// How often events happen at a steady rate, if there are more of them.
const PACE: Duration = Duration::from_millis(10);

/// Where a member's value begins.
const VERSION: &str = r#""resourceVersion":""#;
const RESTARTS: &str = r#""restartCount":"#;
/// The members that an item of a list does not have.
pub(super) const KIND: &str = r#"{"kind":"Pod","apiVersion":"v1","#;

/// Up to where the server has been commanded to go.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Events that have happened.
    pub(super) events: u64,
    /// How often everything before was forgotten.
    pub(super) expiries: u64,
}

/// The pods, and what happens to them.
#[derive(Debug)]
pub(super) struct History {
    pods: Vec<Text>,
    start: u64,
    events: u64,
    progress: watch::Sender<Progress>,
}

#[derive(Debug)]
struct Text {
    json: String,
    number: u64,
    version: Range<usize>,
    restarts: usize,
}

impl History {
    /// So many pods, and so many changes of them.
    pub(super) fn new(count: usize, events: u64) -> anyhow::Result<Self> {
        let pods = pods(count).into_iter().map(Text::new).collect::<Result<Vec<_>, _>>()?;
        let start = pods.iter().map(|pod| pod.number).max().context("there must be a pod")?;
        Ok(Self { pods, start, events, progress: watch::Sender::default() })
    }

    /// How many pods there are.
    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    /// How far it is.
    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The version of the whole at a moment.
    pub(super) fn version(&self, at: Progress) -> u64 {
        self.start + at.events + at.expiries
    }

    /// How many events a client has seen that is at this version.
    pub(super) fn seen(&self, version: u64) -> u64 {
        version.saturating_sub(self.start).min(self.progress.borrow().events)
    }

    /// Events happen up to this number of them, or all.
    pub(super) fn release(&self, until: Option<u64>) {
        let until = until.unwrap_or(self.events).min(self.events);
        self.progress.send_modify(|progress| progress.events = progress.events.max(until));
    }

    /// So many events happen in a second, until all have.
    pub(super) async fn release_paced(&self, rate: u64) {
        let begun = Instant::now();
        for tick in 1.. {
            let at = PACE.max(Duration::from_secs(1) / u32::try_from(rate).unwrap_or(u32::MAX)) * tick;
            sleep_until(begun + at).await;
            let due = (at.as_secs_f64() * rate as f64).round() as u64;
            self.release(Some(due));
            if due >= self.events {
                return;
            }
        }
    }

    /// Everything before is forgotten.
    pub(super) fn expire(&self) {
        self.progress.send_modify(|progress| progress.expiries += 1);
    }

    /// Appends pod `number` as it is after so many events.
    pub(super) fn pod(&self, number: usize, events: u64, out: &mut Vec<u8>) {
        let (count, number) = (self.pods.len() as u64, number as u64);
        let text = &self.pods[number as usize];
        let changes = (events + count - 1 - number) / count;
        match changes.checked_sub(1) {
            None => out.extend_from_slice(text.json.as_bytes()),
            Some(before) => text.changed(self.start + before * count + number + 1, changes, out),
        }
    }

    /// Appends the pod that event `event` leaves.
    pub(super) fn event(&self, event: u64, out: &mut Vec<u8>) {
        let number = event % self.pods.len() as u64;
        self.pod(number as usize, event + 1, out);
    }

    /// What it holds, read from the bytes that are sent.
    pub(super) fn state(&self) -> anyhow::Result<State> {
        let events = self.progress.borrow().events;
        let (mut state, mut bytes) = (State::default(), Vec::new());
        for number in 0..self.len() {
            bytes.clear();
            self.pod(number, events, &mut bytes);
            let pod: Pod = serde_json::from_slice(&bytes)?;
            state.add(&pod)?;
        }
        Ok(state)
    }
}

impl Text {
    fn new(json: String) -> anyhow::Result<Self> {
        ensure!(json.starts_with(KIND), "a pod begins with its kind");
        let from = json.find(VERSION).context("a pod has a version")? + VERSION.len();
        let digits = json[from..].find('"').context("a version ends")?;
        let number = json[from..from + digits].parse()?;
        let restarts = json.find(RESTARTS).context("a pod has a count of restarts")? + RESTARTS.len();
        Ok(Self { number, version: from..from + digits, restarts, json })
    }

    fn changed(&self, version: u64, changes: u64, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(self.json.as_bytes());
        let version = version.to_string();
        debug_assert_eq!(version.len(), self.version.len(), "a version keeps its length");
        out[begin + self.version.start..begin + self.version.end].copy_from_slice(version.as_bytes());
        out[begin + self.restarts] = b'0' + (changes % 10) as u8;
    }
}
