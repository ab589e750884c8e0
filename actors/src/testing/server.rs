//! A small versioned store behind `ListWatch`, with fault switches. It has one revision counter, lists at the newest
//! state, and watches from any version still in the history. Invariants:
//! 1. A watch from version n brings every event after n, in order, or an Expired error.
//! 2. Requests are logged in order, as the lines that tests read.
//! 3. A switch affects requests and events after it.
//! 4. An answer takes time (`poison.rs`): unless a test changes that, the poll that sends a request has no answer
//!    yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::request::{ListRequest, WatchRequest};

mod live;
mod poison;

use poison::Latency;

use crate::list_watch::{Connect, KnownObjects, ListStream, ListWatch, WatchStream};
use crate::pipeline::messages::Body;
use crate::runtime::locked::Guarded;
use crate::runtime::signal::Signal;

/// One request, as it was asked.
pub type RequestLine = String;

/// A store that can be listed and watched. Clones share it.
pub struct Server<S>(Arc<Shared<S>>);

struct Shared<S> {
    state: Guarded<State<S>>,
    /// It wakes streams in the order in which they began to wait. A `watch` channel has a random order: a simulation
    /// of two sources and one server would not repeat.
    changes: Signal,
    source: SourceId,
}

struct State<S> {
    revision: u64,
    lives: u64,
    objects: BTreeMap<ObjectKey, Object<S>>,
    history: Vec<(u64, Happened<S>)>,
    compacted: u64,
    anonymous: bool,
    /// How many entries of the history were dropped.
    dropped: usize,
    requests: Vec<RequestLine>,
    refusals: VecDeque<ListWatchError>,
    watch_list: bool,
    generation: u64,
    end_with: Option<ListWatchError>,
    hold_lists: bool,
    hold_gets: bool,
    poisoned: BTreeSet<ObjectKey>,
    page: usize,
    frozen: bool,
    latency: Latency,
}

/// An older state of a [`Server`].
pub struct Backup<S> {
    revision: u64,
    objects: BTreeMap<ObjectKey, Object<S>>,
}

enum Happened<S> {
    Applied(Object<S>),
    Deleted(Object<S>),
    Bookmark,
}

impl<S: Body> Server<S> {
    /// An empty store at revision 1, which knows watch-list.
    pub fn new() -> Self {
        Self::named(SourceId::default())
    }

    /// An empty store for a source of this name.
    pub fn named(source: SourceId) -> Self {
        let state = State {
            revision: 1,
            lives: 0,
            objects: BTreeMap::new(),
            history: Vec::new(),
            compacted: 0,
            anonymous: false,
            dropped: 0,
            requests: Vec::new(),
            refusals: VecDeque::new(),
            watch_list: true,
            generation: 0,
            end_with: None,
            hold_lists: false,
            hold_gets: false,
            poisoned: BTreeSet::new(),
            page: 64,
            frozen: false,
            latency: Latency::default(),
        };
        Self(Arc::new(Shared { state: Guarded::new(state), changes: Signal::default(), source }))
    }

    /// A function that connects to it, for an informer's spec.
    pub fn connect(&self) -> Connect<S> {
        let server = self.clone();
        Arc::new(move || Box::new(server.clone()))
    }

    /// Creates or updates an object and gives its new version.
    pub fn apply(&self, key: &str, body: S) -> ResourceVersion {
        let key: ObjectKey = key.parse().expect("a test names objects as namespace/name");
        let revision = self.0.state.with(|state| {
            let revision = state.next();
            let uid = state.objects.get(&key).and_then(|object| object.object_uid().cloned());
            let uid = uid.or_else(|| {
                state.lives += 1;
                if state.anonymous {
                    return None;
                }
                Uid::new(&format!("life-{}", state.lives))
            });
            let object = Object::new(self.meta(&key, uid, revision), body);
            state.objects.insert(key, object.clone());
            state.history.push((revision, Happened::Applied(object)));
            revision
        });
        self.wake_streams();
        version(revision)
    }

    /// Deletes an object and gives the version of the deletion; `None` if it was not there.
    pub fn delete(&self, key: &str) -> Option<ResourceVersion>
    where
        S: Clone,
    {
        let key: ObjectKey = key.parse().expect("a test names objects as namespace/name");
        let (revision, _gone) = self.0.state.with(|state| {
            let gone = state.objects.remove(&key)?;
            let revision = state.next();
            let meta = self.meta(&key, gone.object_uid().cloned(), revision);
            let last = Object::new(meta, gone.body().clone());
            state.history.push((revision, Happened::Deleted(last)));
            Some((revision, gone))
        })?;
        self.wake_streams();
        Some(version(revision))
    }

    /// Deletes and creates an object under one key in one step: watches see one event with another uid.
    pub fn replace_life(&self, key: &str, body: S) -> ResourceVersion {
        let key: ObjectKey = key.parse().expect("a test names objects as namespace/name");
        self.0.state.with(|state| state.objects.remove(&key));
        self.apply(&key.to_string(), body)
    }

    /// From now on objects are created without uid.
    pub fn without_uids(&self) {
        self.0.state.with(|state| state.anonymous = true);
    }

    /// The present state, for [`Self::restore`].
    pub fn backup(&self) -> Backup<S> {
        self.0.state.with(|state| Backup { revision: state.revision, objects: state.objects.clone() })
    }

    /// Goes back to an older state: versions are issued again, and a watch from a later version stays silent.
    pub fn restore(&self, backup: &Backup<S>) {
        self.0.state.with(|state| {
            state.revision = backup.revision;
            state.objects.clone_from(&backup.objects);
            state.dropped += state.history.len();
            state.history.clear();
            state.compacted = 0;
            state.generation += 1;
            state.end_with = None;
        });
        self.wake_streams();
    }

    /// Sends a bookmark at the newest revision to every watch.
    pub fn bookmark(&self) {
        self.0.state.with(|state| state.history.push((state.revision, Happened::Bookmark)));
        self.wake_streams();
    }

    /// Drops the history: a watch from an older version is expired, also an open one that has not read all of it.
    pub fn compact(&self) {
        self.0.state.with(|state| {
            state.compacted = state.revision;
            state.dropped += state.history.len();
            state.history.clear();
        });
    }

    /// Answers the next requests with these errors, one each.
    pub fn refuse(&self, errors: impl IntoIterator<Item = ListWatchError>) {
        self.0.state.with(|state| state.refusals.extend(errors));
    }

    /// Whether watches with initial events are served.
    pub fn serve_watch_list(&self, serve: bool) {
        self.0.state.with(|state| state.watch_list = serve);
    }

    /// Ends every open watch: cleanly, or with this error.
    pub fn end_watches(&self, error: Option<ListWatchError>) {
        self.0.state.with(|state| {
            state.generation += 1;
            state.end_with = error;
        });
        self.wake_streams();
    }

    /// Holds every list and watch-list before its end, or lets them end.
    pub fn hold_lists(&self, hold: bool) {
        self.0.state.with(|state| state.hold_lists = hold);
        self.wake_streams();
    }

    /// Open watches bring nothing, or all events again.
    pub fn freeze_watches(&self, freeze: bool) {
        self.0.state.with(|state| state.frozen = freeze);
        self.wake_streams();
    }

    /// How many objects each part of a list holds.
    pub fn objects_per_part(&self, count: usize) {
        self.0.state.with(|state| state.page = count.max(1));
    }

    /// Requests so far, a line each: `LIST version="0" limit=500`, `WATCH version=10`.
    pub fn requests(&self) -> Vec<RequestLine> {
        self.0.state.with(|state| state.requests.clone())
    }

    /// The newest revision.
    pub fn version(&self) -> ResourceVersion {
        version(self.0.state.with(|state| state.revision))
    }

    /// The stored objects, as key and version.
    pub fn content(&self) -> Vec<(ObjectKey, ResourceVersion)> {
        let named = |object: &Object<S>| (object.key().clone(), object.version().clone());
        self.0.state.with(|state| state.objects.values().map(named).collect())
    }

    fn meta(&self, key: &ObjectKey, uid: Option<Uid>, revision: u64) -> Meta {
        Meta::new(key.clone(), version(revision), self.0.source.clone()).uid(uid).wire_bytes(100)
    }

    fn wake_streams(&self) {
        self.0.changes.raise();
    }

    async fn until_released(&self) {
        self.0.changes.until(|| (!self.0.state.with(|state| state.hold_lists)).then_some(())).await;
    }
}

fn version(revision: u64) -> ResourceVersion {
    ResourceVersion::from_number(revision).expect("revisions begin at 1")
}

impl<S> State<S> {
    fn next(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn admit(&mut self, line: String) -> Result<(), ListWatchError> {
        self.requests.push(line);
        self.refusals.pop_front().map_or(Ok(()), Err)
    }

    fn listed(&self, name: Option<&str>) -> (Vec<Result<ListPart<S>, ListWatchError>>, ListPart<S>) {
        let named = |object: &&Object<S>| name.is_none_or(|name| object.key().name() == name);
        let objects: Vec<&Object<S>> = self.objects.values().filter(named).collect();
        let end = ListPart::End { version: version(self.revision), token: None };
        (self.list_parts(&objects), end)
    }
}

impl<S: Body> ListWatch<S> for Server<S> {
    fn list(&self, request: ListRequest, _known: KnownObjects<S>) -> ListStream<S> {
        let limit = request.limit.map(|limit| format!(" limit={limit}")).unwrap_or_default();
        let name = request.name.as_ref().map(|_| " name").unwrap_or_default();
        let line = format!("LIST version={:?}{limit}{name}", request.version.to_string());
        let (latency, listed) = self.0.state.with(|state| {
            let admitted = state.admit(line);
            (state.latency, admitted.map(|()| state.listed(request.name.as_deref())))
        });
        let (parts, end) = match listed {
            Ok(listed) => listed,
            Err(error) => return latency.pace(stream::iter([Err(error)]).boxed_local()),
        };
        let server = self.clone();
        let last = async move {
            server.until_released().await;
            Ok(end)
        };
        latency.pace(stream::iter(parts).chain(stream::once(last)).boxed_local())
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<S>) -> WatchStream<S> {
        let latency = self.0.state.with(|state| state.latency);
        latency.pace(self.open_watch(&request))
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<S>>, ListWatchError>> {
        let (latency, answer) = self.0.state.with(|state| {
            let answer = state.admit(format!("GET {key}")).and_then(|()| state.found(&key));
            (state.latency, answer)
        });
        let server = self.clone();
        async move {
            latency.until_head().await;
            server.until_gets_released().await;
            answer
        }
        .boxed_local()
    }
}

impl<S: Body> Default for Server<S> {
    fn default() -> Self {
        Self::new()
    }
}

informer_core::clone_of!([S] Server<S>);

informer_core::debug_as!([S] Backup<S>, self, revision = self.revision);

informer_core::debug_as!([S] Server<S>, self, source = self.0.source);
