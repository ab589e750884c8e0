//! What can happen to objects: the parts of a watch or list, and the changes that follow. Invariants:
//! 1. A part names its object's key and version, also when the object could not be decoded.
//! 2. A [`Change`] is between two states that differ, or repeats one state (a resync).
//! 3. The cause travels with the data from the source to the last subscriber; it is never guessed from states.

use std::fmt;
use std::sync::Arc;

use crate::chunks::Chunks;
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::off_arbiter::OffArbiter;
use crate::snapshot::Snapshot;

pub use crate::meta::{UNDECODABLE_BYTES, Undecodable};

/// Why a subscriber receives an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// It was there when the subscription began, or came with the first list.
    InitialList,
    /// A live event.
    Watch,
    /// Found by listing again after a gap.
    Relist,
    /// The server went back to an older state (a restored backup).
    Rewind,
    /// Nothing changed; the subscription asked for resyncs.
    Resync,
    /// Only for a deletion: the object has left the subscription's filter. It still existed, in a state that
    /// does not pass.
    LeftFilter,
}

impl Cause {
    /// The name as it stands in logs and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InitialList => "InitialList",
            Self::Watch => "Watch",
            Self::Relist => "Relist",
            Self::Rewind => "Rewind",
            Self::Resync => "Resync",
            Self::LeftFilter => "LeftFilter",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One piece of a watch.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchPart<S> {
    /// ADDED or MODIFIED: the object as it is now.
    Applied(Object<S>),
    /// DELETED: the last state, at the version of the deletion.
    Deleted(Object<S>),
    /// DELETED, but the object did not decode: the key is gone at this version.
    DeletedUndecodable(Undecodable),
    /// ADDED or MODIFIED, but the object did not decode.
    Undecodable(Undecodable),
    /// A reader has found that the body that is kept of this version does not decode: see `Lazy` of the client.
    /// It says nothing about how far the source has come. It is dropped unless exactly this version is stored.
    LateUndecodable(Undecodable),
    /// The answer to a GET for an undecodable object; it does not show how far the source has come. The
    /// reflector makes it (`repair.rs`); no watch brings it.
    Fetched(Object<S>),
    /// Everything up to this version has been sent.
    Bookmark {
        /// The version reached.
        version: ResourceVersion,
        /// Whether it ends the initial events of a watch-list.
        initial_events_end: bool,
    },
}

impl<S> WatchPart<S> {
    /// The version of the part.
    pub fn version(&self) -> &ResourceVersion {
        match self {
            Self::Applied(object) | Self::Deleted(object) | Self::Fetched(object) => object.version(),
            Self::DeletedUndecodable(undecodable)
            | Self::Undecodable(undecodable)
            | Self::LateUndecodable(undecodable) => &undecodable.version,
            Self::Bookmark { version, .. } => version,
        }
    }

    /// The version that the source has reached with this part; a fetched object may be ahead of its source.
    pub fn reached(&self) -> Option<&ResourceVersion> {
        match self {
            Self::Fetched(_) | Self::LateUndecodable(_) => None,
            part => Some(part.version()),
        }
    }

    /// The object that it is about: `None` for a bookmark.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Applied(object) | Self::Deleted(object) | Self::Fetched(object) => Some(object.key()),
            Self::DeletedUndecodable(undecodable)
            | Self::Undecodable(undecodable)
            | Self::LateUndecodable(undecodable) => Some(&undecodable.key),
            Self::Bookmark { .. } => None,
        }
    }

    /// How many bytes it holds; a part without object counts as a small constant and its texts.
    pub fn wire_bytes(&self) -> usize {
        match self {
            Self::Applied(object) | Self::Deleted(object) | Self::Fetched(object) => {
                object.wire_bytes() as usize
            }
            Self::DeletedUndecodable(undecodable)
            | Self::Undecodable(undecodable)
            | Self::LateUndecodable(undecodable) => undecodable.bytes(),
            Self::Bookmark { .. } => UNDECODABLE_BYTES,
        }
    }
}

/// What is left of two parts of one key and one source that wait one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "two parts come to both or to one of them")]
pub enum Compressed {
    /// Both.
    Both,
    /// The older one alone.
    Older,
    /// The newer one alone.
    Newer,
}

/// The compression table of the queue order `PerKey`: of two deletions in a row the newer stays, unless only
/// the older holds the object. Nothing else is left out: a subscriber to every event would miss it.
pub fn compress<S>(last: &WatchPart<S>, new: &WatchPart<S>) -> Compressed {
    use WatchPart::{Deleted, DeletedUndecodable};

    match (last, new) {
        (Deleted(_), DeletedUndecodable(_)) => Compressed::Older,
        (Deleted(_) | DeletedUndecodable(_), Deleted(_)) | (DeletedUndecodable(_), DeletedUndecodable(_)) => {
            Compressed::Newer
        }
        _ => Compressed::Both,
    }
}

/// One piece of a list page.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListPart<S> {
    /// Objects, in the order of the body; unchanged ones are those already published.
    Objects(Vec<Object<S>>),
    /// An item whose body did not decode.
    Undecodable(Undecodable),
    /// An item without a readable key: counted, nothing else can be done.
    Unreadable(Arc<str>),
    /// The page is whole. Nothing of a page counts before this.
    End {
        /// The version of the list.
        version: ResourceVersion,
        /// Where the next page begins, if there is one.
        token: Option<String>,
    },
}

/// A whole list of one source, as one entry.
#[derive(Debug)]
pub struct Replacement<S> {
    /// The version of the list.
    pub version: ResourceVersion,
    /// `InitialList`, `Relist` or `Rewind`.
    pub cause: Cause,
    /// Every object of the source.
    pub objects: OffArbiter<Chunks<Object<S>>>,
    /// Those that could not be decoded; their last good versions stay.
    pub undecodable: OffArbiter<Chunks<Undecodable>>,
    /// The bytes of all that, by [`listed_bytes`]: summed while it came, so that a queue does not have to.
    pub bytes: usize,
}

impl<S> Replacement<S> {
    /// A list that comes in one piece and is freed where it is dropped; sums its bytes, which is linear.
    pub fn new(
        version: ResourceVersion,
        cause: Cause,
        objects: Vec<Object<S>>,
        undecodable: Vec<Undecodable>,
    ) -> Self {
        let bytes = listed_bytes(&objects, &undecodable);
        let (objects, undecodable) = (objects.into_iter().collect(), undecodable.into_iter().collect());
        let (objects, undecodable) = (OffArbiter::in_place(objects), OffArbiter::in_place(undecodable));
        Self { version, cause, objects, undecodable, bytes }
    }

    /// Whether this is a source's first list, and has nothing: then its reflector asks why.
    pub fn is_first_and_empty(&self) -> bool {
        self.cause == Cause::InitialList && self.objects.is_empty() && self.undecodable.is_empty()
    }
}

/// The bytes of listed objects: as they came from the wire, and [`Undecodable::bytes`] for each that could
/// not be decoded. Linear.
pub fn listed_bytes<'a, S: 'a>(
    objects: impl IntoIterator<Item = &'a Object<S>>,
    undecodable: impl IntoIterator<Item = &'a Undecodable>,
) -> usize {
    let objects: usize = objects.into_iter().map(|object| object.wire_bytes() as usize).sum();
    objects + undecodable.into_iter().map(Undecodable::bytes).sum::<usize>()
}

/// One difference between two published states.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a key can be added, updated or deleted, and nothing else")]
pub enum Change<S> {
    /// The key was not there.
    Added {
        /// The new object.
        object: Object<S>,
        /// Why.
        cause: Cause,
    },
    /// The same life of the key in another version.
    Updated {
        /// The state before.
        old: Object<S>,
        /// The state now.
        object: Object<S>,
        /// Why.
        cause: Cause,
    },
    /// The key, or this life of it, is gone.
    Deleted {
        /// The state that the store held.
        old: Object<S>,
        /// The last state known: the deletion's own when `exact`, else `old`.
        last: Object<S>,
        /// Whether `last` is the final state as the server sent it; false for a tombstone found by a relist.
        exact: bool,
        /// Why.
        cause: Cause,
    },
}

impl<S> Change<S> {
    /// The object's key.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added { object, .. } | Self::Updated { object, .. } => object.key(),
            Self::Deleted { last, .. } => last.key(),
        }
    }

    /// Why it happened.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Added { cause, .. } | Self::Updated { cause, .. } | Self::Deleted { cause, .. } => *cause,
        }
    }

    /// The state after it: `None` for a deletion.
    pub fn object(&self) -> Option<&Object<S>> {
        match self {
            Self::Added { object, .. } | Self::Updated { object, .. } => Some(object),
            Self::Deleted { .. } => None,
        }
    }
}

impl<S> Clone for Change<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, cause } => Self::Added { object: object.clone(), cause: *cause },
            Self::Updated { old, object, cause } => {
                Self::Updated { old: old.clone(), object: object.clone(), cause: *cause }
            }
            Self::Deleted { old, last, exact, cause } => {
                Self::Deleted { old: old.clone(), last: last.clone(), exact: *exact, cause: *cause }
            }
        }
    }
}

/// The changes of one publish, as every listener receives them. Cloning copies pointers.
///
/// A list is not split into events: each listener delivers the difference of the two snapshots at its own
/// pace.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a publish is that of a watch's parts or that of a list")]
pub enum Changes<S> {
    /// A watch brought them: each in its order, at most 250.
    Parts(Arc<[Change<S>]>),
    /// The whole list of a source was applied, also one that changed nothing: `before` became `after`.
    Listed {
        /// Whose list it was.
        source: SourceId,
        /// The snapshot that was published before.
        before: Snapshot<S>,
        /// The snapshot that holds the list.
        after: Snapshot<S>,
        /// `InitialList`, `Relist` or `Rewind`.
        cause: Cause,
    },
}

impl<S> Clone for Changes<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Parts(changes) => Self::Parts(Arc::clone(changes)),
            Self::Listed { source, before, after, cause } => Self::Listed {
                source: source.clone(),
                before: before.clone(),
                after: after.clone(),
                cause: *cause,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_undecodable_weighs_what_it_holds_in_parts_and_in_lists() {
        let version = ResourceVersion::from_number(7).expect("not zero");
        let undecodable = |error: String| Undecodable {
            key: ObjectKey::namespaced("web", "a"),
            version: version.clone(),
            error: error.into(),
        };
        let large = undecodable("x".repeat(1 << 20));
        for part in
            [WatchPart::<()>::Undecodable(large.clone()), WatchPart::DeletedUndecodable(large.clone())]
        {
            assert_eq!(part.wire_bytes(), UNDECODABLE_BYTES + 4 + (1 << 20));
        }
        let undecodables = vec![large, undecodable("short".to_owned())];
        let list = Replacement::<()>::new(version.clone(), Cause::Relist, Vec::new(), undecodables);
        assert_eq!(list.bytes, 2 * UNDECODABLE_BYTES + 8 + (1 << 20) + 5);
        let bookmark = WatchPart::<()>::Bookmark { version, initial_events_end: false };
        assert_eq!(bookmark.wire_bytes(), UNDECODABLE_BYTES);
    }
}
