//! The Kubernetes API client: configuration, connections, and sources for informers. Programs use it through
//! `actix-informer`.
//!
//! Connections belong to the thread that uses them. Only `transport/` knows which HTTP client is used. An
//! answer that is cut off is never taken for a complete one.
//!
//! Read next: `resource.rs` for sources, `list_watch.rs` for their requests, `api.rs` for reads and writes,
//! `wire.rs` for the form of objects.

pub mod api;
mod backend;
mod body;
mod client;
/// One informer of several clusters.
pub mod clusters {
    pub use crate::namespaces::InClusters;
}
mod config;
mod connection_settings;
mod credentials;
pub mod discovery;
mod endpoint;
mod environment;
mod error;
mod identity;
mod informer_key;
mod layers;
#[cfg_attr(not(feature = "unstable"), allow(unreachable_pub))]
mod list_watch;
mod namespaces;
pub mod object;
pub mod overlay;
mod proxy;
pub mod representation;
#[cfg_attr(not(feature = "unstable"), allow(unreachable_pub))]
mod request;
mod resource;
mod retry_after;
#[cfg(feature = "persist")]
mod saved;
mod scope;
pub mod select;
mod selector;
pub mod streams;
mod tls;
#[cfg_attr(not(feature = "unstable"), allow(unreachable_pub))]
mod transport;
#[cfg(feature = "unstable")]
#[doc(hidden)]
pub mod unstable;
mod warning;
mod way;
#[cfg_attr(not(feature = "unstable"), allow(unreachable_pub))]
mod wire;
mod worker;

pub use api::Api;
pub use client::Client;
pub use config::Config;
pub use discovery::{Discovery, DiscoveryError, NamedResource};
pub use error::{Error, OidcError, PluginError, ProxyError, Refused, TransportError};
pub use identity::exec::PluginPolicy;
pub use identity::{CallFigures, CredentialFigures};
pub use informer_key::InformerKey;
pub use kube_core::response::Status;
pub use layers::{ClientFigures, MethodFigures, RequestFigures, SIZE_BOUNDS, Sizes};
pub use request::RequestOptions;
pub use resource::ResourceSource;
pub use selector::{LabelSelector, SelectorError};
pub use warning::Warning;
pub use wire::{FieldPath, FieldPathError};
pub use worker::BodyStream;

/// What the other crates of `actix-informer` use, and no program: nothing here is promised.
#[doc(hidden)]
pub mod inner {
    pub use crate::api::retry::{ConflictPolicy, Conflicts, chance};
    pub use crate::backend::Backend;
    pub use crate::discovery::by_name::{CommonName, failure};
    pub use crate::discovery::mapper::Found;
    pub use crate::layers::{SendGuard, Traffic};
    pub use crate::namespaces::Sources;
    pub use crate::object::key_of;
    pub use crate::representation::bodies_of;
    pub use crate::request::RequestKind;
    pub use crate::resource::{FindResource, FoundResource, OutsideKey, Represent};
    pub use crate::scope::{encoded_name, segment};
    pub use crate::transport::{Body, Duplex, Transport};
    pub use crate::worker::send;
}
