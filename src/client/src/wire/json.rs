//! Objects written as JSON: a list is one document, a watch is one event a line.
//!
//! Answers what `wire.rs` asks, for JSON. One scanner finds the ends of values: blocks of 64 bytes (`block.rs`), the
//! value that they end (`value_scanner.rs`), a position that moves over values (`cursor.rs`). Everything else stands on
//! it: the splitter of bodies (`split.rs`), the scans of metadata (`identify.rs`) and of paths (`cut.rs`), events
//! (`event.rs`) and the cut of fields (`cut.rs`). Invariants:
//! 1. What is scanned is not checked. Who keeps bytes without decoding them checks them with [`is_document`].
//!
//! Read next: `split.rs`.

mod block;
mod cursor;
mod cut;
mod error;
mod event;
mod identify;
mod split;
mod value_scanner;

use serde::de::IgnoredAny;

pub(crate) use cursor::Cursor;
pub(crate) use cut::{Cut, LeftOut, cut, scan};
pub use error::JsonError;
pub(crate) use event::{Event, EventType, INITIAL_EVENTS_END, bookmark, event, event_head, parsed_event};
pub(crate) use identify::{identify, labels, owners};
pub use split::Splitter;

use super::{Form, RequestedContent};

/// The media type in a Content-Type.
pub(super) const MEDIA_TYPE: &str = "application/json";

/// The Accept header. A server answers with the first kind that it has.
pub(super) fn accept(content: RequestedContent, form: Form) -> &'static str {
    match (content, form) {
        (RequestedContent::Objects, _) => MEDIA_TYPE,
        (RequestedContent::Metadata, Form::List) => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        }
        (RequestedContent::Metadata, Form::Object) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        }
    }
}

/// Whether these bytes are one JSON document by their syntax.
pub(super) fn is_document(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}
