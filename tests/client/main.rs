//! The client against servers: raw ones that misbehave byte by byte, and the in-memory API server.
//!
//! Answers "does every way a connection can go wrong end in the typed error it should?" Each module is one subject;
//! `raw_server.rs` is what they speak to, `harness.rs` how they ask. Loopback only; no test waits for real
//! seconds, but for the shortest resync, which is one.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod against_apiserver;
mod bad_lists;
mod bad_watches;
mod chunks;
mod clusters;
mod environment;
mod harness;
mod informers;
mod list;
mod logs;
mod paths;
mod raw_server;
mod reads;
mod requests;
mod retry;
mod scripted;
mod secrets;
mod tls;
mod transform;
mod truncation;
mod unary;
mod watch;
