//! Turns the body of a list into parts for the reflector.
//!
//! Answers "which objects has the page brought so far, and is it complete?" The steps, each a stream:
//!
//! ```text
//!  body --> chunks(): splits it into items and gathers them to chunks; checks the end of the document and of the body
//!       --> decode(): turns each chunk into parts, several chunks at a time on the pool, in order
//!       --> check_head(): behind the last item, checks what the list says about itself
//! ```
//!
//! Invariants:
//! 1. `ListPart::End` comes only when the document has closed, is a list of the kind asked for, and has a version, and
//!    when the body has ended behind it: a wrong checksum or length refuses the list.
//! 2. If an item is not JSON, the document is not JSON either: the whole list is refused. The item may have swallowed
//!    others, and the reflector would take them for deleted.
//! 3. Items without a kind of their own are taken to be of the list's kind. A list of another kind with such items is
//!    refused as a whole.
//!
//! Read next: `frames/list.rs`, which finds the items.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, Fuse, Stream};
use futures_util::{FutureExt, StreamExt};
use informer_actors::list_watch::KnownObjects;
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use tokio::time::timeout;

use super::decode::{Decoder, Observed};
use super::place::DecodePlace;
use super::{Body, CHUNK_BYTES, CHUNK_OBJECTS};
use crate::client::error::TransportError;
use crate::client::frames::{Frame, ListHead, ListSplitter, SplitError};
use crate::representation::Representation;
use crate::text::shortened;

/// How long the end of the body may take after its document has closed, whatever bytes arrive meanwhile. Usually the
/// end arrives with the document; it is later only if packets were lost. It carries the checksum of the whole body.
const BODY_END_DEADLINE: Duration = Duration::from_secs(10);
/// At most this many characters of a kind that a server names are shown in an error.
const MAX_KIND_CHARS: usize = 100;

/// Reads one list.
pub(super) struct ListReader<R: Representation> {
    pub(super) decoder: Arc<Decoder<R>>,
    pub(super) place: DecodePlace,
    pub(super) frame_limit: usize,
    pub(super) known: KnownObjects<R::Body>,
}

type Parts<S> = Vec<Result<ListPart<S>, ListWatchError>>;

/// What is decoded at once, or the end behind the last item.
enum Chunk {
    Items(Vec<Frame>),
    End(ListHead),
}

/// A chunk after decoding.
enum Decoded<S> {
    Items { parts: Parts<S>, has_items_without_kind: bool },
    End(ListHead),
}

impl<R: Representation> ListReader<R> {
    pub(super) fn parts(self, body: Body) -> impl Stream<Item = Result<ListPart<R::Body>, ListWatchError>> {
        let width = self.place.width();
        let Self { decoder, place, frame_limit, known } = self;
        let list_kind = decoder.representation.expected().map(|expected| format!("{}List", expected.kind));
        let decoded = move |chunk| {
            let (decoder, known, place) = (Arc::clone(&decoder), known.clone(), place.clone());
            async move {
                match chunk {
                    Ok(Chunk::Items(items)) => decode(decoder, known, place, items).await,
                    Ok(Chunk::End(head)) => Decoded::End(head),
                    Err(error) => Decoded::failed(error),
                }
            }
            .boxed_local()
        };
        // `buffered` keeps the order, so the end comes here only after every item.
        let checked = move |has_items_without_kind: &mut bool, decoded| {
            ready(Some(match decoded {
                Decoded::Items { parts, has_items_without_kind: in_chunk } => {
                    *has_items_without_kind |= in_chunk;
                    parts
                }
                Decoded::End(head) => vec![check_head(head, list_kind.as_deref(), *has_items_without_kind)],
            }))
        };
        chunks(body, frame_limit).map(decoded).buffered(width + 1).scan(false, checked).flat_map(stream::iter)
    }
}

impl<S> Decoded<S> {
    fn failed(error: ListWatchError) -> Self {
        Self::Items { parts: vec![Err(error)], has_items_without_kind: false }
    }
}

/// Decodes the items of one chunk.
async fn decode<R: Representation>(
    decoder: Arc<Decoder<R>>,
    known: KnownObjects<R::Body>,
    place: DecodePlace,
    items: Vec<Frame>,
) -> Decoded<R::Body> {
    let bytes: usize = items.iter().map(Frame::len).sum();
    let job = move || {
        let (mut objects, mut parts) = (Vec::with_capacity(items.len()), Vec::new());
        let mut has_items_without_kind = false;
        for item in &items {
            let (observed, has_kind) = decoder.item(item, &known);
            has_items_without_kind |= !has_kind;
            match observed {
                Observed::Object(object) => objects.push(object),
                Observed::Undecodable(undecodable) => parts.push(Ok(ListPart::Undecodable(undecodable))),
                Observed::Unreadable(why) => parts.push(Ok(ListPart::Unreadable(why))),
                Observed::NotJson(why) => {
                    let message = format!("an item is not JSON: {why}");
                    return Decoded::failed(ListWatchError::Protocol(message.into()));
                }
            }
        }
        if !objects.is_empty() {
            parts.insert(0, Ok(ListPart::Objects(objects)));
        }
        Decoded::Items { parts, has_items_without_kind }
    };
    // A long list of small chunks must not block the other tasks of the arbiter.
    tokio::task::yield_now().await;
    place.run(bytes, job).await.unwrap_or_else(Decoded::failed)
}

/// The chunks of the list, then its end; nothing comes behind an error.
fn chunks(body: Body, frame_limit: usize) -> impl Stream<Item = Result<Chunk, ListWatchError>> {
    let splitter = ListSplitter::new(frame_limit);
    let reader = ChunkReader {
        body: body.fuse(),
        splitter,
        split: Vec::new(),
        items: VecDeque::new(),
        items_bytes: 0,
    };
    stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        Some(match reader.items().await {
            Ok(Some(items)) => (Ok(Chunk::Items(items)), Some(reader)),
            Ok(None) => (reader.end().await.map(Chunk::End), None),
            Err(error) => (Err(error), None),
        })
    })
}

/// Gathers the items of the body to chunks.
struct ChunkReader {
    body: Fuse<Body>,
    splitter: ListSplitter,
    /// The items that one body chunk completed, on their way to `items`. Kept to reuse its allocation.
    split: Vec<Frame>,
    /// Items that are not yet in a chunk.
    items: VecDeque<Frame>,
    items_bytes: usize,
}

impl ChunkReader {
    /// The next full chunk; then, when the document or the body has ended, the rest; then `None`.
    async fn items(&mut self) -> Result<Option<Vec<Frame>>, ListWatchError> {
        loop {
            if self.items.len() >= CHUNK_OBJECTS || self.items_bytes >= CHUNK_BYTES {
                return Ok(Some(self.take_chunk()));
            }
            if self.splitter.is_closed() || self.body.is_done() {
                return Ok((!self.items.is_empty()).then(|| self.take_chunk()));
            }
            if let Some(chunk) = self.body.next().await {
                self.splitter.push(&chunk?, &mut self.split).map_err(|error| invalid_list(&error))?;
                self.items_bytes += self.split.iter().map(Frame::len).sum::<usize>();
                self.items.extend(self.split.drain(..));
            }
        }
    }

    /// Takes one chunk off the front of the items: one body chunk may hold many. The cost is that of the items taken.
    fn take_chunk(&mut self) -> Vec<Frame> {
        let mut bytes = 0;
        let mut fits = |item: &Frame| {
            let fits = bytes < CHUNK_BYTES;
            bytes += item.len();
            fits
        };
        let count = self.items.iter().take(CHUNK_OBJECTS).take_while(|item| fits(item)).count();
        let chunk: Vec<_> = self.items.drain(..count).collect();
        self.items_bytes -= chunk.iter().map(Frame::len).sum::<usize>();
        chunk
    }

    /// What the list said about itself, when both its document and the body are complete.
    async fn end(mut self) -> Result<ListHead, ListWatchError> {
        if self.splitter.is_closed() {
            let what = "the end of a list behind its document";
            let late = TransportError::Timeout { what, after: BODY_END_DEADLINE };
            let ended = timeout(BODY_END_DEADLINE, self.read_to_end()).await;
            ended.unwrap_or_else(|_| Err(late.into()))?;
        }
        self.splitter.finish().map_err(|error| invalid_list(&error))
    }

    /// Reads to the end of the body, where the transport checks its checksum and its length.
    async fn read_to_end(&mut self) -> Result<(), ListWatchError> {
        while let Some(chunk) = self.body.next().await {
            self.splitter.push(&chunk?, &mut self.split).map_err(|error| invalid_list(&error))?;
        }
        Ok(())
    }
}

fn invalid_list(error: &SplitError) -> ListWatchError {
    ListWatchError::Protocol(error.to_string().into())
}

/// Checks what the list said about itself. `list_kind` is the kind that it should have.
fn check_head<S>(
    head: ListHead,
    list_kind: Option<&str>,
    has_items_without_kind: bool,
) -> Result<ListPart<S>, ListWatchError> {
    let refused = |why: String| Err(ListWatchError::Protocol(why.into()));
    let kind = shortened(head.kind.as_deref().unwrap_or("object without a kind"), MAX_KIND_CHARS);
    let kind = kind.as_str();
    if kind == "Table" {
        return refused("a Table is not supported: the server must send a list of objects".to_owned());
    }
    if !head.has_items {
        return refused(format!("a {kind} is not a list"));
    }
    if let Some(expected) = list_kind.filter(|expected| has_items_without_kind && *expected != kind) {
        return refused(format!("wrong kind: a {kind}, not a {expected}"));
    }
    let Some(version) = head.version else {
        return refused(format!("the {kind} has no resource version"));
    };
    match version.parse() {
        Ok(version) => Ok(ListPart::End { version, token: head.token }),
        Err(error) => refused(shortened(&error.to_string(), MAX_KIND_CHARS)),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use bytes::Bytes;
    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// The processor time of this thread so far, in microseconds: other programs on the machine do not count.
    fn thread_cpu_micros() -> i64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }

    async fn cost_of_chunking(count: usize) -> i64 {
        let list = format!(r#"{{"items":[{}0]}}"#, "0,".repeat(count - 1));
        let body = stream::iter([Ok(Bytes::from(list))]).boxed_local();
        let before = thread_cpu_micros();
        let (mut chunks, mut found) = (pin!(chunks(body, 1 << 20)), 0);
        while let Some(chunk) = chunks.next().await {
            match chunk.unwrap() {
                Chunk::Items(items) => found += items.len(),
                Chunk::End(_) => break,
            }
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
}
