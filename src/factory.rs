//! Informers that the parts of a program share: equal requests get one informer.
//!
//! 1. [`InformerKey`] decides what is equal. Requests with equal keys get one informer while it runs and a handle is held.
//! 2. No request is sent before [`InformerFactory::start`], so that every part can subscribe before the first event.
//! 3. The drop of the last handle stops an informer; the next request makes a new one.
//! 4. Requests of one key that differ elsewhere (list settings, size limit, name) are an error.

mod builder;
mod defaults;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use informer_actors::informer::{
    AnyInformer, DrainReport, Informer, NotAllSynced, Snapshots, StartError, Synced,
};
use informer_actors::runtime::Runtime;
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, Resource};

pub use self::builder::InformerFactoryBuilder;
use self::defaults::Defaults;
use self::shared::Shared;
use crate::client::{self, Client, InformerKey, ResourceSource};
use crate::representation::{ControllerOnly, Dynamic, MetadataOnly, Representation, Typed};

/// Why a factory does not return or start an informer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// The description cannot be requested, or its representation needs a name.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The name means several resources, or one that cannot be followed.
    #[error(transparent)]
    Discovery(#[from] client::DiscoveryError),
    /// The informer could not be declared.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The informer exists, and was requested with another setting that is not part of its key.
    #[error("informer {informer:?} exists with another {setting}: requests of one informer must agree in it")]
    Different {
        /// The informer's name.
        informer: Arc<str>,
        /// The setting: `name`, `size limit` or `list settings`.
        setting: &'static str,
    },
    /// The factory was shut down.
    #[error("the informer factory was shut down")]
    ShutDown,
}

/// Returns to each part of a program a handle of the informer that it needs, one informer for equal needs.
/// Cheap to clone.
///
/// ```
/// use actix_informer::prelude::*;
/// use actix_informer::testing::ApiServer;
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use std::time::Duration;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::builder().start().await?; // or a cluster: Client::from_environment()
/// let client = Client::new(Config::new(server.url())?)?;
/// let runtime = Runtime::threads().start()?;
/// let factory = InformerFactory::builder(&runtime, &client)
///     .namespaces(["default"])
///     .describe::<ConfigMap>(|maps| maps.labels("team=shop"))
///     .build();
///
/// let pods = factory.informer::<Pod>()?; // declared: it asks for nothing yet
/// let changes = pods.for_each(|notify| async move { println!("{}", notify.key()) })?;
/// let same = factory.informer::<Pod>()?; // another part of the program: the same informer
/// let maps = factory.of(factory.resource::<ConfigMap>().namespace("kube-system"))?;
/// let names = factory.of(factory.metadata::<Pod>())?; // another informer: it keeps something else
/// assert_eq!(pods.name(), "pods/ns=default");
/// assert_eq!(maps.name(), "configmaps/ns=kube-system,labels=team=shop");
///
/// factory.start()?; // all that is declared; what is requested later is started by the next call
/// factory.synced_within(Duration::from_secs(30)).await?; // the error gives name, state and last error of each
/// let report = factory.shutdown(Duration::from_secs(10)).await;
/// assert!(report.is_clean(), "{report}");
/// assert!(factory.informer::<Pod>().is_err());
/// # drop((changes, same, names));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct InformerFactory {
    shared: Arc<Shared>,
    defaults: Arc<Defaults>,
    client: Client,
}

impl InformerFactory {
    /// A factory without settings: all namespaces, all objects.
    pub fn new(runtime: &Runtime, client: &Client) -> Self {
        Self::builder(runtime, client).build()
    }

    /// A factory whose informers run on `runtime` and follow what `client` can reach.
    pub fn builder(runtime: &Runtime, client: &Client) -> InformerFactoryBuilder {
        InformerFactoryBuilder::new(runtime, client)
    }

    /// This factory for another client: another cluster, or other credentials. Informers, start, waits and
    /// shutdown are common to both; informers of different clients are never shared. Clones of one client are
    /// one client.
    #[must_use = "the factory that it is called on stays as it is"]
    pub fn with_client(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// The runtime of its informers.
    pub fn runtime(&self) -> &Runtime {
        self.shared.runtime()
    }

    /// Describes objects of a type known at compile time, with the settings of this factory for it. For
    /// [`Self::of`], after it was narrowed further.
    pub fn resource<K>(&self) -> ResourceSource<K>
    where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        self.defaults.describe_typed(self.client.resource::<K>())
    }

    /// Describes only the metadata of objects of a type, with the settings of this factory for all kinds.
    pub fn metadata<K>(&self) -> ResourceSource<K, MetadataOnly<K>>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        self.defaults.describe::<K, _>(self.client.metadata::<K>())
    }

    /// Describes only which object controls each object of a type ([`Client::controllers_of`]), with the
    /// settings of this factory for all kinds.
    pub fn controllers_of<K>(&self) -> ResourceSource<K, ControllerOnly<K>>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        self.defaults.describe::<K, _>(self.client.controllers_of::<K>())
    }

    /// Describes objects of a kind known only at run time, with the settings of this factory for all kinds.
    /// If only the server knows that the kind is cluster-scoped, remove the namespaces of the factory by
    /// [`ResourceSource::all_namespaces`].
    pub fn dynamic(&self, resource: &ApiResource) -> ResourceSource<DynamicObject, Dynamic> {
        self.defaults.describe::<DynamicObject, _>(self.client.dynamic(resource))
    }

    /// Describes the kind that this name means to kubectl, also one that is defined later, goes away, or
    /// comes back with another version or scope, with the settings of this factory for all kinds.
    /// [`Client::named`] says how it is followed.
    ///
    /// Discovery says what the name means, so that all names of one kind lead to one informer, and a
    /// cluster-scoped kind gets no namespace. If the server does not know it, or does not answer, the name is
    /// taken as it is: informers of `website` and `websites.example.org`, requested before the kind is
    /// defined, are two.
    ///
    /// # Errors
    /// [`FactoryError::Discovery`] when the name means several resources, or one that cannot be followed.
    pub async fn named(&self, name: &str) -> Result<ResourceSource<DynamicObject, Dynamic>, FactoryError> {
        let common = self.client.common_name(name).await?;
        Ok(self.defaults.describe_named(self.client.named(common.name), common.is_namespaced))
    }

    /// As [`Self::named`], only the metadata of the objects.
    ///
    /// # Errors
    /// As there.
    pub async fn metadata_named(
        &self,
        name: &str,
    ) -> Result<ResourceSource<DynamicObject, MetadataOnly<DynamicObject>>, FactoryError> {
        let common = self.client.common_name(name).await?;
        Ok(self.defaults.describe_named(self.client.metadata_named(common.name), common.is_namespaced))
    }

    /// The informer of this type with the settings of this factory, found or declared. [`Self::of`] says how.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn informer<K>(&self) -> Result<Informer<K>, FactoryError>
    where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        self.of::<K, Typed<K>>(self.resource::<K>())
    }

    /// The informer of this description: the one that runs or is declared, if its [`InformerKey`] is equal,
    /// or else a new one, which is declared: it takes subscriptions, listers and indices, and sends no
    /// request before [`Self::start`].
    ///
    /// The description is taken as it is: one that was not made by this factory has none of its settings, but
    /// for those of [`InformerFactoryBuilder::configure`]. The handle counts: when the last one is dropped,
    /// with its listers and subscriptions, the informer stops, and its memory is freed. Returns at once; a
    /// lock is held for some microseconds.
    ///
    /// One namespace is a source named after it, as each of several is.
    ///
    /// # Errors
    /// [`FactoryError::Client`] when the description cannot be requested or its representation needs a name;
    /// [`FactoryError::Different`] when the informer exists with other list settings, size limit or name;
    /// [`FactoryError::ShutDown`] after the shutdown; [`FactoryError::Start`] when the runtime was shut down.
    pub fn of<K: 'static, R: Representation>(
        &self,
        description: ResourceSource<K, R>,
    ) -> Result<Informer<R::Body>, FactoryError> {
        self.shared.found_or_declared(description.with_named_sources(), &self.defaults)
    }

    /// Starts every informer that is declared. Those that run are not changed, so each informer is started
    /// once however often this is called; what is requested later is started by the next call. Returns at
    /// once.
    ///
    /// # Errors
    /// [`FactoryError::ShutDown`] after the shutdown.
    pub fn start(&self) -> Result<(), FactoryError> {
        self.shared.held()?.iter().for_each(|(_, informer)| informer.begin());
        Ok(())
    }

    /// All informers that run or are declared, with their keys, in the order in which they were requested
    /// first.
    pub fn informers(&self) -> Vec<(InformerKey, AnyInformer)> {
        self.shared.held().unwrap_or_default()
    }

    /// The newest snapshots of all its informers, with their versions. Never blocks. It is no transaction:
    /// one cache may be ahead of another; [`Snapshots::at_least`] waits until each has what was written.
    pub fn snapshot(&self) -> Snapshots {
        Snapshots::of(self.informers().into_iter().map(|(_, informer)| informer))
    }

    /// Waits until the first list of each informer is published, for at most `limit` in all. Informers that
    /// are requested during the wait are not waited for. While it waits, it holds a handle of each.
    ///
    /// # Errors
    /// At the limit, or earlier when nothing that is not synced can sync any more: with name, state and last
    /// error of each informer. One that is declared and not started says so.
    pub async fn synced_within(&self, limit: Duration) -> Result<Synced, NotAllSynced> {
        let informers: Vec<_> = self.informers().into_iter().map(|(_, informer)| informer).collect();
        AnyInformer::all_synced_within(&informers, limit).await
    }

    /// Shuts all informers down at once: each reads no more, applies what is queued and delivers what waits
    /// until `limit`. When it returns with a clean report, no actor of any informer of this factory runs any
    /// more, not even of those whose handles were dropped shortly before. From its beginning on, requests and
    /// starts are refused.
    pub async fn shutdown(&self, limit: Duration) -> DrainReport {
        self.shared.shutdown(limit).await
    }
}

informer_core::debug_as!(InformerFactory, self, client = self.client, informers = self.informers());
