//! What a reconcile is about, and who is told what it has written.
//!
//! Answers "how do these functions work with a controller and without one?" Invariants:
//! 1. An object alone is a subject whose writes nobody waits for.
//! 2. Each answer of the server to a write is recorded once.
//!
//! Read next: `finalizer.rs`.

use std::any::TypeId;

use informer_core::meta::{Meta, Object};
use kube_core::Resource;

use crate::object::meta_of;

/// One answer of the server to a write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteRecord {
    /// The type of the object, by which the informer that follows it is found.
    pub type_id: TypeId,
    /// Key, uid and version of the answer; of a deletion those of the last state that is known.
    pub meta: Meta,
    /// Whether the object was deleted.
    pub is_removed: bool,
}

impl WriteRecord {
    /// An answer that holds the object; `None` if it has no name or no version.
    pub fn written<C: Resource + 'static>(answer: &C) -> Option<Self> {
        let meta = meta_of(answer).ok()?;
        Some(Self { type_id: TypeId::of::<C>(), meta, is_removed: false })
    }

    /// A deletion of this object; `None` as by [`Self::written`].
    pub fn removed<C: Resource + 'static>(last: &C) -> Option<Self> {
        Some(Self { is_removed: true, ..Self::written(last)? })
    }
}

/// Is told each answer of the server to a write.
///
/// A controller's request keeps its key back until the cache has what was recorded, so that the next reconcile does not
/// work on an older state. This takes the place of expectations.
pub trait WriteLog: Sync {
    /// The server has answered a write.
    fn record(&self, write: WriteRecord);
}

/// The object that a reconcile is about.
///
/// A controller's request is one; so is an [`Object`] alone, for programs without a controller and for tests.
pub trait Subject<K>: WriteLog {
    /// The object as the cache has it; `None` if it is gone.
    fn object(&self) -> Option<&Object<K>>;
}

impl<K: Send + Sync> WriteLog for Object<K> {
    fn record(&self, _: WriteRecord) {}
}

impl<K: Send + Sync> Subject<K> for Object<K> {
    fn object(&self) -> Option<&Self> {
        Some(self)
    }
}

/// Records the answer that holds the object.
pub(super) fn record_written<C: Resource + 'static>(log: &dyn WriteLog, answer: &C) {
    if let Some(write) = WriteRecord::written(answer) {
        log.record(write);
    }
}

/// Records a deletion.
pub(super) fn record_removed<C: Resource + 'static>(log: &dyn WriteLog, last: &C) {
    if let Some(write) = WriteRecord::removed(last) {
        log.record(write);
    }
}
