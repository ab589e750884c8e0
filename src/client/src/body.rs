//! Collects a whole body in one piece of memory.
//!
//! Answers "how is a body read that is needed as a whole?" for single objects and single requests. Lists and watches
//! are read while they arrive. Invariants:
//! 1. Neither the collected bytes nor the memory reserved for them exceed the limit.
//! 2. A body of known length is written once, into memory of that length. A body of unknown length is collected in
//!    pieces of at most 1 MiB, which are joined at the end. A piece is freed as soon as it is joined, and never grows.

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, header};

use super::error::TransportError;
use super::transport::Body;

const MIN_PIECE_BYTES: usize = 16 << 10;
const MAX_PIECE_BYTES: usize = 1 << 20;

/// The whole body, or `None` if it is larger than `limit`. `length` is its length, if the head of the answer gives it.
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

/// The length of the body, where it is known. For an encoded body it is not: its Content-Length counts the encoded
/// bytes.
pub(crate) fn length_of(headers: &HeaderMap) -> Option<usize> {
    let encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity");
    let length = headers.get(header::CONTENT_LENGTH).filter(|_| !encoded)?;
    length.to_str().ok()?.parse().ok()
}

struct Collected {
    full_pieces: Vec<Vec<u8>>,
    /// The piece that is being filled.
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

#[cfg(test)]
mod tests {
    use super::*;

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
            let body = futures_util::stream::iter(chunks).boxed_local();
            assert_eq!(collect(body, length, 5).await.unwrap(), None);
        }
    }
}
