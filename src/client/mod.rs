//! The Kubernetes API client: configuration, connections, and sources for informers.
//!
//! Answers "how does this process communicate with an API server?" It caches nothing and retries almost nothing: the
//! reflector decides what to request next. Invariants:
//! 1. A [`Client`] is a checked configuration, cheap to clone and usable from any thread; connections belong to the
//!    thread that uses them and are made there.
//! 2. Only the files of `transport/` know which HTTP client is used.
//! 3. An answer that is cut off is never taken for a complete one.
//!
//! Read next: `resource.rs` for the description of a source, `list_watch.rs` for its requests, `api.rs` for reads and
//! writes.

pub mod api;
mod backend;
mod body;
mod body_channel;
#[expect(
    clippy::module_inception,
    reason = "the handle is the module's main type, and its file is named for it"
)]
mod client;
mod cluster_scoped;
mod config;
mod connection_settings;
mod credentials;
pub mod discovery;
mod endpoint;
mod environment;
pub(crate) mod error;
mod identity;
mod informer_key;
mod layers;
#[cfg_attr(not(feature = "unstable"), allow(unreachable_pub))]
pub(crate) mod list_watch;
mod namespaces;
mod negotiation;
mod once_in_a_while;
mod proxy;
#[cfg_attr(not(feature = "unstable"), allow(unreachable_pub))]
pub(crate) mod request;
mod resource;
mod retry_after;
pub(crate) mod scope;
pub(crate) mod selector;
pub mod streams;
mod tls;
#[cfg_attr(not(feature = "unstable"), allow(unreachable_pub))]
pub(crate) mod transport;
mod warning;
mod way;
pub(crate) mod worker;

pub use api::Api;
pub use client::Client;
pub use config::Config;
pub use discovery::{Discovery, DiscoveryError, NamedResource};
pub use error::{Error, OidcError, PluginError, ProxyError, Refused, TransportError};
pub use identity::exec::PluginPolicy;
#[cfg(feature = "unstable")]
pub(crate) use identity::exec::parse as plugin_answer;
pub use informer_key::InformerKey;
pub use kube_core::response::Status;
pub(crate) use layers::SendGuard;
pub(crate) use namespaces::Sources;
#[cfg(feature = "unstable")]
pub(crate) use proxy::environment::proxy_of as proxy_of_environment;
pub use request::RequestOptions;
pub(crate) use resource::OutsideKey;
pub use resource::ResourceSource;
#[cfg(feature = "service")]
pub(crate) use resource::{FindResource, FoundResource};
pub use warning::Warning;
pub use worker::BodyStream;
