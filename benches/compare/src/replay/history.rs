//! The data of the replay server: pods, and their future changes.
//!
//! Answers "which bytes is pod n at this moment, and which bytes is event m?" It sends nothing. Event m changes pod
//! m modulo the number of pods: its version, and its count of restarts. Invariants:
//! 1. Of a pod only what it has for itself is kept; its text is copied together, and hardly formatted.
//! 2. Versions grow by one with each event and each expiry, so a version says what a client has seen.

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::messages::Message;
use crate::pod::{Pattern, Values, version};
use crate::state::State;

/// How often events happen at a steady rate, if there are more of them.
const PACE: Duration = Duration::from_millis(10);

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
    pattern: Pattern,
    pods: Vec<Values>,
    /// The same in protobuf, if the server sends it.
    messages: Option<Vec<Message>>,
    start: u64,
    events: u64,
    progress: watch::Sender<Progress>,
}

impl History {
    /// So many pods, and so many changes of them.
    pub(super) fn new(count: usize, events: u64, protobuf: bool) -> anyhow::Result<Self> {
        let last = count.checked_sub(1).context("there must be a pod")?;
        let (pattern, pods) = (Pattern::new(), (0..count).map(Values::of).collect::<Vec<_>>());
        pods.iter().step_by(1_000).for_each(|pod| drop(pattern.text(pod, version(last), 0)));
        let messages = protobuf.then(|| pods.iter().map(|pod| Message::new(&pattern, pod)).collect());
        let (messages, progress) = (messages.transpose()?, watch::Sender::default());
        Ok(Self { pattern, pods, messages, start: version(last), events, progress })
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

    /// The next events, or all that are left, happen.
    pub(super) fn release(&self, count: Option<u64>) {
        self.release_until(self.end_of(count));
    }

    /// The same, so many in a second.
    pub(super) async fn release_paced(&self, count: Option<u64>, rate: u64) {
        let (begun, first, end) = (Instant::now(), self.progress.borrow().events, self.end_of(count));
        for tick in 1.. {
            let at = PACE.max(Duration::from_secs(1) / u32::try_from(rate).unwrap_or(u32::MAX)) * tick;
            sleep_until(begun + at).await;
            let due = first + (at.as_secs_f64() * rate as f64).round() as u64;
            self.release_until(due.min(end));
            if due >= end {
                return;
            }
        }
    }

    fn end_of(&self, count: Option<u64>) -> u64 {
        count.map_or(self.events, |count| self.progress.borrow().events + count).min(self.events)
    }

    fn release_until(&self, end: u64) {
        self.progress.send_modify(|progress| progress.events = progress.events.max(end));
    }

    /// So many events happen, and with all before them they are forgotten: no watch tells them.
    pub(super) fn expire(&self, changed: u64) {
        let end = self.end_of(Some(changed));
        self.progress.send_modify(|progress| {
            progress.events = progress.events.max(end);
            progress.expiries += 1;
        });
    }

    /// Appends pod `number` as it is after so many events.
    pub(super) fn pod(&self, number: usize, events: u64, out: &mut Vec<u8>) {
        let (version, changes) = self.at(number, events);
        self.pattern.write(&self.pods[number], version, changes, out);
    }

    /// The pods in protobuf, if they are sent.
    pub(super) fn messages(&self) -> Option<&[Message]> {
        self.messages.as_deref()
    }

    /// The version of pod `number` after so many events, and its changes.
    pub(super) fn at(&self, number: usize, events: u64) -> (u64, u64) {
        let count = self.pods.len() as u64;
        let changes = (events + count - 1 - number as u64) / count;
        let version = match changes.checked_sub(1) {
            None => version(number),
            Some(before) => self.start + before * count + number as u64 + 1,
        };
        (version, changes)
    }

    /// The pod that event `event` changes.
    pub(super) fn changed(&self, event: u64) -> usize {
        (event % self.pods.len() as u64) as usize
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
