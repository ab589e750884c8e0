//! The body of a list, as parts.
//!
//! Answers "which objects has the page brought so far, and is it whole?" Invariants:
//! 1. The end is told only when the document has closed, is a list of the kind asked for, and has a version, and when
//!    the body has ended behind it: a wrong checksum or length refuses the list.
//! 2. An item that is no JSON makes the document none: the list is refused as a whole, since the item may have
//!    swallowed others, which would pass for deleted.
//! 3. Items without a kind of their own are believed to be of the list's; a list of another kind with such items is
//!    refused as a whole.
//!
//! Read next: `frames/list.rs`, which finds the items.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, Fuse, Stream};
use futures_util::{FutureExt, StreamExt};
use informer_actors::list_watch::Known;
use informer_actors::runtime::DecodePool;
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use tokio::time::timeout;

use super::decode::{Decoder, Observed};
use super::{Body, CHUNK_BYTES, CHUNK_OBJECTS, on_pool};
use crate::client::error::TransportError;
use crate::client::frames::{Frame, ListHead, ListSplitter, SplitError};
use crate::representation::Representation;
use crate::text::shortened;

/// How long the end of a body may take when its document has closed, whatever trickles in meanwhile. It comes at once,
/// but for packets that were lost: what it checks is what came before.
const LINGER: Duration = Duration::from_secs(10);
/// At most this much of a kind that a server names is told.
const KIND: usize = 100;

/// What reading a list needs besides its body.
pub(super) struct Reading<R: Representation> {
    pub(super) decoder: Arc<Decoder<R>>,
    pub(super) pool: DecodePool,
    pub(super) frame_limit: usize,
    pub(super) known: Known<R::Body>,
}

type Parts<S> = Vec<Result<ListPart<S>, ListWatchError>>;

enum Piece {
    Items(Vec<Frame>),
    End(ListHead),
    Failed(ListWatchError),
}

/// What became of a piece.
enum Done<S> {
    Parts { parts: Parts<S>, has_nameless: bool },
    End(ListHead),
}

impl<R: Representation> Reading<R> {
    pub(super) fn parts(self, body: Body) -> impl Stream<Item = Result<ListPart<R::Body>, ListWatchError>> {
        let width = self.pool.width();
        let Self { decoder, pool, frame_limit, known } = self;
        let judge = Arc::clone(&decoder);
        let decode = move |piece| {
            let (decoder, known, pool) = (Arc::clone(&decoder), known.clone(), pool.clone());
            async move {
                match piece {
                    Piece::Items(items) => decoded(decoder, known, pool, items).await,
                    Piece::End(head) => Done::End(head),
                    Piece::Failed(error) => Done::failed(error),
                }
            }
            .boxed_local()
        };
        // The end is judged behind `buffered`, where every item has been seen.
        let judged = move |nameless: &mut bool, done| {
            ready(Some(match done {
                Done::Parts { parts, has_nameless } => {
                    *nameless |= has_nameless;
                    parts
                }
                Done::End(head) => vec![end(&judge, head, *nameless)],
            }))
        };
        pieces(body, frame_limit).map(decode).buffered(width + 1).scan(false, judged).flat_map(stream::iter)
    }
}

impl<S> Done<S> {
    fn failed(error: ListWatchError) -> Self {
        Self::Parts { parts: vec![Err(error)], has_nameless: false }
    }
}

/// Decodes one chunk.
async fn decoded<R: Representation>(
    decoder: Arc<Decoder<R>>,
    known: Known<R::Body>,
    pool: DecodePool,
    items: Vec<Frame>,
) -> Done<R::Body> {
    let bytes: usize = items.iter().map(Frame::len).sum();
    let job = move || {
        let (mut objects, mut parts, mut has_nameless) = (Vec::with_capacity(items.len()), Vec::new(), false);
        for item in &items {
            let (observed, has_kind) = decoder.item(item, &known);
            has_nameless |= !has_kind;
            match observed {
                Observed::Object(object) => objects.push(object),
                Observed::SetAside(aside) => parts.push(Ok(ListPart::SetAside(aside))),
                Observed::Unreadable(why) => parts.push(Ok(ListPart::Unreadable(why))),
                Observed::NotJson(why) => {
                    return Done::failed(ListWatchError::Protocol(
                        format!("an item is no JSON: {why}").into(),
                    ));
                }
            }
        }
        if !objects.is_empty() {
            parts.insert(0, Ok(ListPart::Objects(objects)));
        }
        Done::Parts { parts, has_nameless }
    };
    // A long list of small chunks must not keep the arbiter from everything else.
    tokio::task::yield_now().await;
    on_pool(&pool, bytes, job).await.unwrap_or_else(Done::failed)
}

struct Progress {
    /// Asked again behind its end: for what follows the items that were still to be handed on.
    body: Fuse<Body>,
    splitter: ListSplitter,
    /// What one body chunk completed, on its way to `items`.
    split: Vec<Frame>,
    items: VecDeque<Frame>,
    held: usize,
}

fn pieces(body: Body, frame_limit: usize) -> impl Stream<Item = Piece> {
    let splitter = ListSplitter::new(frame_limit);
    let progress =
        Progress { body: body.fuse(), splitter, split: Vec::new(), items: VecDeque::new(), held: 0 };
    stream::unfold(Some(progress), |progress| async move { Some(progress?.next().await) })
}

impl Progress {
    /// The next full chunk, or the last one, or the end; then, if there is more, itself.
    async fn next(mut self) -> (Piece, Option<Self>) {
        loop {
            if self.items.len() >= CHUNK_OBJECTS || self.held >= CHUNK_BYTES {
                return (self.take(), Some(self));
            }
            if self.splitter.is_closed() {
                return self.finish().await;
            }
            let chunk = match self.body.next().await {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => return (Piece::Failed(error.into()), None),
                None => return self.finish().await,
            };
            if let Err(error) = self.splitter.push(&chunk, &mut self.split) {
                return (Piece::Failed(broken(&error)), None);
            }
            self.held += self.split.iter().map(Frame::len).sum::<usize>();
            self.items.extend(self.split.drain(..));
        }
    }

    /// Cuts a chunk off the items: one body chunk may hold many. Costs what is cut off.
    fn take(&mut self) -> Piece {
        let mut bytes = 0;
        let mut fits = |item: &Frame| {
            let room = bytes < CHUNK_BYTES;
            bytes += item.len();
            room
        };
        let count = self.items.iter().take(CHUNK_OBJECTS).take_while(|item| fits(item)).count();
        let chunk: Vec<_> = self.items.drain(..count).collect();
        self.held -= chunk.iter().map(Frame::len).sum::<usize>();
        Piece::Items(chunk)
    }

    async fn finish(mut self) -> (Piece, Option<Self>) {
        if !self.items.is_empty() {
            return (self.take(), Some(self));
        }
        if self.splitter.is_closed() {
            let late =
                TransportError::Timeout { what: "the end of a list behind its document", after: LINGER };
            let ended = timeout(LINGER, self.body_end()).await;
            if let Err(error) = ended.unwrap_or_else(|_| Err(late.into())) {
                return (Piece::Failed(error), None);
            }
        }
        match self.splitter.finish() {
            Ok(head) => (Piece::End(head), None),
            Err(error) => (Piece::Failed(broken(&error)), None),
        }
    }

    /// Reads to the end of the body, where its checksum and its length are judged.
    async fn body_end(&mut self) -> Result<(), ListWatchError> {
        while let Some(chunk) = self.body.next().await {
            self.splitter.push(&chunk?, &mut self.split).map_err(|error| broken(&error))?;
        }
        Ok(())
    }
}

fn broken(error: &SplitError) -> ListWatchError {
    ListWatchError::Protocol(error.to_string().into())
}

/// Judges what the list said of itself.
fn end<R: Representation>(
    decoder: &Decoder<R>,
    head: ListHead,
    has_nameless_items: bool,
) -> Result<ListPart<R::Body>, ListWatchError> {
    let refused = |why: String| Err(ListWatchError::Protocol(why.into()));
    let kind = shortened(head.kind.as_deref().unwrap_or("object without a kind"), KIND);
    let kind = kind.as_str();
    if kind == "Table" {
        return refused("a Table is not supported: the server must send a list of objects".to_owned());
    }
    if !head.has_items {
        return refused(format!("a {kind} is no list"));
    }
    let expected = decoder.representation.expected().map(|expected| format!("{}List", expected.kind));
    if let Some(expected) = expected.filter(|expected| has_nameless_items && expected != kind) {
        return refused(format!("wrong kind: a {kind}, not a {expected}"));
    }
    let Some(version) = head.version else {
        return refused(format!("the {kind} has no resource version"));
    };
    match version.parse() {
        Ok(version) => Ok(ListPart::End { version, token: head.token }),
        Err(error) => refused(shortened(&error.to_string(), KIND)),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use bytes::Bytes;
    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// The processor time of this thread so far, in microseconds: what others do on the machine does not count.
    fn cpu() -> i64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }

    async fn cost_of_cutting(count: usize) -> i64 {
        let list = format!(r#"{{"items":[{}0]}}"#, "0,".repeat(count - 1));
        let body = stream::iter([Ok(Bytes::from(list))]).boxed_local();
        let before = cpu();
        let (mut pieces, mut cut) = (pin!(pieces(body, 1 << 20)), 0);
        while let Some(piece) = pieces.next().await {
            match piece {
                Piece::Items(items) => cut += items.len(),
                Piece::End(_) => break,
                Piece::Failed(error) => panic!("{error}"),
            }
        }
        assert_eq!(cut, count);
        cpu() - before
    }

    #[tokio::test]
    async fn cutting_one_body_chunk_of_many_items_costs_no_more_than_its_items() {
        let (few, many) = (cost_of_cutting(25_000).await, cost_of_cutting(400_000).await);
        // 16 times as many; 256 times the cost if each cut moved the rest.
        assert!(many < 64 * few.max(1), "{few} us, {many} us");
    }
}
