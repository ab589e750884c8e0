//! Finds the children of one kind that an owner controls, by the index of a cache or by a list. A kind that
//! is not served has no children.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer_actors::informer::{Body, Lister};
use informer_core::index::Index;
use informer_core::meta::{Object, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::ObjectMeta;

use super::prune::Pruning;
use super::{ChildBody, ChildError, ChildPass, KindName, kind_name};
use informer_client::LabelSelector;
use informer_client::api::ListParams;
use informer_client::representation::{Controlled, ControllerOf, LazyBody, ReadMetadata as _};

/// The name of the index by which [`Children`](super::Children) find the children of an owner;
/// [`controller_uid`] returns its values.
pub const CONTROLLER_UID: &str = "controller-uid";

/// The uid of the object that controls this one: the function of the index [`CONTROLLER_UID`].
///
/// [`Children::cached`](super::Children::cached) adds the index. A program that looks up children itself adds
/// it as well:
///
/// ```no_run
/// use actix_informer::prelude::*;
/// use actix_informer::reconcile::{CONTROLLER_UID, controller_uid};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # fn demo(client: Client, runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
/// let maps = client.resource::<ConfigMap>().informer(&runtime)?;
/// let maps = maps.index(CONTROLLER_UID, controller_uid).start()?;
/// let of_one_owner = maps.lister().by_index(CONTROLLER_UID, "35a84ec4-7b1e-4a5f-9a57-0d6d3f5f0a11")?;
/// # drop(of_one_owner); Ok(()) }
/// ```
pub fn controller_uid<K: Controlled>(child: &Object<K>) -> Option<String> {
    child.body().controller().and_then(|controller| controller.uid).map(|uid| uid.to_string())
}

pub(super) trait ChildKind: Send + Sync {
    fn as_any(&self) -> &dyn Any;

    fn name(&self) -> String;

    /// `None` if it looks for another kind.
    fn finds(&self, kind: &KindName, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Option<bool>;

    /// Whether it has warned of a child that it does not find.
    fn has_told(&self) -> &AtomicBool;

    fn prune<'a>(&'a self, pass: &'a ChildPass<'_>, pruning: &'a mut Pruning) -> BoxFuture<'a, ()>;
}

/// `B` is what the cache keeps of a child.
pub(super) struct Cached<K, B: Body> {
    pub(super) cache: Lister<B>,
    meta: fn(&Object<B>) -> Cow<'_, ObjectMeta>,
    has_told: AtomicBool,
    kind: PhantomData<fn() -> K>,
}

pub(super) struct Listed<K> {
    labels: String,
    /// `None` if the server will refuse it.
    selector: Option<LabelSelector>,
    has_told: AtomicBool,
    kind: PhantomData<fn() -> K>,
}

impl<K: ChildBody> Cached<K, K> {
    pub(super) fn whole(cache: &Lister<K>) -> Self {
        Self::new(cache, |child| Cow::Borrowed(child.body().meta()))
    }
}

impl<K: ChildBody> Cached<K, LazyBody<K>> {
    pub(super) fn lazy(cache: &Lister<LazyBody<K>>) -> Self {
        Self::new(cache, |child| child.body().metadata())
    }
}

impl<K: ChildBody> Cached<K, ControllerOf<K>> {
    pub(super) fn controllers(cache: &Lister<ControllerOf<K>>) -> Self {
        Self::new(cache, |child| Cow::Owned(meta_of(child)))
    }
}

impl<K, B: Body + Controlled> Cached<K, B> {
    fn new(cache: &Lister<B>, meta: fn(&Object<B>) -> Cow<'_, ObjectMeta>) -> Self {
        cache.ensure_index(Index::new(CONTROLLER_UID, controller_uid));
        Self { cache: cache.clone(), meta, has_told: AtomicBool::new(false), kind: PhantomData }
    }
}

fn meta_of<K: ChildBody>(child: &Object<ControllerOf<K>>) -> ObjectMeta {
    let controlled = child.body().controller().map(|controller| OwnerReference {
        api_version: controller.api_version.into_owned(),
        kind: controller.kind.into_owned(),
        name: controller.name.into_owned(),
        uid: controller.uid.map(|uid| uid.to_string()).unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    });
    ObjectMeta {
        name: Some(child.key().name().to_owned()),
        namespace: child.key().namespace().map(str::to_owned),
        uid: child.object_uid().map(ToString::to_string),
        resource_version: Some(child.version().to_string()),
        owner_references: controlled.map(|reference| vec![reference]),
        ..ObjectMeta::default()
    }
}

impl<K> Listed<K> {
    pub(super) fn new(labels: String) -> Self {
        let (selector, has_told) = (labels.parse().ok(), AtomicBool::new(false));
        Self { labels, selector, has_told, kind: PhantomData }
    }
}

impl<K: ChildBody, B: Body> ChildKind for Cached<K, B> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        K::kind(&()).into_owned()
    }

    fn finds(&self, kind: &KindName, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Option<bool> {
        (*kind == kind_name::<K>()).then(|| self.cache.selects(key, labels))
    }

    fn has_told(&self) -> &AtomicBool {
        &self.has_told
    }

    fn prune<'a>(&'a self, pass: &'a ChildPass<'_>, pruning: &'a mut Pruning) -> BoxFuture<'a, ()> {
        let found = pass.found_in(&self.cache);
        async move {
            for (at, child) in found.into_iter().enumerate() {
                between(at).await;
                pruning.add(pass.prune_one::<K>(&(self.meta)(&child), false).await);
            }
        }
        .boxed()
    }
}

impl<K: ChildBody> ChildKind for Listed<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        K::kind(&()).into_owned()
    }

    fn finds(&self, kind: &KindName, _: &ObjectKey, labels: &BTreeMap<String, String>) -> Option<bool> {
        (*kind == kind_name::<K>())
            .then(|| self.selector.as_ref().is_none_or(|selector| selector.matches(labels)))
    }

    fn has_told(&self) -> &AtomicBool {
        &self.has_told
    }

    fn prune<'a>(&'a self, pass: &'a ChildPass<'_>, pruning: &'a mut Pruning) -> BoxFuture<'a, ()> {
        async move {
            let api = pass.children.client.api::<K>().in_namespace(pass.owner.namespace.as_deref());
            let children = match api.metadata().list_all(&ListParams::default().labels(&self.labels)).await {
                Ok(children) => children.items,
                // A served kind returns at least an empty list.
                Err(error) if error.is_not_found() => {
                    let kind = self.name();
                    tracing::debug!(target: "actix_informer::reconcile", kind,
                        "the server does not serve the kind {kind}: there are no children of it"
                    );
                    return;
                }
                Err(source) => {
                    let (kind, owner) = (self.name(), pass.owner.described.clone());
                    return pruning.add(Err(ChildError::List { kind, owner, source: Box::new(source) }));
                }
            };
            for (at, child) in children.iter().enumerate() {
                between(at).await;
                pruning.add(pass.prune_one::<K>(&child.metadata, true).await);
            }
        }
        .boxed()
    }
}

/// Lets others run: most objects stay, and nothing is awaited then.
async fn between(at: usize) {
    if at % 250 == 249 {
        tokio::task::yield_now().await;
    }
}

impl ChildPass<'_> {
    /// Without the index, all of the namespace.
    fn found_in<B: Body>(&self, cache: &Lister<B>) -> Vec<Object<B>> {
        let indexed = cache.by_index(CONTROLLER_UID, &self.owner.uid.to_string());
        let mut found = indexed.unwrap_or_else(|_| match &self.owner.namespace {
            Some(namespace) => cache.list_namespace(namespace),
            None => cache.list(),
        });
        found.retain(|child| child.key().cluster_name() == self.cluster.as_ref());
        found
    }
}
