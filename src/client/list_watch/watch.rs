//! Turns the body of a watch into batches of parts for the reflector.
//!
//! Answers "what has happened since the last batch?" A batch is what has arrived at once, up to one chunk: an idle
//! watch delays nothing, and a busy one is decoded in chunks. Invariants:
//! 1. The parts come in the order of the lines.
//! 2. The parts before an error are delivered, then the error, then nothing.
//! 3. A line without its newline is discarded: the next watch delivers it completely.
//!
//! Read next: `event.rs`, which reads one line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{Either, ready};
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use informer_actors::list_watch::KnownObjects;
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;

use super::decode::Decoder;
use super::place::DecodePlace;
use super::{Body, CHUNK_BYTES, CHUNK_OBJECTS};
use crate::client::error::TransportError;
use crate::client::frames::{Frame, LineSplitter};
use crate::representation::Representation;

/// Reads one watch.
pub(super) struct WatchReader<R: Representation> {
    pub(super) decoder: Arc<Decoder<R>>,
    pub(super) place: DecodePlace,
    pub(super) frame_limit: usize,
    pub(super) known: KnownObjects<R::Body>,
}

type Batch<S> = Result<Vec<WatchPart<S>>, ListWatchError>;

/// Lines that are decoded at once.
type Chunk = Vec<Frame>;

impl<R: Representation> WatchReader<R> {
    pub(super) fn batches(self, body: Body) -> impl Stream<Item = Batch<R::Body>> {
        let width = self.place.width();
        let Self { decoder, place, frame_limit, known } = self;
        chunks(body, frame_limit)
            .map(move |chunk| match chunk {
                Ok(lines) => Either::Left(decode(&decoder, &known, &place, lines)),
                Err(error) => Either::Right(ready(vec![Err(error)])),
            })
            .buffered(width + 1)
            .flat_map(stream::iter)
    }
}

/// Decodes the lines of one chunk up to the first that ends the watch.
fn decode<R: Representation>(
    decoder: &Arc<Decoder<R>>,
    known: &KnownObjects<R::Body>,
    place: &DecodePlace,
    lines: Chunk,
) -> impl Future<Output = Vec<Batch<R::Body>>> + use<R> {
    let (decoder, known) = (Arc::clone(decoder), known.clone());
    let bytes: usize = lines.iter().map(Frame::len).sum();
    let job = move || {
        let mut parts = Vec::with_capacity(lines.len());
        for line in &lines {
            match decoder.event(line, &known) {
                Ok(part) => parts.push(part),
                Err(error) => return vec![Ok(parts), Err(error)],
            }
        }
        vec![Ok(parts)]
    };
    place.run(bytes, job).map(|decoded| decoded.unwrap_or_else(|error| vec![Err(error)]))
}

/// Gathers the lines of the body to chunks.
struct ChunkReader {
    body: Body,
    splitter: LineSplitter,
    /// The lines that one body chunk completed, on their way to `lines`. Kept to reuse its allocation.
    split: Vec<Frame>,
    /// Lines that are not yet in a chunk.
    lines: VecDeque<Frame>,
    body_ended: bool,
    /// The error with which the body ended, until it is delivered.
    error: Option<TransportError>,
}

fn chunks(body: Body, frame_limit: usize) -> impl Stream<Item = Result<Chunk, ListWatchError>> {
    let reader = ChunkReader {
        body,
        splitter: LineSplitter::new(frame_limit),
        split: Vec::new(),
        lines: VecDeque::new(),
        body_ended: false,
        error: None,
    };
    stream::unfold(reader, |mut reader| async move { Some((reader.next().await?, reader)) })
}

impl ChunkReader {
    /// What has arrived, at least one line; then the error with which the body ended, if any; then `None`.
    async fn next(&mut self) -> Option<Result<Chunk, ListWatchError>> {
        while self.lines.is_empty() {
            if self.body_ended {
                return self.error.take().map(|error| Err(error.into()));
            }
            let chunk = self.body.next().await;
            self.push(chunk);
        }
        while self.lines.len() < CHUNK_OBJECTS && self.lines_bytes() < CHUNK_BYTES && !self.body_ended {
            match futures_util::poll!(self.body.next()) {
                Poll::Ready(chunk) => self.push(chunk),
                Poll::Pending => break,
            }
        }
        Some(Ok(self.lines.drain(..self.lines.len().min(CHUNK_OBJECTS)).collect()))
    }

    fn push(&mut self, chunk: Option<Result<bytes::Bytes, TransportError>>) {
        match chunk {
            Some(Ok(chunk)) => {
                self.splitter.push(&chunk, &mut self.split);
                self.lines.extend(self.split.drain(..));
            }
            Some(Err(error)) => (self.body_ended, self.error) = (true, Some(error)),
            None => self.body_ended = true,
        }
    }

    fn lines_bytes(&self) -> usize {
        self.lines.iter().map(Frame::len).sum()
    }
}
