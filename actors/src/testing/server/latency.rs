//! How long the scripted server takes to answer.
//!
//! Answers "when does each part of an answer arrive?": after a delay until the head of the answer, and one before each
//! part after it. Both use tokio's clock, so they take no real time in a simulation. Invariants:
//! 1. A request is logged, and its answer is decided, when the request is made. Only the arrival is delayed.
//! 2. With a delay of zero the part is there in the first poll.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::LocalBoxStream;

use super::Server;
use crate::pipeline::messages::Body;

/// The delays of one answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latency {
    until_head: Duration,
    between_parts: Duration,
}

impl Default for Latency {
    /// The head after 5 ms, as in a near network; parts as fast as they are read.
    fn default() -> Self {
        Self { until_head: Duration::from_millis(5), between_parts: Duration::ZERO }
    }
}

impl<S: Body> Server<S> {
    /// From now on the head of each answer (of a list: its first part) comes so long after the request. 5 ms by
    /// default: no network answers in the same poll as the request, and such an answer would hide faults.
    pub fn answer_after(&self, delay: Duration) {
        self.state().latency.until_head = delay;
    }

    /// From now on each part of a list or watch after the head comes so long after the one before: the next objects,
    /// the end of a list, an event. Zero by default. Open streams keep the pace that they began with.
    pub fn pause_between_parts(&self, pause: Duration) {
        self.state().latency.between_parts = pause;
    }
}

impl Latency {
    /// The same answer, each part at its time.
    pub(super) fn pace<T: 'static>(self, answer: LocalBoxStream<'static, T>) -> LocalBoxStream<'static, T> {
        let paced = answer.enumerate().then(move |(place, part)| async move {
            pass(if place == 0 { self.until_head } else { self.between_parts }).await;
            part
        });
        paced.boxed_local()
    }

    /// Waits until the head is due.
    pub(super) async fn until_head(self) {
        pass(self.until_head).await;
    }
}

async fn pass(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
