//! Which updates of an object lead to a reconcile.
//!
//! Answers "how do I leave out the updates that mean nothing to me?", before their keys wait. Each is a [`ChangeFilter`]:
//! joined by [`ChangeFilter::or`], and several of a builder all have to pass. Additions and deletions always pass; so does
//! a deletion that waits for finalizers, since the API server raises the generation then.
//!
//! ```
//! use actix_informer::controller::predicates;
//! use actix_informer::prelude::*;
//! use k8s_openapi::api::apps::v1::Deployment;
//!
//! let spec_or_labels = predicates::generation_changed::<Deployment>().or(predicates::labels_changed());
//! let replicas = ChangeFilter::<Deployment>::of(|deployment| deployment.spec.as_ref().and_then(|spec| spec.replicas));
//! # drop((spec_or_labels, replicas));
//! ```
//!
//! Read next: `informer_core::listener::ChangeFilter`.

use informer_core::listener::ChangeFilter;
use informer_core::meta::Object;
use kube_core::Resource;

pub use crate::filters::{annotations_changed, generation_changed, labelled, labels_changed};

/// The updates that change the version of the object or its uid: all but resyncs.
pub fn version_changed<S: Send + Sync + 'static>() -> ChangeFilter<S> {
    ChangeFilter::between(|old: &Object<S>, new: &Object<S>| !old.is_same_as(new))
}

/// The updates that change a finalizer, or by which the deletion of the object begins.
pub fn ending_changed<S: Resource + 'static>() -> ChangeFilter<S> {
    ChangeFilter::between(|old: &Object<S>, new: &Object<S>| {
        let (old, new) = (old.meta(), new.meta());
        old.finalizers != new.finalizers || old.deletion_timestamp != new.deletion_timestamp
    })
}
