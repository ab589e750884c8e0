//! Resources that are found by name. A source that follows a name looks it up when it needs it: an unknown
//! name, a category and a resource that cannot be watched count as a missing kind (`Gone`), which the
//! reflector requests again.

use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use informer_core::list_watch_error::ListWatchError;
use kube_core::DynamicObject;
use kube_core::discovery::{ApiCapabilities, ApiResource, Scope};

use super::error::DiscoveryError;
use super::mapper::Found;
use super::model::DiscoveredResource;
use crate::api::Api;
use crate::client::Client;
use crate::error::Error;
use crate::representation::{Dynamic, MetadataOnly, Representation};
use crate::resource::{FindResource, FoundResource, ResourceSource};

impl Client {
    /// Objects of the kind that this name means, in all namespaces. Names are those that kubectl accepts:
    /// `websites.example.org`, `deploy`. Sends nothing: the name is looked up before the first list, and
    /// again whenever the kind is gone. So the kind may be defined later, go away, and come back with another
    /// version or scope. While it is gone, the state is [`Gone`](informer_core::reflector::SourceState::Gone)
    /// and the cache is kept; when it is back, subscribers receive the differences. A name with a version
    /// (`websites.v1.example.org`) means that version only.
    ///
    /// ```
    /// use actix_informer::prelude::*;
    /// use actix_informer::testing::ApiServer;
    /// use std::time::Duration;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ApiServer::builder().start().await?; // or a cluster: Client::from_environment()
    /// let client = Client::new(Config::new(server.url())?)?;
    /// let runtime = Runtime::threads().start()?;
    ///
    /// let deployments = client.named("deploy").namespace("default").informer(&runtime)?.start()?;
    /// deployments.synced_within(Duration::from_secs(30)).await?;
    /// let websites = client.named("websites.example.org").informer(&runtime)?.start()?; // synced when it is defined
    /// let status = websites.wait_until(|status| status.last_error().is_some()).await?;
    /// let error = status.last_error().expect("it waited for one").to_string();
    /// assert_eq!(error, r#"no such resource: the server has no resource named "websites.example.org""#);
    /// # Ok(()) }
    /// ```
    ///
    /// A cluster-scoped kind must have no namespace here: otherwise its state is `Gone` and says so. An
    /// object that is the same in the old and the new version of its kind (its uid and resource version are
    /// equal) is read in the new one, and delivered as updated.
    pub fn named(&self, name: impl Into<String>) -> ResourceSource<DynamicObject, Dynamic> {
        self.followed_by_name(name.into(), Dynamic::new)
    }

    /// As [`Self::named`], but only the metadata of the objects.
    pub fn metadata_named(
        &self,
        name: impl Into<String>,
    ) -> ResourceSource<DynamicObject, MetadataOnly<DynamicObject>> {
        self.followed_by_name(name.into(), |_| MetadataOnly::new())
    }

    fn followed_by_name<R: Representation>(
        &self,
        name: String,
        represent: fn(&ApiResource) -> R,
    ) -> ResourceSource<DynamicObject, R> {
        ResourceSource::by_name(self.backend(), self.finder(&name), Arc::new(represent))
    }

    /// Looks this name up on the server of this client.
    #[doc(hidden)]
    pub fn finder(&self, name: &str) -> Arc<dyn FindResource> {
        Arc::new(ByName { client: self.clone(), name: name.to_owned() })
    }

    /// One name for all names of a resource: `deployments.apps` for `deploy`. A name with a version is
    /// returned unchanged, and so is one that means nothing, or that cannot be looked up.
    #[doc(hidden)]
    pub async fn common_name(&self, name: &str) -> Result<CommonName, DiscoveryError> {
        match self.resource_named(name).await {
            Ok(found) => {
                found.check_watchable()?;
                let is_namespaced = Some(found.is_namespaced());
                let has_version = name.split('.').nth(1) == Some(&*found.api_resource().version);
                let name = if has_version { name.to_owned() } else { found.name() };
                Ok(CommonName { name, is_namespaced })
            }
            Err(error @ (DiscoveryError::Category { .. } | DiscoveryError::NotWatchable { .. })) => {
                Err(error)
            }
            Err(_) => Ok(CommonName { name: name.to_owned(), is_namespaced: None }),
        }
    }
}

/// A name, and whether its objects are in namespaces.
#[derive(Debug)]
pub struct CommonName {
    /// As the server writes it.
    pub name: String,
    /// `None` if that is not known.
    pub is_namespaced: Option<bool>,
}

struct ByName {
    client: Client,
    name: String,
}

impl FindResource for ByName {
    fn name(&self) -> &str {
        &self.name
    }

    fn find(&self, anew: bool) -> BoxFuture<'static, Result<FoundResource, ListWatchError>> {
        let (discovery, name) = (self.client.discovery(), self.name.clone());
        async move {
            let found = match anew {
                true => discovery.resource_named_anew(&name).await,
                false => discovery.resource_named(&name).await,
            };
            found.and_then(followable).map_err(failure)
        }
        .boxed()
    }
}

fn followable(found: NamedResource) -> Result<FoundResource, DiscoveryError> {
    found.check_watchable()?;
    Ok(FoundResource { api: found.api_resource().clone(), is_cluster_scoped: !found.is_namespaced() })
}

/// Converts a failed look-up to the failure of a source.
pub fn failure(error: DiscoveryError) -> ListWatchError {
    let text: Arc<str> = error.to_string().into();
    match error {
        DiscoveryError::Unknown(_)
        | DiscoveryError::Category { .. }
        | DiscoveryError::NotWatchable { .. } => ListWatchError::NotFound(text),
        DiscoveryError::Document { .. } => ListWatchError::Protocol(text),
        DiscoveryError::Panicked(_) => ListWatchError::source(text),
        DiscoveryError::Request(cause) => match &*cause {
            Error::Refused(refused) if refused.code == 401 => ListWatchError::Unauthorized(text),
            Error::Refused(refused) if refused.code == 403 => ListWatchError::Denied(text),
            _ => ListWatchError::Connection { message: text, source: Some(cause) },
        },
    }
}

/// A resource of the server, found by [`Client::resource_named`].
///
/// ```
/// use actix_informer::prelude::*;
/// use actix_informer::testing::ApiServer;
/// use std::time::Duration;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::builder().start().await?; // or a cluster: Client::from_environment()
/// let client = Client::new(Config::new(server.url())?)?;
///
/// let deployments = client.resource_named("deploy").await?;
/// assert_eq!(deployments.full_name(), "deployments.v1.apps");
/// assert!(deployments.is_namespaced() && deployments.verbs().iter().any(|verb| verb == "patch"));
/// assert!(deployments.api_namespaced("default").list(&ListParams::default()).await?.items.is_empty());
///
/// let runtime = Runtime::threads().start()?;
/// let informer = deployments.source()?.namespace("default").informer(&runtime)?.start()?;
/// informer.synced_within(Duration::from_secs(30)).await?;
/// # Ok(()) }
/// ```
///
/// Its names and verbs are those of the [`DiscoveredResource`].
#[derive(Clone)]
pub struct NamedResource {
    client: Client,
    found: Found,
}

impl NamedResource {
    pub(super) fn new(client: Client, found: Found) -> Self {
        Self { client, found }
    }

    /// Everything that discovery says about it, with all its names.
    pub fn discovered(&self) -> &Arc<DiscoveredResource> {
        &self.found.resource
    }

    /// Group, version, kind and plural.
    pub fn api_resource(&self) -> &ApiResource {
        &self.found.resource.api
    }

    /// Verbs, scope and subresources.
    pub fn capabilities(&self) -> &ApiCapabilities {
        &self.found.resource.capabilities
    }

    /// Whether its objects are in namespaces or in none.
    pub fn scope(&self) -> &Scope {
        &self.capabilities().scope
    }

    /// The resources of lower priority with the same short name, such as `foos.example.com`. To mean one of
    /// them, write its group. Empty unless the name was ambiguous; an ambiguous name is also logged.
    pub fn also_named(&self) -> &[String] {
        &self.found.also
    }

    /// Its objects in all namespaces, for reads and writes. If the kind has namespaces, verbs that need a
    /// name fail without a namespace, before any request.
    pub fn api(&self) -> Api<DynamicObject> {
        self.client.dynamic_api(self.api_resource()).discovered(self.scope())
    }

    /// Its objects in this namespace, for reads and writes. If the kind is cluster-scoped, each verb fails
    /// with [`Error::ClusterScoped`](crate::Error::ClusterScoped), before any request.
    pub fn api_namespaced(&self, namespace: impl Into<String>) -> Api<DynamicObject> {
        self.api().namespaced(namespace)
    }

    /// What an informer of it follows: its objects in all namespaces, unless narrowed.
    ///
    /// # Errors
    /// [`DiscoveryError::NotWatchable`] when it cannot be listed and watched, such as `tokenreviews`.
    pub fn source(&self) -> Result<ResourceSource<DynamicObject, Dynamic>, DiscoveryError> {
        self.check_watchable()?;
        Ok(self.client.dynamic(self.api_resource()).discovered(self.scope()))
    }

    pub(super) fn check_watchable(&self) -> Result<(), DiscoveryError> {
        if self.can_be_watched() {
            return Ok(());
        }
        Err(DiscoveryError::NotWatchable { resource: self.name(), verbs: self.verbs().to_vec() })
    }
}

impl Deref for NamedResource {
    type Target = DiscoveredResource;

    fn deref(&self) -> &DiscoveredResource {
        &self.found.resource
    }
}

informer_core::debug_as!(NamedResource, self, resource = self.full_name());
