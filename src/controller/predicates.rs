//! Filters of updates by labels, generation and differences, for reconciles and subscribers.
//!
//! Each is a [`ChangeFilter`], joined by [`ChangeFilter::or`]; several of a builder all have to pass. Additions and deletions
//! always pass; so does a deletion that waits for finalizers: the API server raises the generation then.
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
//! | controller-runtime | kube-rs | here |
//! |---|---|---|
//! | `predicate.NewPredicateFuncs` | `reflect`, then `filter` | [`SubscribeOptions::filter`] |
//! | `LabelSelectorPredicate` | | [`labelled`] |
//! | `GenerationChangedPredicate` | `predicates::generation` | [`generation_changed`] |
//! | `LabelChangedPredicate` | `predicates::labels` | [`labels_changed`] |
//! | `AnnotationChangedPredicate` | `predicates::annotations` | [`annotations_changed`] |
//! | `predicate.Or` | `Predicate::fallback` | [`ChangeFilter::or`] |
//!
//! [`SubscribeOptions::filter`]: crate::subscription::SubscribeOptions::filter

use std::borrow::Cow;

use informer_core::listener::ChangeFilter;
use informer_core::meta::Object;
use kube_core::ObjectMeta;

use informer_client::LabelSelector;
use informer_client::representation::ReadMetadata;

/// The objects that a label selector selects, for [`SubscribeOptions::filter`].
///
/// ```
/// use actix_informer::prelude::*;
/// use actix_informer::subscription::{generation_changed, labelled, labels_changed};
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// # fn demo(deployments: Informer<Deployment>) -> Result<(), Box<dyn std::error::Error>> {
/// let options = SubscribeOptions::new()
///     .filter(labelled("app=shop".parse()?))                  // Deleted when the label goes
///     .changes(generation_changed().or(labels_changed()));    // no Updated for a status alone
/// let subscription = deployments.subscribe_with(options, Subscriber::each(|notify| async move {
///     println!("{}", notify.key());
/// }))?;
/// # Ok(()) }
/// ```
///
/// [`SubscribeOptions::filter`]: crate::subscription::SubscribeOptions::filter
pub fn labelled<S: ReadMetadata>(
    selector: LabelSelector,
) -> impl Fn(&Object<S>) -> bool + Send + Sync + 'static {
    move |object| selector.selects(|key| object.body().label(key))
}

/// The updates that raise `metadata.generation`: those of the spec, for kinds that count it. For an object
/// without a generation every update passes, since nothing distinguishes its updates. (controller-runtime
/// drops them.)
pub fn generation_changed<S: ReadMetadata + 'static>() -> ChangeFilter<S> {
    ChangeFilter::between(|old: &Object<S>, new: &Object<S>| {
        match (old.body().generation(), new.body().generation()) {
            (Some(old), Some(new)) => old != new,
            _ => !old.ptr_eq(new),
        }
    })
}

/// The updates that change a label.
pub fn labels_changed<S: ReadMetadata + 'static>() -> ChangeFilter<S> {
    ChangeFilter::between(|old: &Object<S>, new: &Object<S>| metadata(old).labels != metadata(new).labels)
}

/// The updates that change an annotation.
pub fn annotations_changed<S: ReadMetadata + 'static>() -> ChangeFilter<S> {
    ChangeFilter::between(|old: &Object<S>, new: &Object<S>| {
        metadata(old).annotations != metadata(new).annotations
    })
}

/// The updates that change the version of the object or its uid: all but resyncs.
pub fn version_changed<S: Send + Sync + 'static>() -> ChangeFilter<S> {
    ChangeFilter::between(|old: &Object<S>, new: &Object<S>| !old.is_same_as(new))
}

/// The updates that change a finalizer, or by which the deletion of the object begins.
pub fn ending_changed<S: ReadMetadata + 'static>() -> ChangeFilter<S> {
    ChangeFilter::between(|old: &Object<S>, new: &Object<S>| {
        let (old, new) = (metadata(old), metadata(new));
        old.finalizers != new.finalizers || old.deletion_timestamp != new.deletion_timestamp
    })
}

fn metadata<S: ReadMetadata>(object: &Object<S>) -> Cow<'_, ObjectMeta> {
    object.body().metadata()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use informer_core::meta::{Meta, ObjectKey, ResourceVersion, SourceId};
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn pod(version: u64, generation: Option<i64>, label: &str, annotation: &str) -> Object<Pod> {
        let version = ResourceVersion::from_number(version).expect("not zero");
        let mut pod = Pod::default();
        pod.metadata.generation = generation;
        pod.metadata.labels = Some(BTreeMap::from([("app".to_owned(), label.to_owned())]));
        pod.metadata.annotations = Some(BTreeMap::from([("note".to_owned(), annotation.to_owned())]));
        Object::new(Meta::new(ObjectKey::namespaced("web", "a"), version, SourceId::default()), pod)
    }

    #[test]
    fn lis_36_generation_labels_and_annotations_tell_updates_apart() {
        let filters = [generation_changed(), labels_changed(), annotations_changed()];
        let passes =
            |old: &Object<Pod>, new: &Object<Pod>| filters.each_ref().map(|filter| filter.passes(old, new));
        let old = pod(1, Some(1), "x", "y");
        assert_eq!(passes(&old, &pod(2, Some(1), "x", "y")), [false; 3]);
        assert_eq!(passes(&old, &pod(2, Some(2), "x", "y")), [true, false, false]);
        assert_eq!(passes(&old, &pod(2, Some(1), "z", "y")), [false, true, false]);
        assert_eq!(passes(&old, &pod(2, Some(1), "x", "z")), [false, false, true]);
        let uncounted = pod(1, None, "x", "y");
        assert!(generation_changed().passes(&uncounted, &pod(2, None, "x", "y")), "nothing tells them apart");
        assert!(!generation_changed().passes(&uncounted, &uncounted), "a resync");
    }

    #[test]
    fn lis_35_a_label_selector_filters_a_subscription() {
        let shop = labelled::<Pod>("app in (shop, cart)".parse().expect("a selector"));
        let verdicts = ["shop", "cart", "pay"].map(|app| shop(&pod(1, None, app, "")));
        assert_eq!(verdicts, [true, true, false]);
        let absent = labelled::<Pod>("!tier".parse().expect("a selector"));
        let bare = pod(1, None, "", "");
        let bare = Object::new(bare.cached_meta().clone(), Pod::default());
        assert!(absent(&bare) && !shop(&bare), "no labels at all");
    }
}
