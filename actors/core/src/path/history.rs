//! The states of objects that are followed, as their sources have brought them: what changed in an object, and when.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::meta::{ObjectKey, ResourceVersion};

/// Of each key.
pub const MOST_STATES: usize = 20;
/// Of all texts of one key.
pub const MOST_STATE_BYTES: usize = 128 * 1_024;

/// One state of an object that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastState {
    /// When it came, as time since the runtime's start.
    pub at: Duration,
    /// The informer that it came to.
    pub informer: Arc<str>,
    /// Its version.
    pub version: ResourceVersion,
    /// What there is of it.
    pub body: PastBody,
}

/// What there is of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PastBody {
    /// The object as JSON, as far as its source shows it: of a Secret no values.
    Object(Arc<str>),
    /// The object was deleted.
    Deleted,
    /// The object has so many bytes that it is not kept: more than 128 KiB.
    TooLarge(usize),
}

impl PastState {
    /// A state that has come now.
    pub fn new(at: Duration, informer: Arc<str>, version: ResourceVersion, body: PastBody) -> Self {
        let body = match body {
            PastBody::Object(text) if text.len() > MOST_STATE_BYTES => PastBody::TooLarge(text.len()),
            body => body,
        };
        Self { at, informer, version, body }
    }

    fn bytes(&self) -> usize {
        match &self.body {
            PastBody::Object(text) => text.len(),
            PastBody::Deleted | PastBody::TooLarge(_) => 0,
        }
    }
}

/// The newest states of each key that is followed.
#[derive(Debug, Default)]
pub struct History(BTreeMap<ObjectKey, VecDeque<PastState>>);

impl History {
    /// Keeps a state. The oldest of the same key go while there are more than [`MOST_STATES`] or
    /// [`MOST_STATE_BYTES`]. The caller does not add keys without a bound.
    pub fn add(&mut self, key: &ObjectKey, state: PastState) {
        let states = self.0.entry(key.clone()).or_default();
        states.push_back(state);
        let mut bytes: usize = states.iter().map(PastState::bytes).sum();
        while states.len() > MOST_STATES || bytes > MOST_STATE_BYTES {
            let Some(oldest) = states.pop_front() else { break };
            bytes -= oldest.bytes();
        }
    }

    /// The states of a key, the oldest first.
    pub fn of(&self, key: &ObjectKey) -> Vec<PastState> {
        self.0.get(key).into_iter().flatten().cloned().collect()
    }

    /// Forgets a key that is followed no longer.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(history: &mut History, number: u64, bytes: usize) {
        let version = ResourceVersion::from_number(number).expect("not zero");
        let body = PastBody::Object("x".repeat(bytes).into());
        history.add(&key(), PastState::new(Duration::from_secs(number), "pods".into(), version, body));
    }

    fn key() -> ObjectKey {
        ObjectKey::namespaced("a", "web")
    }

    #[test]
    fn the_newest_states_are_kept_up_to_a_number_and_to_their_bytes() {
        let mut history = History::default();
        (1..=30).for_each(|number| add(&mut history, number, 1));
        let states = history.of(&key());
        assert_eq!((states.len(), states[0].at.as_secs()), (MOST_STATES, 11));
        add(&mut history, 31, MOST_STATE_BYTES - 3);
        assert_eq!(history.of(&key()).len(), 4, "three small ones have room beside it");
        add(&mut history, 32, MOST_STATE_BYTES + 1);
        let states = history.of(&key());
        assert_eq!(states[4].body, PastBody::TooLarge(MOST_STATE_BYTES + 1));
        history.forget(&key());
        assert_eq!(history.of(&key()), []);
    }
}
