//! Owners and own writes for controllers of Kubernetes objects.
//!
//! 1. An owner is found by group, kind, name and uid.
//! 2. An owner that the cache does not have is reconciled later, for its own event.
//! 3. Key, uid and version of an own write are those of the answer. Without a name or a version nothing is
//!    awaited.

use crate::controller::{ControllerBuilder, Outcome, ReadyController, ReconcileError, Request};
use crate::reconcile::kubernetes::WriteRecord;
use informer_actors::informer::{Body, Informer, Lister};
use informer_actors::subscription::SubscribeOptions;
use informer_core::meta::{Object, ObjectKey};
use kube_core::Resource;
use serde::de::DeserializeOwned;

use informer_client::api::Deleted;
use informer_client::overlay::remains;
use informer_client::representation::{Controlled, ControllerRef, DecodeError, LazyBody, OfKind};

/// Objects that belong to primary objects by owner references. It is in the prelude.
pub trait Owns: Sized {
    /// When something happens to an object of this informer, the primary object that controls it is
    /// reconciled: the one that its owner reference with `controller: true` names, if group, kind and uid
    /// match.
    #[must_use]
    fn owns<T: Body + Controlled>(self, children: &Informer<T>) -> Self {
        self.owns_if(children, SubscribeOptions::new())
    }

    /// As [`Self::owns`], with a filter: `SubscribeOptions::new().changes(predicates::generation_changed())`.
    #[doc(alias = "predicate")]
    #[must_use]
    fn owns_if<T: Body + Controlled>(self, children: &Informer<T>, options: SubscribeOptions<T>) -> Self;

    /// When something happens to an object of `children`, the primary object is reconciled that controls its
    /// controller, an object of `middle`: for example pods of a deployment through its replica sets. While
    /// the cache does not have the object in the middle, nothing is reconciled; [`Self::owns`] of `middle`
    /// reports that object itself.
    #[must_use]
    fn owns_through<M: Body + Controlled, T: Body + Controlled>(
        self,
        middle: &Informer<M>,
        children: &Informer<T>,
    ) -> Self;
}

impl<S: Body + OfKind> Owns for ControllerBuilder<S> {
    fn owns_if<T: Body + Controlled>(self, children: &Informer<T>, options: SubscribeOptions<T>) -> Self {
        let primary = self.primary().lister();
        self.owns_with(children, options, move |child| {
            owner(&primary, (&S::Kind::group(&()), &S::Kind::kind(&())), child)
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
            owner(&primary, (&S::Kind::group(&()), &S::Kind::kind(&())), &between)
        })
    }
}

impl<K: Body + DeserializeOwned> ControllerBuilder<LazyBody<K>> {
    /// As [`Self::reconcile`], for a function that takes the object decoded: it is decoded when its key is
    /// due, and freed with the request. So a function that was written for a typed cache runs on a lazy one.
    ///
    /// A key whose object does not decode rests until something changes, with the reason in the status; its
    /// object counts as undecodable in its informer. If the last state of a deleted object does not decode,
    /// the function is called without it.
    ///
    /// ```
    /// use actix_informer::controller::{Controller, Outcome, ReconcileError, Request};
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::apps::v1::Deployment;
    ///
    /// async fn reconcile(request: Request<Deployment>) -> Result<Outcome, ReconcileError> {
    ///     println!("{}: {}", request.key(), request.object().is_some());
    ///     Ok(Outcome::Done)
    /// }
    /// # fn demo(client: Client, runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
    /// let deployments = client.resource::<Deployment>().lazy().informer(&runtime)?.start()?;
    /// let controller = Controller::builder(&deployments).reconcile_decoded(reconcile).start()?;
    /// # drop(controller); Ok(()) }
    /// ```
    pub fn reconcile_decoded<F>(
        self,
        function: impl Fn(Request<K>) -> F + Clone + Send + Sync + 'static,
    ) -> ReadyController<LazyBody<K>>
    where
        F: Future<Output = Result<Outcome, ReconcileError>> + Send + 'static,
    {
        self.reconcile(move |request| {
            let function = function.clone();
            async move {
                let decoded = request.with_bodies(decode).map_err(ReconcileError::until_changed)?;
                function(decoded).await
            }
        })
    }
}

fn decode<K: DeserializeOwned>(object: &Object<LazyBody<K>>) -> Result<Object<K>, DecodeError> {
    Ok(Object::new(object.cached_meta().clone(), object.decode()?))
}

/// The key of the object of this group and kind that controls `child`, if the cache has it with the uid of
/// the owner reference. Use it in
/// [`ControllerBuilder::owns_with`](crate::controller::ControllerBuilder::owns_with) for kinds that are known
/// only at run time.
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
    let is_kind = reference.kind == kind && group_of(&reference.api_version) == group;
    is_kind.then(|| found(primary, child.key(), reference)).flatten().map(|owner| owner.key().clone())
}

/// The owner is in the namespace of the child, or in none.
fn found<S: Body>(cache: &Lister<S>, child: &ObjectKey, reference: ControllerRef<'_>) -> Option<Object<S>> {
    let beside = child.sibling(&*reference.name);
    let above = ObjectKey::cluster(&*reference.name);
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
/// Each method returns how many informers of the controller are awaited: those that follow the object with
/// typed or lazy bodies of this type, its metadata alone, or its controller alone. For dynamic objects every informer
/// that follows the name counts; [`Request::written_to`] names one.
///
/// An informer whose label selector does not match the written object is not awaited. Of a field selector
/// only `metadata.name` and `metadata.namespace` are known. A write that other fields leave out is awaited
/// until a later event or a bookmark shows that the cache has passed it, at most for the limit of the
/// controller.
pub trait OwnWrites {
    /// Reports what a create, a replace, a patch or an apply has returned.
    fn written<K: Resource + 'static>(&self, answer: &K) -> usize;

    /// Reports that this object was removed: the caches must not show this uid of it any more. A deletion
    /// does not remove an object with finalizers; [`Self::deletion_answered`] handles that.
    fn removed<K: Resource + 'static>(&self, object: &K) -> usize;

    /// Reports the answer to a deletion of this object: it was removed, or its deletion has begun.
    fn deletion_answered<K: Resource + 'static>(&self, object: &K, answer: &Deleted<K>) -> usize {
        match answer {
            Deleted::Object(ending) if remains(ending) => self.written(ending),
            _ => self.removed(object),
        }
    }
}

impl<S: Body> OwnWrites for Request<S> {
    fn written<K: Resource + 'static>(&self, answer: &K) -> usize {
        WriteRecord::written(answer).map_or(0, |write| self.noted(write))
    }

    fn removed<K: Resource + 'static>(&self, object: &K) -> usize {
        WriteRecord::removed(object).map_or(0, |write| self.noted(write))
    }
}
