//! Parts of an object with their own path: status, scale, and any other by its name.

use std::fmt;

use k8s_openapi::api::autoscaling::v1::Scale;
use kube_core::Resource;
use kube_core::params::{Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Api;
use super::exchange::encoded;
use crate::error::Error;
use crate::scope::segment;

impl<K: Resource> Api<K> {
    /// Gets a subresource of the object of this name, decoded as `T`.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// # use k8s_openapi::api::core::v1::ReplicationController;
    /// use actix_informer::client::api::Scale;
    ///
    /// let controllers = client.api::<ReplicationController>().namespaced("shop");
    /// let scale: Scale = controllers.get_subresource("scale", "web").await?;
    /// # drop(scale); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::get`]; 404 also when the kind does not have this subresource.
    pub async fn get_subresource<T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
    ) -> Result<T, Error> {
        segment("subresource", subresource)?;
        let (collection, name) = self.object(name)?;
        self.ask(collection.get_subresource(subresource, &name)).await
    }

    /// Posts a body to a subresource, and decodes the answer as `T`.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use serde_json::{Value, json};
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}});
    /// let answer: Value = pods.create_subresource("eviction", "web", &PostParams::default(), &eviction).await?;
    /// # drop(answer);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::create`] and [`Self::get_subresource`].
    pub async fn create_subresource<I: Serialize, T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
        params: &PostParams,
        body: &I,
    ) -> Result<T, Error> {
        segment("subresource", subresource)?;
        let (collection, name) = self.object(name)?;
        self.ask(collection.create_subresource(subresource, &name, params, encoded(body)?)).await
    }

    /// Changes a subresource by a patch of any sort.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::Scale;
    /// use serde_json::json;
    ///
    /// let deployments = client.api::<Deployment>().namespaced("shop");
    /// let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    /// let scale: Scale =
    ///     deployments.patch_subresource("scale", "web", &PatchParams::default(), &three).await?;
    /// # drop(scale);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::patch`] and [`Self::get_subresource`].
    pub async fn patch_subresource<P: Serialize + fmt::Debug, T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<T, Error> {
        segment("subresource", subresource)?;
        let (collection, name) = self.object(name)?;
        self.ask(collection.patch_subresource(subresource, &name, params, patch)).await
    }

    /// Replaces a subresource; with a `metadata.resourceVersion` only if nobody has changed it since.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::Scale;
    ///
    /// let deployments = client.api::<Deployment>().namespaced("shop");
    /// let mut scale: Scale = deployments.get_subresource("scale", "web").await?;
    /// scale.spec.get_or_insert_default().replicas = Some(3);
    /// let scale: Scale =
    ///     deployments.replace_subresource("scale", "web", &PostParams::default(), &scale).await?;
    /// # drop(scale);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::replace`] and [`Self::get_subresource`].
    pub async fn replace_subresource<I: Serialize, T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
        params: &PostParams,
        body: &I,
    ) -> Result<T, Error> {
        segment("subresource", subresource)?;
        let (collection, name) = self.object(name)?;
        self.ask(collection.replace_subresource(subresource, &name, params, encoded(body)?)).await
    }

    /// Gets the object by its status subresource.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let web = pods.get_status("web").await?;
    /// println!("{:?}", web.status);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_status(&self, name: &str) -> Result<K, Error>
    where
        K: DeserializeOwned,
    {
        self.get_named("status", name).await
    }

    /// Changes the status, and nothing else of the object.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// use actix_informer::client::api::{Patch, PatchParams};
    /// use serde_json::json;
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let failed = Patch::Merge(json!({"status": {"phase": "Failed", "reason": "Evicted"}}));
    /// pods.patch_status("web", &PatchParams::default(), &failed).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn patch_status<P: Serialize + fmt::Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error>
    where
        K: DeserializeOwned,
    {
        self.patch_named("status", name, params, patch).await
    }

    /// Replaces the status with that of this object, and nothing else of it.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let mut web = pods.get_status("web").await?;
    /// web.status.get_or_insert_default().reason = Some("Evicted".to_owned());
    /// pods.replace_status("web", &PostParams::default(), &web).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub async fn replace_status(&self, name: &str, params: &PostParams, object: &K) -> Result<K, Error>
    where
        K: DeserializeOwned + Serialize,
    {
        self.replace_named("status", name, params, object).await
    }

    /// Gets how many replicas there are and should be.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let deployments = client.api::<Deployment>().namespaced("shop");
    /// let scale = deployments.get_scale("web").await?;
    /// println!("{:?} replicas", scale.status.map(|status| status.replicas));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::get_subresource`].
    pub async fn get_scale(&self, name: &str) -> Result<Scale, Error> {
        self.get_named("scale", name).await
    }

    /// Changes how many replicas there should be.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use serde_json::json;
    ///
    /// let deployments = client.api::<Deployment>().namespaced("shop");
    /// let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    /// deployments.patch_scale("web", &PatchParams::default(), &three).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::patch_subresource`].
    pub async fn patch_scale<P: Serialize + fmt::Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Scale, Error> {
        self.patch_named("scale", name, params, patch).await
    }

    /// Replaces how many replicas there should be.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let deployments = client.api::<Deployment>().namespaced("shop");
    /// let mut scale = deployments.get_scale("web").await?;
    /// scale.spec.get_or_insert_default().replicas = Some(3);
    /// deployments.replace_scale("web", &PostParams::default(), &scale).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::replace_subresource`].
    pub async fn replace_scale(
        &self,
        name: &str,
        params: &PostParams,
        scale: &Scale,
    ) -> Result<Scale, Error> {
        self.replace_named("scale", name, params, scale).await
    }
}

impl<K: Resource> Api<K> {
    async fn get_named<T: Resource + DeserializeOwned>(
        &self,
        subresource: &'static str,
        name: &str,
    ) -> Result<T, Error> {
        let (collection, path) = self.object(name)?;
        let request = collection.get_subresource(subresource, &path);
        self.ask_for_object(request, (self.namespace(), name)).await
    }

    async fn patch_named<P: Serialize + fmt::Debug, T: Resource + DeserializeOwned>(
        &self,
        subresource: &'static str,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<T, Error> {
        let (collection, path) = self.object(name)?;
        let request = collection.patch_subresource(subresource, &path, params, patch);
        self.ask_for_object(request, (self.namespace(), name)).await
    }

    async fn replace_named<T: Resource + Serialize + DeserializeOwned>(
        &self,
        subresource: &'static str,
        name: &str,
        params: &PostParams,
        body: &T,
    ) -> Result<T, Error> {
        let (collection, path) = self.object(name)?;
        let request = collection.replace_subresource(subresource, &path, params, encoded(body)?);
        self.ask_for_object(request, (self.namespace(), name)).await
    }
}
