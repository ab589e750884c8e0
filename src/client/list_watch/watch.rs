//! The body of a watch, as batches of parts.
//!
//! Answers "what has happened since the last batch?" A batch is what has arrived at once, up to a chunk, so that an
//! idle watch delays nothing and a busy one is decoded in chunks. Invariants:
//! 1. Order is the order of the lines.
//! 2. The parts before an error are delivered, then the error, then nothing.
//! 3. A line without its newline is nothing: the watch that comes next brings it whole.
//!
//! Read next: `event.rs`, which reads one line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use informer_actors::list_watch::Known;
use informer_actors::runtime::DecodePool;
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;

use super::decode::Decoder;
use super::{Body, CHUNK_BYTES, CHUNK_OBJECTS, on_pool};
use crate::client::error::TransportError;
use crate::client::frames::{Frame, LineSplitter};
use crate::representation::Representation;

/// What reading a watch needs besides its body.
pub(super) struct Reading<R: Representation> {
    pub(super) decoder: Arc<Decoder<R>>,
    pub(super) pool: DecodePool,
    pub(super) frame_limit: usize,
    pub(super) known: Known<R::Body>,
}

type Batch<S> = Result<Vec<WatchPart<S>>, ListWatchError>;

enum Piece {
    Lines(Vec<Frame>),
    Failed(ListWatchError),
}

impl<R: Representation> Reading<R> {
    pub(super) fn batches(self, body: Body) -> impl Stream<Item = Batch<R::Body>> {
        let width = self.pool.width();
        let (decoder, known, pool) = (self.decoder, self.known, self.pool);
        pieces(body, self.frame_limit)
            .map(move |piece| {
                let (decoder, known, pool) = (Arc::clone(&decoder), known.clone(), pool.clone());
                async move {
                    match piece {
                        Piece::Lines(lines) => decoded(decoder, known, pool, lines).await,
                        Piece::Failed(error) => vec![Err(error)],
                    }
                }
                .boxed_local()
            })
            .buffered(width + 1)
            .flat_map(stream::iter)
    }
}

async fn decoded<R: Representation>(
    decoder: Arc<Decoder<R>>,
    known: Known<R::Body>,
    pool: DecodePool,
    lines: Vec<Frame>,
) -> Vec<Batch<R::Body>> {
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
    on_pool(&pool, bytes, job).await.unwrap_or_else(|error| vec![Err(error)])
}

struct Progress {
    body: Body,
    splitter: LineSplitter,
    /// What one body chunk completed, on its way to `lines`.
    split: Vec<Frame>,
    lines: VecDeque<Frame>,
    end: Option<Option<TransportError>>,
}

fn pieces(body: Body, frame_limit: usize) -> impl Stream<Item = Piece> {
    let splitter = LineSplitter::new(frame_limit);
    let progress = Progress { body, splitter, split: Vec::new(), lines: VecDeque::new(), end: None };
    stream::unfold(progress, |mut progress| async move { Some((progress.next().await?, progress)) })
}

impl Progress {
    /// What has arrived, at least one line; `None` when the watch has ended.
    async fn next(&mut self) -> Option<Piece> {
        while self.lines.is_empty() {
            if let Some(end) = &mut self.end {
                return end.take().map(|error| Piece::Failed(error.into()));
            }
            let chunk = self.body.next().await;
            self.push(chunk);
        }
        while self.lines.len() < CHUNK_OBJECTS && self.held() < CHUNK_BYTES && self.end.is_none() {
            match futures_util::poll!(self.body.next()) {
                Poll::Ready(chunk) => self.push(chunk),
                Poll::Pending => break,
            }
        }
        Some(Piece::Lines(self.lines.drain(..self.lines.len().min(CHUNK_OBJECTS)).collect()))
    }

    fn push(&mut self, chunk: Option<Result<bytes::Bytes, TransportError>>) {
        match chunk {
            Some(Ok(chunk)) => {
                self.splitter.push(&chunk, &mut self.split);
                self.lines.extend(self.split.drain(..));
            }
            Some(Err(error)) => self.end = Some(Some(error)),
            None => self.end = Some(None),
        }
    }

    fn held(&self) -> usize {
        self.lines.iter().map(Frame::len).sum()
    }
}
