//! Moves bytes between a websocket and the pipes of its streams, on the connection's thread.
//!
//! 1. Memory is bounded: one undelivered frame, one incomplete frame, [`OUTGOING`] bytes to send, and the pipes. A full pipe
//!    stops the reading of all channels; a full connection stops the reading of inputs.
//! 2. Reading goes on while writing waits, and vice versa: a command that copies its input must not block itself.
//! 3. A connection that cannot be written is still read to its end.
//! 4. When the program drops all parts, the connection takes what it can at once and is closed.

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

/// No input is read while this many bytes wait.
const OUTGOING: usize = 32 << 10;
/// In bytes.
const PIECE: usize = 16 << 10;
/// Pieces in one turn: other connections of the thread have theirs.
const ROUNDS: usize = 16;

pub(super) struct Stream {
    pub(super) channel: u8,
    pub(super) far: Far,
    pub(super) sends: bool,
}

/// The channels that are not streams.
pub(super) trait Side {
    /// May end a stream with an error.
    fn handle_data(&mut self, channel: u8, bytes: &[u8]) -> Option<(u8, StreamError)>;
    /// `None` for a clean end.
    fn handle_end(&mut self, error: Option<&StreamError>);
    /// Whether the connection may end cleanly.
    fn is_over(&self) -> bool;
    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<(u8, Vec<u8>)>;
}

pub(super) struct Engine<S> {
    pub(super) connection: Connection,
    pub(super) channels: Channels,
    pub(super) streams: Vec<Stream>,
    pub(super) side: S,
    /// Closes when the program has dropped all parts.
    pub(super) wanted: mpsc::Receiver<Infallible>,
    pub(super) buffers: Buffers,
}

pub(super) struct Buffers {
    frames: Frames,
    undelivered: Option<(usize, Bytes)>,
    outgoing: BytesMut,
    needs_flush: bool,
    unsendable: Option<StreamError>,
    /// Only the newest ping must be answered.
    ping: Option<Bytes>,
    /// Whose input is taken first in the next round: inputs take turns.
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

    /// While something waits on this side, the server is not the silent one.
    fn poll_liveness(&mut self, context: &mut Context<'_>) -> Result<(), StreamError> {
        let Buffers { liveness, undelivered, outgoing, frames, unsendable, .. } = &mut self.buffers;
        let is_held_up = undelivered.is_some() || !outgoing.is_empty() || unsendable.is_some();
        match liveness.poll_due(context, is_held_up) {
            Poll::Pending => Ok(()),
            Poll::Ready(Due::Ping) => frames.encode(Message::Ping(Bytes::new()), outgoing),
            Poll::Ready(Due::End(after)) => Err(StreamError::Silent(after)),
        }
    }

    /// Whether anything moved.
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

    /// As far as the connection takes inputs at once.
    fn send_rest(&mut self, context: &mut Context<'_>) -> Result<(), StreamError> {
        let mut goes_on = true;
        while goes_on {
            let taken = self.poll_inputs(context)?;
            self.poll_send(context);
            goes_on = taken && self.buffers.outgoing.is_empty();
        }
        Ok(())
    }

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

    /// Bytes for a dropped pipe are discarded.
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

    /// No bytes of the stream wait: frames are handled one after another.
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
