//! Objects that cannot be read: how the scripted server plays a decoder that fails.
//!
//! Answers "what does a source say about an object whose body does not decode?": its key and version, in lists and
//! watches; an error, to a GET. Invariants:
//! 1. A poisoned key stays so, in every version, until it is healed; what a watch told of it before stays told.

use informer_core::delta::{ListPart, SetAside, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};

use super::{Happened, Server, State, version};
use crate::pipeline::messages::Body;

/// What the decoder says of a poisoned object.
const WHY: &str = "poisoned";

impl<S: Body> Server<S> {
    /// From now on no version of this object decodes.
    pub fn poison(&self, key: &str) {
        let key = key.parse().expect("a test names objects as namespace/name");
        self.state().poisoned.insert(key);
    }

    /// It decodes again, also in older versions.
    pub fn heal(&self, key: &str) {
        let key: ObjectKey = key.parse().expect("a test names objects as namespace/name");
        self.state().poisoned.remove(&key);
    }

    /// Holds the answers to GETs, whose content is that of the moment of the question, or lets them go.
    pub fn hold_gets(&self, hold: bool) {
        self.state().hold_gets = hold;
        self.tell();
    }

    pub(super) async fn until_gets_released(&self) {
        self.0.news.wait_while(|| self.state().hold_gets).await;
    }
}

impl<S> State<S> {
    /// An item of a list, or of a watch-list's initial events, as its decoder leaves it.
    pub(super) fn initial(&self, object: &Object<S>) -> WatchPart<S> {
        self.set_aside(object).map_or_else(|| WatchPart::Applied(object.clone()), WatchPart::SetAside)
    }

    /// The parts of a list, the readable objects in chunks.
    pub(super) fn list_parts(&self, objects: &[&Object<S>]) -> Vec<Result<ListPart<S>, ListWatchError>> {
        let (bad, good): (Vec<_>, Vec<_>) =
            objects.iter().copied().partition(|object| self.poisoned.contains(object.key()));
        let chunk = |part: &[&Object<S>]| ListPart::Objects(part.iter().copied().cloned().collect());
        let mut parts: Vec<_> = good.chunks(self.page).map(|part| Ok(chunk(part))).collect();
        parts.extend(
            bad.into_iter().filter_map(|object| self.set_aside(object)).map(ListPart::SetAside).map(Ok),
        );
        parts
    }

    /// An entry of the history as its decoder leaves it.
    pub(super) fn part(&self, revision: u64, happened: &Happened<S>) -> WatchPart<S> {
        match happened {
            Happened::Applied(object) => self.initial(object),
            Happened::Deleted(object) => match self.set_aside(object) {
                Some(aside) => WatchPart::DeletedUnread(aside),
                None => WatchPart::Deleted(object.clone()),
            },
            Happened::Bookmark => {
                WatchPart::Bookmark { version: version(revision), initial_events_end: false }
            }
        }
    }

    /// The answer to a GET: an object that does not decode is an error.
    pub(super) fn found(&self, key: &ObjectKey) -> Result<Option<Object<S>>, ListWatchError> {
        if self.objects.contains_key(key) && self.poisoned.contains(key) {
            return Err(ListWatchError::Protocol(format!("{key}: {WHY}").into()));
        }
        Ok(self.objects.get(key).cloned())
    }

    fn set_aside(&self, object: &Object<S>) -> Option<SetAside> {
        let (key, version) = (object.key().clone(), object.version().clone());
        self.poisoned.contains(&key).then(|| SetAside { key, version, error: WHY.into() })
    }
}
