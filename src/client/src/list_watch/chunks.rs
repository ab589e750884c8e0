//! Gathers the frames of a body into chunks that are decoded at once. A list is decoded in full chunks, a
//! watch in what has arrived, so that an idle watch delays nothing.
//!
//! 1. The frames before the end of a watch are returned before its error. An error of a list makes its frames
//!    worthless.
//! 2. An unfinished list is an error. Half a watch event is discarded: the next watch brings it again.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use informer_core::list_watch_error::ListWatchError;
use tokio::time::timeout;

use super::{Body, CHUNK_BYTES, CHUNK_OBJECTS};
use crate::error::TransportError;
use crate::wire::{Frame, ListHead, SplitError, Splitter};

/// From the end of a list's document to the end of the body, which carries the checksum of the whole body. It
/// is later only if packets were lost.
const BODY_END_DEADLINE: Duration = Duration::from_secs(10);

/// The time, if somebody asks for the paths of objects.
pub(super) type Now = Box<dyn Fn() -> Option<Duration>>;
/// When bytes were read, and when they were cut into frames.
pub(super) type Times = (Duration, Duration);

pub(super) struct ChunkReader {
    body: Body,
    now: Now,
    times: Option<Times>,
    splitter: Splitter,
    /// Kept to reuse its allocation.
    split: Vec<Frame>,
    frames: VecDeque<Frame>,
    frames_bytes: usize,
    has_ended: bool,
    error: Option<ListWatchError>,
}

impl ChunkReader {
    pub(super) fn new(body: Body, splitter: Splitter, now: Now) -> Self {
        let (split, frames) = (Vec::new(), VecDeque::new());
        Self {
            body,
            now,
            times: None,
            splitter,
            split,
            frames,
            frames_bytes: 0,
            has_ended: false,
            error: None,
        }
    }

    /// A full chunk; at the end, the rest; then `None`.
    pub(super) async fn full(&mut self) -> Result<Option<Vec<Frame>>, ListWatchError> {
        while !self.is_full() && !self.splitter.is_closed() && !self.has_ended {
            let piece = self.body.next().await;
            self.push(piece);
        }
        self.error.take().map_or_else(|| Ok(self.chunk()), Err)
    }

    /// What has arrived, at least one frame and at most a chunk; then the error of the body, if any; then
    /// `None`.
    pub(super) async fn arrived(&mut self) -> Result<Option<Vec<Frame>>, ListWatchError> {
        while self.frames.is_empty() && !self.has_ended {
            let piece = self.body.next().await;
            self.push(piece);
        }
        while !self.is_full() && !self.has_ended {
            let Poll::Ready(piece) = futures_util::poll!(self.body.next()) else { break };
            self.push(piece);
        }
        let error = if self.frames.is_empty() { self.error.take() } else { None };
        error.map_or_else(|| Ok(self.chunk()), Err)
    }

    pub(super) fn times(&self) -> Option<Times> {
        self.times
    }

    pub(super) async fn end(mut self) -> Result<ListHead, ListWatchError> {
        if self.splitter.is_closed() {
            let what = "the end of a list behind its document";
            let late = TransportError::Timeout { what, after: BODY_END_DEADLINE };
            timeout(BODY_END_DEADLINE, self.read_to_end()).await.map_err(|_| late)?;
        }
        self.error.take().map_or(Ok(()), Err)?;
        self.splitter.finish().map_err(|error| invalid(&error))
    }

    async fn read_to_end(&mut self) {
        while !self.has_ended {
            let piece = self.body.next().await;
            self.push(piece);
        }
    }

    fn push(&mut self, piece: Option<Result<Bytes, TransportError>>) {
        let read = (self.now)();
        let split = match piece {
            Some(Ok(piece)) => {
                self.splitter.push(&piece, &mut self.split).map_err(|error| Some(invalid(&error)))
            }
            Some(Err(error)) => Err(Some(error.into())),
            None => Err(None),
        };
        self.times = read.zip((self.now)());
        self.frames_bytes += self.split.iter().map(Frame::len).sum::<usize>();
        self.frames.extend(self.split.drain(..));
        if let Err(error) = split {
            (self.has_ended, self.error) = (true, error);
        }
    }

    fn is_full(&self) -> bool {
        self.frames.len() >= CHUNK_OBJECTS || self.frames_bytes >= CHUNK_BYTES
    }

    /// Costs only the frames taken: one piece of the body may hold many chunks.
    fn chunk(&mut self) -> Option<Vec<Frame>> {
        let mut bytes = 0;
        let mut fits = |frame: &Frame| {
            let fits = bytes < CHUNK_BYTES;
            bytes += frame.len();
            fits
        };
        let count = self.frames.iter().take(CHUNK_OBJECTS).take_while(|frame| fits(frame)).count();
        let chunk: Vec<_> = self.frames.drain(..count).collect();
        self.frames_bytes -= chunk.iter().map(Frame::len).sum::<usize>();
        (!chunk.is_empty()).then_some(chunk)
    }
}

fn invalid(error: &SplitError) -> ListWatchError {
    ListWatchError::Protocol(error.to_string().into())
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use rustix::time::{ClockId, clock_gettime};

    use super::*;
    use crate::wire::WireKind;

    /// The processor time of this thread so far, in microseconds: other programs on the machine do not count.
    fn thread_cpu_micros() -> i64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }

    async fn cost_of_chunking(count: usize) -> i64 {
        let list = format!(r#"{{"items":[{}0]}}"#, "0,".repeat(count - 1));
        let body = stream::iter([Ok(Bytes::from(list))]).boxed_local();
        let before = thread_cpu_micros();
        let (mut reader, mut found) =
            (ChunkReader::new(body, Splitter::list(WireKind::Json, 1 << 20), Box::new(|| None)), 0);
        while let Some(items) = reader.full().await.unwrap() {
            found += items.len();
        }
        assert_eq!(found, count);
        thread_cpu_micros() - before
    }

    #[tokio::test]
    async fn the_cost_of_chunking_one_body_chunk_grows_with_the_number_of_its_items_and_not_with_its_square()
    {
        let (few, many) = (cost_of_chunking(25_000).await, cost_of_chunking(400_000).await);
        // 16 times as many items. The cost would be 256 times as high if each chunk moved the remaining items.
        assert!(many < 64 * few.max(1), "{few} us, {many} us");
    }

    #[tokio::test]
    async fn the_frames_before_the_error_of_a_watch_are_given_first_and_chunks_end_at_their_bound_of_bytes() {
        let line = |length: usize| format!("{}\n", "x".repeat(length));
        let pieces =
            [Ok([line(CHUNK_BYTES), line(1), line(1)].concat().into()), Err(TransportError::Truncated)];
        let mut reader = ChunkReader::new(
            stream::iter(pieces).boxed_local(),
            Splitter::watch(WireKind::Json, 1 << 20),
            Box::new(|| None),
        );
        assert_eq!(reader.arrived().await.unwrap().map(|chunk| chunk.len()), Some(1));
        assert_eq!(reader.arrived().await.unwrap().map(|chunk| chunk.len()), Some(2));
        assert!(reader.arrived().await.is_err());
        assert_eq!(reader.arrived().await.unwrap(), None);
    }
}
