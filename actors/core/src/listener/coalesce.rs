//! What two undelivered events of one key come to: the table, as one match.
//!
//! Answers "the recipient has not seen this, and now that happened: what is it owed?" and nothing about order or
//! other keys. Invariants:
//! 1. What is owed leads from the state that the recipient was told last to the newest one; what lies between is
//!    lost on purpose.
//! 2. At most two events: a `Deleted`, and the `Added` of another life.
//! 3. A way back to the very state told last is nothing, unless a rewind lies between: then equal versions prove
//!    nothing. What a restart of the group owes may hide a rewind, so there only the very same object is the same
//!    state, and another one of equal version is told with cause `Rewind`.
//!
//! Which cause stands: an `Added` keeps its first one; else the last one counts, except that a resync changes
//! nothing and that `Rewind` stays, since it is the reason why versions may repeat. Read next: `pending.rs`.

use crate::delta::{Cause, Change};
use crate::meta::Object;
use crate::snapshot::Sameness;

/// What one key is owed.
#[derive(Debug)]
pub(super) enum Owed<S> {
    /// One event.
    One(Change<S>),
    /// The end of the life told last, and another life.
    Reborn { deleted: Change<S>, added: Change<S> },
}

/// What two events come to.
#[derive(Debug)]
pub(super) enum Coalesced<S> {
    /// This is owed.
    Owed(Owed<S>),
    /// The recipient knows the newest state already.
    Nothing,
    /// The events cannot follow each other; this leads to the newest state all the same.
    Impossible(Owed<S>),
}

impl<S> Owed<S> {
    /// How many events.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Reborn { .. } => 2,
        }
    }

    /// The event to tell first, and what is owed after it.
    pub(super) fn into_first(self) -> (Change<S>, Option<Self>) {
        match self {
            Self::One(change) => (change, None),
            Self::Reborn { deleted, added } => (deleted, Some(Self::One(added))),
        }
    }
}

/// The table; `sameness` says what makes the state of `next` the one told last.
pub(super) fn coalesce<S>(pending: Owed<S>, next: Change<S>, sameness: Sameness) -> Coalesced<S> {
    use Change::{Added, Deleted, Updated};
    use Coalesced::{Impossible, Nothing, Owed as Now};
    use Owed::{One, Reborn};

    match (pending, next) {
        (pending, Updated { cause: Cause::Resync, .. }) => Now(pending),
        (One(Added { cause, .. }), Updated { object, .. }) => Now(One(Added { object, cause })),
        (One(Added { .. }), Deleted { .. }) => Nothing,
        (One(Updated { old, cause: first, .. }), Updated { object, cause, .. }) => {
            updated(old, object, standing(first, cause), sameness)
        }
        (One(Updated { old, cause: first, .. }), Deleted { last, exact, cause, .. }) => {
            Now(One(Deleted { old, last, exact, cause: standing(first, cause) }))
        }
        (One(Deleted { old, cause: first, .. }), Added { object, cause }) if old.is_same_life_as(&object) => {
            updated(old, object, standing(first, cause), sameness)
        }
        (One(deleted @ Deleted { .. }), added @ Added { .. }) => Now(Reborn { deleted, added }),
        (Reborn { deleted, added }, next) => match coalesce(One(added), next, sameness) {
            Nothing => Now(One(deleted)),
            Now(One(added)) => Now(Reborn { deleted, added }),
            Impossible(One(added)) => Impossible(Reborn { deleted, added }),
            Now(reborn @ Reborn { .. }) | Impossible(reborn @ Reborn { .. }) => Impossible(reborn),
        },
        (One(Added { cause, .. }), Added { object, .. }) => Impossible(One(Added { object, cause })),
        (One(Updated { old, .. }), Added { object, cause }) => {
            Impossible(One(Updated { old, object, cause }))
        }
        (One(deleted @ Deleted { .. }), Updated { object, cause, .. }) => {
            Impossible(Reborn { deleted, added: Added { object, cause } })
        }
        (One(deleted @ Deleted { .. }), Deleted { .. }) => Impossible(One(deleted)),
    }
}

/// From the state told last to the newest of the same life.
fn updated<S>(old: Object<S>, object: Object<S>, cause: Cause, sameness: Sameness) -> Coalesced<S> {
    if !old.is_same_as(&object) || matches!(cause, Cause::Rewind | Cause::Resync) {
        return Coalesced::Owed(Owed::One(Change::Updated { old, object, cause }));
    }
    match sameness {
        Sameness::Identity if !old.ptr_eq(&object) => {
            Coalesced::Owed(Owed::One(Change::Updated { old, object, cause: Cause::Rewind }))
        }
        _ => Coalesced::Nothing,
    }
}

/// The cause of two events that became one.
fn standing(first: Cause, next: Cause) -> Cause {
    match (first, next) {
        (Cause::Rewind, _) => Cause::Rewind,
        (first, Cause::Resync) => first,
        (_, next) => next,
    }
}

#[cfg(test)]
mod tests;
