//! A real kube-apiserver and etcd for tests: started on loopback, reached over TLS, and broken on request.
//!
//! It answers one question: how does a test get a control plane of its own, and bring it into the states that are hard
//! for informers? It builds nothing (`build.sh` does), speaks no Kubernetes API beyond readiness, and is never
//! published.
//! 1. Everything listens on 127.0.0.1 and lives in one temporary directory.
//! 2. No process outlasts its [`ControlPlane`], nor a test process that is killed.
//! 3. Stopping and starting keeps addresses, certificates, tokens and data.
//!
//! Every call blocks, some for seconds: in async code use `spawn_blocking`, or a runtime that may block meanwhile.
//! Unix only. Reading order: [`Binaries`], [`Builder`], [`ControlPlane`], `process`, `identity`, `http`.
//!
//! ```no_run
//! use informer_control_plane::{Binaries, ControlPlane};
//!
//! fn a_restart_expires_old_watches() {
//!     let Some(binaries) = Binaries::find_or_skip() else { return };
//!     let plane = ControlPlane::builder(binaries).with_client_ca().start().unwrap();
//!     // ... list and watch at plane.url(), with plane.ca_pem() and plane.admin_token() ...
//!     plane.restart_apiserver().unwrap();
//! }
//! ```

mod binaries;
mod builder;
mod control_plane;
mod error;
mod etcd;
mod http;
mod identity;
mod kubeconfig;
mod ports;
mod process;
mod wait;

pub use binaries::{Binaries, Skipped};
pub use builder::Builder;
pub use control_plane::ControlPlane;
pub use error::{Error, StartError};
pub use etcd::EtcdBackup;
pub use identity::{ClientCertificate, ServingCertificate};
