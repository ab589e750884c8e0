//! The bench: runs a script of requests on our server and on the real one, and compares what they answered.
//!
//! Answers: how is a script judged? What a script may do is in `session.rs`; which differences are known is in
//! DIFFERENCES.md beside the README.
//! 1. Both servers get the same requests; nothing that a server answers is left out of the comparison unless
//!    `normal.rs` says why two correct servers differ in it.
//! 2. A difference must be listed, and a listed difference must still be there; either way the test says the line.
//!
//! Next: `judge.rs`, `session.rs`, `transcript.rs`, `language.rs`, `normal.rs`, `compare.rs`, `known.rs`; `wire.rs` and
//! `servers.rs` are the plumbing.
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
