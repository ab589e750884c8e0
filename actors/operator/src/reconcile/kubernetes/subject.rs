//! What a reconcile is about, and who is told what it has written.
//!
//! Answers "how do these functions work with a controller and without one?" Invariants:
//! 1. An object alone is a subject whose writes nobody waits for.
//! 2. Each answer of the server to a write is recorded once.
//!
//! Read next: `finalizer.rs`.

use std::any::TypeId;
use std::collections::BTreeMap;

use crate::controller::{Request, Selected};
use informer_actors::informer::Body;
use informer_core::meta::{Meta, Object};
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;

use informer_client::Error;
use informer_client::api::Patch;
use informer_client::object::meta_of;
use informer_client::representation::ControllerOf;

/// One answer of the server to a write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteRecord {
    /// The types of which an informer that follows the object may have bodies: its own, its metadata alone, and its
    /// controller alone.
    pub bodies: [TypeId; 3],
    /// Key, uid and version of the answer; of a deletion those of the last state that is known.
    pub meta: Meta,
    /// Its labels: an informer that does not select them has nothing to show of it.
    pub labels: BTreeMap<String, String>,
    /// Whether the object was deleted.
    pub is_removed: bool,
}

impl WriteRecord {
    /// An answer that holds the object; `None` if it has no name or no version.
    pub fn written<C: Resource + 'static>(answer: &C) -> Option<Self> {
        Self::of::<C>(answer)
    }

    /// An answer about an object of the kind `C`, of which perhaps only the metadata is known.
    pub(super) fn of<C: 'static>(answer: &impl Resource) -> Option<Self> {
        let meta = meta_of(answer).ok()?;
        let labels = answer.meta().labels.clone().unwrap_or_default();
        let bodies =
            [TypeId::of::<C>(), TypeId::of::<PartialObjectMeta<C>>(), TypeId::of::<ControllerOf<C>>()];
        Some(Self { bodies, meta, labels, is_removed: false })
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

    /// The controller whose reconcile it is, and a number of the reconcile: no other one of this process has it, and a later
    /// one has a greater one. `None` without a controller. Finalizers and statuses are written under the name of the controller
    /// as field manager.
    fn reconcile(&self) -> Option<(&str, u64)> {
        None
    }
}

/// The longest name of a field manager that servers take, in bytes.
const LONGEST_MANAGER: usize = 128;

/// The field manager of what is written for this log; `None` for that of the user agent.
pub(super) fn manager_of(log: &dyn WriteLog) -> Option<String> {
    let (controller, _) = log.reconcile()?;
    Some(as_manager(controller)).filter(|name| !name.is_empty())
}

/// As much of a name as servers take for a field manager.
pub(super) fn as_manager(name: &str) -> String {
    let mut end = name.len().min(LONGEST_MANAGER);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// The object that a reconcile is about.
///
/// A controller's request is one; so is an [`Object`] alone, for programs without a controller and for tests.
pub trait Subject<K>: WriteLog {
    /// The object as the cache has it; `None` if it is gone.
    fn object(&self) -> Option<&Object<K>>;

    /// The last known state of an object that is not followed any more and may live on, as [`Request::left`]. `None` where
    /// that is not known.
    fn left(&self) -> Option<&Object<K>> {
        None
    }

    /// Whether that object is followed, given its labels as the server has them now, as [`Request::selected`].
    fn selected(&self, _labels: &BTreeMap<String, String>) -> Selected {
        Selected::LeftOut
    }
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
            self.wait_for_write(body, &meta, Some(&write.labels), write.is_removed);
        }
    }

    fn may_be_behind(&self) -> bool {
        Self::may_be_behind(self)
    }

    fn reconcile(&self) -> Option<(&str, u64)> {
        Some((self.controller(), self.serial()))
    }
}

impl<S: Body> Subject<S> for Request<S> {
    fn object(&self) -> Option<&Object<S>> {
        Self::object(self)
    }

    fn left(&self) -> Option<&Object<S>> {
        Self::left(self)
    }

    fn selected(&self, labels: &BTreeMap<String, String>) -> Selected {
        Self::selected(self, labels)
    }
}

/// A JSON patch of this text.
pub(super) fn json_patch(patch: serde_json::Value) -> Result<Patch<()>, Error> {
    let patch = serde_json::from_value(patch).map_err(|error| Error::Request(error.to_string()))?;
    Ok(Patch::Json(patch))
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
