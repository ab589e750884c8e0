//! Undecodable objects: lists and watches deliver key and version, a GET is an error. A poisoned key cannot be
//! decoded, in any version, until it is healed. Parts that a watch has sent stay as they were.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::LocalBoxStream;
use informer_core::delta::{ListPart, Undecodable, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};

use super::{Happened, Server, State, version};
use crate::pipeline::messages::Body;

const WHY: &str = "poisoned";

impl<S: Body> Server<S> {
    /// From now on no version of this object decodes.
    pub fn poison(&self, key: &str) {
        let key: ObjectKey = key.parse().expect("a test names objects as namespace/name");
        self.0.state.with(|state| state.poisoned.insert(key));
    }

    /// The object decodes again, also in older versions.
    pub fn heal(&self, key: &str) {
        let key: ObjectKey = key.parse().expect("a test names objects as namespace/name");
        self.0.state.with(|state| state.poisoned.remove(&key));
    }

    /// Holds the answers to GETs, or lets them arrive. An answer has the content of the time of its GET.
    pub fn hold_gets(&self, hold: bool) {
        self.0.state.with(|state| state.hold_gets = hold);
        self.wake_streams();
    }

    pub(super) async fn until_gets_released(&self) {
        self.0.changes.until(|| (!self.0.state.with(|state| state.hold_gets)).then_some(())).await;
    }
}

impl<S> State<S> {
    pub(super) fn initial(&self, object: &Object<S>) -> WatchPart<S> {
        self.undecodable(object).map_or_else(|| WatchPart::Applied(object.clone()), WatchPart::Undecodable)
    }

    /// The readable objects in chunks.
    pub(super) fn list_parts(&self, objects: &[&Object<S>]) -> Vec<Result<ListPart<S>, ListWatchError>> {
        let (bad, good): (Vec<_>, Vec<_>) =
            objects.iter().copied().partition(|object| self.poisoned.contains(object.key()));
        let chunk = |part: &[&Object<S>]| ListPart::Objects(part.iter().copied().cloned().collect());
        let mut parts: Vec<_> = good.chunks(self.page).map(|part| Ok(chunk(part))).collect();
        parts.extend(
            bad.into_iter().filter_map(|object| self.undecodable(object)).map(ListPart::Undecodable).map(Ok),
        );
        parts
    }

    pub(super) fn part(&self, revision: u64, event: &Happened<S>) -> WatchPart<S> {
        match event {
            Happened::Applied(object) => self.initial(object),
            Happened::Deleted(object) => match self.undecodable(object) {
                Some(undecodable) => WatchPart::DeletedUndecodable(undecodable),
                None => WatchPart::Deleted(object.clone()),
            },
            Happened::Bookmark => {
                WatchPart::Bookmark { version: version(revision), initial_events_end: false }
            }
        }
    }

    pub(super) fn found(&self, key: &ObjectKey) -> Result<Option<Object<S>>, ListWatchError> {
        if self.objects.contains_key(key) && self.poisoned.contains(key) {
            return Err(ListWatchError::Protocol(format!("{key}: {WHY}").into()));
        }
        Ok(self.objects.get(key).cloned())
    }

    fn undecodable(&self, object: &Object<S>) -> Option<Undecodable> {
        let (key, version) = (object.key().clone(), object.version().clone());
        self.poisoned.contains(&key).then(|| Undecodable { key, version, error: WHY.into() })
    }
}

// How long the scripted server takes to answer, by tokio's clock: no real time passes in a simulation. Invariants:
// 1. A request is logged, and its answer decided, when it is made. Only the arrival is delayed.
// 2. With a delay of zero the part is there in the first poll.

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
        self.0.state.with(|state| state.latency.until_head = delay);
    }

    /// From now on each part of a list or watch after the head comes so long after the one before: the next objects,
    /// the end of a list, an event. Zero by default. Open streams keep the pace that they began with.
    pub fn pause_between_parts(&self, pause: Duration) {
        self.0.state.with(|state| state.latency.between_parts = pause);
    }
}

impl Latency {
    pub(super) fn pace<T: 'static>(self, answer: LocalBoxStream<'static, T>) -> LocalBoxStream<'static, T> {
        let paced = answer.enumerate().then(move |(place, part)| async move {
            pass(if place == 0 { self.until_head } else { self.between_parts }).await;
            part
        });
        paced.boxed_local()
    }

    pub(super) async fn until_head(self) {
        pass(self.until_head).await;
    }
}

async fn pass(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
