//! The Kubernetes API client: configuration, connections, and sources for informers.
//!
//! Answers "how does this process communicate with an API server?" All of it is `informer_client`'s. It caches nothing and
//! retries almost nothing: the reflector decides what to request next. Invariants:
//! 1. A [`Client`] is a checked configuration, cheap to clone and usable from any thread; connections belong to the
//!    thread that uses them and are made there.
//! 2. An answer that is cut off is never taken for a complete one.
//!
//! Read next: [`ResourceSource`], the description of a source; [`api`], for reads and writes.

pub use informer_client::{
    Api, BodyStream, Client, Config, Discovery, DiscoveryError, Error, InformerKey, NamedResource, OidcError,
    PluginError, PluginPolicy, ProxyError, Refused, RequestOptions, ResourceSource, Status, TransportError,
    Warning, api, discovery, streams,
};
