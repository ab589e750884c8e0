//! Many namespaces, each followed by a source of its own that has one object.
//!
//! Answers "does the number of sources make any turn long?" while they list for the first time, while more are added to a
//! running informer, and while events arrive. Read next: `turns.rs`, how a turn is measured.

use std::sync::{Arc, Mutex, PoisonError};

use actix_informer::informer::{NamespaceSources, OfNamespace};
use actix_informer::prelude::*;
use actix_informer::source::{Connect, ReflectorConfig, SourceSpec};
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};

use super::measure::{Longest, Turns};
use super::{Body, LONG, SUBSCRIBERS, freed, version};

/// The source of one namespace.
struct OfOne {
    source: SourceId,
}

impl OfOne {
    fn object(&self, number: usize) -> Object<Body> {
        let key = ObjectKey::namespaced(self.source.as_str(), "one");
        Object::new(Meta::new(key, version(number), self.source.clone()).wire_bytes(8_800), Body::new())
    }
}

impl ListWatch<Body> for OfOne {
    fn list(&self, _request: ListRequest, _known: KnownObjects<Body>) -> ListStream<Body> {
        let end = ListPart::End { version: version(1), token: None };
        stream::iter([Ok(ListPart::Objects(vec![self.object(1)])), Ok(end)]).boxed_local()
    }

    /// One event, and then nothing.
    fn watch(&self, request: WatchRequest, _known: KnownObjects<Body>) -> WatchStream<Body> {
        if request.initial_events {
            let refusal = ListWatchError::WatchListUnsupported("it lists".into());
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let event = vec![WatchPart::Applied(self.object(2))];
        stream::iter([Ok(event)]).chain(stream::pending()).boxed_local()
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<Body>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

/// So many namespaces with ten subscribers; half of them are there at the start.
pub(super) async fn followed(count: usize) -> anyhow::Result<Longest> {
    let turns = Turns::default();
    let runtime = Runtime::threads().faults(turns.faults(|_| {})).start()?;
    let looks = Arc::new(Mutex::new(Some(turns.clone())));
    let each: OfNamespace<Body> = Arc::new(move |namespace| {
        let (source, looks) = (SourceId::new(namespace), Arc::clone(&looks));
        let id = source.clone();
        let connect: Connect<Body> = Arc::new(move || {
            if let Some(turns) = looks.lock().unwrap_or_else(PoisonError::into_inner).take() {
                tokio::task::spawn_local(turns.look());
            }
            Box::new(OfOne { source: source.clone() })
        });
        Ok(SourceSpec::new(id, connect, ReflectorConfig::new("bodies")))
    });
    let names: Vec<String> = (0..count).map(|n| format!("n{n:05}")).collect();
    let sources = NamespaceSources::given(each, names[..count / 2].iter().map(String::as_str));
    let bodies = Informer::builder(&runtime, "bodies").namespaces(sources).start()?;
    let subscribed: Result<Vec<_>, _> =
        (0..SUBSCRIBERS).map(|_| bodies.for_each(|_| std::future::ready(()))).collect();
    let subscribed = subscribed?;
    bodies.set_namespaces(names.iter().map(String::as_str))?;
    bodies.namespaces_synced().await?;
    for subscription in &subscribed {
        subscription.synced_within(LONG).await?;
    }
    let is_seen = |object: &Object<Body>| *object.version() == version(2);
    while bodies.snapshot().iter().filter(|object| is_seen(object)).count() < count {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let longest = turns.take();
    drop((subscribed, bodies));
    freed(0).await;
    runtime.shutdown(LONG).await?;
    Ok(longest)
}
