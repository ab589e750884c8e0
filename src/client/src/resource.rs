//! Describes what an informer follows: which resource, which part of it, what is kept, how it is requested.
//!
//! A description makes any number of informers, on any thread. What cannot be requested is refused before any request.

mod kept;
mod named;
mod several;
mod shared;

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use informer_actors::list_watch::{Connect, SourceSpec};
use informer_actors::runtime::DecodePool;
use informer_actors::status::ResourceName;
use informer_core::meta::{ClusterName, SourceId};
use informer_core::namespaces::ClusterWide;
use informer_core::reflector::ReflectorConfig;
use kube_core::discovery::{self, ApiResource};
use kube_core::{NamespaceScope, Resource};

use self::named::Named;
pub use self::named::{FindResource, FoundResource, Represent};
pub(crate) use self::several::SelectedBy;
pub use self::shared::OutsideKey;
use super::backend::Backend;
use super::error::Error;
use super::list_watch::decode::{Decoder, Scopes};
use super::list_watch::{KubeListWatch, Parts};
use super::scope::Scope;
use super::transport::Transport;
use crate::representation::{LateFindings, Prune, Representation, RequestedContent, Typed, WireKind};

/// No server stores larger objects (etcd's limit is 1.5 MiB by default).
const FRAME_LIMIT: usize = 16 << 20;

/// What an informer follows: a resource of the kind `K`, or a part of it, kept in the form of `R`.
///
/// Made by a [`Client`](super::Client), started with [`Self::informer`]. No request is sent before that.
///
/// ```
/// use actix_informer::client::{Client, Config};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let client = Client::new(Config::new("http://127.0.0.1:8080")?)?;
/// let pods = client.resource::<Pod>().namespace("web").labels("app == shop");
/// assert_eq!(pods.resource_name(), "pods");
/// assert_eq!(pods.informer_name(), "pods/ns=web,labels=app=shop");
/// # Ok::<(), actix_informer::client::Error>(())
/// ```
///
/// Cluster-scoped kinds have no namespaces, so this does not compile:
///
/// ```compile_fail,E0277
/// # fn demo(client: actix_informer::client::Client) {
/// let nodes = client.resource::<k8s_openapi::api::core::v1::Node>().namespace("web");
/// # }
/// ```
#[must_use = "a description does nothing until an informer is made of it"]
pub struct ResourceSource<K, R = Typed<K>> {
    backend: Arc<Backend>,
    scope: Scope,
    /// `Some` if the resource is known by name alone; `scope` then has only that name.
    named: Option<Named<R>>,
    /// `None` for one namespace, or all.
    namespaces: Option<Vec<String>>,
    selected_by: Option<SelectedBy>,
    cluster_wide: Option<ClusterWide>,
    representation: Arc<R>,
    /// Stands for the representation in comparisons.
    kept_as: Option<String>,
    prune: Prune,
    settings: ReflectorConfig,
    name: Option<String>,
    source: SourceId,
    cluster: Option<ClusterName>,
    frame_limit: usize,
    /// Protobuf is requested where it can be read.
    protobuf: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K, R: Representation> ResourceSource<K, R> {
    pub(crate) fn new(backend: Arc<Backend>, scope: Scope, representation: R) -> Self {
        Self {
            settings: ReflectorConfig::new(scope.name()),
            backend,
            scope,
            named: None,
            namespaces: None,
            selected_by: None,
            cluster_wide: None,
            representation: Arc::new(representation),
            kept_as: None,
            prune: Prune::default(),
            name: None,
            source: SourceId::default(),
            cluster: None,
            frame_limit: FRAME_LIMIT,
            protobuf: false,
            kind: PhantomData,
        }
    }

    /// Only objects of this namespace. Default: the objects of all namespaces.
    ///
    /// Does not compile for a cluster-scoped kind. For a kind known only at run time (`DynamicObject`), the
    /// start fails with [`Error::ClusterScoped`] if the kind is one of Kubernetes' own, or if
    /// [`Self::discovered`] has said that it is cluster-scoped. Otherwise only the server knows: the
    /// informer's state becomes [`Gone`](informer_core::reflector::SourceState::Gone).
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self
    where
        K: Resource,
        K::Scope: NamespaceScope,
    {
        self.restrict(Some(namespace.into()), None, None);
        self
    }

    /// Only objects of these namespaces: one informer and one store, with a source for each namespace, named
    /// after it. If one cannot be followed, the others are. A namespace given twice, or none, is refused at
    /// the start. While the informer runs,
    /// [`Informer::set_namespaces`](informer_actors::informer::Informer::set_namespaces) names others.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self
    where
        K: Resource,
        K::Scope: NamespaceScope,
    {
        let namespaces = namespaces.into_iter().map(Into::into).collect();
        self.restrict(None, Some(namespaces), None);
        self
    }

    /// Sets whether the objects of this kind are in namespaces, as discovery reports it: for kinds that are
    /// known only at run time. A namespace for a cluster-scoped kind then makes the start fail, before any
    /// request.
    ///
    /// ```
    /// use actix_informer::client::{Client, Config};
    /// use actix_informer::kube_core::discovery::{ApiResource, Scope};
    /// use actix_informer::kube_core::gvk::GroupVersionKind;
    /// use actix_informer::prelude::*;
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let client = Client::new(Config::new("http://127.0.0.1:8080")?)?;
    /// let zones = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Zone"));
    /// let zones = client.dynamic(&zones).discovered(&Scope::Cluster).namespace("web");
    /// let error = zones.informer(&runtime).err().expect("zones are cluster-scoped");
    /// assert_eq!(error.to_string(), "zones.example.org are cluster-scoped: leave out the namespace \"web\"");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn discovered(mut self, scope: &discovery::Scope) -> Self
    where
        K: Resource<DynamicType = ApiResource>,
    {
        self.scope.is_cluster_scoped = matches!(scope, discovery::Scope::Cluster);
        self
    }

    /// Only objects with these labels: a selector as `kubectl -l` takes it. An empty one selects everything.
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.scope.labels = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only objects with these fields: a selector as `kubectl --field-selector` takes it. An empty one
    /// selects everything. Only the server knows which fields of a kind can be selected.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.scope.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Keeps objects in another way, for example with a transform.
    pub fn keep_as<T: Representation>(mut self, representation: T) -> ResourceSource<K, T> {
        let named = self.named.take().map(Named::kept_otherwise);
        ResourceSource { kept_as: None, ..self.made_of(Arc::new(representation), named) }
    }

    /// As [`Self::keep_as`], with a name for the representation: an `InformerFactory` treats representations
    /// of one type and one name as the same. A representation with a transform or fields of its own needs a
    /// name in a factory.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) {
    /// use actix_informer::representation::Typed;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let without_status = Typed::<Pod>::new().transform(|pod| Ok(Pod { status: None, ..pod }));
    /// let pods = client.resource::<Pod>().keep_as_named("without-status", without_status);
    /// assert_eq!(pods.informer_name(), "pods/as=without-status");
    /// # }
    /// ```
    pub fn keep_as_named<T: Representation>(
        self,
        name: impl Into<String>,
        representation: T,
    ) -> ResourceSource<K, T> {
        ResourceSource { kept_as: Some(name.into()), ..self.keep_as(representation) }
    }

    /// Cuts these fields from every object instead of `metadata.managedFields`.
    pub fn prune(mut self, prune: Prune) -> Self {
        self.prune = prune;
        self
    }

    /// Changes how it is listed and watched: page size, watch-list on or off, deadlines, waits.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// let pods = client.resource::<Pod>().settings(|settings| settings.watch_list = false);
    /// # }
    /// ```
    pub fn settings(mut self, change: impl FnOnce(&mut ReflectorConfig)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Names the informer: in its status, in logs and in errors. [`Self::informer_name`] unless set.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Names its source, if it is one: `default` unless set. Several namespaces are sources named after them.
    pub fn source_id(mut self, source: SourceId) -> Self {
        self.source = source;
        self
    }

    /// The keys of its objects name this cluster. For an informer of several clusters; all its sources must
    /// name one.
    pub fn cluster(mut self, cluster: ClusterName) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// Objects above this many bytes are not read and count as undecodable. 16 MiB unless set.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// The name of the resource in errors: `pods`, `deployments.apps`.
    pub fn resource_name(&self) -> String {
        self.scope.name()
    }

    /// The name of its informer: that of [`Self::name`], or else the resource and the part of it that is
    /// followed: `pods`, `pods/ns=web,labels=app=shop`. Of more than four namespaces it lists the first four
    /// and how many more there are. The server, the version and the type of the body are not part of the
    /// name.
    pub fn informer_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.key_of(self.kept_as.clone().unwrap_or_default()).to_string())
    }

    /// `None` if discovery finds it when the informer starts.
    pub(crate) fn resource_parts(&self) -> Option<ResourceName> {
        self.named.is_none().then(|| {
            let ApiResource { group, version, plural, .. } = self.scope.resource.clone();
            ResourceName { group, version, resource: plural }
        })
    }

    pub(crate) fn requested_content(&self) -> RequestedContent {
        self.representation.requested_content()
    }

    /// The name of the source.
    pub fn id(&self) -> &SourceId {
        &self.source
    }

    pub(crate) fn kept(&self) -> (Arc<R>, Prune, &Scope, Option<&ClusterName>) {
        (Arc::clone(&self.representation), self.prune.clone(), &self.scope, self.cluster.as_ref())
    }

    pub(crate) fn spec(mut self, pool: DecodePool) -> Result<SourceSpec<R::Body>, Error> {
        self.check_one_source()?;
        if let Some(named) = self.named.take() {
            return self.spec_by_name(named, pool);
        }
        let (id, cluster, coverage) = (self.source.clone(), self.cluster.clone(), self.scope.coverage());
        let mut settings = self.settings.clone();
        if let Some(pass) = self.representation.passes() {
            if !pass.claim() {
                return Err(Error::Unsupported("one `PassTo` for two informers".to_owned()));
            }
            // A list needs no memory, and may last longer than a server waits.
            (settings.list_permit, settings.watch_list, settings.in_pages) = (false, false, true);
        }
        #[cfg(feature = "persist")]
        if self.representation.saves().is_some() {
            // Watched initial events would not come from the file.
            settings.watch_list = false;
        }
        let (backend, pass) = (Arc::clone(&self.backend), self.representation.passes());
        let make = self.list_watches(pool, move || backend.transport())?;
        let connect: Connect<R::Body> = Arc::new(move || Box::new(make()));
        let spec = SourceSpec::new(id, connect, settings).covering(coverage);
        let spec = pass.into_iter().fold(spec, SourceSpec::passing_on);
        Ok(cluster.into_iter().fold(spec, SourceSpec::in_cluster))
    }

    /// Each call makes one source, on the thread that will use it, inside a `LocalSet`.
    pub(crate) fn list_watches(
        self,
        pool: DecodePool,
        transport: impl Fn() -> Rc<dyn Transport> + Send + Sync + 'static,
    ) -> Result<impl Fn() -> KubeListWatch<R> + Send + Sync + 'static, Error> {
        self.scope.check()?;
        if self.is_of_several() {
            return Err(several_sources());
        }
        #[cfg(feature = "persist")]
        let saved = self.saved(&pool)?;
        let wire = self.wire();
        let Self { scope, representation, prune, source, cluster, frame_limit, .. } = self;
        let (scopes, late) = (Scopes::default(), Arc::new(LateFindings::new(cluster.clone())));
        let decoder = Arc::new(Decoder { representation, prune, source, form: 0, cluster, scopes, late });
        Ok(move || {
            let (scope, decoder, pool) = (scope.clone(), Arc::clone(&decoder), pool.clone());
            let parts = Parts {
                scope,
                decoder,
                pool,
                frame_limit,
                wire,
                #[cfg(feature = "persist")]
                saved: saved.clone(),
            };
            KubeListWatch::new(transport(), parts)
        })
    }
}

fn several_sources() -> Error {
    let several = "a description of several namespaces as one source: it is one source for each of them";
    Error::Unsupported(several.to_owned())
}

informer_core::clone_of!([K, R] ResourceSource<K, R> {
    backend, scope, named, namespaces, selected_by, cluster_wide, representation, kept_as, prune, settings,
    name, source, cluster, frame_limit, protobuf, kind
});

informer_core::debug_as!([K, R] ResourceSource<K, R>, self,
    endpoint = self.backend.name(),
    scope = self.scope,
    namespaces = self.namespaces,
    source = self.source
);

impl<K, R: Representation> ResourceSource<K, R> {
    fn wire(&self) -> WireKind {
        wire_of(self.protobuf, &*self.representation, &self.scope.resource)
    }
}

#[cfg(feature = "protobuf")]
fn wire_of<R: Representation>(protobuf: bool, representation: &R, resource: &ApiResource) -> WireKind {
    if !protobuf || !representation.reads_protobuf() {
        return WireKind::Json;
    }
    let kind = (&*resource.api_version, &*resource.kind);
    WireKind::preferring_protobuf(kind, representation.requested_content())
}

#[cfg(not(feature = "protobuf"))]
fn wire_of<R: Representation>(_: bool, _: &R, _: &ApiResource) -> WireKind {
    WireKind::Json
}
