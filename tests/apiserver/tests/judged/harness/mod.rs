//! The harness: runs a script of requests on our server and on the real one, and compares the answers.
//!
//! Answers: how are the servers compared by a script? `session.rs` has the requests of a script; DIFFERENCES.md beside
//! the README lists the known differences.
//! 1. Both servers get the same requests; nothing that a server answers is left out of the comparison unless
//!    `normal.rs` says why two correct servers differ in it.
//! 2. A difference must be listed, and a listed difference must still be there; in both cases the test prints the
//!    line.
//!
//! Next: `judge.rs`, `session.rs`, `transcript.rs`, `language.rs`, `normal.rs`, `compare.rs`, `known.rs`; `wire.rs`
//! and `servers.rs` are the transport.
pub(crate) mod compare;
pub(crate) mod judge;
pub(crate) mod known;
pub(crate) mod language;
pub(crate) mod normal;
pub(crate) mod program;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod transcript;
pub(crate) mod unrecorded;
pub(crate) mod wire;

pub(crate) use judge::{judge, judge_alone, judge_on};
pub(crate) use session::{Answer, Request, Session};
