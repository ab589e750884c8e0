//! The Kubernetes API client: configuration, connections, and sources for informers.
//!
//! It caches nothing and retries almost nothing: the reflector decides what to request next. A [`Client`] is a checked
//! configuration, cheap to clone, usable from any thread; each thread has its own connections. An answer that is cut off is never
//! taken for a complete one. [`api`] reads and writes.

pub use informer_client::{
    Api, BodyStream, CallFigures, Client, ClientFigures, Config, CredentialFigures, Discovery,
    DiscoveryError, Error, InformerKey, MethodFigures, NamedResource, OidcError, PluginError, PluginPolicy,
    ProxyError, Refused, RequestFigures, RequestOptions, ResourceSource, SIZE_BOUNDS, Sizes, Status,
    TransportError, Warning, api, discovery, streams,
};
