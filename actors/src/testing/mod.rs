//! What tests of informers need: a scripted source with fault switches, a recording subscriber, and fault hooks.
//!
//! Answers "how does a test drive the real wiring without a network?". [`Server`] is a small versioned store with
//! lists, watches and fault switches behind [`crate::list_watch::ListWatch`]; its answers take time as on a network
//! (5 ms unless [`Server::answer_after`] sets another time). [`Recorder`] is a subscribed actor that records events and
//! checks them. [`kill_at`] is a fault hook that kills an actor while it handles a message. The module does not
//! simulate HTTP: the in-memory API server does. Feature `testing`; used with `Runtime::simulated`.

mod faults;
mod recorder;
mod server;

pub use crate::runtime::clock::RandomNumbers;
pub use crate::runtime::faults::{Faults, Site};
pub use faults::{kill_at, kill_every};
pub use recorder::{Recorder, RecorderHandle};
pub use server::{Backup, RequestLine, Server};
