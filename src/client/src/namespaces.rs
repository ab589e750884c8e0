//! Makes the builder of an informer from a description: with one source, or with one for each namespace or
//! cluster, which come and go.
//!
//! 1. Several namespaces or clusters are one store and several sources. If one fails, the others are still
//!    followed. Each cluster has its own client, credentials and waits.
//! 2. A source is named after its namespace, and with several clusters also after its cluster. The
//!    cluster-wide source is `*`; the one that selects namespaces is `namespaces/` and the selector. No
//!    namespace has such a name.

use std::fmt;
use std::sync::Arc;

use informer_actors::informer::{
    Body, ClusterWide, Informer, InformerBuilder, NamespaceSources, OfCluster, OfNamespace, Selection,
};
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_core::meta::{ClusterName, Object, SourceId};
use kube_core::discovery::ApiResource;
use kube_core::metadata::PartialObjectMeta;
use kube_core::{NamespaceScope, Resource};

use super::error::Error;
use super::resource::{ResourceSource, SelectedBy};
use super::scope::Scope;
use crate::Client;
use crate::representation::{MetadataOnly, Representation};

impl<K, R: Representation> ResourceSource<K, R> {
    /// The builder of an informer of this description on `runtime`. Indices and settings can be added before
    /// its start.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let pods = client
    ///     .resource::<Pod>()
    ///     .namespaces(["shop", "web"])
    ///     .labels("app in (cart, pay)")
    ///     .informer(&runtime)?
    ///     .index("node", |pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))
    ///     .start()?;
    /// # drop(pods); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Name`] when no path can be made of the resource or a namespace, such as an empty namespace;
    /// [`Error::Selector`] when a selector cannot be parsed. Nothing has been sent then.
    pub fn informer(self, runtime: &Runtime) -> Result<InformerBuilder<R::Body>, Error> {
        let builder = Informer::builder(runtime, self.informer_name());
        self.join(builder, runtime)
    }

    /// This description as one source of an informer: [`InformerBuilder::source_with`] joins it with others,
    /// and [`Informer::add_source`] adds it to a running informer. Both refuse a source that certainly has
    /// objects in common with another one: the same namespace twice, or all namespaces and one of them.
    ///
    /// # Errors
    /// As [`Self::informer`]; and [`Error::Unsupported`] when it describes several namespaces, which are
    /// several sources.
    pub fn source(self, runtime: &Runtime) -> Result<SourceSpec<R::Body>, Error> {
        self.check_alone()?;
        runtime.observe(self.backend().traffic());
        self.spec(runtime.decode_pool())
    }

    /// Only objects of the namespaces that this label selector matches, as they come and go: a namespace that
    /// begins to match is listed and followed, and the objects of one that stops matching leave the cache.
    /// The selector is one as `kubectl get namespaces -l` takes it; an empty one matches all.
    ///
    /// The informer watches the metadata of the Namespaces itself, as a source of its own that is named
    /// `namespaces/` and the selector; it needs the right to list and watch them.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let pods = client.resource::<Pod>().namespaces_with_labels("team=shop").informer(&runtime)?.start()?;
    /// println!("{:?}", pods.namespaces());
    /// # Ok(()) }
    /// ```
    pub fn namespaces_with_labels(mut self, selector: impl Into<String>) -> Self
    where
        K: Resource,
        K::Scope: NamespaceScope,
    {
        self.restrict(None, None, Some(SelectedBy::Labels(selector.into())));
        self
    }

    /// Only objects of the namespaces for which `selects` returns true, as they come and go. `namespaces` is
    /// an informer of Namespaces, or of other objects that are named after namespaces; it is kept running. A
    /// panic of `selects` restarts the source that calls it.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::core::v1::{Namespace, Pod};
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let namespaces = client.resource::<Namespace>().informer(&runtime)?.start()?;
    /// let pods = client.resource::<Pod>().namespaces_of(&namespaces, |namespace| {
    ///     namespace.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Active"))
    /// });
    /// let pods = pods.informer(&runtime)?.start()?;
    /// # drop(pods); Ok(()) }
    /// ```
    pub fn namespaces_of<M: Send + Sync + 'static>(
        mut self,
        namespaces: &Informer<M>,
        selects: impl Fn(&Object<M>) -> bool + Send + Sync + 'static,
    ) -> Self
    where
        K: Resource,
        K::Scope: NamespaceScope,
    {
        let (namespaces, selects) = (namespaces.clone(), Arc::new(selects));
        let names = move |id| {
            let selects = Arc::clone(&selects);
            Selection::<()>::names(id, &namespaces, move |namespace| selects(namespace))
        };
        self.restrict(None, None, Some(SelectedBy::Informer(Arc::new(names))));
        self
    }

    /// Above the policy's number of namespaces, uses one cluster-wide list and watch instead of one for each
    /// namespace. The objects of other namespaces are dropped here before they are decoded. At a quarter less
    /// it is one for each namespace again. Subscribers notice neither change. If the server forbids the
    /// cluster-wide list, the namespaces are followed one by one, the status says why
    /// (`InformerStatus::namespaces`), and it is tried again after 10 minutes. Default: never.
    ///
    /// For descriptions of several namespaces, or of selected ones; [`ClusterWide`] sets more than the
    /// number.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::informer::ClusterWide;
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let pods = client.resource::<Pod>().namespaces(["shop", "web"]).cluster_wide(ClusterWide::above(100));
    /// let pods = pods.informer(&runtime)?.start()?;
    /// pods.set_namespaces((0..1_000).map(|number| format!("tenant-{number}")))?; // one watch
    /// # Ok(()) }
    /// ```
    pub fn cluster_wide(mut self, policy: ClusterWide) -> Self
    where
        K: Resource,
        K::Scope: NamespaceScope,
    {
        *self.cluster_wide_policy() = Some(policy);
        self
    }

    pub(crate) fn join(
        self,
        builder: InformerBuilder<R::Body>,
        runtime: &Runtime,
    ) -> Result<InformerBuilder<R::Body>, Error> {
        let resource = self.resource_parts();
        let builder = resource.into_iter().fold(builder, InformerBuilder::of_resource);
        Ok(match self.sources(runtime)? {
            Sources::One(source) => builder.source_with(*source),
            Sources::Namespaces(sources) => builder.namespaces(sources),
        })
    }

    #[doc(hidden)]
    pub fn sources(self, runtime: &Runtime) -> Result<Sources<R::Body>, Error> {
        self.check_one_source()?;
        runtime.observe(self.backend().traffic());
        let cluster = self.cluster_name().cloned();
        let each = self.each(runtime);
        let sources = match self.several() {
            (Some(names), _) => {
                names.iter().try_for_each(|name| self.of_namespace(name).source(runtime).map(drop))?;
                NamespaceSources::given(each, names.iter().map(String::as_str))
            }
            (None, Some(SelectedBy::Labels(selector))) => {
                let spec = self.namespaces_source(selector, runtime)?;
                NamespaceSources::selected(each, Selection::watching(spec))
            }
            (None, Some(SelectedBy::Informer(names))) => {
                let spec = names(named(cluster.as_ref(), "namespaces/"));
                let spec = cluster.iter().cloned().fold(spec, SourceSpec::in_cluster);
                NamespaceSources::selected(each, Selection::watching(spec))
            }
            (None, None) => return Ok(Sources::One(Box::new(self.spec(runtime.decode_pool())?))),
        };
        let sources = cluster.into_iter().fold(sources, NamespaceSources::in_cluster);
        let (policy, all) = (*self.clone().cluster_wide_policy(), self.all(runtime));
        let sources = policy
            .into_iter()
            .fold(sources, |sources, policy| sources.cluster_wide(policy, Arc::clone(&all)));
        Ok(Sources::Namespaces(sources))
    }

    /// `None`: all namespaces.
    fn of(&self, namespace: Option<&str>) -> Self {
        let mut one = self.clone();
        one.restrict(namespace.map(str::to_owned), None, None);
        let source = named(self.cluster_name(), namespace.unwrap_or("*"));
        one.source_id(source)
    }

    fn of_namespace(&self, namespace: &str) -> Self {
        self.of(Some(namespace))
    }

    fn each(&self, runtime: &Runtime) -> OfNamespace<R::Body> {
        let (description, runtime) = (self.clone().erased(), runtime.clone());
        Arc::new(move |namespace| {
            let source = description.of_namespace(namespace).source(&runtime);
            source.map_err(|error| error.to_string().into())
        })
    }

    fn all(&self, runtime: &Runtime) -> OfCluster<R::Body> {
        let (description, runtime) = (self.of(None).erased(), runtime.clone());
        Arc::new(move || description.clone().source(&runtime).map_err(|error| error.to_string().into()))
    }

    fn namespaces_source(
        &self,
        selector: &str,
        runtime: &Runtime,
    ) -> Result<SourceSpec<PartialObjectMeta<()>>, Error> {
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            plural: "namespaces".to_owned(),
        };
        let id = named(self.cluster_name(), &format!("namespaces/{selector}"));
        let namespaces: ResourceSource<(), MetadataOnly<()>> =
            ResourceSource::new(Arc::clone(self.backend()), Scope::new(resource), MetadataOnly::new());
        let namespaces = namespaces.labels(selector).source_id(id);
        self.cluster_name().cloned().into_iter().fold(namespaces, ResourceSource::cluster).source(runtime)
    }
}

/// The sources of a description.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "known to our own crates alone")]
pub enum Sources<S: Body> {
    /// One, cluster-wide or of one namespace.
    One(Box<SourceSpec<S>>),
    /// One of each namespace.
    Namespaces(NamespaceSources<S>),
}

fn named(cluster: Option<&ClusterName>, name: &str) -> SourceId {
    SourceId::new(cluster.map_or_else(|| name.to_owned(), |cluster| format!("{cluster}|{name}")))
}

/// A description of a resource in several clusters. Made by [`ResourceSource::in_clusters`].
#[must_use = "a description does nothing until an informer is made of it"]
pub struct InClusters<K, R> {
    description: ResourceSource<K, R>,
    clusters: Vec<(String, Client)>,
}

impl<K, R: Representation> ResourceSource<K, R> {
    /// The same resource in each of these clusters, as one informer: the keys of its objects begin with the
    /// cluster's name, its sources are named after the clusters (`eu`; with namespaces `eu|web`). Each
    /// cluster has its own client, list budget and state. The client that this description came from is not
    /// used.
    ///
    /// ```no_run
    /// # fn demo(eu: actix_informer::client::Client, us: actix_informer::client::Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let shop = eu.resource::<Pod>().labels("app=shop");
    /// let pods = shop.in_clusters([("eu", &eu), ("us", &us)]).informer(&runtime)?.start()?;
    /// for pod in pods.snapshot().iter() {
    ///     println!("{}, seen {:?} ago", pod.key(), pods.lister().age(pod.source()));
    /// }
    /// # Ok(()) }
    /// ```
    pub fn in_clusters<'a, N: Into<String>>(
        self,
        clusters: impl IntoIterator<Item = (N, &'a Client)>,
    ) -> InClusters<K, R> {
        let clusters = clusters.into_iter().map(|(name, client)| (name.into(), client.clone())).collect();
        InClusters { description: self, clusters }
    }

    /// The same resource in this cluster, reached with its client: one source of an informer of several
    /// clusters, named after the cluster. To add a cluster to a running informer:
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use actix_informer::client::ResourceSource;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(shop: ResourceSource<Pod>, af: Client, pods: Informer<Pod>) -> Result<(), actix_informer::Error> {
    /// pods.add_source(shop.in_cluster("af", &af)?.source(pods.runtime())?)?;
    /// pods.source_synced(&SourceId::new("af")).await?;
    /// pods.remove_cluster(&"af".parse()?).await?; // its objects are deleted from the cache, and nobody else's
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Name`] when the name is not one or more of `a-z`, `0-9`, `.` and `-`.
    pub fn in_cluster(self, name: &str, client: &Client) -> Result<Self, Error> {
        let cluster: ClusterName =
            name.parse().map_err(|_| Error::Name { what: "name of a cluster", text: name.to_owned() })?;
        let described = self.asked_of(client.backend()).looked_up_by(|resource| client.finder(resource));
        Ok(described.cluster(cluster).source_id(SourceId::new(name)))
    }
}

impl<K, R: Representation> InClusters<K, R> {
    /// The builder of an informer of all these clusters on `runtime`.
    ///
    /// # Errors
    /// As [`ResourceSource::informer`] and [`ResourceSource::in_cluster`]. Nothing has been sent then.
    pub fn informer(self, runtime: &Runtime) -> Result<InformerBuilder<R::Body>, Error> {
        let builder = Informer::builder(runtime, self.informer_name());
        let Self { description, clusters } = self;
        clusters.iter().try_fold(builder, |builder, (name, client)| {
            description.clone().in_cluster(name, client)?.join(builder, runtime)
        })
    }

    /// The name of its informer: that of the description with the clusters, such as `pods/in=eu+us`.
    pub fn informer_name(&self) -> String {
        let names: Vec<&str> = self.clusters.iter().map(|(name, _)| name.as_str()).collect();
        let of_one = self.description.informer_name();
        let separator = if of_one.contains('/') { ',' } else { '/' };
        format!("{of_one}{separator}in={}", names.join("+"))
    }
}

informer_core::clone_of!([K, R] InClusters<K, R> { description, clusters });

impl<K, R> fmt::Debug for InClusters<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.clusters.iter().map(|(name, _)| name).collect();
        f.debug_struct("InClusters")
            .field("description", &self.description)
            .field("clusters", &names)
            .finish()
    }
}
