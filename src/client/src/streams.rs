//! Streams from and to pods: logs as lines, commands, terminals and ports over websockets.
//!
//! Answers "what do I hold while I read a log, run a command in a container or speak with a port of a pod?"
//! [`Api`](super::Api) makes them: `logs`, `log_stream`, `exec`, `attach`, `port_forward`. They work in any async runtime:
//! the client's thread serves the connection, and what is here are the ends of pipes. Invariants:
//! 1. Bounded in both directions: what a program does not read is not read from the connection, and what a pod does not
//!    read is not taken from the program.
//! 2. A stream ends cleanly only where the server has ended it. One that was cut off ends with an error.
//! 3. Dropping every part of a stream closes its connection, and nothing of it is left.
//!
//! Read next: `streams/channels.rs`, the protocol; `streams/engine.rs`, which moves the bytes.

mod attached;
#[cfg_attr(not(feature = "unstable"), allow(dead_code, unreachable_pub))]
mod channels;
mod engine;
mod handshake;
mod liveness;
#[cfg_attr(not(feature = "unstable"), allow(dead_code, unreachable_pub))]
mod log;
mod pipes;
mod port_forward;

pub use super::error::StreamError;
pub(crate) use attached::attached;
pub use attached::{Attached, ExitStatus};
pub use channels::Protocol;
#[cfg(feature = "unstable")]
#[doc(hidden)]
pub use channels::{Channels, Event, Frames, MAX_FRAME};
pub(crate) use handshake::{accepted, offer};
#[cfg(feature = "unstable")]
#[doc(hidden)]
pub use log::LogLines;
pub use log::{LogLine, LogStream, MAX_LINE};
pub use pipes::{Input, Output, PortStream};
pub use port_forward::PortForward;
pub(crate) use port_forward::forwarded;
