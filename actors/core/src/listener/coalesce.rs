//! The coalescing table: how the waiting events of one key merge with the next event.
//!
//! Answers "these events of the key wait, and now this happened: which events wait then?". Order and other keys are not
//! its concern. Invariants:
//! 1. The waiting events lead from the state delivered last to the newest one. States between them are left out on
//!    purpose, except that the last life which was created and deleted meanwhile is delivered.
//! 2. At most four events, in this order: the `Deleted` of the life delivered last, the `Added` and the `Deleted` of a
//!    brief life, and the `Added` of the life that is there now; or one `Updated`.
//! 3. A way back to the very state delivered last is nothing, unless a list lies between: a list may hide a rewind,
//!    after which equal versions prove nothing, so then it is delivered with cause `Rewind`.
//!
//! Which cause stands: an `Added` keeps its first one; else the last one counts, except that `Rewind` stays, since it
//! is the reason why versions may repeat, and that a `Resync` behind another event adds nothing. Read next:
//! `pending.rs`.

use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey};

/// The waiting events of one key, in the order of delivery.
#[derive(Debug)]
pub(super) struct KeyEvents<S> {
    /// The end of the life delivered last.
    deleted: Option<Change<S>>,
    /// The last life that began and ended meanwhile.
    pub(super) brief: Option<Box<Brief<S>>>,
    /// What is there now: `Added`, or `Updated` if nothing else waits.
    now: Option<Change<S>>,
}

/// A life that began and ended before it was delivered: an `Added` and a `Deleted`.
#[derive(Debug)]
pub(super) struct Brief<S> {
    /// When it ended, by the number of the arrival.
    pub(super) arrival: u64,
    /// Why it began.
    pub(super) cause: Cause,
    /// Its end; the state before it is delivered as added.
    pub(super) deleted: Change<S>,
}

impl<S> Brief<S> {
    /// Its two events.
    pub(super) fn into_changes(self) -> Vec<Change<S>> {
        let added = match &self.deleted {
            Change::Deleted { old, .. } => Some(Change::Added { object: old.clone(), cause: self.cause }),
            _ => None,
        };
        added.into_iter().chain([self.deleted]).collect()
    }

    fn is_life_of(&self, object: &Object<S>) -> bool {
        matches!(&self.deleted, Change::Deleted { old, .. } if old.is_same_life_as(object))
    }
}

impl<S> KeyEvents<S> {
    /// Nothing waits.
    pub(super) const fn nothing() -> Self {
        Self { deleted: None, brief: None, now: None }
    }

    /// How many events.
    pub(super) fn len(&self) -> usize {
        let brief = if self.brief.is_some() { 2 } else { 0 };
        usize::from(self.deleted.is_some()) + brief + usize::from(self.now.is_some())
    }

    /// The key that it is about; `None` if nothing waits.
    pub(super) fn key(&self) -> Option<&ObjectKey> {
        let brief = self.brief.as_ref().map(|brief| &brief.deleted);
        self.now.as_ref().or(self.deleted.as_ref()).or(brief).map(Change::key)
    }

    /// The events, in order.
    pub(super) fn into_changes(self) -> impl Iterator<Item = Change<S>> {
        let brief = self.brief.map(|brief| brief.into_changes()).unwrap_or_default();
        self.deleted.into_iter().chain(brief).chain(self.now)
    }

    /// Adds what happened next, as the event of this arrival; false if it could not follow. What waits leads to the
    /// newest state all the same.
    pub(super) fn merge(&mut self, next: Change<S>, arrival: u64) -> bool {
        match next {
            Change::Added { object, cause } => self.add(object, cause),
            // The waiting event carries the object.
            Change::Updated { cause: Cause::Resync, .. } if self.len() > 0 => true,
            Change::Updated { old, object, cause } => self.update(old, object, cause),
            Change::Deleted { .. } => self.delete(next, arrival),
        }
    }

    fn add(&mut self, object: Object<S>, cause: Cause) -> bool {
        if self.brief.as_ref().is_some_and(|brief| brief.is_life_of(&object)) {
            self.brief = None;
        }
        let (now, is_possible) = match (self.now.take(), self.deleted.take()) {
            (None, Some(Change::Deleted { old, cause: first, .. }))
                if self.brief.is_none() && old.is_same_life_as(&object) =>
            {
                // A list lies between if either event came from one.
                let is_listed = first != Cause::Watch || cause != Cause::Watch;
                let is_hidden_rewind = is_listed && old.is_same_as(&object);
                let cause = if is_hidden_rewind { Cause::Rewind } else { standing(first, cause) };
                (updated(old, object, cause), true)
            }
            (Some(Change::Updated { old, .. }), deleted) => {
                self.deleted = deleted;
                (updated(old, object, cause), false)
            }
            (now, deleted) => {
                self.deleted = deleted;
                (Some(Change::Added { object, cause }), now.is_none())
            }
        };
        self.now = now;
        is_possible
    }

    fn update(&mut self, old: Object<S>, object: Object<S>, cause: Cause) -> bool {
        let is_first = self.len() == 0;
        let (now, is_possible) = match self.now.take() {
            Some(Change::Added { cause, .. }) => (Some(Change::Added { object, cause }), true),
            Some(Change::Updated { old, cause: first, .. }) => {
                (updated(old, object, standing(first, cause)), true)
            }
            _ if is_first => (Some(Change::Updated { old, object, cause }), true),
            _ => (Some(Change::Added { object, cause }), false),
        };
        self.now = now;
        is_possible
    }

    fn delete(&mut self, deleted: Change<S>, arrival: u64) -> bool {
        match (self.now.take(), deleted) {
            (Some(Change::Added { cause, .. }), deleted) => {
                self.brief = Some(Box::new(Brief { arrival, cause, deleted }));
            }
            (Some(Change::Updated { old, cause: first, .. }), Change::Deleted { last, exact, cause, .. }) => {
                self.deleted = Some(Change::Deleted { old, last, exact, cause: standing(first, cause) });
            }
            (_, deleted) if self.len() == 0 => self.deleted = Some(deleted),
            _ => return false,
        }
        true
    }
}

/// From the state delivered last to the newest of the same life: nothing, if they are the same.
fn updated<S>(old: Object<S>, object: Object<S>, cause: Cause) -> Option<Change<S>> {
    let is_same = old.is_same_as(&object) && cause != Cause::Rewind;
    (!is_same).then_some(Change::Updated { old, object, cause })
}

/// The cause of two events that became one.
pub(super) fn standing(first: Cause, next: Cause) -> Cause {
    if first == Cause::Rewind { first } else { next }
}

#[cfg(test)]
mod tests;
