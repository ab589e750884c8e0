//! One informer of several clusters.
//!
//! Answers "how does one cache hold the objects of many clusters, and how do clusters come and go?". Each cluster is a
//! source, or as many as it has namespaces, with a client of its own: its credentials, its connections, its waits.
//! Invariants:
//! 1. Every key names its cluster, so objects of one name in two clusters are two objects.
//! 2. A cluster that is away keeps its objects, and takes nothing from the others: neither their list budget nor their
//!    events. How old its objects are is known ([`Lister::age`](informer_actors::informer::Lister::age)).
//!
//! Read next: `resource.rs`, the description; the example `two_clusters`.

use std::fmt;

use informer_actors::informer::{Informer, InformerBuilder};
use informer_actors::runtime::Runtime;
use informer_core::meta::{ClusterName, SourceId};

use crate::representation::Representation;
use crate::{Client, Error, ResourceSource};

/// A description of a resource in several clusters. Made by [`ResourceSource::in_clusters`].
#[must_use = "a description does nothing until an informer is made of it"]
pub struct InClusters<K, R> {
    description: ResourceSource<K, R>,
    clusters: Vec<(String, Client)>,
}

impl<K, R: Representation> ResourceSource<K, R> {
    /// The same resource in each of these clusters, as one informer: the keys of its objects begin with the cluster's
    /// name, its sources are named after the clusters (`eu`; with namespaces `eu|web`). Each cluster has its own client,
    /// list budget and state. The client that this description came from is not used.
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

    /// The same resource in this cluster, reached with its client: one source of an informer of several clusters, named
    /// after the cluster. To add a cluster to a running informer:
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
