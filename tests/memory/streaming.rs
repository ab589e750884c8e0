//! A source that streams many objects, creates them when they are requested, and keeps none of them.
//!
//! Answers "how much was held at the worst moment?": the heap is measured before each part of the stream, and whenever
//! a test asks for it. Invariant: one part is held beside the informer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::request::{ListRequest, WatchRequest};

use crate::held;

/// How many objects, how many of them come together, and how large each is.
pub(crate) const OBJECTS: usize = 20_000;
pub(crate) const PART: usize = 100;
pub(crate) const BODY_BYTES: usize = 1_000;
/// With its names and its place in a part; a generous estimate.
pub(crate) const OBJECT_BYTES: usize = 1_500;

/// The most that was held at any measurement.
#[derive(Clone, Default)]
pub(crate) struct Peak(Arc<AtomicUsize>);

impl Peak {
    pub(crate) fn look(&self) {
        self.0.fetch_max(held(), Ordering::Relaxed);
    }

    pub(crate) fn highest(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Clone)]
pub(crate) struct Streaming(Peak);

impl Streaming {
    pub(crate) fn new() -> (Self, Peak) {
        let peak = Peak::default();
        (Self(peak.clone()), peak)
    }
}

fn version(number: usize) -> ResourceVersion {
    ResourceVersion::from_number(number as u64).expect("not zero")
}

fn object(number: usize) -> WatchPart<String> {
    let key = ObjectKey::namespaced(format!("ns-{}", number % 100), format!("object-{number:06}"));
    let wire_bytes = u32::try_from(BODY_BYTES).expect("a small number");
    let meta = Meta::new(key, version(number + 1), SourceId::default()).wire_bytes(wire_bytes);
    WatchPart::Applied(Object::new(meta, "x".repeat(BODY_BYTES)))
}

impl ListWatch<String> for Streaming {
    fn list(&self, _request: ListRequest, _known: KnownObjects<String>) -> ListStream<String> {
        stream::once(async { Err(ListWatchError::source("it only streams")) }).boxed_local()
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<String>) -> WatchStream<String> {
        assert!(request.initial_events, "it is streamed once");
        let peak = self.0.clone();
        let parts = (0..OBJECTS / PART).map(move |part| {
            peak.look();
            Ok((part * PART..(part + 1) * PART).map(object).collect())
        });
        let end = WatchPart::Bookmark { version: version(OBJECTS), initial_events_end: true };
        let end = stream::once(async { Ok(vec![end]) });
        stream::iter(parts).chain(end).chain(stream::pending()).boxed_local()
    }

    fn get(
        &self,
        _key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}
