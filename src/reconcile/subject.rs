//! What a reconcile is about, and who is told what it has written.
//!
//! Answers "how do these functions work with a controller and without one?" Invariants:
//! 1. An object alone is a subject whose writes nobody waits for.
//! 2. Each answer of the server to a write is recorded once.
//!
//! Read next: `finalizer.rs`.

use std::any::TypeId;

use informer_actors::controller::Request;
use informer_actors::informer::Body;
use informer_core::meta::{Meta, Object};
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;

use crate::object::meta_of;
use crate::representation::ControllerOf;

/// One answer of the server to a write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteRecord {
    /// The types of which an informer that follows the object may have bodies: its own, its metadata alone, and its
    /// controller alone.
    pub bodies: [TypeId; 3],
    /// Key, uid and version of the answer; of a deletion those of the last state that is known.
    pub meta: Meta,
    /// Whether the object was deleted.
    pub is_removed: bool,
}

impl WriteRecord {
    /// An answer that holds the object; `None` if it has no name or no version.
    pub fn written<C: Resource + 'static>(answer: &C) -> Option<Self> {
        let meta = meta_of(answer).ok()?;
        let bodies =
            [TypeId::of::<C>(), TypeId::of::<PartialObjectMeta<C>>(), TypeId::of::<ControllerOf<C>>()];
        Some(Self { bodies, meta, is_removed: false })
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

    /// Whether the object of this reconcile may be an old state of it, because its cache does not follow its source at
    /// present. False where that is not known.
    fn may_be_behind(&self) -> bool {
        false
    }
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

impl<S: Body> WriteLog for Request<S> {
    /// The key waits until the informers of its controller that follow the object have seen it.
    fn record(&self, write: WriteRecord) {
        let mut meta = write.meta;
        if let Some(cluster) = self.key().cluster_name() {
            meta.key = meta.key.in_cluster(cluster);
        }
        for body in write.bodies {
            self.wait_for_write(body, &meta, write.is_removed);
        }
    }

    fn may_be_behind(&self) -> bool {
        Self::may_be_behind(self)
    }
}

impl<S: Body> Subject<S> for Request<S> {
    fn object(&self) -> Option<&Object<S>> {
        Self::object(self)
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
