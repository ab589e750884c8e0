//! Turns the body of a list into parts for the reflector. The steps, each a stream:
//!
//! ```text
//!  body --> chunks(): the items in chunks, then what the list says about itself, when document and body have ended
//!       --> decode(): turns each chunk into parts, several chunks at a time on the pool, in order
//!       --> check_head(): behind the last item, checks what the list says about itself
//! ```
//!
//! 1. `ListPart::End` comes only when document and body have ended, and the document is a list of the
//!    requested kind with a version: a wrong checksum or length refuses the list.
//! 2. An item that is not one document refuses the whole list: it may have swallowed others, and the
//!    reflector would take them for deleted.
//! 3. Items without a kind have that of their list, which must then be the requested one.

use std::sync::Arc;

use futures_util::future::ready;
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt, StreamExt};
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::words::shortened;

use super::chunks::ChunkReader;
use super::decode::Observed;
use super::{Body, Reader};
use crate::representation::Representation;
use crate::wire::{Frame, ListHead, Splitter, WireKind};

const MAX_KIND_CHARS: usize = 100;

type Parts<S> = Vec<Result<ListPart<S>, ListWatchError>>;

enum Chunk {
    Items(Vec<Frame>),
    End(ListHead),
}

enum Decoded<S> {
    Items { parts: Parts<S>, has_items_without_kind: bool },
    End(ListHead),
}

impl<R: Representation> Reader<R> {
    pub(super) fn parts(
        self,
        wire: WireKind,
        body: Body,
    ) -> impl Stream<Item = Result<ListPart<R::Body>, ListWatchError>> {
        let chunks = chunks(body, Splitter::list(wire, self.frame_limit));
        let width = self.place.width();
        let expected = self.decoder.representation.expected();
        let list_kind = expected.map(|expected| format!("{}List", expected.kind));
        let reader = Arc::new(self);
        let decoded = move |chunk| {
            let reader = Arc::clone(&reader);
            async move {
                match chunk {
                    Ok(Chunk::Items(items)) => decode(&reader, wire, items).await,
                    Ok(Chunk::End(head)) => Decoded::End(head),
                    Err(error) => Decoded::failed(error),
                }
            }
            .boxed_local()
        };
        // `buffered` keeps the order: the end comes only after every item.
        let checked = move |has_items_without_kind: &mut bool, decoded| {
            ready(Some(match decoded {
                Decoded::Items { parts, has_items_without_kind: in_chunk } => {
                    *has_items_without_kind |= in_chunk;
                    parts
                }
                Decoded::End(head) => vec![check_head(head, list_kind.as_deref(), *has_items_without_kind)],
            }))
        };
        chunks.map(decoded).buffered(width + 1).scan(false, checked).flat_map(stream::iter)
    }
}

impl<S> Decoded<S> {
    fn failed(error: ListWatchError) -> Self {
        Self::Items { parts: vec![Err(error)], has_items_without_kind: false }
    }
}

async fn decode<R: Representation>(
    reader: &Reader<R>,
    wire: WireKind,
    items: Vec<Frame>,
) -> Decoded<R::Body> {
    let (decoder, known) = (Arc::clone(&reader.decoder), reader.known.clone());
    let (bytes, count) = (items.iter().map(Frame::len).sum(), items.len());
    let job = move || {
        let decoding = decoder.decoding(wire, &known);
        let (mut objects, mut parts) = (Vec::with_capacity(items.len()), Vec::new());
        let mut has_items_without_kind = false;
        for item in &items {
            let (observed, has_kind) = decoding.item(item);
            has_items_without_kind |= !has_kind;
            match observed {
                Observed::Object(object) => objects.push(object),
                Observed::Passed(_) => {}
                Observed::Undecodable(undecodable) => parts.push(Ok(ListPart::Undecodable(undecodable))),
                Observed::Unreadable(why) => parts.push(Ok(ListPart::Unreadable(why))),
                Observed::NotADocument(why) => {
                    let message = format!("an item is not {}: {why}", wire.name());
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
    reader.place.run((bytes, count), job).await.unwrap_or_else(Decoded::failed)
}

fn chunks(body: Body, splitter: Splitter) -> impl Stream<Item = Result<Chunk, ListWatchError>> {
    stream::unfold(Some(ChunkReader::new(body, splitter, Box::new(|| None))), |reader| async move {
        let mut reader = reader?;
        Some(match reader.full().await {
            Ok(Some(items)) => (Ok(Chunk::Items(items)), Some(reader)),
            Ok(None) => (reader.end().await.map(Chunk::End), None),
            Err(error) => (Err(error), None),
        })
    })
}

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
        return refused(format!("the {kind} has no resource version, so it cannot be watched"));
    };
    match version.parse() {
        Ok(version) => Ok(ListPart::End { version, token: head.token }),
        Err(error) => refused(shortened(&error.to_string(), MAX_KIND_CHARS)),
    }
}
