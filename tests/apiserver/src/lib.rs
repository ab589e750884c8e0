//! An in-memory Kubernetes API server for tests: faithful in resource versions, watches and errors, over real HTTP.
//!
//! It replaces a cluster where a program needs only the API: operators, controllers, informers, kubectl. Nothing has
//! to be installed, a server starts in milliseconds, every test has its own, and it can be broken on request.
//!
//! # Testing an operator
//!
//! Give the operator the server's kubeconfig (or URL and token), act as the cluster's users through the handle, and
//! assert on what the operator wrote. Nothing in the operator knows that there is no cluster.
//!
//! ```
//! use std::io::{Read as _, Write as _};
//!
//! use informer_apiserver::ApiServer;
//! use serde_json::{Value, json};
//!
//! /// The operator under test: it labels every config map. Yours would use a client library on `server.kubeconfig()`.
//! fn reconcile(server: std::net::SocketAddr) -> std::io::Result<()> {
//!     let ask = |head: &str, body: &str| {
//!         let mut socket = std::net::TcpStream::connect(server)?;
//!         let length = body.len();
//!         write!(socket, "{head}\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")?;
//!         let mut answer = String::new();
//!         socket.read_to_string(&mut answer)?;
//!         Ok::<_, std::io::Error>(answer)
//!     };
//!     let maps = "/api/v1/namespaces/default/configmaps";
//!     let list = ask(&format!("GET {maps} HTTP/1.1"), "")?;
//!     let list: Value = serde_json::from_str(list.rsplit("\r\n\r\n").next().unwrap_or_default())?;
//!     for map in list["items"].as_array().into_iter().flatten() {
//!         let name = map["metadata"]["name"].as_str().unwrap_or_default();
//!         let patch = r#"{"metadata": {"labels": {"seen": "true"}}}"#;
//!         ask(&format!("PATCH {maps}/{name} HTTP/1.1\r\nContent-Type: application/merge-patch+json"), patch)?;
//!     }
//!     Ok(())
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::builder().seed(1).start_blocking()?;
//! server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))?;
//! reconcile(server.addr())?;
//! assert_eq!(server.get("configmaps", "default", "a")?["metadata"]["labels"]["seen"], "true");
//!
//! // Does it bear an outage? This list is refused, the next one is not.
//! server.faults().of("configmaps").fail_next(1, 503);
//! server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}))?;
//! reconcile(server.addr())?;
//! assert!(server.get("configmaps", "default", "b")?["metadata"]["labels"].is_null());
//! reconcile(server.addr())?;
//! assert_eq!(server.get("configmaps", "default", "b")?["metadata"]["labels"]["seen"], "true");
//!
//! // The outage was met, and what else did it ask?
//! assert_eq!(server.faults().total_count(), 1);
//! assert_eq!(server.requests().iter().filter(|request| request.verb == "list").count(), 3);
//! # Ok(())
//! # }
//! ```
//!
//! # Where to go from here
//!
//! - [`ApiServer`]: the handle. Direct calls go through the rules of the API and are seen by every watch.
//! - [`Builder`]: port, credentials, TLS, bounds, seed, latency.
//! - [`Faults`]: the outages that users of real clusters have seen, for one resource or all.
//! - [`Chaos`]: faults drawn from a seed. A failing run is repeated by its seed.
//! - [`Clock`]: the server's own. Move it to let leases, bookmarks and watch timeouts come due at once.
//! - [`Agent`]: what runs in the containers of pods: logs, commands, ports. [`Kubelet`] puts it behind a real API server.
//! - [`Builder::in_process`] and [`ApiServer::service`]: no socket and no thread; the clock is that of a tokio runtime, so
//!   that a simulation on a paused clock includes its server.
//!
//! Any other server has threads of its own, so it may be started in any runtime, also one whose clock is paused, and
//! blocks none. It listens on loopback only. Dropping the handle ends it.
//!
//! Inside, `cluster` decides (pure) and `http` translates; `world` is the one lock between them. README.md lists which
//! behaviours of a real server are there, and how they are compared with a real one.
mod access;
mod agent;
mod builder;
mod chaos;
mod clock;
mod cluster;
mod door;
mod fault_state;
mod faults;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http;
mod in_process;
mod kubeconfig;
mod kubelet;
mod outages;
mod protobuf;
mod requests;
mod serve;
mod server;
mod tls;
mod world;

pub use access::user::User;
pub use agent::{Agent, Container, Heard, Io};
pub use builder::Builder;
pub use chaos::Chaos;
pub use clock::Clock;
pub use cluster::status::ApiError;
pub use faults::{ErrorBody, FaultCount, FaultError, Faults};
pub use kubeconfig::Credential;
pub use kubelet::Kubelet;
pub use requests::Request;
pub use serve::StartError;
pub use server::{ApiServer, Backup};
