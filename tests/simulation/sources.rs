//! Sources that are added and removed in a run, and that take over from each other.
//!
//! Answers "by which source is this server followed, and which change is under way?". A server may be followed under
//! several names, one after the other or two at once: each name brings the same objects. Invariants:
//! 1. One change of a server's source is under way at a time; the next begins when it has ended.
//! 2. An object carries the name of the source that brings it.

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use informer_actors::informer::{HandOverError, Informer, RemoveSourceError};
use informer_actors::list_watch::SourceSpec;
use informer_actors::list_watch::{Connect, KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::testing::Server;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::request::{ListRequest, WatchRequest};
use tokio::task::JoinHandle;

use crate::paged::Paged;
use crate::plan::Source;

/// One server, and the source by which the informer follows it.
pub(crate) struct Origin {
    /// The name of its source; the last one, if it is not followed.
    pub(crate) id: SourceId,
    pub(crate) server: Server<String>,
    pub(crate) paged: Paged,
    pub(crate) newest: Option<ResourceVersion>,
    pub(crate) is_followed: bool,
    /// Whether its source was ever removed without another one that takes over.
    pub(crate) was_removed: bool,
    pub(crate) change: Option<Change>,
    names: usize,
    number: usize,
    pages: bool,
    config: ReflectorConfig,
}

/// The change of a source that is under way.
pub(crate) enum Change {
    Removal(JoinHandle<Result<(), RemoveSourceError>>),
    HandOver(SourceId, JoinHandle<Result<(), HandOverError>>),
}

impl Change {
    fn is_over(&self) -> bool {
        match self {
            Self::Removal(task) => task.is_finished(),
            Self::HandOver(_, task) => task.is_finished(),
        }
    }

    /// The wait was dropped. A removal still goes on; a hand-over stops where it is.
    pub(crate) fn abort(&self) {
        match self {
            Self::Removal(task) => task.abort(),
            Self::HandOver(_, task) => task.abort(),
        }
    }
}

impl Origin {
    pub(crate) fn new(number: usize, source: &Source) -> Self {
        let id = SourceId::new(format!("s{number}"));
        let server = Server::named(id.clone());
        server.serve_watch_list(source.serves_watch_list);
        server.objects_per_part(source.objects_per_part);
        server.answer_after(source.answers_after);
        for n in 0..source.objects {
            server.apply(&format!("n{number}/{n}"), "first".to_owned());
        }
        let (pages, config) = (source.pages, source.config.clone());
        let paged = Paged::new(server.clone());
        let (newest, is_followed, was_removed, change) = (None, true, false, None);
        Self { id, server, paged, newest, is_followed, was_removed, change, names: 1, number, pages, config }
    }

    /// The source as it is declared under this name.
    pub(crate) fn spec(&self, id: &SourceId) -> SourceSpec<String> {
        let (server, paged, pages) = (self.server.clone(), self.paged.clone(), self.pages);
        let named = id.clone();
        let connect: Connect<String> = Arc::new(move || {
            let source: Box<dyn ListWatch<String>> =
                if pages { Box::new(paged.clone()) } else { Box::new(server.clone()) };
            Box::new(Named { id: named.clone(), source })
        });
        SourceSpec::new(id.clone(), connect, self.config.clone())
    }

    /// Begins to remove it.
    pub(crate) fn remove(&mut self, informer: &Informer<String>) {
        let (informer, id) = (informer.clone(), self.id.clone());
        let task = actix_rt::spawn(async move { informer.remove_source(&id).await });
        (self.is_followed, self.was_removed) = (false, true);
        self.change = Some(Change::Removal(task));
    }

    /// Begins to follow it again, under the name that it had.
    pub(crate) fn add(&mut self, informer: &Informer<String>) {
        informer.add_source(self.spec(&self.id)).expect("the name is free since the removal has ended");
        self.is_followed = true;
    }

    /// Begins to follow it under another name, which takes over from the one that it has.
    pub(crate) fn hand_over(&mut self, informer: &Informer<String>) {
        let next = SourceId::new(format!("s{}-{}", self.number, self.names));
        self.names += 1;
        let (informer, old, spec) = (informer.clone(), self.id.clone(), self.spec(&next));
        let task = actix_rt::spawn(async move { informer.hand_over(&[old], vec![spec]).await });
        self.change = Some(Change::HandOver(next, task));
    }

    /// Records a change that is over.
    pub(crate) async fn settle(&mut self) {
        if self.change.as_ref().is_some_and(Change::is_over) {
            self.settled().await;
        }
    }

    /// Waits until nothing is under way.
    pub(crate) async fn settled(&mut self) {
        match &mut self.change {
            Some(Change::Removal(task)) => task.await.expect("no panic").expect("it was followed"),
            Some(Change::HandOver(next, task)) => {
                task.await.expect("no panic").expect("both were followed");
                self.id = next.clone();
            }
            None => return,
        }
        (self.newest, self.change) = (None, None);
    }
}

/// A source under a name of its own: what it brings carries that name.
struct Named {
    id: SourceId,
    source: Box<dyn ListWatch<String>>,
}

fn renamed(id: &SourceId, object: &Object<String>) -> Object<String> {
    let mut meta = object.cached_meta().clone();
    meta.source = id.clone();
    Object::new(meta, object.body().clone())
}

impl ListWatch<String> for Named {
    fn list(&self, request: ListRequest, known: KnownObjects<String>) -> ListStream<String> {
        let id = self.id.clone();
        let rename = move |part| match part {
            ListPart::Objects(objects) => {
                ListPart::Objects(objects.iter().map(|object| renamed(&id, object)).collect())
            }
            other => other,
        };
        self.source.list(request, known).map_ok(rename).boxed_local()
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<String>) -> WatchStream<String> {
        let id = self.id.clone();
        let rename = move |part| match part {
            WatchPart::Applied(object) => WatchPart::Applied(renamed(&id, &object)),
            WatchPart::Deleted(object) => WatchPart::Deleted(renamed(&id, &object)),
            other => other,
        };
        let parts = self.source.watch(request, known);
        parts.map_ok(move |parts| parts.into_iter().map(&rename).collect()).boxed_local()
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        let (id, answer) = (self.id.clone(), self.source.get(key));
        async move { Ok(answer.await?.map(|object| renamed(&id, &object))) }.boxed_local()
    }
}
