//! The HTTP half of the API server: thin handlers that read a request, call the core, and write its answer.
//!
//! Reading order: `route` (what does the path mean) → `ask` (the request) → `handle` (from head to answer) → `read`, `write`,
//! `patch` (the verbs) → `respond`, `list_body`, `watch_body` (bytes). `auth`, `rights`, `accept` and `connections` serve them.
//!
//! 1. No rule of the API is decided here, except those about HTTP itself.
//! 2. Heads carry what a real server sends, and nothing of the framework's own.
pub(crate) mod accept;
pub(crate) mod ask;
pub(crate) mod auth;
pub(crate) mod body;
mod channels;
pub(crate) mod compress;
pub(crate) mod connections;
pub(crate) mod discovery;
pub(crate) mod handle;
pub(crate) mod health;
pub(crate) mod impersonate;
pub(crate) mod list_body;
pub(crate) mod manager;
pub(crate) mod openapi;
pub(crate) mod patch;
pub(crate) mod pod_streams;
pub(crate) mod ranges;
mod read;
pub(crate) mod respond;
pub(crate) mod review;
pub(crate) mod rights;
pub(crate) mod route;
pub(crate) mod subresource;
pub(crate) mod watch_body;
pub(crate) mod websocket;
pub(crate) mod write;
