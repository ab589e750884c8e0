//! Reads and writes the objects of one kind: every verb, with kube-core's parameters. It caches nothing.
//!
//! 1. One call of a verb is one request, with the retries that `Client::send` describes and no others.
//! 2. A path consists of checked parts, so a name cannot reach another resource. A namespace for a kind
//!    without namespaces does not compile.
//!
//! ```
//! use std::time::Duration;
//!
//! use actix_informer::client::api::conditions;
//! use actix_informer::prelude::*;
//! use actix_informer::testing::ApiServer;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use serde_json::json;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::builder().start().await?; // or a cluster: Client::from_environment()
//! let maps = Client::new(Config::new(server.url())?)?.api::<ConfigMap>().namespaced("default");
//!
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("prices".to_owned());
//! let created = maps.create(&PostParams::default(), &map).await?;
//! assert!(maps.create(&PostParams::default(), &map).await.is_err_and(|error| error.is_already_exists()));
//!
//! let apple = Patch::Merge(json!({"data": {"apple": "12"}}));
//! let patched = maps.patch("prices", &PatchParams::default(), &apple).await?;
//! assert_eq!(patched.data.unwrap_or_default()["apple"], "12");
//! assert!(maps.replace("prices", &PostParams::default(), &created).await.is_err_and(|error| error.is_conflict()));
//! assert_eq!(maps.list(&ListParams::default().fields("metadata.name=prices")).await?.items.len(), 1);
//!
//! maps.delete("prices", &DeleteParams::default()).await?;
//! maps.until("prices", conditions::absent(), Duration::from_secs(5)).await?;
//! assert!(maps.get_opt("prices").await?.is_none());
//! # Ok(()) }
//! ```

use std::any::TypeId;
use std::marker::PhantomData;

use kube_core::discovery::{self, ApiResource};
use kube_core::params::ValidationDirective;
use kube_core::{DynamicObject, NamespaceResourceScope, NamespaceScope, PartialObjectMeta, Resource};

use super::client::Client;
use super::scope::Scope;

pub mod conditions;
mod entry;
mod exchange;
mod kinds;
/// Pure decisions.
mod machine {
    pub(crate) mod pager;
    pub(crate) mod resume;
}
mod pages;
pub(crate) mod retry;
mod streams;
mod subresources;
mod until;
mod verbs;
mod watch;

pub use entry::{CommitError, Entry, OccupiedEntry, VacantEntry};
pub use informer_core::backoff::BackoffPolicy;
pub use k8s_openapi::api::autoscaling::v1::Scale;
pub use kube_core::params::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
    ValidationDirective as FieldValidation, VersionMatch, WatchParams,
};
pub use kube_core::subresource::{AttachParams, LogParams};
pub use kube_core::{ObjectList, WatchEvent};
pub use machine::pager::WhenExpired;
pub use pages::{Items, Pages};
pub use retry::ConflictPolicy;
pub use until::{LastSeen, UntilError, Verdict};
pub use verbs::Deleted;
pub use watch::Watch;

/// The objects of the kind `K`, in all namespaces or in one.
///
/// Made by [`Client::api`] and [`Client::dynamic_api`]; cheap to clone. Its verbs are futures that wait for
/// the server and block no thread, in any async runtime. Each fails with [`Error`](super::Error). The
/// signatures are those of kube-rs's `Api`, so code moves over by a change of its imports.
///
/// ```no_run
/// use actix_informer::client::api::{DeleteParams, ListParams, PostParams};
/// use actix_informer::prelude::*;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// async fn demo(client: &Client) -> Result<(), actix_informer::Error> {
///     let maps = client.api::<ConfigMap>().namespaced("shop");
///     let mut map = ConfigMap::default();
///     map.metadata.name = Some("prices".to_owned());
///     map.data = Some([("apple".to_owned(), "12".to_owned())].into());
///     let created = maps.create(&PostParams::default(), &map).await?;
///     println!("version {:?}", created.metadata.resource_version);
///     println!("{} maps", maps.list(&ListParams::default()).await?.items.len());
///     maps.delete("prices", &DeleteParams::default()).await?;
///     Ok(())
/// }
/// ```
///
/// A cluster-scoped kind has no namespaces, so this does not compile:
///
/// ```compile_fail,E0277
/// # fn demo(client: actix_informer::client::Client) {
/// let nodes = client.api::<k8s_openapi::api::core::v1::Node>().namespaced("web");
/// # }
/// ```
#[must_use = "it sends nothing until one of its verbs is called"]
pub struct Api<K> {
    client: Client,
    scope: Scope,
    /// `None`: not known.
    is_namespaced: Option<bool>,
    field_validation: Option<ValidationDirective>,
    kind: PhantomData<fn() -> K>,
}

impl Client {
    /// The objects of a type known at compile time, in all namespaces: a type of `k8s-openapi`, or one that
    /// `kube-derive` made for a custom resource. Sends nothing.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # fn demo(client: Client) {
    /// let nodes = client.api::<k8s_openapi::api::core::v1::Node>();
    /// let pods = client.api::<k8s_openapi::api::core::v1::Pod>().namespaced("shop");
    /// # }
    /// ```
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        Api {
            client: self.clone(),
            scope: Scope::new(ApiResource::erase::<K>(&())),
            is_namespaced: Some(TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>()),
            field_validation: None,
            kind: PhantomData,
        }
    }

    /// The objects of a kind known only at run time, in all namespaces. Sends nothing.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # fn demo(client: Client) {
    /// use actix_informer::kube_core::discovery::ApiResource;
    /// use actix_informer::kube_core::gvk::GroupVersionKind;
    ///
    /// let websites = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Website"));
    /// let websites = client.dynamic_api(&websites).namespaced("shop");
    /// # }
    /// ```
    pub fn dynamic_api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api {
            client: self.clone(),
            scope: Scope::new(resource.clone()),
            is_namespaced: None,
            field_validation: None,
            kind: PhantomData,
        }
    }
}

impl<K> Api<K> {
    /// The objects of this namespace.
    ///
    /// Does not compile for a cluster-scoped kind. For a kind known only at run time: if the kind is one of
    /// Kubernetes' own, each verb fails with [`Error::ClusterScoped`](super::Error::ClusterScoped) before any
    /// request. Otherwise only the server knows: it answers 404, and
    /// [`Error::Refused`](super::Error::Refused) names the path.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn demo(client: Client) {
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// assert_eq!(maps.namespace(), Some("shop"));
    /// # }
    /// ```
    pub fn namespaced(mut self, namespace: impl Into<String>) -> Self
    where
        K: Resource<Scope: NamespaceScope>,
    {
        self.scope.namespace = Some(namespace.into());
        self
    }

    /// The objects of the default namespace of the client's configuration: that of the kubeconfig's context,
    /// or of the pod; else `default`.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn demo(client: Client) {
    /// let maps = client.api::<ConfigMap>().default_namespaced();
    /// assert_eq!(maps.namespace(), Some(client.default_namespace()));
    /// # }
    /// ```
    pub fn default_namespaced(self) -> Self
    where
        K: Resource<Scope: NamespaceScope>,
    {
        let namespace = self.client.default_namespace().to_owned();
        self.namespaced(namespace)
    }

    /// Sets whether the objects of this kind are in namespaces, as discovery reports it: for kinds that are
    /// known only at run time. A verb that lacks a required namespace, or has one that the kind does not
    /// have, then fails before any request.
    pub fn discovered(mut self, scope: &discovery::Scope) -> Self
    where
        K: Resource<DynamicType = ApiResource>,
    {
        self.scope.is_cluster_scoped = matches!(scope, discovery::Scope::Cluster);
        self.is_namespaced = Some(!self.scope.is_cluster_scoped);
        self
    }

    /// The objects of all namespaces, which is the default.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn demo(client: Client) {
    /// let shop = client.api::<ConfigMap>().namespaced("shop");
    /// let everywhere = shop.clone().all_namespaces();
    /// assert_eq!((shop.namespace(), everywhere.namespace()), (Some("shop"), None));
    /// # }
    /// ```
    pub fn all_namespaces(mut self) -> Self {
        self.scope.namespace = None;
        self
    }

    /// The objects of the namespace that an object is in; all of them for an object without one.
    #[doc(hidden)]
    pub fn in_namespace(mut self, namespace: Option<&str>) -> Self {
        self.scope.namespace = namespace.map(str::to_owned);
        self
    }

    /// Only the metadata of the same objects: the server sends nothing else, and this process decodes nothing
    /// else.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use k8s_openapi::api::core::v1::Secret;
    ///
    /// let secrets = client.api::<Secret>().namespaced("shop").metadata();
    /// for secret in secrets.list(&Default::default()).await? {
    ///     println!("{:?}", secret.metadata.labels); // the values were never sent
    /// }
    /// # Ok(()) }
    /// ```
    pub fn metadata(self) -> Api<PartialObjectMeta<K>> {
        Api {
            client: self.client,
            scope: self.scope,
            is_namespaced: self.is_namespaced,
            field_validation: self.field_validation,
            kind: PhantomData,
        }
    }

    /// What the server does about unknown or duplicate fields in every later write: refuse the write, warn,
    /// or ignore them. Default: it warns. The parameters of a single patch take precedence.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # fn demo(client: Client) {
    /// use actix_informer::client::api::FieldValidation;
    ///
    /// let pods = client.api::<k8s_openapi::api::core::v1::Pod>().field_validation(FieldValidation::Strict);
    /// # }
    /// ```
    pub fn field_validation(mut self, directive: ValidationDirective) -> Self {
        self.field_validation = Some(directive);
        self
    }

    /// The namespace, if it is limited to one.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn demo(client: Client) {
    /// assert_eq!(client.api::<ConfigMap>().namespace(), None);
    /// # }
    /// ```
    pub fn namespace(&self) -> Option<&str> {
        self.scope.namespace.as_deref()
    }

    /// The name of the resource: `pods`, `deployments.apps`.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # fn demo(client: Client) {
    /// assert_eq!(client.api::<Deployment>().resource_name(), "deployments.apps");
    /// # }
    /// ```
    pub fn resource_name(&self) -> String {
        self.scope.name()
    }

    /// The client that sends its requests.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn demo(client: Client) {
    /// let maps = client.api::<ConfigMap>();
    /// let of_the_same_server = maps.client().api::<ConfigMap>().namespaced("shop");
    /// # drop(of_the_same_server);
    /// # }
    /// ```
    pub fn client(&self) -> &Client {
        &self.client
    }
}

informer_core::clone_of!([K] Api<K> { client, scope, is_namespaced, field_validation, kind });

informer_core::debug_as!([K] Api<K>, self,
    client = self.client,
    resource = self.scope.name(),
    namespace = self.scope.namespace
);
