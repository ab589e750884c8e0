//! A book whose keys are handed out as a test wants them.

use super::*;
use crate::queue::machine::{Priority, QueueMachine, default_limiter, namespace_order};
use informer_core::reflector::Moment;

const NOW: Duration = Duration::ZERO;

/// A book, and what the reconciles under way know.
pub(super) struct Desk<S> {
    pub(super) book: Book<S>,
    runs: BTreeMap<ObjectKey, Begun<S>>,
}

/// With what a reconcile begins.
pub(super) struct Given<S> {
    pub(super) deleted: Option<Object<S>>,
    pub(super) left: Option<Object<S>>,
}

impl<S> Desk<S> {
    /// One that keeps so many last states.
    pub(super) fn keeping(most_deleted: usize) -> Self {
        let mut desk = Self::default();
        desk.book.tally.most_deleted = most_deleted;
        desk
    }

    pub(super) fn arrive(&mut self, key: &ObjectKey, arrival: Arrival<'_, S>, reason: Reason) -> Arrived<S> {
        self.book.handle_arrival(key, arrival, (reason, Priority::Normal, NOW), NOW)
    }

    /// The key is handed out, whatever else waits, and its reconcile begins; `None` if it rests.
    pub(super) fn begin(&mut self, key: &ObjectKey, cached: Option<&Meta>) -> Option<Given<S>> {
        self.book.add(key.clone(), Priority::High, NOW);
        let mut others = Vec::new();
        let taken = loop {
            let taken = self.book.take(NOW).expect("it waits");
            if taken.key == *key {
                break taken;
            }
            others.push(taken);
        };
        for other in others {
            assert!(self.book.put_back(&other.key, other.note, NOW));
        }
        let mut begun = self.book.handle_begin(key, taken.note);
        begun.look(cached);
        if begun.rests() {
            assert!(self.conclude(key, &begun, Ended::UntilChanged).released.is_none());
            return None;
        }
        let given = Given { deleted: begun.deleted().cloned(), left: begun.left().cloned() };
        assert!(self.runs.insert(key.clone(), begun).is_none(), "a key is reconciled once at a time");
        Some(given)
    }

    /// What becomes of the key, and what the worker drops then: what the reconcile knew, and what is not kept any more.
    pub(super) fn end(&mut self, key: &ObjectKey, ended: Ended) -> (Next, [Option<Object<S>>; 2]) {
        let mut begun = self.runs.remove(key).expect("it has begun");
        let concluded = self.conclude(key, &begun, ended);
        (ended.next(), [concluded.released, begun.release()])
    }

    fn conclude(&mut self, key: &ObjectKey, begun: &Begun<S>, ended: Ended) -> Concluded<S> {
        let moment = Moment { now: NOW, chance: 0.0 };
        self.book.handle_end(key, (ended, begun, None), &mut default_limiter(), moment)
    }

    /// Whether the key is handed out once more.
    pub(super) fn writes(&mut self, key: &ObjectKey, writes: &Writes) -> bool {
        self.book.handle_writes(key, writes, |informer| informer == 1, NOW)
    }

    pub(super) fn kept(&self) -> KeptFigures {
        self.book.tally.figures
    }
}

impl<S> Default for Desk<S> {
    fn default() -> Self {
        Self { book: QueueMachine::noting(namespace_order, MOST_WITH_CAUSES), runs: BTreeMap::new() }
    }
}
