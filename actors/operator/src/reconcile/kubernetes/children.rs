//! The child objects of an owner: applied with server-side apply, found again, and deleted when unwanted.
//!
//! 1. A child that the cache shows as this process applied it costs no request.
//! 2. A deletion has the uid and version of the judged state as preconditions.
//! 3. A pass does not prune what it has requested, even if the apply failed.
//! 4. Two owners never take a child from each other, although all apply as one manager: the server refuses.

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
use informer_client::representation::{ControllerOf, LazyBody};
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

/// The bounds of a child type: its kind is known at compile time, and its objects can be sent, read and
/// cached.
pub trait ChildBody:
    Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned + Clone + fmt::Debug + Body
{
}

impl<K> ChildBody for K where
    K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned + Clone + fmt::Debug + Body
{
}

type KindName = (Cow<'static, str>, Cow<'static, str>);

fn kind_name<K: ChildBody>() -> KindName {
    (K::group(&()), K::kind(&()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    uid: Box<str>,
    version: Box<str>,
}

impl State {
    /// `None` if no server has stored the object.
    fn of(meta: &ObjectMeta) -> Option<Self> {
        let (uid, version) = (meta.uid.as_deref()?.into(), meta.resource_version.as_deref()?.into());
        Some(Self { uid, version })
    }

    fn is_of(&self, uid: Option<&Uid>) -> bool {
        uid.is_some_and(|uid| *uid == *self.uid)
    }
}

/// Which child kinds a reconciler makes, and under which field manager it writes them.
///
/// Made once; cheap to clone, and clones share what they remember. Each reconcile begins a pass with
/// [`Self::of`]. A pass deletes unwanted children only of the kinds that are named here, so name each kind
/// that the reconciler makes or has made.
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

/// One pass over the children of one owner: apply each wanted child, then call [`Self::prune`] to delete the
/// others.
#[must_use = "a pass that is not pruned leaves unwanted children"]
pub struct ChildPass<'a> {
    children: &'a Children,
    log: &'a dyn WriteLog,
    owner: Owner,
    check: OwnerCheck,
    cluster: Option<ClusterName>,
    wanted: Wanted,
}

/// A child as it is after [`ChildPass::apply`]; reads like its body.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "it is written or it is not: who matches both has matched all")]
pub enum Applied<K> {
    /// Nothing was sent: the child is as it was applied before, or it exists and its policy is to create it
    /// only.
    Unchanged(Object<K>),
    /// Nothing was sent: the cache shows the version that the server returned when the same was applied
    /// before. The cache keeps no fields ([`Children::cached_controllers`]), so this is the child that was
    /// given, with its owner and without what a server fills in. A child that is only created may look
    /// different by now.
    AsGiven(Box<K>),
    /// The answer of the server. The apply may have changed nothing.
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
    /// Children that are written by this client under this field manager, which is the name of the
    /// controller, of at most 128 characters. Fields that another manager has set are taken over.
    ///
    /// Give each controller a name of its own, and also each part of one reconcile that is pruned separately:
    /// what was applied under another name belongs to that name, and stays. The server notes this name;
    /// `kubectl apply --server-side --field-manager` and Argo CD's `managedFieldsManagers` take it. A process
    /// that is started under another name does not treat the children that it made before as its own
    /// ([`Adopt`] changes that). Releases before this one noted the name, a slash and the uid of the owner:
    /// such fields are moved over when the child is applied next.
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

    /// Children of this kind are looked up in the cache of an informer. The informer has to follow all
    /// namespaces of owners, and to select the labels of the children. It gets the index [`CONTROLLER_UID`]
    /// if it has no index of this name. In an informer of several clusters only the cluster of the owner
    /// counts; the client has to reach that cluster.
    ///
    /// Informers cut managed fields unless told otherwise. Such a cache does not show who has applied an
    /// object, so its metadata is read from the server before a child is deleted. The same read is made for
    /// what another controller has made for the same owner, once in each of its states.
    pub fn cached<K: ChildBody>(mut self, lister: &Lister<K>) -> Self {
        self.kinds.push(Arc::new(Cached::whole(lister)));
        self
    }

    /// As [`Self::cached`], for an informer that keeps texts
    /// ([`ResourceSource::lazy`](informer_client::ResourceSource::lazy)): each look-up decodes the child.
    pub fn cached_lazy<K: ChildBody>(mut self, lister: &Lister<LazyBody<K>>) -> Self {
        self.kinds.push(Arc::new(Cached::lazy(lister)));
        self
    }

    /// Children of this kind are looked up in the cache of an informer that keeps of each object only which
    /// object controls it ([`Client::controllers_of`]): about 100 bytes instead of the whole child, and the
    /// informer decodes no child. The index is that of [`Self::cached`].
    ///
    /// Such a cache shows no fields. A child at the version of the server's last answer costs no request.
    /// After any other change of the child (its status, a label) it is applied once more, which changes
    /// nothing on the server if nothing has to be corrected. Choose [`Self::cached`] for children whose
    /// status changes all the time, or is read in the reconcile. An unwanted child is read from the server
    /// before it is deleted.
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

    /// Children of this kind are found by a list request in each [`ChildPass::prune`]: of the owner's
    /// namespace, with this label selector; `""` selects all. Each apply of such a child is sent. A kind that
    /// the server does not serve has no children.
    pub fn listed<K: ChildBody>(mut self, labels: impl Into<String>) -> Self {
        self.kinds.push(Arc::new(Listed::<K>::new(labels.into())));
        self
    }

    /// Fields that another manager has set stay as they are: an apply that sets such a field returns a
    /// conflict.
    pub fn without_force(self) -> Self {
        Self { is_forced: false, ..self }
    }

    /// Begins a pass for the children of `owner`. Writes are recorded in `log`: a controller's request, or
    /// the owner again.
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
    /// States that the owner is being deleted, and that the children of this pass belong to its clean-up.
    /// Without this call nothing is applied for an owner that is being deleted.
    pub fn for_clean_up(mut self) -> Self {
        self.check.for_clean_up = true;
        self
    }

    /// A body does not contain its cluster.
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
