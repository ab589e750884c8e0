//! Moves bytes between a websocket and the pipes of its streams, on the thread of the connection.
//!
//! Answers "what is read and written next, and what waits?" What frames mean is `channels.rs`'s. Invariants:
//! 1. Bounded: one frame that is not delivered yet, one that has not arrived whole, [`OUTGOING`] bytes to send and the
//!    pipes. A pipe that is full stops the reading of the connection, all its channels together: the server waits. A
//!    connection that takes no more stops the reading of the inputs: the program waits.
//! 2. Reading goes on while writing waits, and the other way round, so that a command that copies its input cannot block
//!    itself.
//! 3. Each stream is told its end once: clean, or with the error. Nothing is read after it.
//! 4. When the program has dropped all parts, the connection takes what it takes at once, and is closed.
//! 5. A connection that takes no more bytes is read to its end: what the server sent before is delivered.
//! 6. A turn moves at most [`ROUNDS`] pieces; then other connections of the thread have theirs.
//! 7. A server of which nothing is heard is asked by a ping, and given up when it does not answer (`liveness.rs`).
//!
//! Read next: `pipes.rs`.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_http::ws::{CloseCode, Message};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use super::channels::{Channels, Event, Frames};
use super::liveness::{Due, Liveness};
use super::pipes::Far;
use crate::error::StreamError;
use crate::transport::Connection;

/// From so many bytes that wait for the connection on, no more input is taken.
const OUTGOING: usize = 32 << 10;
/// So much is read or written at once.
const PIECE: usize = 16 << 10;
/// So many pieces a turn moves.
const ROUNDS: usize = 16;

/// A stream, and the channel on which it is sent and received.
pub(super) struct Stream {
    pub(super) channel: u8,
    pub(super) far: Far,
    /// Whether the program's bytes go to the server.
    pub(super) sends: bool,
}

/// What is told beside the bytes of streams.
pub(super) trait Side {
    /// Bytes of a channel that is no stream. What it gives is a stream that ends by them, and how.
    fn handle_data(&mut self, channel: u8, bytes: &[u8]) -> Option<(u8, StreamError)>;
    /// The connection has ended in order, or by an error.
    fn handle_end(&mut self, error: Option<&StreamError>);
    /// Whether the server has said that all is over: then the end of the connection is an end in order.
    fn is_over(&self) -> bool;
    /// A message to send, if there is one.
    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<(u8, Vec<u8>)>;
}

/// The engine of one connection.
pub(super) struct Engine<S> {
    pub(super) connection: Connection,
    pub(super) channels: Channels,
    pub(super) streams: Vec<Stream>,
    pub(super) side: S,
    /// Closed when the program has dropped all parts.
    pub(super) wanted: mpsc::Receiver<Infallible>,
    pub(super) buffers: Buffers,
}

/// What is on its way.
pub(super) struct Buffers {
    frames: Frames,
    /// What is not delivered yet, and to which stream.
    undelivered: Option<(usize, Bytes)>,
    outgoing: BytesMut,
    needs_flush: bool,
    /// Why nothing can be sent any more.
    unsendable: Option<StreamError>,
    /// Only the newest ping has to be answered.
    ping: Option<Bytes>,
    /// The stream whose input is taken first in the next round.
    first: usize,
    piece: Box<[u8]>,
    liveness: Liveness,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            frames: Frames::default(),
            undelivered: None,
            outgoing: BytesMut::new(),
            needs_flush: false,
            unsendable: None,
            ping: None,
            first: 0,
            piece: vec![0; PIECE].into_boxed_slice(),
            liveness: Liveness::default(),
        }
    }
}

/// Why the engine ends.
enum End {
    Closed,
    Unwanted,
    Failed(StreamError),
}

impl From<StreamError> for End {
    fn from(error: StreamError) -> Self {
        Self::Failed(error)
    }
}

impl<S: Side> Engine<S> {
    /// Serves the connection until it ends or nobody wants it.
    pub(super) async fn run(mut self) {
        let end = poll_fn(|context| self.poll_end(context)).await;
        let error = match end {
            End::Failed(error) => Some(error),
            End::Closed | End::Unwanted => None,
        };
        self.side.handle_end(error.as_ref());
        for stream in std::mem::take(&mut self.streams) {
            stream.far.ending.end(error.clone());
        }
        // Sends a close frame if the connection takes it at once.
        poll_fn(|context| {
            let close = Message::Close(Some(CloseCode::Normal.into()));
            if self.buffers.frames.encode(close, &mut self.buffers.outgoing).is_ok() {
                self.poll_send(context);
            }
            Poll::Ready(())
        })
        .await;
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<End> {
        if let Err(error) = self.poll_liveness(context) {
            return Poll::Ready(error.into());
        }
        for _ in 0..ROUNDS {
            match self.round(context) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(end) => return Poll::Ready(end),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Asks a silent server whether it is there. While something waits here, it is not the server that is silent.
    fn poll_liveness(&mut self, context: &mut Context<'_>) -> Result<(), StreamError> {
        let Buffers { liveness, undelivered, outgoing, frames, unsendable, .. } = &mut self.buffers;
        let is_held_up = undelivered.is_some() || !outgoing.is_empty() || unsendable.is_some();
        match liveness.poll_due(context, is_held_up) {
            Poll::Pending => Ok(()),
            Poll::Ready(Due::Ping) => frames.encode(Message::Ping(Bytes::new()), outgoing),
            Poll::Ready(Due::End(after)) => Err(StreamError::Silent(after)),
        }
    }

    /// One piece in each direction; whether anything moved.
    fn round(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        if self.wanted.poll_recv(context).is_ready() {
            self.send_rest(context)?;
            return Err(End::Unwanted);
        }
        let sent = self.poll_send(context);
        let taken = self.poll_inputs(context)?;
        let delivered = self.poll_deliver(context);
        let received = self.poll_receive(context)?;
        Ok(sent || taken || delivered || received)
    }

    /// Sends what the program wrote before it dropped all parts, as far as the connection takes it at once.
    fn send_rest(&mut self, context: &mut Context<'_>) -> Result<(), StreamError> {
        let mut goes_on = true;
        while goes_on {
            let taken = self.poll_inputs(context)?;
            self.poll_send(context);
            goes_on = taken && self.buffers.outgoing.is_empty();
        }
        Ok(())
    }

    /// Writes what waits for the connection. One that takes no more may still be read.
    fn poll_send(&mut self, context: &mut Context<'_>) -> bool {
        match self.poll_write(context) {
            Ok(moved) => moved,
            Err(error) => {
                self.buffers.outgoing.clear();
                self.buffers.needs_flush = false;
                self.buffers.unsendable.get_or_insert(error);
                true
            }
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<bool, StreamError> {
        let Buffers { outgoing, needs_flush, .. } = &mut self.buffers;
        let mut moved = false;
        while !outgoing.is_empty() {
            match Pin::new(&mut self.connection).poll_write(context, outgoing) {
                Poll::Ready(Ok(0)) => return Err(StreamError::CutOff),
                Poll::Ready(Ok(length)) => outgoing.advance(length),
                Poll::Ready(Err(error)) => return Err(broken(error)),
                Poll::Pending => break,
            }
            (moved, *needs_flush) = (true, true);
        }
        if *needs_flush {
            match Pin::new(&mut self.connection).poll_flush(context) {
                Poll::Ready(Ok(())) => *needs_flush = false,
                Poll::Ready(Err(error)) => return Err(broken(error)),
                Poll::Pending => {}
            }
        }
        Ok(moved)
    }

    /// Takes one piece of what the program sends.
    fn poll_inputs(&mut self, context: &mut Context<'_>) -> Result<bool, StreamError> {
        let Buffers { frames, outgoing, unsendable, ping, first, piece, .. } = &mut self.buffers;
        if outgoing.len() >= OUTGOING || unsendable.is_some() {
            return Ok(false);
        }
        let mut moved = false;
        if let Some(bytes) = ping.take() {
            frames.encode(Message::Pong(bytes), outgoing)?;
            moved = true;
        }
        if let Poll::Ready((channel, bytes)) = self.side.poll_message(context) {
            frames.encode(self.channels.data_message(channel, &bytes), outgoing)?;
            moved = true;
        }
        let count = self.streams.len();
        for number in (0..count).map(|number| (*first + number) % count) {
            let stream = &mut self.streams[number];
            if !stream.sends {
                continue;
            }
            let mut read = ReadBuf::new(piece);
            match Pin::new(&mut stream.far.pipe).poll_read(context, &mut read) {
                Poll::Pending => continue,
                Poll::Ready(Ok(())) if !read.filled().is_empty() => {
                    let message = self.channels.data_message(stream.channel, read.filled());
                    frames.encode(message, outgoing)?;
                }
                Poll::Ready(_) => {
                    stream.sends = false;
                    if let Some(end) = self.channels.end_message(stream.channel) {
                        frames.encode(end, outgoing)?;
                    }
                }
            }
            *first = (number + 1) % count;
            return Ok(true);
        }
        Ok(moved)
    }

    /// Delivers what has been received; what nobody wants any more is thrown away.
    fn poll_deliver(&mut self, context: &mut Context<'_>) -> bool {
        let Some((number, bytes)) = &mut self.buffers.undelivered else { return false };
        let pipe = &mut self.streams[*number].far.pipe;
        match Pin::new(pipe).poll_write(context, bytes) {
            Poll::Pending => false,
            Poll::Ready(Ok(length)) => {
                bytes.advance(length);
                if bytes.is_empty() {
                    self.buffers.undelivered = None;
                }
                true
            }
            Poll::Ready(Err(_dropped)) => {
                self.buffers.undelivered = None;
                true
            }
        }
    }

    /// Handles one frame, or reads one piece, unless something is not delivered yet.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        if self.buffers.undelivered.is_some() {
            return Ok(false);
        }
        if let Some(frame) = self.buffers.frames.next_frame()? {
            if let Some(event) = self.channels.handle_frame(frame)? {
                self.handle(event)?;
            }
            return Ok(true);
        }
        let mut read = ReadBuf::new(&mut self.buffers.piece);
        match Pin::new(&mut self.connection).poll_read(context, &mut read) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(())) if !read.filled().is_empty() => {
                self.buffers.frames.push(read.filled());
                self.buffers.liveness.handle_heard();
                Ok(true)
            }
            Poll::Ready(Ok(())) if self.side.is_over() && self.buffers.frames.unfinished() == 0 => {
                Err(End::Closed)
            }
            Poll::Ready(Ok(())) => Err(self.buffers.unsendable.take().unwrap_or(StreamError::CutOff).into()),
            Poll::Ready(Err(error)) => Err(broken(error).into()),
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::Data { channel, bytes } => {
                match self.streams.iter().position(|stream| stream.channel == channel) {
                    Some(number) => self.buffers.undelivered = Some((number, bytes)),
                    None => {
                        if let Some((ended, error)) = self.side.handle_data(channel, &bytes) {
                            self.end(ended, Some(error));
                        }
                    }
                }
            }
            Event::Ended(channel) => self.end(channel, None),
            Event::Ping(bytes) => self.buffers.ping = Some(bytes),
            Event::Closed => return Err(End::Closed),
        }
        Ok(())
    }

    /// Ends one stream. Nothing of it is undelivered: frames are handled one after another.
    fn end(&mut self, channel: u8, error: Option<StreamError>) {
        if let Some(number) = self.streams.iter().position(|stream| stream.channel == channel) {
            self.streams.swap_remove(number).far.ending.end(error);
        }
    }
}

fn broken(error: io::Error) -> StreamError {
    StreamError::Broken(Arc::new(error))
}

#[cfg(test)]
mod tests;
