//! A source whose events a test sends, and that keeps none of its objects.
//!
//! Answers "who still holds this object?" and "is a request still open?": each list creates its objects anew, a watch
//! brings the events that the test sends, and objects and requests are counted while they exist. Invariants:
//! 1. An event goes to the newest watch; it is an object or a bookmark of the version that the test names.
//! 2. Each connected source and each of its streams holds one token, which [`Fed::open`] counts.
//!
//! The scripted `Server` of `informer_actors::testing` keeps its objects, so it cannot answer either question.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, LocalBoxStream};
use futures_util::{FutureExt, Stream, StreamExt};
use informer_actors::informer::Body;
use informer_actors::informer::Informer;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::request::{ListRequest, WatchRequest};
use tokio::sync::{mpsc, watch};

type Parts<S> = Vec<WatchPart<S>>;

/// The source; clones share it.
pub(crate) struct Fed<S>(Arc<Shared<S>>);

struct Shared<S> {
    count: u64,
    make: Box<dyn Fn() -> S + Send + Sync>,
    newest: watch::Sender<Option<mpsc::UnboundedSender<Parts<S>>>>,
    token: Arc<()>,
}

/// One connection of it.
struct Source<S>(Arc<Shared<S>>, Arc<()>);

pub(crate) fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

impl<S: Body> Fed<S> {
    /// Lists `count` objects at the version `count`; `make` creates their bodies.
    pub(crate) fn new(count: u64, make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        let (make, newest) = (Box::new(make), watch::Sender::new(None));
        Self(Arc::new(Shared { count, make, newest, token: Arc::default() }))
    }

    /// An informer of this name over it.
    pub(crate) fn informer(&self, runtime: &Runtime, name: &str) -> Informer<S> {
        let shared = Arc::clone(&self.0);
        let connect = move || Source(Arc::clone(&shared), Arc::clone(&shared.token));
        Informer::builder(runtime, name).source(connect).start().expect("the spec is valid")
    }

    /// Sends every object again, at the next versions after `after`; returns the last of them.
    pub(crate) fn update_all(&self, after: u64) -> ResourceVersion {
        self.update(0..self.0.count, after)
    }

    /// The same with these objects alone.
    pub(crate) fn update(&self, objects: Range<u64>, after: u64) -> ResourceVersion {
        let newest = after + objects.end - objects.start;
        let parts = objects.zip(after + 1..).map(|(n, number)| WatchPart::Applied(self.0.object(n, number)));
        self.say(parts.collect());
        version(newest)
    }

    /// Sends a bookmark.
    pub(crate) fn bookmark(&self, number: u64) {
        self.say(vec![WatchPart::Bookmark { version: version(number), initial_events_end: false }]);
    }

    /// Waits until a watch is open.
    pub(crate) async fn watched(&self) {
        let mut newest = self.0.newest.subscribe();
        newest.wait_for(Option::is_some).await.expect("the sender is ours");
    }

    fn say(&self, parts: Parts<S>) {
        let newest = self.0.newest.borrow();
        newest.as_ref().expect("a watch is open").send(parts).expect("the newest watch is read");
    }

    /// The number of connected sources and open streams.
    pub(crate) fn open(&self) -> usize {
        Arc::strong_count(&self.0.token) - 1
    }
}

impl<S> Shared<S> {
    fn object(&self, n: u64, number: u64) -> Object<S> {
        let key = ObjectKey::namespaced("a", format!("{n:05}"));
        let source = SourceId::default();
        let meta = Meta::new(key, version(number), source).wire_bytes(100);
        Object::new(meta, (self.make)())
    }
}

/// A stream that holds a token until it is dropped.
fn held<T: 'static>(stream: impl Stream<Item = T> + 'static, token: Arc<()>) -> LocalBoxStream<'static, T> {
    stream
        .inspect(move |_| {
            let _held = &token;
        })
        .boxed_local()
}

impl<S: Body> ListWatch<S> for Source<S> {
    fn list(&self, _request: ListRequest, _known: KnownObjects<S>) -> ListStream<S> {
        let (shared, token) = (Arc::clone(&self.0), Arc::clone(&self.1));
        let objects = (0..shared.count).map(|n| shared.object(n, n + 1)).collect();
        let end = ListPart::End { version: version(shared.count), token: None };
        let parts = [Ok(ListPart::Objects(objects)), Ok(end)];
        held(stream::iter(parts), token)
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<S>) -> WatchStream<S> {
        if request.initial_events {
            let refusal = ListWatchError::WatchListUnsupported("it lists".into());
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let (say, said) = mpsc::unbounded_channel();
        self.0.newest.send_replace(Some(say));
        let head = stream::once(async { Ok(Vec::new()) });
        let said = stream::unfold(said, async |mut said| Some((Ok(said.recv().await?), said)));
        // A watch that is no longer the newest is silent until it is closed.
        held(head.chain(said).chain(stream::pending()), Arc::clone(&self.1))
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<S>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

impl<S> Clone for Fed<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
