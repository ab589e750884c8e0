//! Watches: what a watcher gets at its start, what is put before it, and when it ends.
//!
//! Answers: which watchers does this change concern? It neither sends nor waits.
//! 1. A selector applies to the state before and after: entering is ADDED, leaving is DELETED with the old state.
//! 2. A watcher's queue is bounded; when it is full the watch ends (the client resumes from its last version),
//!    so no event is ever dropped from the middle of a stream.
//! 3. A watch of a whole resource without a selector has no queue of its own: it reads from the history what it has
//!    not seen. A thousand of them cost a counter each, whatever is written.
//! 4. If nothing is pending, everything up to the store's revision has been taken.
//!
//! Next: `watcher.rs` is one watcher; `http/watch_body.rs` turns what is drained here into a stream.
use std::collections::VecDeque;
use std::ops::RangeBounds as _;
use std::sync::Arc;

use bytes::Bytes;

use super::ResourceId;
use super::history::Event;
use super::kind::Kind;
use super::list::{Snapshot, scope_of};
use super::options::{Version, WatchOptions};
use super::status::ApiError;
use super::store::Cluster;
use super::table::Scope;
use super::watcher::{Delivery, Watch, WatchEnd};

/// What a new watch begins with.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) watch: usize,
    /// The objects to send as ADDED before anything else.
    pub(crate) initial: Option<Snapshot>,
    /// Whether a marked bookmark follows the initial objects.
    pub(crate) marker: bool,
}

/// How a watch may start.
#[derive(Debug)]
pub(crate) enum Start {
    Open(Opened),
    /// The version is too old: one ERROR event, then the end.
    TooOld(ApiError),
}

/// What a watcher takes in one visit.
#[derive(Debug)]
pub(crate) enum Drained {
    Some(Vec<Delivery>),
    /// Nothing is pending; the watcher has seen everything up to this revision (none while the store is still
    /// behind the version the watch began at).
    Nothing(Option<u64>),
    Ended(WatchEnd),
}

impl Cluster {
    /// Registers a watch and returns what it starts with.
    ///
    /// # Errors
    /// 504 if a watch-list asks for a version the store has not reached.
    pub(crate) fn watch(
        &mut self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        options: &WatchOptions,
    ) -> Result<Start, ApiError> {
        let scope = scope_of(kind, namespace, &options.selector);
        let revision = self.revision();
        let asked = match options.version {
            Version::At(version) => Some(version),
            Version::Unset | Version::Any => None,
        };
        let initial = options.initial_events.unwrap_or_else(|| asked.is_none());
        if let (true, Some(version)) = (initial, self.awaited(options.version)) {
            return Err(ApiError::too_large_version(version, revision, kind.is_cached()));
        }
        let after = if initial { revision } else { asked.unwrap_or(revision) };
        let queue_bound = self.queue_bound();
        let table = self.table_mut(&kind.storage);
        let floor = table.history.floor();
        if after < floor {
            let message = if kind.is_cached() {
                format!("too old resource version: {after} ({floor})")
            } else {
                "The resourceVersion for the provided watch is too old.".to_owned()
            };
            return Ok(Start::TooOld(ApiError::expired(message)));
        }
        let snapshot = initial
            .then(|| Snapshot::new(revision, table.objects.clone(), scope.clone(), options.selector.clone()));
        let selector = options.selector.clone();
        let mut watch = Watch {
            kind: Arc::clone(kind),
            follows: scope == Scope::All && selector.is_empty(),
            scope,
            selector,
            after,
            queue: VecDeque::new(),
            taken: after.max(revision),
            behind: 0,
            bound: queue_bound,
            woken: false,
            end: None,
        };
        let range = watch.scope.range(None);
        for event in table.history.after(after) {
            if range.contains(&event.key)
                && let Some(event_type) = watch.sees(event)
            {
                watch.queue.push_back(Delivery::Event(Arc::clone(event), event_type));
            }
        }
        watch.bound += watch.queue.len();
        let scope = watch.scope.clone();
        let watch = self.watches.insert(watch);
        self.table_mut(&kind.storage).register(&scope, watch);
        Ok(Start::Open(Opened { watch, initial: snapshot, marker: initial && options.bookmarks }))
    }

    /// Returns up to `most` deliveries; fewer when they are large, because a stalled client keeps them all in
    /// memory.
    pub(crate) fn drain(&mut self, watch: usize, most: usize) -> Drained {
        let revision = self.revision();
        let watch = &mut self.watches[watch];
        if !watch.queue.is_empty() {
            return Drained::Some(watch.own(most));
        }
        if watch.behind > 0
            && let Some(table) = self.tables.get(&watch.kind.storage)
        {
            let pending = watch.followed(table, most);
            return Drained::Some(pending);
        }
        watch.woken = false;
        let seen = (revision >= watch.after).then_some(revision);
        watch.end.map_or(Drained::Nothing(seen), Drained::Ended)
    }

    /// Whether a watch has exactly one pending delivery, and more may follow. It is woken again by the next
    /// one.
    pub(crate) fn is_owed_one(&mut self, watch: usize) -> bool {
        let watch = &mut self.watches[watch];
        let one = watch.queue.len() + watch.behind == 1 && watch.end.is_none();
        watch.woken &= !one;
        one
    }

    /// The version up to which every watch that follows this resource has taken its events.
    pub(super) fn taken_by_all(&self, resource: &ResourceId) -> u64 {
        let following = |watch: &&Watch| watch.behind > 0 && watch.kind.storage == *resource;
        let taken = self.watches.iter().map(|(_, watch)| watch).filter(following).map(|watch| watch.taken);
        taken.min().unwrap_or(u64::MAX)
    }

    /// Removes a watch whose stream is gone.
    pub(crate) fn unwatch(&mut self, watch: usize) {
        let gone = self.watches.remove(watch);
        self.table_mut(&gone.kind.storage).unregister(&gone.scope, watch);
    }

    /// Delivers a committed change to every watch that it concerns.
    pub(super) fn fan_out(&mut self, resource: &ResourceId, event: &Arc<Event>) {
        let Some(table) = self.tables.get(resource) else { return };
        let mut slow = Vec::new();
        for id in table.interested(&event.key) {
            let watch = &mut self.watches[id];
            let Some(event_type) = watch.sees(event) else { continue };
            if watch.is_full() {
                slow.push(id);
                continue;
            }
            if watch.follows {
                watch.behind += 1;
            } else {
                watch.queue.push_back(Delivery::Event(Arc::clone(event), event_type));
            }
            if !std::mem::replace(&mut watch.woken, true) {
                self.woken.push(id);
            }
        }
        for id in slow {
            self.let_go(id);
        }
    }

    /// Puts bytes into every open watch of a resource, as a fault switch asks.
    pub(crate) fn send_raw(&mut self, resource: &ResourceId, bytes: &Bytes) {
        for id in self.table_mut(resource).watches() {
            if self.watches[id].is_full() {
                self.let_go(id);
                continue;
            }
            self.put_aside(id);
            self.watches[id].queue.push_back(Delivery::Raw(bytes.clone()));
            self.woken.push(id);
        }
    }

    /// Ends the open watches of one resource, or of all, each after its pending events.
    pub(crate) fn end_watches(&mut self, resource: Option<&ResourceId>, end: WatchEnd) {
        let chosen = |watch: &Watch| resource.is_none_or(|resource| watch.kind.is(resource));
        let ids: Vec<usize> =
            self.watches.iter().filter(|(_, watch)| chosen(watch)).map(|(id, _)| id).collect();
        for id in ids {
            self.end_watch(id, end);
        }
    }

    /// How many watches are open, of one resource or of all.
    pub(crate) fn watch_count(&self, resource: Option<&ResourceId>) -> usize {
        let chosen = |watch: &Watch| resource.is_none_or(|resource| watch.kind.is(resource));
        self.watches.iter().filter(|(_, watch)| watch.end.is_none() && chosen(watch)).count()
    }

    /// Ends a watch that is too far behind: its client will ask again for what it has not received.
    fn let_go(&mut self, id: usize) {
        let watch = &mut self.watches[id];
        watch.queue = VecDeque::new();
        watch.behind = 0;
        self.end_watch(id, WatchEnd::Clean);
    }

    /// Moves the pending events of a watch from the history into its own queue.
    fn put_aside(&mut self, id: usize) {
        let watch = &mut self.watches[id];
        if let Some(table) = self.tables.get(&watch.kind.storage) {
            let pending = watch.followed(table, usize::MAX);
            watch.queue.extend(pending);
        }
    }

    fn end_watch(&mut self, id: usize, end: WatchEnd) {
        let watch = &mut self.watches[id];
        if watch.end.is_some() {
            return;
        }
        watch.end = Some(end);
        self.put_aside(id);
        let watch = &self.watches[id];
        let (resource, scope) = (watch.kind.storage.clone(), watch.scope.clone());
        self.table_mut(&resource).unregister(&scope, id);
        self.woken.push(id);
    }
}
