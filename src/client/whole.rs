//! A whole body in one piece of memory.
//!
//! Answers "how is an answer gathered that is needed at once?" for single objects and single requests; lists and
//! watches are read as they come. Invariants:
//! 1. What is gathered never exceeds the limit, and what is reserved for it neither.
//! 2. Of known length it is written once, into memory of that length. Of unknown length it is gathered in pieces of at
//!    most 1 MiB and joined at the end, each piece freed as soon as it is joined: no piece is ever copied to grow.

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, header};

use super::error::TransportError;
use super::transport::Body;

const LEAST_PIECE: usize = 16 << 10;
const LARGEST_PIECE: usize = 1 << 20;

/// The whole body, or `None` if it is larger than `limit`; `length` is what its head said, if that counts its bytes.
pub(crate) async fn whole(
    mut body: Body,
    length: Option<usize>,
    limit: usize,
) -> Result<Option<Bytes>, TransportError> {
    let mut gathered = Gathered::new(length.filter(|length| *length <= limit));
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        if chunk.len() > limit - gathered.size {
            return Ok(None);
        }
        gathered.push(&chunk);
    }
    Ok(Some(gathered.join()))
}

/// How many bytes will come, where that is known: an encoded body is longer than its Content-Length.
pub(crate) fn length_of(headers: &HeaderMap) -> Option<usize> {
    let encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity");
    let length = headers.get(header::CONTENT_LENGTH).filter(|_| !encoded)?;
    length.to_str().ok()?.parse().ok()
}

struct Gathered {
    full: Vec<Vec<u8>>,
    open: Vec<u8>,
    size: usize,
}

impl Gathered {
    fn new(length: Option<usize>) -> Self {
        Self { full: Vec::new(), open: Vec::with_capacity(length.unwrap_or(0)), size: 0 }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.open.len() == self.open.capacity() {
                let piece = Vec::with_capacity(self.size.clamp(LEAST_PIECE, LARGEST_PIECE));
                let full = std::mem::replace(&mut self.open, piece);
                self.full.extend((!full.is_empty()).then_some(full));
            }
            let room = self.open.capacity() - self.open.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.open.extend_from_slice(now);
            self.size += now.len();
            bytes = later;
        }
    }

    fn join(self) -> Bytes {
        if self.full.is_empty() {
            return self.open.into();
        }
        let mut joined = Vec::with_capacity(self.size);
        for piece in self.full.into_iter().chain([self.open]) {
            joined.extend_from_slice(&piece);
        }
        joined.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(length: Option<usize>, chunks: usize) -> Gathered {
        let mut gathered = Gathered::new(length);
        for number in 0..chunks {
            gathered.push(&[u8::try_from(number % 251).unwrap(); 8 << 10]);
        }
        gathered
    }

    #[test]
    fn a_body_of_known_length_is_written_once_into_memory_of_that_length() {
        let length = 300 * (8 << 10);
        let gathered = gathered(Some(length), 300);
        assert_eq!((gathered.full.len(), gathered.open.capacity()), (0, length));
        assert_eq!(gathered.join().len(), length);
    }

    #[test]
    fn a_body_of_unknown_length_is_gathered_in_pieces_none_of_which_grows() {
        let gathered = gathered(None, 3_000);
        assert!(gathered.full.iter().all(|piece| piece.len() == piece.capacity()));
        let reserved: usize = gathered.full.iter().chain([&gathered.open]).map(Vec::capacity).sum();
        assert!(reserved <= 3_000 * (8 << 10) + LARGEST_PIECE, "{reserved}");
        let joined = gathered.join();
        assert_eq!(joined.len(), 3_000 * (8 << 10));
        assert!(joined.chunks(8 << 10).enumerate().all(|(number, chunk)| chunk[0] as usize == number % 251));
    }

    #[tokio::test]
    async fn a_body_above_the_limit_is_none_whatever_length_it_claims() {
        for length in [None, Some(5), Some(usize::MAX)] {
            let chunks = [Ok(Bytes::from_static(b"123")), Ok(Bytes::from_static(b"456"))];
            let body = futures_util::stream::iter(chunks).boxed_local();
            assert_eq!(whole(body, length, 5).await.unwrap(), None);
        }
    }
}
