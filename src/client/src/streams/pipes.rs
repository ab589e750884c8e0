//! Both ends of a stream: the program's and the engine's. Tokio's pipes are bounded and need no runtime.
//!
//! 1. A reader ends cleanly only if the engine says so. If the engine disappears first, the stream is cut off.
//! 2. The connection lives as long as any of its parts.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc;

use crate::error::StreamError;
use crate::worker::Worker;

/// Unset while the stream goes on; `None` inside for a clean end.
#[derive(Debug, Clone, Default)]
pub(super) struct Ending(Arc<OnceLock<Option<StreamError>>>);

impl Ending {
    /// The first call counts.
    pub(super) fn end(&self, error: Option<StreamError>) {
        let _ = self.0.set(error);
    }

    pub(super) fn error(&self) -> Option<StreamError> {
        self.0.get().cloned().unwrap_or(Some(StreamError::CutOff))
    }
}

/// The connection ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct Keep {
    _connection: mpsc::Sender<Infallible>,
    /// Serves the connection.
    _worker: Arc<Worker>,
}

impl Keep {
    pub(super) fn new(worker: &Arc<Worker>) -> (Self, mpsc::Receiver<Infallible>) {
        let (connection, watched) = mpsc::channel(1);
        (Self { _connection: connection, _worker: Arc::clone(worker) }, watched)
    }
}

pub(super) struct Near {
    pipe: DuplexStream,
    ending: Ending,
    _keep: Keep,
}

pub(super) struct Far {
    pub(super) pipe: DuplexStream,
    pub(super) ending: Ending,
}

/// `size`: bytes that each direction holds.
pub(super) fn pipe(size: usize, keep: &Keep) -> (Near, Far) {
    let (near, far) = duplex(size.max(1));
    let ending = Ending::default();
    let far = Far { pipe: far, ending: ending.clone() };
    (Near { pipe: near, ending, _keep: keep.clone() }, far)
}

impl Near {
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.pipe).poll_read(context, buffer) {
            Poll::Ready(Ok(())) if buffer.filled().len() == before && buffer.remaining() > 0 => {
                Poll::Ready(self.ending.error().map_or(Ok(()), |error| Err(error.into())))
            }
            read => read,
        }
    }

    pub(super) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.pipe).poll_write(context, bytes);
        written.map_err(|error| match self.ending.0.get() {
            Some(Some(cause)) => cause.clone().into(),
            _ => error,
        })
    }

    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(context)
    }
}

/// The output of a command, or one of its two outputs. A read ends cleanly when the stream has ended, and
/// with the [`StreamError`] as the cause when the stream was cut off. When the pipe is full, unread
/// bytes stay on the connection, and the command waits.
pub struct Output(pub(super) Near);

/// The input of a command. A write waits while the command does not read. Shutting the input down, or
/// dropping it, ends it for the command if the server speaks v5 of the protocol. v4 has no message for this:
/// the command waits for more until the connection ends. Written bytes are still sent after that. When all
/// parts of a command are dropped, only what the connection takes at once is sent.
pub struct Input {
    pub(super) near: Near,
    pub(super) can_end: bool,
}

/// The connection to one port of a pod. An unreachable port ends it with [`StreamError::Port`] as the cause.
/// If it is dropped while another part of the [`PortForward`](super::PortForward) is held, written bytes are
/// still sent. When the last part is dropped, only what the connection takes at once is sent.
pub struct PortStream {
    pub(super) near: Near,
    pub(super) port: u16,
}

impl PortStream {
    /// The port of the pod.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(context, buffer)
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.near.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Refused with v4 of the protocol.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.can_end {
            let why = "the server speaks v4 of the protocol, in which the input of a command cannot be ended";
            return Poll::Ready(Err(StreamError::Unsupported(why).into()));
        }
        self.near.poll_shutdown(context)
    }
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.near.poll_read(context, buffer)
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.near.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The port does not learn of it: the protocol has no message.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.near.poll_shutdown(context)
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Input")
    }
}

informer_core::debug_as!(PortStream, self, port = self.port);
