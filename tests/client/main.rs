//! The client against servers: raw ones that misbehave byte by byte, and the in-memory API server.
//!
//! Answers "does every way in which a connection can fail end in the expected typed error?" Each module is one
//! subject; `raw_server.rs` is the server they talk to, `harness.rs` is how they ask. Loopback only; no test waits for
//! real seconds, except for the shortest resync, which takes one.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod against_apiserver;
mod answer_heads;
mod api;
mod api_watch;
mod bad_lists;
mod bad_plugins;
mod bad_proxies;
mod bad_watches;
mod chunks;
mod clusters;
mod connections;
mod content_types;
mod credential_ways;
mod descriptions;
mod discovery;
mod discovery_disk;
mod discovery_server;
mod dynamic;
mod environment;
mod harness;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "testing")]
mod in_process;
mod informers;
#[cfg(feature = "kube")]
mod kube_client;
mod layers;
mod lazy;
#[cfg(feature = "kube")]
mod leading;
mod list;
mod logs;
#[cfg(feature = "testing")]
mod many_namespaces;
#[cfg(feature = "testing")]
mod missing_namespace;
#[cfg(feature = "testing")]
mod overlay;
#[cfg(feature = "packed")]
mod packed;
mod pages;
#[cfg(feature = "testing")]
mod passing;
mod paths;
mod paths_as_indices;
#[cfg(feature = "persist")]
mod persist;
#[cfg(feature = "protobuf")]
mod protobuf;
mod proxies;
mod proxy_rules;
mod raw_server;
mod reads;
mod refusals;
mod reports;
mod requests;
mod retry;
mod rotation;
mod scripted;
mod secret_credentials;
mod secrets;
mod small_proxy;
mod streams;
mod tls;
mod transform;
mod truncation;
mod trust;
mod unary;
mod watch;
mod wide;
