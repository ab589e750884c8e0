//! An in-memory Kubernetes API server for tests: faithful in resource versions, watches and errors, over real HTTP.
//!
//! ```
//! use informer_apiserver::ApiServer;
//! use serde_json::json;
//!
//! let server = ApiServer::builder().start_blocking()?;
//! server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))?;
//! assert_eq!(server.list("configmaps")?.len(), 1);
//! println!("{}", server.kubeconfig());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Start at `ApiServer`; break it with `Faults`. Inside, `cluster` is the pure half and `http` the thin one;
//! `world` is the one lock between them. README.md tells which behaviours of a real server are there.
mod access;
mod admin;
mod builder;
mod chaos;
mod clock;
mod cluster;
mod door;
mod fault;
mod fault_state;
mod faults;
mod http;
mod kubeconfig;
mod metrics;
mod outages;
mod persistence;
mod protobuf;
mod requests;
mod serve;
mod server;
mod tls;
mod world;
mod yaml;

pub use access::user::User;
#[cfg(feature = "cli")]
pub use admin::ADMIN_PORT;
pub use builder::{Builder, StartError};
pub use chaos::Chaos;
pub use clock::Clock;
pub use cluster::status::ApiError;
pub use fault::Fault;
pub use faults::{ErrorBody, FaultError, Faults};
pub use kubeconfig::Credential;
pub use requests::Request;
pub use server::{ApiServer, Backup};
