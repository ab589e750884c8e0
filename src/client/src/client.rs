//! The handle of an API server: a checked configuration that makes sources and sends single requests.
//!
//! A thread of the client sends single requests, so callers may be in any async runtime. A client in process,
//! or `carried_by` a `Runtime`, uses that runtime instead.

use std::sync::Arc;
#[cfg(feature = "testing")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
#[cfg(feature = "testing")]
use futures_util::Stream;
use http::{HeaderMap, Method, Request, Response, header};
use informer_actors::runtime::Runtime;
#[cfg(feature = "testing")]
use informer_actors::testing::RandomNumbers;
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, Resource};

use super::backend::Backend;
use super::config::Config;
use super::discovery::memory::Memory;
use super::error::{Error, TransportError};
use super::layers::{CallersSpan, ClientFigures, SendGuard};
use super::request::RequestKind;
use super::resource::ResourceSource;
use super::scope::Scope;
use super::transport::Connection;
#[cfg(feature = "testing")]
use super::transport::in_process::service;
#[cfg(feature = "kube")]
use super::transport::kube::KubeTransport;
use super::worker::{BodyStream, Worker};
use crate::representation::{ControllerOnly, Dynamic, MetadataOnly, Typed};

/// Communicates with one API server. Cheap to clone, `Send` and `Sync`.
#[derive(Clone)]
pub struct Client {
    backend: Arc<Backend>,
    namespace: Arc<str>,
    worker: Arc<Worker>,
    pub(super) known: Arc<Memory>,
    #[cfg(feature = "testing")]
    drawn: Option<Arc<Mutex<RandomNumbers>>>,
}

impl Client {
    /// Checks the configuration; connects to nothing yet.
    ///
    /// # Errors
    /// When a certificate, key, name or token cannot be used.
    pub fn new(config: Config) -> Result<Self, Error> {
        let backend = Backend::new(&config, Self::to_issuer)?;
        let worker = Arc::new(Worker::new(Arc::clone(&backend)));
        Ok(Self::of(backend, config.default_namespace.into(), worker))
    }

    /// A client over an existing client of kube-rs: informers and requests use its connections (HTTP/2 if it
    /// has it), its credentials and its tower layers. Connects to nothing yet.
    ///
    /// `runtime` is the tokio runtime in which the program uses that client, usually `Handle::current()` in
    /// `main`. Requests and bodies are polled there, so the connections live as long as the program's own
    /// requests need them, even if an informer's [`Runtime`](informer_actors::runtime::Runtime) ends. A body
    /// that is not read here is not read there either. The deadlines are those of every client of this crate.
    /// When that runtime has ended, each request fails.
    ///
    /// ```no_run
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # async fn demo(kube: kube_client::Client) -> Result<(), actix_informer::Error> {
    /// let client = Client::from_kube(kube.clone(), tokio::runtime::Handle::current());
    /// let runtime = Runtime::threads().start()?;
    /// let pods = client.resource::<Pod>().informer(&runtime)?.start()?;
    /// # drop(pods); Ok(()) }
    /// ```
    ///
    /// If `LeaderElection::guard` guards this client, the lease is checked until hyper hands a request to its
    /// connection. If that connection was closed before it took a byte, hyper hands the request over again
    /// without a check: a process that is paused at that moment may send one request after its lease has
    /// ended. Build the client of a leader without that retry. Then this crate sends a read again, after a
    /// check, and a write fails:
    ///
    /// ```no_run
    /// use kube_client::client::ConfigExt;
    /// use kube_client::{Client as KubeClient, Config as KubeConfig};
    /// use tower::{BoxError, ServiceBuilder};
    ///
    /// # async fn demo() -> Result<(), BoxError> {
    /// let config = KubeConfig::infer().await?;
    /// let hyper = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
    ///     .retry_canceled_requests(false)
    ///     .build(config.rustls_https_connector()?);
    /// let service = ServiceBuilder::new()
    ///     .layer(config.base_uri_layer())
    ///     .option_layer(config.auth_layer()?)
    ///     .map_err(BoxError::from)
    ///     .service(hyper);
    /// let kube = KubeClient::new(service, config.default_namespace);
    /// # drop(kube); Ok(()) }
    /// ```
    #[cfg(feature = "kube")]
    pub fn from_kube(client: kube_client::Client, runtime: tokio::runtime::Handle) -> Self {
        let namespace = client.default_namespace().into();
        let backend = Backend::kube(KubeTransport::new(client, runtime));
        let worker = Arc::new(Worker::new(Arc::clone(&backend)));
        Self::of(backend, namespace, worker)
    }

    /// The client of a server in this process, without a socket: `serve` is the server as a function from a
    /// request to its answer, for example `testing::ApiServer::service`. With a simulated `runtime`
    /// everything happens on the one thread of the simulation and on its paused clock: hours of watches,
    /// timeouts and retries take milliseconds, and every run is the same.
    ///
    /// `runtime` sends single requests, also those of tasks outside it. After its end they fail with
    /// [`Error::Stopped`]. The client does not keep the runtime alive.
    ///
    /// ```
    /// use actix_informer::prelude::*;
    /// use actix_informer::testing::ApiServer;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use std::time::Duration;
    ///
    /// Runtime::simulated(7).run(|runtime| async move {
    ///     let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await?;
    ///     let client = Client::in_process(&runtime, server.service());
    ///     let maps = client.resource::<ConfigMap>().informer(&runtime)?.start()?;
    ///     let map = br#"{"metadata": {"name": "a"}}"#.to_vec();
    ///     let path = "/api/v1/namespaces/default/configmaps";
    ///     client.request(actix_informer::http::Method::POST, path, Some(("application/json", map))).await?;
    ///     maps.synced_within(Duration::from_secs(60)).await?;
    ///     tokio::time::sleep(Duration::from_secs(3600)).await; // takes no time
    ///     assert_eq!(maps.lister().snapshot().len(), 1);
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "testing")]
    pub fn in_process<F, B>(
        runtime: &Runtime,
        serve: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = std::io::Result<Response<B>>> + 'static,
        B: Stream<Item = std::io::Result<Bytes>> + 'static,
    {
        let backend = Backend::in_process(service(serve));
        runtime.observe(backend.traffic());
        let worker = Arc::new(Worker::on(runtime, Arc::clone(&backend)));
        let drawn = Some(Arc::new(Mutex::new(runtime.random_numbers())));
        Self { drawn, ..Self::of(backend, "default".into(), worker) }
    }

    fn of(backend: Arc<Backend>, namespace: Arc<str>, worker: Arc<Worker>) -> Self {
        let known = Arc::default();
        #[cfg(feature = "testing")]
        return Self { backend, namespace, worker, known, drawn: None };
        #[cfg(not(feature = "testing"))]
        Self { backend, namespace, worker, known }
    }

    /// In [0, 1); `None` outside a simulation.
    #[cfg(feature = "testing")]
    pub(super) fn draw(&self) -> Option<f64> {
        let numbers = self.drawn.as_ref()?;
        Some(numbers.lock().unwrap_or_else(PoisonError::into_inner).draw())
    }

    #[cfg(not(feature = "testing"))]
    pub(super) fn draw(&self) -> Option<f64> {
        None
    }

    /// The same client, but `runtime` sends its single requests instead of a thread of the client. This saves
    /// one thread, and the waits of retries, [`Api::until`](super::Api::until) and hand-made watches follow
    /// that runtime's clock, which a simulation pauses. Informers are not affected: they run on their own
    /// runtime.
    ///
    /// Requests fail with [`Error::Stopped`] after the end of `runtime`, which the client does not keep
    /// alive.
    ///
    /// ```
    /// use actix_informer::prelude::*;
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let client = Client::new(Config::new("http://127.0.0.1:8080")?)?.carried_by(&runtime);
    /// # drop(client);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "the client that it is called on stays as it is"]
    pub fn carried_by(&self, runtime: &Runtime) -> Self {
        runtime.observe(self.backend.traffic());
        let worker = Arc::new(Worker::on(runtime, Arc::clone(&self.backend)));
        Self { worker, ..self.clone() }
    }

    /// The same client, whose requests are refused unless this guard lets them begin.
    #[doc(hidden)]
    pub fn guarded(&self, guard: impl SendGuard + 'static) -> Self {
        let backend = self.backend.guarded(Arc::new(guard));
        let worker = Arc::new(self.worker.by(Arc::clone(&backend)));
        Self { backend, worker, ..self.clone() }
    }

    /// What was counted of the requests of this client and all its clones. Takes a lock for some
    /// microseconds. A [`Runtime`]'s report and metrics have it, too, for the clients that it uses.
    ///
    /// ```
    /// use actix_informer::prelude::*;
    ///
    /// let client = Client::new(Config::new("http://127.0.0.1:8080")?)?;
    /// let refused: u64 = client.figures().requests.iter().filter(|row| row.code == Some(403)).map(|row| row.count).sum();
    /// assert_eq!(refused, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn figures(&self) -> ClientFigures {
        self.backend.traffic().figures()
    }

    #[doc(hidden)]
    pub fn backend(&self) -> Arc<Backend> {
        Arc::clone(&self.backend)
    }

    /// The namespace to use when none is named.
    pub fn default_namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of a type known at compile time, in all namespaces: a type of `k8s-openapi`, or one that
    /// `kube-derive` made for a custom resource.
    pub fn resource<K>(&self) -> ResourceSource<K>
    where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        let scope = Scope::new(ApiResource::erase::<K>(&()));
        ResourceSource::new(Arc::clone(&self.backend), scope, Typed::new())
    }

    /// Objects of a kind known only at run time.
    pub fn dynamic(&self, resource: &ApiResource) -> ResourceSource<DynamicObject, Dynamic> {
        ResourceSource::new(Arc::clone(&self.backend), Scope::new(resource.clone()), Dynamic::new(resource))
    }

    /// Only the metadata of objects of a type.
    pub fn metadata<K>(&self) -> ResourceSource<K, MetadataOnly<K>>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        let scope = Scope::new(ApiResource::erase::<K>(&()));
        ResourceSource::new(Arc::clone(&self.backend), scope, MetadataOnly::new())
    }

    /// Only which object controls each object of a type. A controller needs no more of objects that it owns
    /// and does not read. An object costs about 90 bytes besides its key, uid and version.
    ///
    /// ```no_run
    /// # use {actix_informer::prelude::*, k8s_openapi::api::apps::v1::{Deployment, ReplicaSet}};
    /// # fn demo(client: Client, runtime: Runtime, all: Informer<Deployment>) -> Result<(), actix_informer::Error> {
    /// let sets = client.controllers_of::<ReplicaSet>().informer(&runtime)?.start()?;
    /// let builder = Controller::builder(&all).owns(&sets);
    /// # Ok(()) }
    /// ```
    pub fn controllers_of<K>(&self) -> ResourceSource<K, ControllerOnly<K>>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        let scope = Scope::new(ApiResource::erase::<K>(&()));
        ResourceSource::new(Arc::clone(&self.backend), scope, ControllerOnly::new())
    }

    /// Sends one request below the endpoint and waits for the whole answer. kube-core's `Request` makes such
    /// requests.
    ///
    /// Works in any async runtime. The request waits for its turn if there are more than
    /// [`Config::max_in_flight`], and is sent again if the server has not handled it
    /// ([`Config::max_retries`]). With the default settings it may take long;
    /// [`RequestOptions::timeout`](super::RequestOptions::timeout) limits that. Dropping the future ends the
    /// request.
    ///
    /// # Errors
    /// [`Error::Refused`] for an answer without success, with the server's [`Status`](super::Status);
    /// otherwise what failed on the way.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Bytes>, Error> {
        let mut request = request.map(Bytes::from);
        CallersSpan::add_to(&mut request);
        self.worker.send(request).await
    }

    /// Sends one request and returns the answer as it arrives, for a followed log or a watch. Resolves when
    /// the head of the answer has arrived. The answer ends with an error when it lasts longer than `limit`.
    ///
    /// Works in any async runtime. Dropping the future or the body ends the request.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use futures_util::StreamExt;
    /// use std::time::Duration;
    ///
    /// let log = actix_informer::http::Request::get("/api/v1/namespaces/shop/pods/web/log?follow=true").body(Vec::new())?;
    /// let mut log = client.stream(log, Duration::MAX).await?.into_body();
    /// while let Some(chunk) = log.next().await {
    ///     print!("{}", String::from_utf8_lossy(&chunk?));
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn stream(
        &self,
        request: Request<Vec<u8>>,
        limit: Duration,
    ) -> Result<Response<BodyStream>, Error> {
        self.open(request, RequestKind::Stream { total: limit }).await
    }

    /// As [`Self::stream`], but also ends when the client's certificate is renewed.
    pub(crate) async fn watch(
        &self,
        request: Request<Vec<u8>>,
        limit: Duration,
    ) -> Result<Response<BodyStream>, Error> {
        self.open(request, RequestKind::Watch { total: limit }).await
    }

    async fn open(
        &self,
        request: Request<Vec<u8>>,
        kind: RequestKind,
    ) -> Result<Response<BodyStream>, Error> {
        let mut request = request.map(Bytes::from);
        CallersSpan::add_to(&mut request);
        self.worker.stream(request, kind).await
    }

    /// See [`Worker::upgrade`].
    pub(crate) async fn upgrade<T: Send + 'static, F: Future<Output = ()> + 'static>(
        &self,
        mut request: Request<Bytes>,
        serve: impl FnOnce(&HeaderMap, Connection) -> Result<(T, F), Error> + Send + 'static,
    ) -> Result<T, Error> {
        CallersSpan::add_to(&mut request);
        self.worker.upgrade(request, serve).await
    }

    pub(crate) fn worker(&self) -> Arc<Worker> {
        Arc::clone(&self.worker)
    }

    /// The caller's runtime may have no threads for it.
    #[cfg(feature = "disk-cache")]
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.worker.blocking(work).await
    }

    #[cfg(feature = "disk-cache")]
    pub(super) fn url(&self) -> Option<String> {
        self.backend.url()
    }

    /// Waits, also if the caller's runtime has no timer.
    #[doc(hidden)]
    pub async fn sleep(&self, time: Duration) -> Result<(), Error> {
        self.worker.sleep(time).await
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

informer_core::debug_as!(Client, self, endpoint = self.backend.name());
