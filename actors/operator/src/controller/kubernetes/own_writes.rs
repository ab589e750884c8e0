//! What a reconcile has written, as the API server answered.
//!
//! Answers "how does a controller learn what its cache has to show next?". Invariants:
//! 1. The key, the uid and the version are those of the answer. An answer without a name or a version is not waited for.
//! 2. What no informer of the controller follows is not waited for.
//!
//! Read next: `controller/request.rs`.

use std::any::TypeId;

use crate::controller::Request;
use informer_actors::informer::Body;
use informer_core::meta::Meta;
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;

use informer_client::api::Deleted;
use informer_client::object::meta_of;
use informer_client::overlay::remains;
use informer_client::representation::ControllerOf;

/// Own writes of a reconcile: its key waits until the caches have seen them. It is in the prelude.
///
/// Each method gives how many informers of the controller are waited for: those of typed objects of this type, of their
/// metadata alone, or of their controllers alone, that follow the object. Of dynamic objects all that follow its name are taken; say which one with
/// [`Request::written_to`].
///
/// An informer whose label selector leaves out what was written is not waited for. Of a field selector only
/// `metadata.name` and `metadata.namespace` are known: a write that other fields leave out is waited for until a later event or
/// a bookmark shows that the cache has passed it, at most for the bound of the controller.
pub trait OwnWrites {
    /// A create, a replace, a patch or an apply has returned this.
    fn written<K: Resource + 'static>(&self, answer: &K) -> usize;

    /// This object was removed: the caches must not have this life of it any more. An object with finalizers is not
    /// removed by its deletion; [`Self::deletion_answered`] knows.
    fn removed<K: Resource + 'static>(&self, object: &K) -> usize;

    /// A deletion of this object was answered so: it was removed, or has begun to end.
    fn deletion_answered<K: Resource + 'static>(&self, object: &K, answer: &Deleted<K>) -> usize {
        match answer {
            Deleted::Object(ending) if remains(ending) => self.written(ending),
            _ => self.removed(object),
        }
    }
}

impl<S: Body> OwnWrites for Request<S> {
    fn written<K: Resource + 'static>(&self, answer: &K) -> usize {
        let Some(meta) = meta_here(self, answer) else { return 0 };
        wait_in_each(self, (answer, &meta), false)
    }

    fn removed<K: Resource + 'static>(&self, object: &K) -> usize {
        let Some(meta) = meta_here(self, object) else { return 0 };
        wait_in_each(self, (object, &meta), true)
    }
}

/// Waits in the informers of each form in which the kind may be kept.
fn wait_in_each<S: Body, K: Resource + 'static>(
    request: &Request<S>,
    (body, meta): (&K, &Meta),
    is_removed: bool,
) -> usize {
    let labels = body.meta().labels.clone().unwrap_or_default();
    let forms = [TypeId::of::<K>(), TypeId::of::<PartialObjectMeta<K>>(), TypeId::of::<ControllerOf<K>>()];
    forms.iter().map(|form| request.wait_for_write(*form, meta, Some(&labels), is_removed)).sum()
}

/// The key, uid and version, in the cluster of the request.
fn meta_here<S: Body, K: Resource>(request: &Request<S>, body: &K) -> Option<Meta> {
    let mut meta = meta_of(body).ok()?;
    if let Some(cluster) = request.key().cluster_name() {
        meta.key = meta.key.in_cluster(cluster);
    }
    Some(meta)
}
