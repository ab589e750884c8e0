//! The Kubernetes API client: configuration, connections, and sources for informers.
//!
//! Answers "how does this process speak with an API server?" It caches nothing and retries almost nothing: what to
//! ask next is decided by the reflector. Invariants:
//! 1. A [`Client`] is a checked configuration, cheap to clone and usable from any thread; connections belong to the
//!    thread that uses them and are made there.
//! 2. Nothing outside `transport/awc` knows which HTTP client is used.
//! 3. No answer that is cut off is ever taken for a whole one.
//!
//! Read next: `resource.rs` for how a source is described, `list_watch.rs` for what it does.

#[expect(
    clippy::module_inception,
    reason = "the handle is the module's main type, and its file is named for it"
)]
mod client;
mod config;

mod credentials;
mod endpoint;
mod error;
pub mod frames;
mod list_watch;
mod resource;
mod scope;
pub mod status;
mod tls;
pub mod transport;
mod whole;
mod worker;

pub use client::Client;
pub use config::Config;
pub use error::{Error, TransportError};
pub use list_watch::KubeListWatch;
pub use resource::ResourceSource;
