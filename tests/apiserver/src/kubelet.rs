//! A fake kubelet: the agent over HTTPS under a kubelet's own paths, for a real kube-apiserver.
//!
//! Answers: how do logs and commands of a test's containers get behind a real API server? It asks the node's kubelet,
//! and this is one.
//! 1. It listens on loopback, with a certificate that a kube-apiserver without `--kubelet-certificate-authority` takes.
//! 2. It asks nobody for credentials.
//! 3. Dropping it stops it and joins its thread.
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};

use crate::agent::{Agent, LogOptions};
use crate::clock::Clock;
use crate::cluster::encoding::Encoding;
use crate::cluster::options::value;
use crate::cluster::status::ApiError;
use crate::http::{pod_streams, respond};
use crate::serve::{StartError, bind, listen};
use crate::tls::Tls;

/// A running fake kubelet.
///
/// ```no_run
/// use informer_apiserver::Kubelet;
/// use serde_json::json;
///
/// let kubelet = Kubelet::start()?;
/// kubelet.agent().container("default", "web", "main").log("hello");
/// // The status of a node that the API server shall ask here, and the pods bound to it.
/// let node = json!({
///     "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
///     "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.addr().port()}},
///     "declaredFeatures": ["ExtendWebSocketsToKubelet"],
/// });
/// # drop(node);
/// # Ok::<(), informer_apiserver::StartError>(())
/// ```
#[derive(Debug)]
pub struct Kubelet {
    agent: Agent,
    addr: SocketAddr,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Kubelet {
    /// Starts to listen on a free port of loopback. Blocks for milliseconds.
    ///
    /// # Errors
    /// If no port, thread or certificate can be had.
    pub fn start() -> Result<Self, StartError> {
        let tls = Tls::new().map_err(StartError::Certificates)?;
        let listener = bind(0).and_then(listen).map_err(|source| StartError::Bind { port: 0, source })?;
        let addr = listener.local_addr().map_err(|source| StartError::Bind { port: 0, source })?;
        let agent = Agent::new(Clock::real());
        let (data, (ready, started)) = (web::Data::new(agent.clone()), mpsc::channel());
        let thread = std::thread::Builder::new()
            .name(format!("kubelet-{}", addr.port()))
            .spawn(move || {
                actix_web::rt::System::new().block_on(async move {
                    let app = move || App::new().app_data(data.clone()).default_service(web::to(handle));
                    let server = HttpServer::new(app).workers(1).disable_signals();
                    match server.listen_rustls_0_23(listener, tls.config) {
                        Ok(server) => {
                            let server = server.run();
                            // The starter waits for this message, so it still exists.
                            let _told = ready.send(Ok(server.handle()));
                            let _ended = server.await;
                        }
                        Err(error) => drop(ready.send(Err(error))),
                    }
                });
            })
            .map_err(StartError::Thread)?;
        let gone = |_| StartError::Thread(std::io::ErrorKind::BrokenPipe.into());
        let handle = started.recv().map_err(gone)?.map_err(StartError::Thread)?;
        Ok(Self { agent, addr, handle, thread: Some(thread) })
    }

    /// What runs in the containers of its pods.
    #[must_use]
    pub fn agent(&self) -> Agent {
        self.agent.clone()
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        // The join waits for the same end as this future.
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

async fn handle(request: HttpRequest, payload: web::Payload, agent: web::Data<Agent>) -> HttpResponse {
    let query = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let query = query.map(web::Query::into_inner).unwrap_or_default();
    let path = request.path().to_owned();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let key =
        |namespace: &str, pod: &str, name: &str| (namespace.to_owned(), pod.to_owned(), name.to_owned());
    let answer = match parts.as_slice() {
        ["containerLogs", namespace, pod, name] => LogOptions::parse(&query, pod)
            .and_then(|options| pod_streams::log(&agent, &key(namespace, pod, name), options)),
        ["exec", ..] => {
            let (words, is_terminal) = pod_streams::command(&query);
            pod_streams::run(&agent, request.headers(), payload, words, is_terminal)
        }
        ["attach", ..] => {
            let (_, is_terminal) = pod_streams::command(&query);
            let words = vec!["cat".to_owned()];
            pod_streams::run(&agent, request.headers(), payload, words, is_terminal)
        }
        ["portForward", _, pod] => {
            let ports = value(&query, "port").to_owned();
            pod_streams::ports(&agent, request.headers(), payload, pod, &ports)
        }
        _ => Err(ApiError::no_such_path()),
    };
    answer.unwrap_or_else(|error| respond::refusal(&error, true, Encoding::Json))
}
