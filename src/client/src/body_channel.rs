//! Carries a body from the thread that reads it to the one that uses it.
//!
//! Answers "how does a body cross threads without growing in memory, or ending unseen?" Invariants:
//! 1. At most `CHUNKS` chunks wait for the reader. While they do, no more are read from the connection, and the server
//!    waits.
//! 2. A reader that is dropped ends the body at once, also while the server is silent.
//! 3. A body ends cleanly only if its end was read: when the thread that reads it goes away first, it is cut off.
//!
//! Read next: `worker.rs`, which reads for callers in any runtime.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::error::TransportError;

/// So many chunks of a body wait for its reader at most.
const CHUNKS: usize = 8;

enum Part {
    Chunk(Bytes),
    Failed(TransportError),
    End,
}

/// Both ends of a channel for one body.
pub(super) fn body_channel() -> (BodySender, BodyReceiver) {
    let (sender, parts) = mpsc::channel(CHUNKS);
    (BodySender(sender), BodyReceiver { parts, is_over: false })
}

/// The end on the thread that reads the body.
pub(super) struct BodySender(mpsc::Sender<Part>);

impl BodySender {
    /// Moves the chunks of a body to the reader, until the body ends or nobody reads it any more.
    pub(super) async fn forward(self, body: impl Stream<Item = Result<Bytes, TransportError>>) {
        let mut body = std::pin::pin!(body);
        // A place first: what does not fit is not read.
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

/// The end of the reader: the body as a stream. Dropping it ends the request.
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::stream;

    use super::*;

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
