//! A source that hands over what is ready: one list, then batches.
//!
//! Answers "what would a client cost nothing give?": objects that are decoded already. Invariants:
//! 1. It lists once and is watched once: a relist would be a fault of the bench, and ends it.
//! 2. It does nothing per object: a batch given is the batch handed over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix_informer::core::delta::ListPart;
use actix_informer::core::list_watch_error::ListWatchError;
use actix_informer::core::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use actix_informer::core::reflector::ReflectorConfig;
use actix_informer::core::request::{ListRequest, WatchRequest};
use actix_informer::list_watch::{Known, ListStream, ListWatch, WatchStream};
use actix_informer::wiring::SourceSpec;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};

use super::objects::{BATCH, Batch, Body};

/// What is to be told, once.
struct Ready {
    list: Option<Vec<Vec<Object<Body>>>>,
    version: ResourceVersion,
    live: Option<BoxStream<'static, Batch>>,
}

/// The source.
#[derive(Clone)]
struct Feed(Arc<Mutex<Ready>>);

/// A source whose list is `objects` and whose watch is `live`.
pub(crate) fn feed(
    objects: &[Object<Body>],
    version: ResourceVersion,
    live: BoxStream<'static, Batch>,
) -> SourceSpec<Body> {
    let list = objects.chunks(BATCH).map(<[_]>::to_vec).collect();
    let ready = Feed(Arc::new(Mutex::new(Ready { list: Some(list), version, live: Some(live) })));
    let config = ReflectorConfig { watch_list: false, ..ReflectorConfig::new("objects") };
    let connect = Arc::new(move || Box::new(ready.clone()) as Box<dyn ListWatch<Body>>);
    SourceSpec::new(SourceId::default(), connect, config)
}

impl Feed {
    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListWatch<Body> for Feed {
    fn list(&self, _request: ListRequest, _known: Known<Body>) -> ListStream<Body> {
        let mut ready = self.ready();
        let list = ready.list.take().expect("a feed is listed once");
        let end = ListPart::End { version: ready.version.clone(), token: None };
        stream::iter(list).map(ListPart::Objects).chain(stream::iter([end])).map(Ok).boxed_local()
    }

    fn watch(&self, _request: WatchRequest, _known: Known<Body>) -> WatchStream<Body> {
        let live = self.ready().live.take().expect("a feed is watched once");
        stream::iter([Vec::new()]).chain(live).map(Ok).boxed_local()
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<Body>>, ListWatchError>> {
        std::future::ready(Ok(None)).boxed_local()
    }
}
