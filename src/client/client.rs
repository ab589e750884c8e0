//! The handle: a checked configuration from which sources and requests are made.
//!
//! Answers "how do I get a source, or send a single request?" Invariants:
//! 1. Cloning copies two pointers; a clone is as good as the original, on any thread.
//! 2. A single request may be sent from any async runtime: it is carried by a thread of the client's own, started at
//!    the first request and ended with the last clone.
//!
//! Read next: `resource.rs`, `worker.rs`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use kube_core::Resource;
use kube_core::discovery::ApiResource;

use super::config::Config;
use super::endpoint::Prepared;
use super::error::{Error, TransportError};
use super::resource::ResourceSource;
use super::scope::Scope;
use super::worker::Worker;
use crate::representation::{Dynamic, MetadataOnly, Typed};

/// Speaks with one API server. Cheap to clone, `Send` and `Sync`.
#[derive(Clone)]
pub struct Client {
    prepared: Arc<Prepared>,
    namespace: Arc<str>,
    worker: Arc<Worker>,
}

impl Client {
    /// Checks the configuration; connects to nothing yet.
    ///
    /// # Errors
    /// When a certificate, key, name or token cannot be used.
    pub fn new(config: Config) -> Result<Self, Error> {
        let prepared = Arc::new(Prepared::new(&config)?);
        let worker = Arc::new(Worker::new(Arc::clone(&prepared)));
        Ok(Self { prepared, namespace: config.default_namespace.into(), worker })
    }

    /// The namespace that is meant when none is named.
    pub fn default_namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of a type known at compile time, in all namespaces.
    pub fn resource<K>(&self) -> ResourceSource<Typed<K>>
    where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        let scope = Scope::new(ApiResource::erase::<K>(&()));
        ResourceSource::new(Arc::clone(&self.prepared), scope, Typed::new())
    }

    /// Objects of a kind known only at run time.
    pub fn dynamic(&self, resource: &ApiResource) -> ResourceSource<Dynamic> {
        ResourceSource::new(Arc::clone(&self.prepared), Scope::new(resource.clone()), Dynamic::new(resource))
    }

    /// Only the metadata of objects of a type.
    pub fn metadata<K>(&self) -> ResourceSource<MetadataOnly<K>>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        let scope = Scope::new(ApiResource::erase::<K>(&()));
        ResourceSource::new(Arc::clone(&self.prepared), scope, MetadataOnly::new())
    }

    /// Sends one request below the endpoint and waits for the whole answer. kube-core's `Request` makes such requests.
    ///
    /// Works in any async runtime. Nothing is sent twice but a GET whose pooled connection turned out to be dead.
    /// Dropping the future ends the request.
    ///
    /// # Errors
    /// [`Error::Refused`] for an answer that is no success, with the server's `Status`; otherwise what broke.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Bytes>, Error> {
        self.worker.carry(request.map(Bytes::from)).await
    }

    /// [`Self::send`] from its parts; `body` is (content type, bytes).
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn request(
        &self,
        method: Method,
        path_and_query: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Response<Bytes>, Error> {
        let mut request =
            Request::builder().method(method).uri(path_and_query).header(header::ACCEPT, "application/json");
        let bytes = match body {
            None => Vec::new(),
            Some((content_type, bytes)) => {
                request = request.header(header::CONTENT_TYPE, content_type);
                bytes
            }
        };
        let request = request.body(bytes).map_err(|error| TransportError::Request(error.to_string()))?;
        self.send(request).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.prepared.endpoint.authority).finish_non_exhaustive()
    }
}
