//! Subresources of one kind only: of pods, service accounts and certificate signing requests.

use std::fmt;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod, ServiceAccount};
use kube_core::ObjectMeta;
use kube_core::params::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::response::Status;
use serde::Serialize;
use serde_json::json;

use super::Api;
use crate::error::Error;

impl Api<Pod> {
    /// Deletes a pod if its disruption budgets allow it.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// use actix_informer::client::api::{DeleteParams, PostParams};
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// match pods.evict("web", &DeleteParams::default(), &PostParams::default()).await {
    ///     Err(error) if error.refused().is_some_and(|refused| refused.code == 429) => println!("not now"),
    ///     evicted => drop(evicted?),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] with code 429 when a budget does not allow it now.
    pub async fn evict(
        &self,
        name: &str,
        delete: &DeleteParams,
        params: &PostParams,
    ) -> Result<Status, Error> {
        // kube-core's own request names the options as no server reads them (5.0.0: delete_options).
        let mut eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self.namespace()},
        });
        let options = serde_json::to_value(delete).map_err(|error| Error::Request(error.to_string()))?;
        if options.as_object().is_some_and(|options| !options.is_empty()) {
            eviction["deleteOptions"] = options;
        }
        self.create_subresource("eviction", name, params, &eviction).await
    }

    /// Binds a pod to a node, as a scheduler does.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// pods.bind("web", "node-1", &PostParams::default()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_conflict`](Error::is_conflict) when it is bound already.
    pub async fn bind(&self, name: &str, node: &str, params: &PostParams) -> Result<Status, Error> {
        let target = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        };
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        self.create_subresource("binding", name, params, &Binding { metadata, target }).await
    }

    /// Adds ephemeral containers to a running pod, by a strategic merge patch of `spec.ephemeralContainers`.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// use actix_informer::client::api::{Patch, PatchParams};
    /// use serde_json::json;
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let debugger = json!({"name": "debug", "image": "busybox", "targetContainerName": "main"});
    /// let debugger = Patch::Strategic(json!({"spec": {"ephemeralContainers": [debugger]}}));
    /// pods.patch_ephemeral_containers("web", &PatchParams::default(), &debugger).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn patch_ephemeral_containers<P: Serialize + fmt::Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Pod, Error> {
        self.patch_subresource("ephemeralcontainers", name, params, patch).await
    }

    /// Replaces the ephemeral containers of a pod with those of `pod`; existing ones must be among them.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let mut web = pods.get("web").await?;
    /// let containers = web.spec.get_or_insert_default().ephemeral_containers.get_or_insert_default();
    /// containers.push(Default::default()); // with name and image
    /// pods.replace_ephemeral_containers("web", &PostParams::default(), &web).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub async fn replace_ephemeral_containers(
        &self,
        name: &str,
        params: &PostParams,
        pod: &Pod,
    ) -> Result<Pod, Error> {
        self.replace_subresource("ephemeralcontainers", name, params, pod).await
    }

    /// Changes requests and limits of running containers.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use serde_json::json;
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let main = json!({"name": "main", "resources": {"requests": {"cpu": "2"}}});
    /// let larger = Patch::Strategic(json!({"spec": {"containers": [main]}}));
    /// pods.patch_resize("web", &PatchParams::default(), &larger).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn patch_resize<P: Serialize + fmt::Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Pod, Error> {
        self.patch_subresource("resize", name, params, patch).await
    }
}

impl Api<ServiceAccount> {
    /// Issues a token for a service account, with the audiences and the lifetime of `request.spec`.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::PostParams;
    /// use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
    /// use k8s_openapi::api::core::v1::ServiceAccount;
    ///
    /// let accounts = client.api::<ServiceAccount>().namespaced("shop");
    /// let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
    /// let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    /// let issued = accounts.create_token("cart", &PostParams::default(), &request).await?;
    /// println!("valid until {:?}", issued.status.map(|status| status.expiration_timestamp));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_invalid`](Error::is_invalid) for a lifetime below ten
    /// minutes.
    pub async fn create_token(
        &self,
        name: &str,
        params: &PostParams,
        request: &TokenRequest,
    ) -> Result<TokenRequest, Error> {
        self.create_subresource("token", name, params, request).await
    }
}

impl Api<CertificateSigningRequest> {
    /// Changes the approval of a request: its conditions `Approved` or `Denied`.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::{Patch, PatchParams};
    /// use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
    /// use serde_json::json;
    ///
    /// let requests = client.api::<CertificateSigningRequest>();
    /// let approved = json!({"type": "Approved", "status": "True", "reason": "Checked"});
    /// let approved = Patch::Merge(json!({"status": {"conditions": [approved]}}));
    /// requests.patch_approval("node-1", &PatchParams::default(), &approved).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn patch_approval<P: Serialize + fmt::Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<CertificateSigningRequest, Error> {
        self.patch_subresource("approval", name, params, patch).await
    }

    /// Replaces the approval of a request with that of this object.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let requests = client.api::<CertificateSigningRequest>();
    /// let request = requests.get("node-1").await?; // then change status.conditions
    /// requests.replace_approval("node-1", &PostParams::default(), &request).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub async fn replace_approval(
        &self,
        name: &str,
        params: &PostParams,
        request: &CertificateSigningRequest,
    ) -> Result<CertificateSigningRequest, Error> {
        self.replace_subresource("approval", name, params, request).await
    }
}
