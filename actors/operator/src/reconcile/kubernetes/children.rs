//! The objects that a reconciler makes for its own: applied, found again, and deleted when they are not wanted any more.
//!
//! Answers "how do the children of an object become what they should be?" by server-side apply, with one field manager for each
//! controller. Invariants:
//! 1. A child that the cache shows as this process has applied it costs no request.
//! 2. Ours is what the owner controls, by uid, and what our field manager has applied. Nothing else is ever deleted, and only in
//!    the state that was judged: a deletion has its uid and its version as preconditions.
//! 3. What is asked for in a pass is not pruned by it, also if its apply has failed.
//! 4. Two owners never take a child from each other, whatever their caches show: the server refuses.
//! 5. What is remembered of applied children is bounded; what was forgotten costs one apply that changes nothing.
//! 6. No child is made for an owner that is gone or being deleted, and nothing that nobody controls is taken for one.
//!
//! Read next: `children/apply.rs`, how a child is made; `children/prune.rs`, how it is deleted; `children/kinds.rs`, where
//! children are looked for; `children/memory.rs`, which applies can be left out; `children/policy.rs`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use informer_actors::informer::{Body, Lister};
use informer_core::meta::{ClusterName, Object, ObjectKey, Uid};
use kube_core::{ObjectMeta, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::owner::{Owner, OwnerError};
use super::subject::WriteLog;
use informer_client::Client;
use informer_client::representation::ControllerOf;
use kinds::{Cached, ChildKind, Listed};
use managers::Manager;
use memory::Memory;
use owner_check::OwnerCheck;
use passes::{Passes, Wanted};

mod apply;
mod error;
mod kinds;
mod managers;
mod memory;
mod owner_check;
mod passes;
mod policy;
mod prune;
mod shown;

pub use error::ChildError;
pub use kinds::{CONTROLLER_UID, controller_uid};
pub use policy::{Adopt, ChildPolicy};
pub use prune::Pruned;

/// The bounds of a child: a type whose kind is known at compile time, and whose objects can be sent, read and kept.
pub trait ChildBody:
    Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned + Clone + fmt::Debug + Body
{
}

impl<K> ChildBody for K where
    K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned + Clone + fmt::Debug + Body
{
}

/// Group and kind.
type KindName = (Cow<'static, str>, Cow<'static, str>);

fn kind_name<K: ChildBody>() -> KindName {
    (K::group(&()), K::kind(&()))
}

/// A state of an object: its uid and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    uid: Box<str>,
    version: Box<str>,
}

impl State {
    /// `None` for what comes from no server.
    fn of(meta: &ObjectMeta) -> Option<Self> {
        let (uid, version) = (meta.uid.as_deref()?.into(), meta.resource_version.as_deref()?.into());
        Some(Self { uid, version })
    }

    /// Whether it is one of the object with this uid.
    fn is_of(&self, uid: Option<&Uid>) -> bool {
        uid.is_some_and(|uid| *uid == *self.uid)
    }
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
    manager: Manager,
    is_forced: bool,
    kinds: Vec<Arc<dyn ChildKind>>,
    memory: Arc<Memory>,
    passes: Arc<Passes>,
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
    wanted: Wanted,
}

/// A child as it is after [`ChildPass::apply`]; reads like its body.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "it is written or it is not: who matches both has matched all")]
pub enum Applied<K> {
    /// It is as it was applied before, or it is only created, and is there: nothing was sent.
    Unchanged(Object<K>),
    /// The cache shows the version that the server answered when the same was applied before, and keeps no fields
    /// ([`Children::cached_controllers`]): nothing was sent. This is the child that was given, with its owner and without
    /// what a server fills in. A child that is only created may look otherwise by now.
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

impl Children {
    /// Children that are written by this client as this field manager, which is the name of the controller, of at most 128
    /// characters. Fields that another manager has set are taken over.
    ///
    /// Two controllers have two names, and so have two parts of one reconcile that are pruned for themselves: what was applied under
    /// another name is not theirs, and stays. The name is what a server notes, and what `kubectl apply --server-side
    /// --field-manager` or Argo CD's `managedFieldsManagers` take. A process that is started under another name does not take
    /// what it has made before for its own ([`Adopt`] does). Releases before this one noted the name, a slash and the uid of the owner: such fields are moved
    /// over when the child is applied next.
    pub fn new(client: &Client, manager: impl Into<Arc<str>>) -> Self {
        Self {
            client: client.clone(),
            manager: Manager::new(manager.into()),
            is_forced: true,
            kinds: Vec::new(),
            memory: Arc::default(),
            passes: Arc::default(),
        }
    }

    /// Children of this kind are looked for in the cache of an informer, which has to follow all namespaces of owners, and to
    /// select the labels of the children. It gets the index [`CONTROLLER_UID`] if it has none of this name. Of an informer of
    /// several clusters the cluster of the owner counts, which is the one that the client has to reach.
    ///
    /// A cache that cuts managed fields, as informers do unless told otherwise, does not show who has applied an object: before a
    /// child is deleted, its metadata is read from the server. So is what another controller has made for the same owner, once
    /// in each of its states.
    pub fn cached<K: ChildBody>(mut self, lister: &Lister<K>) -> Self {
        self.kinds.push(Arc::new(Cached::whole(lister)));
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
    /// # use {actix_informer::prelude::*, actix_informer::reconcile::Children};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn demo(client: Client, runtime: Runtime) -> Result<(), actix_informer::Error> {
    /// let maps = client.controllers_of::<ConfigMap>().informer(&runtime)?.start()?; // the controller `owns(&maps)`, too
    /// let children = Children::new(&client, "example").cached_controllers(&maps.lister());
    /// # drop(children); Ok(()) }
    /// ```
    pub fn cached_controllers<K: ChildBody>(mut self, lister: &Lister<ControllerOf<K>>) -> Self {
        self.kinds.push(Arc::new(Cached::controllers(lister)));
        self
    }

    /// Children of this kind are looked for by a list in each [`ChildPass::prune`]: of the owner's namespace, and of what
    /// this label selector selects; `""` selects all. Each apply of such a child is sent. A kind that the server does not serve
    /// has no children.
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
        Ok(ChildPass { children: self, log, owner, check, cluster, wanted: BTreeSet::new() })
    }
}

impl ChildPass<'_> {
    /// The owner is being deleted, and the children of this pass belong to its clean-up. Without this nothing is applied for an
    /// owner that is being deleted.
    pub fn for_clean_up(mut self) -> Self {
        self.check.for_clean_up = true;
        self
    }

    /// The key of a child in caches: a body does not know its cluster.
    fn in_caches(&self, key: ObjectKey) -> ObjectKey {
        match &self.cluster {
            Some(cluster) => key.in_cluster(cluster),
            None => key,
        }
    }
}

impl fmt::Debug for Children {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.name()).collect();
        f.debug_struct("Children")
            .field("manager", &self.manager.name())
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
