//! What `informerd` promises, checked on the real binary: arguments in, lines, codes and probes out.
//!
//! Answers "does the command do what the README says?". Each test starts its own process and, where a cluster is
//! meant, its own in-memory API server; nothing sleeps, everything waits for a line or an end.
//!
//! Read next: `process.rs`, how a process is driven; `replay.rs`, the state that its lines give.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod end;
mod forgery;
mod json;
mod kinds;
mod marks;
mod probes;
mod process;
mod refusals;
mod replay;
mod values;
