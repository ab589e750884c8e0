//! Turns the body of a watch into batches of parts for the reflector.
//!
//! Answers "what has happened since the last batch?" A batch is what has arrived at once, up to one chunk: an idle
//! watch delays nothing, and a busy one is decoded in chunks. Invariants:
//! 1. The parts come in the order of the events.
//! 2. The parts before an error are delivered, then the error, then nothing.
//!
//! Read next: `chunks.rs`, which gathers the events; `event.rs`, which reads one of them.

use std::sync::Arc;

use futures_util::future::{Either, ready};
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;

use super::chunks::ChunkReader;
use super::{Body, Reader};
use crate::representation::Representation;
use crate::wire::{Frame, Splitter, WireKind};

type Batch<S> = Result<Vec<WatchPart<S>>, ListWatchError>;

impl<R: Representation> Reader<R> {
    /// The batches of a watch.
    pub(super) fn batches(self, wire: WireKind, body: Body) -> impl Stream<Item = Batch<R::Body>> {
        let (width, splitter) = (self.place.width(), wire.watch(self.frame_limit));
        chunks(body, splitter)
            .map(move |chunk| match chunk {
                Ok(frames) => Either::Left(decode(&self, wire, frames)),
                Err(error) => Either::Right(ready(vec![Err(error)])),
            })
            .buffered(width + 1)
            .flat_map(stream::iter)
    }
}

/// Decodes the events of one chunk up to the first that ends the watch.
fn decode<R: Representation>(
    reader: &Reader<R>,
    wire: WireKind,
    frames: Vec<Frame>,
) -> impl Future<Output = Vec<Batch<R::Body>>> + use<R> {
    let (decoder, known) = (Arc::clone(&reader.decoder), reader.known.clone());
    let (bytes, count) = (frames.iter().map(Frame::len).sum(), frames.len());
    let job = move || {
        let decoding = decoder.decoding(wire, &known);
        let mut parts = Vec::with_capacity(frames.len());
        for frame in &frames {
            match decoding.event(frame) {
                Ok(part) => parts.push(part),
                Err(error) => return vec![Ok(parts), Err(error)],
            }
        }
        vec![Ok(parts)]
    };
    reader.place.run((bytes, count), job).map(|decoded| decoded.unwrap_or_else(|error| vec![Err(error)]))
}

fn chunks(body: Body, splitter: Splitter) -> impl Stream<Item = Result<Vec<Frame>, ListWatchError>> {
    stream::unfold(ChunkReader::new(body, splitter), |mut reader| async move {
        Some((reader.arrived().await.transpose()?, reader))
    })
}
