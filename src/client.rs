//! The Kubernetes API client: configuration, connections, and sources for informers.
//!
//! It caches nothing and retries almost nothing: the reflector decides what to request next. A [`Client`] is
//! a checked configuration, cheap to clone and usable from any thread; each thread makes its own connections.
//! An answer that is cut off is never taken for a complete one. [`ResourceSource`] describes a source;
//! [`api`] reads and writes.

pub use informer_client::{
    Api, BodyStream, Client, Config, Discovery, DiscoveryError, Error, InformerKey, NamedResource, OidcError,
    PluginError, PluginPolicy, ProxyError, Refused, RequestOptions, ResourceSource, Status, TransportError,
    Warning, api, discovery, streams,
};
