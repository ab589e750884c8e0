//! Turns the body of a watch into batches for the reflector.

use std::sync::Arc;
use std::task::{Poll, ready};

use futures_util::future::{self, Either};
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;

use super::Reader;
use super::chunks::{ChunkReader, Now, Times};
use crate::representation::{LateFindings, Representation};
use crate::transport::Body;
use crate::wire::{Frame, Splitter, WireKind};

type Batch<S> = Result<Vec<WatchPart<S>>, ListWatchError>;

impl<R: Representation> Reader<R> {
    pub(super) fn batches(self, wire: WireKind, body: Body) -> impl Stream<Item = Batch<R::Body>> {
        let (width, splitter) = (self.place.width(), Splitter::watch(wire, self.frame_limit));
        let known = self.known.clone();
        let of_clock = self.known.clone();
        arrivals(body, splitter, Box::new(move || of_clock.now()))
            .map(move |chunk| match chunk {
                Ok((frames, times)) => {
                    Either::Left(decode_events(&self, wire, frames).map(move |parts| (parts, times)))
                }
                Err(error) => Either::Right(future::ready((vec![Err(error)], None))),
            })
            .buffered(width + 1)
            .flat_map(move |(parts, times)| {
                known.note_arrival(times);
                stream::iter(parts)
            })
    }
}

/// Between the batches of a live watch stands what readers have found undecodable meanwhile.
pub(super) fn with_late<S>(
    batches: impl Stream<Item = Batch<S>>,
    late: Arc<LateFindings>,
    mut is_live: bool,
) -> impl Stream<Item = Batch<S>> {
    let mut batches = Box::pin(batches);
    stream::poll_fn(move |cx| {
        if is_live && let Poll::Ready(found) = late.poll_found(cx) {
            let parts = found.into_iter().map(WatchPart::LateUndecodable).collect();
            return Poll::Ready(Some(Ok(parts)));
        }
        let batch = ready!(batches.poll_next_unpin(cx));
        is_live |= matches!(&batch, Some(Ok(parts)) if parts.iter().any(ends_initial_events));
        Poll::Ready(batch)
    })
}

fn ends_initial_events<S>(part: &WatchPart<S>) -> bool {
    matches!(part, WatchPart::Bookmark { initial_events_end: true, .. })
}

fn decode_events<R: Representation>(
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

fn arrivals(
    body: Body,
    splitter: Splitter,
    now: Now,
) -> impl Stream<Item = Result<(Vec<Frame>, Option<Times>), ListWatchError>> {
    stream::unfold(ChunkReader::new(body, splitter, now), |mut reader| async move {
        let arrived = reader.arrived().await.transpose()?;
        Some((arrived.map(|frames| (frames, reader.times())), reader))
    })
}
