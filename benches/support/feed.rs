//! A source that delivers prepared objects: one list, then batches.
//!
//! Answers "what would a client without any cost deliver?": objects that are already decoded. Invariants:
//! 1. It is listed once and watched once. A relist would be a fault of the benchmark and ends it.
//! 2. It does no work per object: it delivers each batch as it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use informer_actors::list_watch::SourceSpec;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::request::{ListRequest, WatchRequest};

use super::objects::{BATCH, Batch, Body};

/// What it will deliver, once.
struct Prepared {
    list: Option<Vec<Vec<Object<Body>>>>,
    version: ResourceVersion,
    live: Option<BoxStream<'static, Batch>>,
}

/// The source.
#[derive(Clone)]
struct Feed(Arc<Mutex<Prepared>>);

/// A source whose list is `objects` and whose watch is `live`.
pub(crate) fn feed(
    objects: &[Object<Body>],
    version: ResourceVersion,
    live: BoxStream<'static, Batch>,
) -> SourceSpec<Body> {
    let list = objects.chunks(BATCH).map(<[_]>::to_vec).collect();
    let feed = Feed(Arc::new(Mutex::new(Prepared { list: Some(list), version, live: Some(live) })));
    let config = ReflectorConfig { watch_list: false, ..ReflectorConfig::new("objects") };
    let connect = Arc::new(move || Box::new(feed.clone()) as Box<dyn ListWatch<Body>>);
    SourceSpec::new(SourceId::default(), connect, config)
}

impl Feed {
    fn prepared(&self) -> MutexGuard<'_, Prepared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListWatch<Body> for Feed {
    fn list(&self, _request: ListRequest, _known: KnownObjects<Body>) -> ListStream<Body> {
        let mut prepared = self.prepared();
        let list = prepared.list.take().expect("a feed is listed once");
        let end = ListPart::End { version: prepared.version.clone(), token: None };
        stream::iter(list).map(ListPart::Objects).chain(stream::iter([end])).map(Ok).boxed_local()
    }

    fn watch(&self, _request: WatchRequest, _known: KnownObjects<Body>) -> WatchStream<Body> {
        let live = self.prepared().live.take().expect("a feed is watched once");
        stream::iter([Vec::new()]).chain(live).map(Ok).boxed_local()
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<Body>>, ListWatchError>> {
        std::future::ready(Ok(None)).boxed_local()
    }
}
