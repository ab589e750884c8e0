//! What a reconcile is about, and where its writes are recorded. Nobody waits for the writes of an object
//! alone.

use std::any::TypeId;
use std::collections::BTreeMap;

use crate::controller::{Request, Selected};
use informer_actors::informer::Body;
use informer_core::meta::{Meta, Object};
use kube_core::Resource;

use informer_client::Error;
use informer_client::api::Patch;
use informer_client::inner::bodies_of;
use informer_client::object::meta_of;

/// One answer of the server to a write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteRecord {
    /// The body types of the informers that may follow the object: the object's own type, its metadata alone,
    /// its controller alone, and its text.
    pub bodies: [TypeId; 4],
    /// Key, uid and version of the answer; for a deletion those of the last known state.
    pub meta: Meta,
    /// Its labels: an informer that does not select them never shows the object.
    pub labels: BTreeMap<String, String>,
    /// Whether the object was deleted.
    pub is_removed: bool,
}

impl WriteRecord {
    /// An answer that holds the object; `None` if it has no name or no version.
    pub fn written<C: Resource + 'static>(answer: &C) -> Option<Self> {
        Self::of::<C>(answer)
    }

    /// The object may be known only by its metadata.
    pub(super) fn of<C: 'static>(answer: &impl Resource) -> Option<Self> {
        let meta = meta_of(answer).ok()?;
        let labels = answer.meta().labels.clone().unwrap_or_default();
        Some(Self { bodies: bodies_of::<C>(), meta, labels, is_removed: false })
    }

    /// A deletion of this object; `None` as for [`Self::written`].
    pub fn removed<C: Resource + 'static>(last: &C) -> Option<Self> {
        Some(Self { is_removed: true, ..Self::written(last)? })
    }
}

/// Records each answer of the server to a write.
///
/// A controller's request holds its key back until the cache shows what was recorded, so that the next
/// reconcile does not work on an older state. This replaces expectations.
pub trait WriteLog: Sync {
    /// Called when the server has answered a write.
    fn record(&self, write: WriteRecord);

    /// Whether the object of this reconcile may be an old state, because its cache does not follow its source
    /// at present. False if that is not known.
    fn may_be_behind(&self) -> bool {
        false
    }

    /// The controller of this reconcile, and the number of the reconcile: no other reconcile of this process
    /// has the same number, and a later one has a greater number. `None` without a controller. Finalizers and
    /// statuses are written with the name of the controller as field manager.
    fn reconcile(&self) -> Option<(&str, u64)> {
        None
    }
}

/// Of servers, in bytes.
const LONGEST_MANAGER: usize = 128;

/// `None`: that of the user agent.
pub(super) fn manager_of(log: &dyn WriteLog) -> Option<String> {
    let (controller, _) = log.reconcile()?;
    Some(as_manager(controller)).filter(|name| !name.is_empty())
}

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

    /// The last known state of an object that is not followed any more and may live on, as [`Request::left`].
    /// `None` if that is not known.
    fn left(&self) -> Option<&Object<K>> {
        None
    }

    /// Whether that object is followed, given the labels that the server has now, as [`Request::selected`].
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

impl<S: Body> Request<S> {
    /// The key waits until the informers show the write, made in the cluster of the request. Returns how many
    /// informers are awaited.
    pub(crate) fn noted(&self, write: WriteRecord) -> usize {
        let WriteRecord { bodies, mut meta, labels, is_removed } = write;
        if let Some(cluster) = self.key().cluster_name() {
            meta.key = meta.key.in_cluster(cluster);
        }
        bodies.iter().map(|body| self.wait_for_write(*body, &meta, Some(&labels), is_removed)).sum()
    }
}

impl<S: Body> WriteLog for Request<S> {
    fn record(&self, write: WriteRecord) {
        self.noted(write);
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

pub(super) fn json_patch(patch: serde_json::Value) -> Result<Patch<()>, Error> {
    let patch = serde_json::from_value(patch).map_err(|error| Error::Request(error.to_string()))?;
    Ok(Patch::Json(patch))
}

pub(super) fn record_written<C: Resource + 'static>(log: &dyn WriteLog, answer: &C) {
    if let Some(write) = WriteRecord::written(answer) {
        log.record(write);
    }
}

pub(super) fn record_removed<C: Resource + 'static>(log: &dyn WriteLog, last: &C) {
    if let Some(write) = WriteRecord::removed(last) {
        log.record(write);
    }
}
