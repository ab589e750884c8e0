//! What scenarios ask of a server over HTTP: pods written one by one or by the thousand, and the server's own list.
//!
//! Answers "how does a scenario change the cluster, and what does the server itself list?" It goes through
//! `Client::request`, so the same bytes reach both servers. Every function but `try_...` panics when the server
//! refuses: a scenario that cannot write proves nothing.

use std::collections::BTreeMap;

use actix_informer::client::{Client, Error};
use actix_informer::prelude::*;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

/// How many requests of a bulk are open at once, each on a connection.
const AT_ONCE: usize = 16;

/// What a server holds: by key, the uid and version.
pub(crate) type Listing = BTreeMap<ObjectKey, (Uid, ResourceVersion)>;

/// The content type of a JSON merge patch.
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// Writes and lists as the administrator.
#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
}

#[derive(Deserialize)]
struct Listed {
    metadata: ListMetadata,
    items: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

#[derive(Deserialize)]
struct Written {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: Option<String>,
    name: String,
    uid: String,
    resource_version: String,
}

impl Api {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.post("/api/v1/namespaces", &namespace).await;
    }

    /// Creates a pod, and returns its version.
    pub(crate) async fn create(&self, namespace: &str, name: &str) -> ResourceVersion {
        version(&self.post(&pods(namespace), &pod(name)).await)
    }

    /// Creates a pod whose name the server generates.
    pub(crate) async fn create_some(&self, namespace: &str) {
        let mut pod = pod("");
        pod["metadata"] = json!({"generateName": "some-"});
        self.post(&pods(namespace), &pod).await;
    }

    /// Creates pods `pod-00000` and so on, several at once.
    pub(crate) async fn create_many(&self, namespace: &str, count: usize) {
        let names = (0..count).map(|n| format!("pod-{n:05}"));
        let created = names.map(|name| async move { self.create(namespace, &name).await });
        stream::iter(created).buffer_unordered(AT_ONCE).count().await;
    }

    /// Sets the label `app`, and returns the version.
    pub(crate) async fn label(&self, namespace: &str, name: &str, app: &str) -> ResourceVersion {
        let patch = json!({"metadata": {"labels": {"app": app}}}).to_string().into_bytes();
        let path = format!("{}/{name}", pods(namespace));
        let body = Some((MERGE_PATCH, patch));
        version(&self.ask(Method::PATCH, &path, body).await)
    }

    pub(crate) async fn delete(&self, namespace: &str, name: &str) {
        self.ask(Method::DELETE, &format!("{}/{name}", pods(namespace)), None).await;
    }

    /// Creates any object, and returns the answer's body.
    pub(crate) async fn post(&self, path: &str, object: &Value) -> Bytes {
        let body = Some(("application/json", object.to_string().into_bytes()));
        self.ask(Method::POST, path, body).await
    }

    /// The same, `None` if the server does not take the object yet: it does not serve the path, or still deletes what
    /// had this name.
    pub(crate) async fn try_post(&self, path: &str, object: &Value) -> Option<Bytes> {
        let body = Some(("application/json", object.to_string().into_bytes()));
        match self.client.request(Method::POST, path, body).await {
            Ok(answer) => Some(answer.into_body()),
            Err(Error::Refused(status)) if matches!(status.code, 404 | 405 | 409 | 429 | 503) => None,
            Err(error) => panic!("POST {path}: {error}"),
        }
    }

    /// The pods of these namespaces, as the server lists them now.
    pub(crate) async fn pods(&self, namespaces: &[&str]) -> Listing {
        let mut all = Listing::new();
        for namespace in namespaces {
            all.extend(self.list(&pods(namespace)).await);
        }
        all
    }

    /// What a list at the newest version holds.
    pub(crate) async fn list(&self, path: &str) -> Listing {
        let body = self.ask(Method::GET, path, None).await;
        let listed: Listed = serde_json::from_slice(&body).expect("a list");
        listed.items.into_iter().map(|written| written.metadata.entry()).collect()
    }

    /// The newest version of the server.
    pub(crate) async fn version(&self) -> ResourceVersion {
        let body = self.ask(Method::GET, "/api/v1/namespaces/default/pods?limit=1", None).await;
        let listed: Listed = serde_json::from_slice(&body).expect("a list");
        listed.metadata.resource_version.parse().expect("a version")
    }

    /// Any request, whatever its result.
    pub(crate) async fn try_ask(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Bytes, Error> {
        Ok(self.client.request(method, path, body).await?.into_body())
    }

    async fn ask(&self, method: Method, path: &str, body: Option<(&str, Vec<u8>)>) -> Bytes {
        let answer = self.try_ask(method.clone(), path, body).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }
}

impl Metadata {
    fn entry(self) -> (ObjectKey, (Uid, ResourceVersion)) {
        let key = match self.namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, self.name),
            None => ObjectKey::cluster(self.name),
        };
        (key, (Uid::new(&self.uid).expect("a uid"), self.resource_version.parse().expect("a version")))
    }
}

/// The path of a namespace's pods.
pub(crate) fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

/// A small pod.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "first"}},
        "spec": {"containers": [{"name": "main", "image": "example.org/image:1"}]},
    })
}

fn version(body: &[u8]) -> ResourceVersion {
    let written: Written = serde_json::from_slice(body).expect("an object");
    written.metadata.resource_version.parse().expect("a version")
}
