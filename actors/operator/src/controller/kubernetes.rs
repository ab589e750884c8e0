//! What a controller of Kubernetes objects knows besides: who owns an object, and what the API server answered to a write.
//!
//! Answers "which key does this child belong to, and what must the cache show first?". Invariants:
//! 1. An owner is found by group, kind, name and uid: one of another group, or an earlier life of the same name, is
//!    another object.
//! 2. An owner that the cache does not have is not reconciled for an object of it. When the owner comes, it is reconciled
//!    for its own event.
//! 3. The key, the uid and the version of an own write are those of the answer. An answer without a name or a version is
//!    not waited for.
//! 4. What no informer of the controller follows is not waited for.
//!
//! Read next: `controller/builder.rs`; `controller/request.rs`.

use std::any::TypeId;

use crate::controller::{ControllerBuilder, Request};
use informer_actors::informer::{Body, Informer, Lister};
use informer_actors::subscription::SubscribeOptions;
use informer_core::meta::{Meta, Object, ObjectKey};
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;

use informer_client::api::Deleted;
use informer_client::object::meta_of;
use informer_client::overlay::remains;
use informer_client::representation::{Controlled, ControllerOf, ControllerRef};

/// Objects that belong to primary objects by owner references. It is in the prelude.
pub trait Owns: Sized {
    /// When something happens to an object of this informer, the primary object that controls it is reconciled: the one
    /// that its owner reference with `controller: true` names, if group, kind and uid fit.
    #[must_use]
    fn owns<T: Body + Controlled>(self, children: &Informer<T>) -> Self {
        self.owns_if(children, SubscribeOptions::new())
    }

    /// As [`Self::owns`], with a filter: `SubscribeOptions::new().changes(predicates::generation_changed())`.
    #[doc(alias = "predicate")]
    #[must_use]
    fn owns_if<T: Body + Controlled>(self, children: &Informer<T>, options: SubscribeOptions<T>) -> Self;

    /// When something happens to an object of `children`, the primary object is reconciled that controls the object of
    /// `middle` which controls it: pods of a deployment through its replica sets. While the cache does not have the
    /// object between them, nobody is reconciled; [`Self::owns`] of `middle` hears of that one itself.
    #[must_use]
    fn owns_through<M: Body + Controlled, T: Body + Controlled>(
        self,
        middle: &Informer<M>,
        children: &Informer<T>,
    ) -> Self;
}

impl<S: Body + Resource<DynamicType = ()>> Owns for ControllerBuilder<S> {
    fn owns_if<T: Body + Controlled>(self, children: &Informer<T>, options: SubscribeOptions<T>) -> Self {
        let primary = self.primary().lister();
        self.owns_with(children, options, move |child| {
            owner(&primary, (&S::group(&()), &S::kind(&())), child)
        })
    }

    fn owns_through<M: Body + Controlled, T: Body + Controlled>(
        self,
        middle: &Informer<M>,
        children: &Informer<T>,
    ) -> Self {
        let (primary, middle) = (self.primary().lister(), middle.lister());
        self.owns_with(children, SubscribeOptions::new(), move |child| {
            let between =
                child.body().controller().and_then(|reference| found(&middle, child.key(), reference))?;
            owner(&primary, (&S::group(&()), &S::kind(&())), &between)
        })
    }
}

/// The key of the object of this group and kind that controls `child`, if the cache has it with the uid that the owner
/// reference names. For kinds that are known only at run time, in
/// [`ControllerBuilder::owns_with`](crate::controller::ControllerBuilder::owns_with).
///
/// ```no_run
/// use actix_informer::controller::{Controller, owner};
/// use actix_informer::kube_core::DynamicObject;
/// use actix_informer::prelude::*;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # fn demo(sites: Informer<DynamicObject>, maps: Informer<ConfigMap>) {
/// let lister = sites.lister();
/// let builder = Controller::builder(&sites)
///     .owns_with(&maps, SubscribeOptions::new(), move |map| owner(&lister, ("example.org", "Website"), map));
/// # drop(builder); }
/// ```
pub fn owner<S: Body, T: Controlled>(
    primary: &Lister<S>,
    (group, kind): (&str, &str),
    child: &Object<T>,
) -> Option<ObjectKey> {
    let reference = child.body().controller()?;
    let is_kind = reference.kind == kind && group_of(reference.api_version) == group;
    is_kind.then(|| found(primary, child.key(), reference)).flatten().map(|owner| owner.key().clone())
}

/// The object that an owner reference of an object of this key names: in the namespace of that object, or in none.
fn found<S: Body>(cache: &Lister<S>, child: &ObjectKey, reference: ControllerRef<'_>) -> Option<Object<S>> {
    let beside = child.sibling(reference.name);
    let above = ObjectKey::cluster(reference.name);
    let above = match child.cluster_name() {
        Some(cluster) => above.in_cluster(cluster),
        None => above,
    };
    let has_uid = |owner: &Object<S>| owner.object_uid() == reference.uid.as_ref() && reference.uid.is_some();
    [beside, above].iter().find_map(|key| cache.get(key).filter(has_uid))
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

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
