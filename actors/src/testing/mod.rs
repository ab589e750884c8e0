//! What tests of informers need: a source that behaves, a source that misbehaves on demand, and a checker.
//!
//! Answers "how is the real wiring driven without a network?": [`Server`] is a small versioned store with lists,
//! watches and fault switches behind [`crate::list_watch::ListWatch`], whose answers take time as on a network
//! (5 ms unless [`Server::answer_after`] says otherwise); [`Recorder`] is a subscribed actor that checks
//! while it records; [`kill_at`] is a fault hook that kills an actor in mid-message. It simulates no HTTP: the
//! in-memory API server does that. Feature `testing`; used with `Runtime::simulated`.

mod faults;
mod recorder;
mod server;

pub use faults::{kill_at, kill_every};
pub use recorder::{Recorder, RecorderHandle};
pub use server::{Backup, RequestLine, Server};
