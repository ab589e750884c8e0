//! A resource that was found by its name, and what can be done with it.

use std::ops::Deref;
use std::sync::Arc;

use kube_core::DynamicObject;
use kube_core::discovery::{ApiCapabilities, ApiResource, Scope};

use super::error::DiscoveryError;
use super::mapper::Found;
use super::model::DiscoveredResource;
use crate::api::Api;
use crate::client::Client;
use crate::representation::Dynamic;
use crate::resource::ResourceSource;

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
