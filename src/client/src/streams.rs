//! Streams from and to pods: logs as lines, commands, terminals and ports over websockets.
//!
//! [`Api`](super::Api) makes them: `logs`, `log_stream`, `exec`, `attach`, `port_forward`. They work in any async runtime: the
//! client's thread serves the connection.
//!
//! What a program does not read is not read from the connection, and what a pod does not read is not taken from the program. A
//! stream ends cleanly only if the server ended it; one that is cut off ends with an error. Dropping all parts of a stream
//! closes its connection.

mod attached;
#[cfg_attr(not(feature = "unstable"), allow(dead_code, unreachable_pub))]
mod channels;
mod engine;
mod liveness;
#[cfg_attr(not(feature = "unstable"), allow(dead_code, unreachable_pub))]
mod log;
mod pipes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::transport::Connection;
use crate::worker::Worker;
#[cfg(not(feature = "unstable"))]
use channels::Channels;
use channels::shown;
use engine::{Buffers, Engine, Side, Stream};
use pipes::{Keep, pipe};

pub use super::error::StreamError;
pub(crate) use attached::attached;
pub use attached::{Attached, ExitStatus};
pub use channels::Protocol;
#[cfg(feature = "unstable")]
#[doc(hidden)]
pub use channels::{Channels, Event, Frames, MAX_FRAME};
pub(crate) use channels::{accepted, offer};
#[cfg(feature = "unstable")]
#[doc(hidden)]
pub use log::LogLines;
pub use log::{LogLine, LogStream, MAX_LINE};
pub use pipes::{Input, Output, PortStream};

/// Bytes of a port that may wait in each direction.
const WAITING: usize = 64 << 10;
/// In characters, of a node's reason.
const REASON_LIMIT: usize = 400;

/// The forwarded ports of a pod: one connection to each port. Made by [`Api::port_forward`]. The websocket
/// lives as long as this or one of its streams.
///
/// For another connection to the same port, forward again. What the node says about a port ends that port's
/// stream, as its error; the others go on.
///
/// All ports share one websocket: a stream that nobody reads holds up the others once its pipe (64 KiB) is
/// full. Drop a stream that you do not read.
///
/// [`Api::port_forward`]: crate::Api::port_forward
#[must_use = "dropping it closes the connection"]
pub struct PortForward {
    streams: BTreeMap<u16, PortStream>,
    _keep: Keep,
}

impl PortForward {
    /// The connection to this port, once.
    pub fn take_stream(&mut self, port: u16) -> Option<PortStream> {
        self.streams.remove(&port)
    }

    /// The connections that were not taken yet, by port.
    pub fn into_streams(self) -> Vec<PortStream> {
        self.streams.into_values().collect()
    }
}

/// The future serves the connection.
pub(crate) fn forwarded(
    connection: Connection,
    protocol: Protocol,
    ports: &[u16],
    worker: &Arc<Worker>,
) -> (PortForward, impl Future<Output = ()> + use<>) {
    let (keep, wanted) = Keep::new(worker);
    let (mut streams, mut near_ends) = (Vec::new(), BTreeMap::new());
    for (channel, port) in (0_u8..).step_by(2).zip(ports) {
        let (near, far) = pipe(WAITING, &keep);
        streams.push(Stream { channel, far, sends: true });
        near_ends.insert(*port, PortStream { near, port: *port });
    }
    let side = Refusals(ports.iter().map(|port| (*port, false)).collect());
    let channels = Channels::of_ports(protocol, ports);
    let engine = Engine { connection, channels, streams, side, wanted, buffers: Buffers::default() };
    (PortForward { streams: near_ends, _keep: keep }, engine.run())
}

/// Whether the node refused each port.
struct Refusals(Vec<(u16, bool)>);

impl Side for Refusals {
    fn handle_data(&mut self, channel: u8, bytes: &[u8]) -> Option<(u8, StreamError)> {
        let (port, is_refused) = self.0.get_mut(usize::from(channel / 2)).filter(|_| channel % 2 == 1)?;
        *is_refused = true;
        let reason = shown(&String::from_utf8_lossy(bytes), REASON_LIMIT);
        Some((channel - 1, StreamError::Port { port: *port, reason }))
    }

    fn handle_end(&mut self, _error: Option<&StreamError>) {}

    fn is_over(&self) -> bool {
        self.0.iter().all(|(_, is_refused)| *is_refused)
    }

    fn poll_message(&mut self, _context: &mut Context<'_>) -> Poll<(u8, Vec<u8>)> {
        Poll::Pending
    }
}

informer_core::debug_as!(PortForward, self, ports = self.streams.keys());
