//! The objects that a reconciler makes for its own: applied, found again, and deleted when they are not wanted any more.
//!
//! Answers "how do the children of an object become what they should be?" by server-side apply, with a field manager for each
//! owner. Invariants:
//! 1. A child that the cache shows as this process has applied it costs no request.
//! 2. Only an object whose controller is the owner, by uid, is deleted, and only in the state that was seen: a deletion has
//!    its uid and its version as preconditions.
//! 3. What is asked for in a pass is not pruned by it, also if its apply has failed.
//! 4. Two owners never take a child from each other, whatever their caches show: the server refuses.
//! 5. What is remembered of applied children is bounded; what was forgotten costs one apply that changes nothing.
//! 6. No child is made again and again for an owner that is gone, as long as a cache does not know that.
//!
//! Read next: `children/kinds.rs`, where children are looked for; `children/memory.rs`, which applies can be left out;
//! `children/shown.rs`, what a cache knows of a child; `children/owner_check.rs`, when the server is asked for the owner.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use informer_actors::informer::{Body, Lister};
use informer_core::meta::{ClusterName, Object, ObjectKey};
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::owner::{Owner, OwnerError, described};
use super::subject::{WriteLog, record_written};
use crate::client::api::{Patch, PatchParams};
use crate::client::{Client, Error};
use crate::object::{BodyError, key_of};
use crate::representation::ControllerOf;
use kinds::{Cached, CachedControllers, ChildKind, KindName, Listed, kind_name};
use memory::Memory;
use owner_check::OwnerCheck;
use shown::Cache;

mod kinds;
mod memory;
mod owner_check;
mod projection;
mod shown;

pub use kinds::{CONTROLLER_UID, Pruned, controller_uid};

/// The bounds of a child: a type whose kind is known at compile time, and whose objects can be sent, read and kept.
pub trait ChildBody:
    Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned + Clone + fmt::Debug + Body
{
}

impl<K> ChildBody for K where
    K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned + Clone + fmt::Debug + Body
{
}

/// Which children a reconciler makes, and as whom it writes them.
///
/// Made once; cheap to clone, and clones share what they remember. Each reconcile begins a pass with [`Self::of`]. A pass
/// deletes unwanted children of the kinds that are named here, so name each kind that the reconciler makes or has made.
///
/// ```
/// use actix_informer::object::from_body;
/// use actix_informer::prelude::*;
/// use actix_informer::reconcile::Children;
/// use k8s_openapi::api::core::v1::{ConfigMap, Service};
///
/// fn named(name: &str) -> kube_core::ObjectMeta {
///     kube_core::ObjectMeta { name: Some(name.to_owned()), ..Default::default() }
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = actix_informer::testing::ApiServer::builder().start().await?;
/// # let client = Client::new(Config::new(server.url())?)?;
/// # let services = client.api::<Service>().namespaced("default");
/// # let owner = serde_json::from_value(serde_json::json!({"metadata": {"name": "owner"}, "spec": {"ports": [{"port": 80}]}}))?;
/// # let owner: Object<Service> = from_body(services.create(&PostParams::default(), &owner).await?)?;
/// // With an informer of config maps: Children::new(&client, "example").cached(&maps.lister())
/// let children = Children::new(&client, "example").listed::<ConfigMap>("");
///
/// let mut pass = children.of(&owner, &owner)?; // the subject (a request, or an object) and the owner
/// pass.apply(ConfigMap { metadata: named("one"), ..Default::default() }).await?;
/// pass.apply(ConfigMap { metadata: named("two"), ..Default::default() }).await?;
/// assert!(pass.prune().await?.is_empty());
///
/// let mut pass = children.of(&owner, &owner)?;
/// pass.apply(ConfigMap { metadata: named("two"), ..Default::default() }).await?;
/// let pruned = pass.prune().await?;
/// assert_eq!(pruned[0].to_string(), "ConfigMap default/one");
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "nothing is applied before a pass"]
pub struct Children {
    client: Client,
    manager: Arc<str>,
    is_forced: bool,
    kinds: Vec<Arc<dyn ChildKind>>,
    memory: Arc<Memory>,
}

/// One pass over the children of one owner: what it wants, then [`Self::prune`] for what it does not.
#[must_use = "a pass that is not pruned leaves unwanted children"]
pub struct ChildPass<'a> {
    children: &'a Children,
    log: &'a dyn WriteLog,
    owner: Owner,
    check: OwnerCheck,
    /// Where an informer of several clusters keeps the children.
    cluster: Option<ClusterName>,
    /// Each owner writes under a name of its own, see [`Children::new`].
    manager: String,
    /// By kind and not by type: two types may stand for one kind, as those of two versions of it do.
    wanted: BTreeSet<(KindName, ObjectKey)>,
}

/// A child as it is after [`ChildPass::apply`]; reads like its body.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "it is written or it is not: who matches both has matched all")]
pub enum Applied<K> {
    /// The cache shows it as it was applied before: nothing was sent.
    Unchanged(Object<K>),
    /// The cache shows the version that the server answered when the same was applied before, and keeps no fields
    /// ([`Children::cached_controllers`]): nothing was sent. This is the child that was given, with its owner and without
    /// what a server fills in.
    AsGiven(Box<K>),
    /// The answer of the server, which may have found that nothing has changed.
    Written(Box<K>),
}

impl<K> Deref for Applied<K> {
    type Target = K;

    fn deref(&self) -> &K {
        match self {
            Self::Unchanged(object) => object.body(),
            Self::AsGiven(object) | Self::Written(object) => object,
        }
    }
}

/// Why a child is not as it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// The owner cannot own it, or another object does.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// It has no name: an apply needs one.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// It cannot be written as JSON.
    #[error("{child} is no JSON: {source}")]
    Encode {
        /// Kind and key of the child.
        child: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The server did not take it. With [`Error::is_conflict`] another manager has one of its fields, see
    /// [`Children::without_force`].
    #[error("{child} was not applied: {source}")]
    Apply {
        /// Kind and key of the child.
        child: String,
        /// Why.
        source: Box<Error>,
    },
    /// The cache has the owner, and the server has it no more, or another one of its name, or deletes it: the child is not
    /// made. The cache will see that, too.
    #[error("{owner} is gone or is being deleted, which the cache does not show yet: nothing is made for it")]
    OwnerIsGone {
        /// Kind and key of the owner.
        owner: String,
    },
    /// The child would have been made only if the owner is still there, and the server does not say.
    #[error("it is not known whether {owner} is still there: {source}")]
    AskForOwner {
        /// Kind and key of the owner.
        owner: String,
        /// Why.
        source: Box<Error>,
    },
    /// Children of a kind could not be listed, so nothing is known of them.
    #[error("the children of kind {kind} of {owner} cannot be listed: {source}")]
    List {
        /// The kind.
        kind: String,
        /// Kind and key of the owner.
        owner: String,
        /// Why.
        source: Box<Error>,
    },
    /// An unwanted child was not deleted.
    #[error("{child}, which is no longer wanted, was not deleted: {source}")]
    Delete {
        /// Kind and key of the child.
        child: String,
        /// Why.
        source: Box<Error>,
    },
}

impl Children {
    /// Children that are written by this client as this field manager, which is the name of the controller: two controllers
    /// have two names, of at most 90 characters. Fields that another manager has set are taken over.
    ///
    /// What a server notes as the manager is the name, a slash and the uid of the owner: `website-operator/35a84ec4-...`.
    /// Under one name for all owners, the apply of a second owner would take away the reference to the first one, and with it
    /// the child; under two names the server sees two controllers, and refuses.
    pub fn new(client: &Client, manager: impl Into<Arc<str>>) -> Self {
        Self {
            client: client.clone(),
            manager: manager.into(),
            is_forced: true,
            kinds: Vec::new(),
            memory: Arc::default(),
        }
    }

    /// Children of this kind are looked for in the cache of an informer, which has to follow all namespaces of owners. An
    /// informer with the index [`CONTROLLER_UID`] makes that one look-up; without it, each [`ChildPass::prune`] reads
    /// the objects of the owner's namespace. Of an informer of several clusters the cluster of the owner counts, which is
    /// the one that the client has to reach.
    pub fn cached<K: ChildBody>(mut self, lister: &Lister<K>) -> Self {
        self.kinds.push(Arc::new(Cached(lister.clone())));
        self
    }

    /// Children of this kind are looked for in the cache of an informer that keeps of each object only which one controls
    /// it ([`Client::controllers_of`]): some 100 bytes instead of the whole child, and its informer decodes none. The index is that of
    /// [`Self::cached`].
    ///
    /// Such a cache shows no fields. So a child at the version of the server's last answer costs no request, and after
    /// any other change of it (its status, a label) it is applied once more, which changes nothing on the server if nothing is to
    /// be put right. Choose [`Self::cached`] for children whose status changes all the time, or is read in the
    /// reconcile. An unwanted child is read from the server before it is deleted.
    ///
    /// ```no_run
    /// # use {actix_informer::prelude::*, actix_informer::reconcile::{CONTROLLER_UID, Children, controller_uid}};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn demo(client: Client, runtime: Runtime) -> Result<(), actix_informer::Error> {
    /// let maps = client.controllers_of::<ConfigMap>().informer(&runtime)?;
    /// let maps = maps.index(CONTROLLER_UID, controller_uid).start()?; // the controller `owns(&maps)`, too
    /// let children = Children::new(&client, "example").cached_controllers(&maps.lister());
    /// # drop(children); Ok(()) }
    /// ```
    pub fn cached_controllers<K: ChildBody>(mut self, lister: &Lister<ControllerOf<K>>) -> Self {
        self.kinds.push(Arc::new(CachedControllers(lister.clone())));
        self
    }

    /// Children of this kind are looked for by a list in each [`ChildPass::prune`]: of the owner's namespace, and of what
    /// this label selector selects; `""` selects all. Each apply of such a child is sent.
    pub fn listed<K: ChildBody>(mut self, labels: impl Into<String>) -> Self {
        self.kinds.push(Arc::new(Listed::<K>::new(labels.into())));
        self
    }

    /// Fields that another manager has set stay as they are: an apply of such a field is a conflict.
    pub fn without_force(self) -> Self {
        Self { is_forced: false, ..self }
    }

    /// Begins a pass for the children of `owner`; `log` is told each write: a controller's request, or the owner again.
    ///
    /// # Errors
    /// [`OwnerError::NotStored`] for an owner without a name or a uid.
    pub fn of<'a, O: Resource<DynamicType = ()>>(
        &'a self,
        log: &'a dyn WriteLog,
        owner: &Object<O>,
    ) -> Result<ChildPass<'a>, OwnerError> {
        let cluster = owner.key().cluster_name().cloned();
        let (check, owner) = (OwnerCheck::of(owner.body()), Owner::of(owner.body())?);
        let manager = format!("{}/{}", self.manager, owner.uid);
        Ok(ChildPass { children: self, log, owner, check, cluster, manager, wanted: BTreeSet::new() })
    }
}

impl ChildPass<'_> {
    /// Makes the server have this child as it is given here, with the owner as its controller; fields that are not given
    /// belong to others. A field that was given before and is not given now is removed. Fill in a name: a name that the
    /// server generates would make another child in each pass.
    ///
    /// Sends one server-side apply, or nothing where this process has applied the same before and the cache shows each
    /// field of it as the server answered then. So the first pass after a start sends one apply for each child.
    ///
    /// Before an apply for an owner whose cache does not follow its source at present, and before a child is made again that
    /// this process has made before, the server is asked for the metadata of the owner, once a pass. That needs the right to
    /// `get` the owner; without it the child is applied unasked.
    ///
    /// # Errors
    /// [`ChildError`]; the child is not pruned by this pass all the same.
    pub async fn apply<K: ChildBody>(&mut self, mut child: K) -> Result<Applied<K>, ChildError> {
        let owned = self.owner.own(&mut child);
        let key = key_of(&child)?;
        self.wanted.insert((kind_name::<K>(), key.clone()));
        owned?;
        let called = described(&child);
        let body = encoded(&child);
        let body = body.map_err(|source| ChildError::Encode { child: called.clone(), source })?;
        let (children, place) = (self.children, (TypeId::of::<K>(), key.clone()));
        let cache = Cache::<K>::among(&children.kinds);
        let shown = cache.as_ref().and_then(|cache| cache.get(&self.in_caches(key.clone())));
        let is_gone = cache.is_some() && shown.is_none() && children.memory.has(&place);
        if let Some(shown) = shown {
            self.owner.may_control(shown.controller(), || called.clone())?;
            if children.memory.is_applied(&place, &body, &shown) {
                return Ok(shown.unchanged(child));
            }
        }
        if is_gone || self.log.may_be_behind() {
            self.check_owner().await?;
        }
        let mut params = PatchParams::apply(&self.manager);
        params.force = children.is_forced;
        let api = children.client.api::<K>().in_namespace(key.namespace());
        let answer = api.patch(key.name(), &params, &Patch::Apply(&body)).await;
        let answer =
            answer.map_err(|source| ChildError::Apply { child: called, source: Box::new(source) })?;
        let manager = cache.is_none_or(|cache| cache.is_whole()).then_some(&*self.manager);
        children.memory.remember(&place, &body, &answer, manager);
        record_written(self.log, &answer);
        Ok(Applied::Written(Box::new(answer)))
    }

    /// Deletes the children of this owner that this pass has not applied, of each kind that the [`Children`] name, in the
    /// background. Those that are being deleted already are left alone; one that is gone is no error.
    ///
    /// # Errors
    /// The first [`ChildError`]; what comes after it is found by the next pass.
    pub async fn prune(self) -> Result<Vec<Pruned>, ChildError> {
        let mut all = Vec::new();
        for kind in &self.children.kinds {
            all.extend(kind.prune(&self).await?);
        }
        Ok(all)
    }

    /// The key of a child in caches: a body does not know its cluster.
    fn in_caches(&self, key: ObjectKey) -> ObjectKey {
        match &self.cluster {
            Some(cluster) => key.in_cluster(cluster),
            None => key,
        }
    }
}

/// The body of an apply: kind and version, and nothing that only a server sets.
fn encoded<K: ChildBody>(child: &K) -> serde_json::Result<Value> {
    let mut body = serde_json::to_value(child)?;
    body["apiVersion"] = K::api_version(&()).into();
    body["kind"] = K::kind(&()).into();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    Ok(body)
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.name()).collect();
        f.debug_struct("Children")
            .field("manager", &self.manager)
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ChildPass<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<_> = self.wanted.iter().map(|(_, key)| key.to_string()).collect();
        let owner = &self.owner.described;
        f.debug_struct("ChildPass").field("owner", owner).field("wanted", &wanted).finish_non_exhaustive()
    }
}
