//! The selected objects of an informer as a source of namespaces.
//!
//! Each answer compares the newest snapshot with what was sent; many events cause one comparison. If the informer
//! cannot sync, its error is the answer.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::SourceState;
use informer_core::request::{ListRequest, WatchRequest};

use crate::informer::{Informer, WaitError};
use crate::list_watch::{Connect, KnownObjects, ListStream, ListWatch, WatchStream};
use crate::pipeline::messages::Body;
use crate::subscribe_options::SubscribeOptions;

/// Events that are taken as one change.
const CHUNK: usize = 250;

pub(super) type Selects<M> = dyn Fn(&Object<M>) -> bool + Send + Sync;

/// Every answer has version 1, since each reads the newest snapshot.
pub(super) struct OfInformer<M: Body> {
    namespaces: Informer<M>,
    selects: Arc<Selects<M>>,
    source: SourceId,
    known: Rc<RefCell<BTreeSet<Arc<str>>>>,
}

impl<M: Body> OfInformer<M> {
    pub(super) fn connect(id: SourceId, namespaces: Informer<M>, selects: Arc<Selects<M>>) -> Connect<()> {
        let made = move || {
            let (namespaces, selects, source) = (namespaces.clone(), Arc::clone(&selects), id.clone());
            Self { namespaces, selects, source, known: Rc::default() }
        };
        Arc::new(move || Box::new(made()))
    }

    fn object(&self, name: &Arc<str>) -> Object<()> {
        let key = ObjectKey::cluster(Arc::clone(name));
        Object::new(Meta::new(key, one(), self.source.clone()), ())
    }

    fn news(&self) -> Vec<WatchPart<()>> {
        let snapshot = self.namespaces.snapshot();
        let selected = snapshot.iter().filter(|object| (self.selects)(object));
        let names: BTreeSet<Arc<str>> =
            selected.map(|object| Arc::clone(object.key().shared_name())).collect();
        let known = self.known.replace(names.clone());
        let added = names.difference(&known).map(|name| WatchPart::Applied(self.object(name)));
        added.chain(known.difference(&names).map(|name| WatchPart::Deleted(self.object(name)))).collect()
    }

    async fn readable(&self) -> Result<(), ListWatchError> {
        let stopped = |error: WaitError| ListWatchError::source(error.to_string());
        let status = self.namespaces.wait_until(|status| status.synced || fails(&status.state())).await;
        let status = status.map_err(stopped)?;
        if status.synced {
            return Ok(());
        }
        Err(status.last_error().cloned().unwrap_or_else(|| {
            ListWatchError::source(format!("informer {:?} is not synced: {}", status.name, status.state()))
        }))
    }
}

/// Whether waiting is not enough.
fn fails(state: &SourceState) -> bool {
    use SourceState::{Declared, Listing, Starting, Streaming};
    !matches!(state, Declared | Starting | Listing { .. } | Streaming)
}

fn one() -> ResourceVersion {
    ResourceVersion::from_number(1).expect("1 is a version")
}

impl<M: Body> ListWatch<()> for OfInformer<M> {
    fn list(&self, _request: ListRequest, _known: KnownObjects<()>) -> ListStream<()> {
        let source = self.clone();
        let listed = async move {
            source.readable().await?;
            source.known.take();
            source.news();
            let objects = source.known.borrow().iter().map(|name| source.object(name)).collect();
            Ok([ListPart::Objects(objects), ListPart::End { version: one(), token: None }])
        };
        let parts = stream::once(listed).flat_map(|listed| match listed {
            Ok(parts) => stream::iter(parts.map(Ok)).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        });
        parts.boxed_local()
    }

    fn watch(&self, _request: WatchRequest, _known: KnownObjects<()>) -> WatchStream<()> {
        let source = self.clone();
        match self.namespaces.events_with(SubscribeOptions::new().newest()) {
            Ok(events) => {
                let first = stream::once({
                    let source = source.clone();
                    async move { Ok(source.news()) }
                });
                let batches = events.ready_chunks(CHUNK).map(move |_| Ok(source.news()));
                stream::once(async { Ok(Vec::new()) }).chain(first).chain(batches).boxed_local()
            }
            Err(error) => stream::iter([Err(ListWatchError::source(error.to_string()))]).boxed_local(),
        }
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<()>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

informer_core::clone_of!([M: Body] OfInformer<M> { namespaces, selects, source, known });
