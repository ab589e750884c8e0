//! Describes a source: which resource, which part of it, kept how.
//!
//! Answers "what does this informer see?" before any connection is made. Page sizes, timeouts and waits are not here:
//! they are the reflector's settings. Invariants:
//! 1. A description makes any number of sources, on any thread; each has connections of its own.
//! 2. What cannot be asked for is refused when the source is prepared, not at the first request.
//!
//! Read next: `list_watch.rs`, what it makes.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use informer_actors::list_watch::Connect;
use informer_actors::runtime::DecodePool;
use informer_actors::wiring::SourceSpec;
use informer_core::meta::{ClusterName, SourceId};
use informer_core::reflector::ReflectorConfig;

use super::endpoint::Prepared;
use super::error::Error;
use super::list_watch::decode::Decoder;
use super::list_watch::{KubeListWatch, Parts};
use super::scope::Scope;
use super::transport::Transport;
use super::transport::awc::AwcTransport;
use crate::representation::{Prune, Representation};

/// The longest object that is read: more than any server stores (etcd's limit is 1.5 MiB by default).
const FRAME_LIMIT: usize = 16 << 20;

/// A resource to be listed and watched.
///
/// ```
/// use actix_informer::client::{Client, Config};
/// use informer_actors::runtime::DecodePool;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let client = Client::new(Config::new("http://127.0.0.1:8080")?)?;
/// let pods = client.resource::<Pod>().namespace("web").labels("app=shop");
/// assert_eq!(pods.name(), "pods");
/// let _connect = pods.connect(DecodePool::inline())?;
/// # Ok::<(), actix_informer::client::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a description asks for nothing until it is connected"]
pub struct ResourceSource<R> {
    prepared: Arc<Prepared>,
    scope: Scope,
    representation: R,
    prune: Prune,
    source: SourceId,
    cluster: Option<ClusterName>,
    frame_limit: usize,
}

impl<R: Representation> ResourceSource<R> {
    pub(crate) fn new(prepared: Arc<Prepared>, scope: Scope, representation: R) -> Self {
        Self {
            prepared,
            scope,
            representation,
            prune: Prune::default(),
            source: SourceId::default(),
            cluster: None,
            frame_limit: FRAME_LIMIT,
        }
    }

    /// Only objects of this namespace. Without it, all namespaces, or a cluster-scoped resource.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.scope.namespace = Some(namespace.into());
        self
    }

    /// Only objects with these labels: a selector as `kubectl -l` takes it. An empty one selects everything.
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.scope.labels = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only objects with these fields: a selector as `kubectl --field-selector` takes it.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.scope.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Cuts these fields from every object instead of `metadata.managedFields`.
    pub fn prune(mut self, prune: Prune) -> Self {
        self.prune = prune;
        self
    }

    /// Names the source; the informer's parts carry this name. `default` unless set.
    pub fn source_id(mut self, source: SourceId) -> Self {
        self.source = source;
        self
    }

    /// The keys of its objects name this cluster: for an informer of several clusters, whose sources all name one.
    pub fn cluster(mut self, cluster: ClusterName) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// Sets objects above this many bytes aside unread. 16 MiB unless set.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// Keeps objects in another way, for example with a transform.
    pub fn keep_as<T: Representation>(self, representation: T) -> ResourceSource<T> {
        let Self { prepared, scope, representation: _, prune, source, cluster, frame_limit } = self;
        ResourceSource { prepared, scope, representation, prune, source, cluster, frame_limit }
    }

    /// How the resource is called in errors and as an informer's name: `pods`, `deployments.apps`.
    pub fn name(&self) -> String {
        self.scope.name()
    }

    /// The name of the source.
    pub fn id(&self) -> &SourceId {
        &self.source
    }

    /// The source with its name, its cluster and what it covers, as an informer takes it.
    pub(crate) fn spec(
        self,
        pool: DecodePool,
        config: ReflectorConfig,
    ) -> Result<SourceSpec<R::Body>, Error> {
        let (id, cluster, coverage) = (self.source.clone(), self.cluster.clone(), self.scope.coverage());
        let spec = SourceSpec::new(id, self.connect(pool)?, config).covering(coverage);
        Ok(cluster.into_iter().fold(spec, SourceSpec::in_cluster))
    }

    /// The source as an informer takes it: called on the informer's arbiter, at its start and at each restart.
    ///
    /// # Errors
    /// [`Error::Name`] when the resource or namespace makes no path.
    pub fn connect(self, pool: DecodePool) -> Result<Connect<R::Body>, Error> {
        let make = self.list_watches(pool)?;
        Ok(Arc::new(move || Box::new(make())))
    }

    /// The same as [`Self::connect`], unboxed: each call makes one source, on the thread where it will be used, inside
    /// a `LocalSet`.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn list_watches(
        self,
        pool: DecodePool,
    ) -> Result<impl Fn() -> KubeListWatch<R> + Send + Sync + 'static, Error> {
        let prepared = Arc::clone(&self.prepared);
        self.list_watches_over(pool, move || Rc::new(AwcTransport::new(Arc::clone(&prepared))))
    }

    /// The same over a transport of one's own.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn list_watches_over(
        self,
        pool: DecodePool,
        transport: impl Fn() -> Rc<dyn Transport> + Send + Sync + 'static,
    ) -> Result<impl Fn() -> KubeListWatch<R> + Send + Sync + 'static, Error> {
        self.scope.check()?;
        let Self { scope, representation, prune, source, cluster, frame_limit, .. } = self;
        let decoder = Arc::new(Decoder { representation, prune, source, cluster });
        Ok(move || {
            let (scope, decoder, pool) = (scope.clone(), Arc::clone(&decoder), pool.clone());
            KubeListWatch::new(transport(), Parts { scope, decoder, pool, frame_limit })
        })
    }
}

impl<R> fmt::Debug for ResourceSource<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceSource")
            .field("endpoint", &self.prepared.endpoint.authority)
            .field("scope", &self.scope)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
