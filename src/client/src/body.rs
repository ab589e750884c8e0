//! Reads a body: whole, or in chunks that cross from the reading thread to the user's.
//!
//! 1. A body above the limit is given up, and a Content-Length above it reserves no memory.
//! 2. A body of known length is written once. Otherwise it is collected in pieces of at most 1 MiB, which
//!    never grow. Each piece is freed as soon as it is joined.
//! 3. At most `CHUNKS` chunks wait for the reader. Then no more are read from the connection.
//! 4. Dropping the reader ends the body at once, also while the server is silent.
//! 5. A body ends cleanly only if its end was read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, header};
use tokio::sync::mpsc;

use super::error::TransportError;
use super::transport::Body;

const MIN_PIECE_BYTES: usize = 16 << 10;
const MAX_PIECE_BYTES: usize = 1 << 20;

/// `None` above `limit`. `length`: of the answer's head.
pub(crate) async fn collect(
    mut body: Body,
    length: Option<usize>,
    limit: usize,
) -> Result<Option<Bytes>, TransportError> {
    let mut collected = Collected::new(length.filter(|length| *length <= limit));
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        if chunk.len() > limit - collected.size {
            return Ok(None);
        }
        collected.push(&chunk);
    }
    Ok(Some(collected.join()))
}

/// `None` for an encoded body: its Content-Length counts the encoded bytes.
pub(crate) fn length_of(headers: &HeaderMap) -> Option<usize> {
    let encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity");
    let length = headers.get(header::CONTENT_LENGTH).filter(|_| !encoded)?;
    length.to_str().ok()?.parse().ok()
}

struct Collected {
    full_pieces: Vec<Vec<u8>>,
    last_piece: Vec<u8>,
    size: usize,
}

impl Collected {
    fn new(length: Option<usize>) -> Self {
        Self { full_pieces: Vec::new(), last_piece: Vec::with_capacity(length.unwrap_or(0)), size: 0 }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.last_piece.len() == self.last_piece.capacity() {
                let piece = Vec::with_capacity(self.size.clamp(MIN_PIECE_BYTES, MAX_PIECE_BYTES));
                let full = std::mem::replace(&mut self.last_piece, piece);
                self.full_pieces.extend((!full.is_empty()).then_some(full));
            }
            let room = self.last_piece.capacity() - self.last_piece.len();
            let (fitting, rest) = bytes.split_at(room.min(bytes.len()));
            self.last_piece.extend_from_slice(fitting);
            self.size += fitting.len();
            bytes = rest;
        }
    }

    fn join(self) -> Bytes {
        if self.full_pieces.is_empty() {
            return self.last_piece.into();
        }
        let mut joined = Vec::with_capacity(self.size);
        for piece in self.full_pieces.into_iter().chain([self.last_piece]) {
            joined.extend_from_slice(&piece);
        }
        joined.into()
    }
}

const CHUNKS: usize = 8;

enum Part {
    Chunk(Bytes),
    Failed(TransportError),
    End,
}

pub(super) fn body_channel() -> (BodySender, BodyReceiver) {
    let (sender, parts) = mpsc::channel(CHUNKS);
    (BodySender(sender), BodyReceiver { parts, is_over: false })
}

pub(super) struct BodySender(mpsc::Sender<Part>);

impl BodySender {
    pub(super) async fn forward(self, body: impl Stream<Item = Result<Bytes, TransportError>>) {
        let mut body = std::pin::pin!(body);
        // Reserves first, so that a chunk without a place is not read.
        while let Ok(place) = self.0.reserve().await {
            let read = tokio::select! {
                biased;
                () = self.0.closed() => return,
                read = body.next() => read,
            };
            let (part, is_last) = match read {
                Some(Ok(chunk)) => (Part::Chunk(chunk), false),
                Some(Err(error)) => (Part::Failed(error), true),
                None => (Part::End, true),
            };
            place.send(part);
            if is_last {
                return;
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct BodyReceiver {
    parts: mpsc::Receiver<Part>,
    is_over: bool,
}

impl Stream for BodyReceiver {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let part = ready!(self.parts.poll_recv(context));
        self.is_over = !matches!(part, Some(Part::Chunk(_)));
        Poll::Ready(match part {
            Some(Part::Chunk(chunk)) => Some(Ok(chunk)),
            Some(Part::Failed(error)) => Some(Err(error)),
            Some(Part::End) => None,
            None => Some(Err(TransportError::Truncated)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering;

    fn collected(length: Option<usize>, chunks: usize) -> Collected {
        let mut collected = Collected::new(length);
        for number in 0..chunks {
            collected.push(&[u8::try_from(number % 251).unwrap(); 8 << 10]);
        }
        collected
    }

    #[test]
    fn a_body_of_known_length_is_written_once_into_memory_of_that_length() {
        let length = 300 * (8 << 10);
        let collected = collected(Some(length), 300);
        assert_eq!((collected.full_pieces.len(), collected.last_piece.capacity()), (0, length));
        assert_eq!(collected.join().len(), length);
    }

    #[test]
    fn a_body_of_unknown_length_is_collected_in_pieces_that_never_grow() {
        let collected = collected(None, 3_000);
        assert!(collected.full_pieces.iter().all(|piece| piece.len() == piece.capacity()));
        let pieces = collected.full_pieces.iter().chain([&collected.last_piece]);
        let reserved: usize = pieces.map(Vec::capacity).sum();
        assert!(reserved <= 3_000 * (8 << 10) + MAX_PIECE_BYTES, "{reserved}");
        let joined = collected.join();
        assert_eq!(joined.len(), 3_000 * (8 << 10));
        assert!(joined.chunks(8 << 10).enumerate().all(|(number, chunk)| chunk[0] as usize == number % 251));
    }

    #[tokio::test]
    async fn a_body_above_the_limit_is_refused_whatever_length_its_head_gives() {
        for length in [None, Some(5), Some(usize::MAX)] {
            let chunks = [Ok(Bytes::from_static(b"123")), Ok(Bytes::from_static(b"456"))];
            let body = stream::iter(chunks).boxed_local();
            assert_eq!(collect(body, length, 5).await.unwrap(), None);
        }
    }

    fn chunk(text: &'static str) -> Result<Bytes, TransportError> {
        Ok(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn a_body_ends_as_it_was_read_and_nothing_comes_behind_an_error() {
        let cut = || Err(TransportError::Malformed("no HTTP".to_owned()));
        for (body, chunks, error) in [
            (vec![chunk("a"), chunk("b")], 2, None),
            (vec![chunk("a"), cut(), chunk("b")], 1, Some("no HTTP")),
            (vec![], 0, None),
        ] {
            let (sender, receiver) = body_channel();
            let (read, ()) = tokio::join!(receiver.collect::<Vec<_>>(), sender.forward(stream::iter(body)));
            assert_eq!(read.iter().filter(|part| part.is_ok()).count(), chunks);
            let last = read.last().and_then(|part| part.as_ref().err()).map(ToString::to_string);
            assert_eq!(last.is_some(), error.is_some());
            assert!(last.is_none_or(|last| last.contains(error.unwrap_or_default())));
        }
    }

    #[tokio::test]
    async fn a_body_whose_thread_goes_away_is_cut_off_and_does_not_end_cleanly() {
        let (sender, mut receiver) = body_channel();
        let reading = tokio::spawn(sender.forward(stream::iter([chunk("a")]).chain(stream::pending())));
        assert_eq!(receiver.next().await.unwrap().unwrap(), "a");
        reading.abort();
        assert!(matches!(receiver.next().await, Some(Err(TransportError::Truncated))));
        assert!(receiver.next().await.is_none());
    }

    #[tokio::test]
    async fn a_body_that_nobody_reads_is_read_up_to_the_bound_and_ends_with_its_reader() {
        let read = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&read);
        let endless = stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            chunk("x")
        });
        let (sender, receiver) = body_channel();
        let mut forwarding = Box::pin(sender.forward(endless));
        for _ in 0..100 {
            assert!(futures_util::poll!(&mut forwarding).is_pending());
        }
        assert_eq!(read.load(Ordering::Relaxed), CHUNKS);
        drop(receiver);
        forwarding.await;
        let (sender, receiver) = body_channel();
        let mut silent = Box::pin(sender.forward(stream::pending()));
        assert!(futures_util::poll!(&mut silent).is_pending());
        drop(receiver);
        silent.await;
    }
}
