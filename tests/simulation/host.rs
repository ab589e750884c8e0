//! One server of a run, and what a source sees of it.
//!
//! Answers "what does this server hold, and how does it go back to an older state?". Invariants:
//! 1. An object carries the name of the source that brings it.
//! 2. A server that is restored from its backup breaks every answer that is under way, as its restart does.
//! 3. Until each of its sources has noticed that, it issues no version that one of them has reached: what nobody can
//!    notice is not drawn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, LocalBoxStream};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use informer_actors::list_watch::{Connect, KnownObjects, ListStream, ListWatch, SourceSpec, WatchStream};
use informer_actors::testing::{Backup, Server};
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::request::{ListRequest, WatchRequest};

use crate::dice::Dice;
use crate::paged::Paged;
use crate::plan::Source;
use crate::windows::Deed;

pub(crate) struct Host {
    pub(crate) server: Server<String>,
    pub(crate) paged: Paged,
    /// How often it went back.
    pub(crate) rewinds: usize,
    pages: bool,
    config: ReflectorConfig,
    present: BTreeSet<String>,
    /// An older state, and its revision.
    backup: (u64, Backup<String>),
    restarts: Arc<AtomicU64>,
    /// No version from here on may be issued.
    bound: Option<u64>,
}

/// What a source sees of a server.
#[derive(Clone, Default)]
pub(crate) struct Sees {
    /// The namespace; `None` for all.
    pub(crate) namespace: Option<String>,
    /// Whether it is forbidden.
    pub(crate) is_denied: Arc<AtomicBool>,
}

impl Host {
    pub(crate) fn new(id: SourceId, source: &Source) -> Self {
        let server = Server::named(id);
        server.serve_watch_list(source.serves_watch_list);
        server.objects_per_part(source.objects_per_part);
        server.answer_after(source.answers_after);
        Self {
            paged: Paged::new(server.clone()),
            rewinds: 0,
            pages: source.pages,
            config: source.config.clone(),
            present: BTreeSet::new(),
            backup: (1, server.backup()),
            restarts: Arc::default(),
            bound: None,
            server,
        }
    }

    /// What declares the source of a name.
    pub(crate) fn connector(&self) -> impl Fn(&SourceId, &Sees) -> SourceSpec<String> + Send + Sync + use<> {
        let (server, paged, pages) = (self.server.clone(), self.paged.clone(), self.pages);
        let (config, restarts) = (self.config.clone(), Arc::clone(&self.restarts));
        move |id, sees| {
            let (server, paged, restarts) = (server.clone(), paged.clone(), Arc::clone(&restarts));
            let (named, sees) = (id.clone(), sees.clone());
            let connect: Connect<String> = Arc::new(move || {
                let source: Box<dyn ListWatch<String>> =
                    if pages { Box::new(paged.clone()) } else { Box::new(server.clone()) };
                let (id, sees, restarts) = (named.clone(), sees.clone(), Arc::clone(&restarts));
                Box::new(View { id, source, sees, restarts })
            });
            SourceSpec::new(id.clone(), connect, config.clone())
        }
    }

    fn revision(&self) -> u64 {
        self.server.version().to_string().parse().expect("a revision is a number")
    }

    /// Makes or changes an object.
    pub(crate) fn apply(&mut self, key: &str, body: String) -> Option<Deed> {
        if self.bound.is_some_and(|bound| self.revision() + 1 >= bound) {
            return None;
        }
        self.server.apply(key, body);
        Some(if self.present.insert(key.to_owned()) { Deed::Made } else { Deed::Changed })
    }

    fn delete(&mut self, key: &str) -> Option<Deed> {
        if self.bound.is_some_and(|bound| self.revision() + 1 >= bound) || !self.present.remove(key) {
            return None;
        }
        self.server.delete(key);
        Some(Deed::Deleted)
    }

    /// Writes to an object of this key: it is made, changed, deleted, or deleted and made again.
    pub(crate) fn write(&mut self, key: &str, dice: &mut Dice) -> Option<Deed> {
        match dice.below(10) {
            0 | 1 => self.delete(key),
            2 => {
                let gone = self.delete(key);
                let made = self.apply(key, dice.below(1000).to_string());
                gone.and(made).map(|_| Deed::MadeAgain).or(gone).or(made)
            }
            _ => self.apply(key, dice.below(1000).to_string()),
        }
    }

    /// Keeps its present state, for [`Self::rewind`].
    pub(crate) fn back_up(&mut self) {
        if self.bound.is_none() {
            self.backup = (self.revision(), self.server.backup());
        }
    }

    /// Goes back to its backup, if each source that has listed can notice it: `reached` are their versions.
    pub(crate) fn rewind(&mut self, reached: &[u64]) -> Option<Deed> {
        let least = reached.iter().min().filter(|least| self.bound.is_none() && **least > self.backup.0)?;
        self.server.restore(&self.backup.1);
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.paged.expire();
        (self.bound, self.rewinds) = (Some(*least), self.rewinds + 1);
        self.present = self.server.content().into_iter().map(|(key, _)| key.to_string()).collect();
        Some(Deed::Rewound)
    }

    /// Whether every source has noticed that it went back: these are the versions of those that have listed.
    pub(crate) fn is_noticed(&mut self, reached: &[u64]) -> bool {
        if self.bound.is_some() && reached.iter().all(|reached| *reached <= self.revision()) {
            self.bound = None;
        }
        self.bound.is_none()
    }

    /// Something that the server or the network does.
    pub(crate) fn disturb(&self, step: usize, mut errors: Vec<ListWatchError>, dice: &mut Dice) {
        match step {
            5 => self.server.bookmark(),
            6 => self.server.compact(),
            7 => self.server.end_watches(None),
            8 => self.server.end_watches(errors.pop()),
            9 => self.server.refuse(errors),
            10 => self.server.freeze_watches(dice.one_in(2)),
            _ => self.server.hold_lists(dice.one_in(3)),
        }
    }

    /// From now on it answers later, or sooner.
    pub(crate) fn slow_down(&self, dice: &mut Dice) {
        self.server.answer_after(dice.milliseconds(&[0, 5, 300, 7_000, 40_000]));
        self.server.pause_between_parts(dice.milliseconds(&[0, 0, 1, 200]));
    }
}

/// A version as a number.
pub(crate) fn number(version: &ResourceVersion) -> u64 {
    version.to_string().parse().expect("a version of these servers is a number")
}

/// What one source sees of a server: what it brings carries the source's name.
struct View {
    id: SourceId,
    source: Box<dyn ListWatch<String>>,
    sees: Sees,
    restarts: Arc<AtomicU64>,
}

fn renamed(id: &SourceId, object: &Object<String>) -> Object<String> {
    let mut meta = object.cached_meta().clone();
    meta.source = id.clone();
    Object::new(meta, object.body().clone())
}

impl Sees {
    fn sees(&self, key: &ObjectKey) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
    }
}

impl View {
    fn refusal(&self) -> Option<ListWatchError> {
        let is_denied = self.sees.is_denied.load(Ordering::Relaxed);
        is_denied.then(|| ListWatchError::Denied("only single namespaces".into()))
    }

    /// The answer, until the server is restarted.
    fn until_restart<T: 'static>(
        &self,
        answer: LocalBoxStream<'static, Result<T, ListWatchError>>,
    ) -> LocalBoxStream<'static, Result<T, ListWatchError>> {
        let (restarts, before) = (Arc::clone(&self.restarts), self.restarts.load(Ordering::Relaxed));
        let is_whole = move || restarts.load(Ordering::Relaxed) == before;
        let broken = || Err(ListWatchError::source("the server was restarted"));
        answer.map(move |part| if is_whole() { part } else { broken() }).boxed_local()
    }
}

impl ListWatch<String> for View {
    fn list(&self, request: ListRequest, known: KnownObjects<String>) -> ListStream<String> {
        if let Some(refusal) = self.refusal() {
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let (id, sees) = (self.id.clone(), self.sees.clone());
        let seen = move |part: ListPart<String>| match part {
            ListPart::Objects(objects) => {
                let seen = objects.iter().filter(|object| sees.sees(object.key()));
                ListPart::Objects(seen.map(|object| renamed(&id, object)).collect())
            }
            other => other,
        };
        self.until_restart(self.source.list(request, known)).map_ok(seen).boxed_local()
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<String>) -> WatchStream<String> {
        if let Some(refusal) = self.refusal() {
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let (id, sees) = (self.id.clone(), self.sees.clone());
        let seen = move |part: WatchPart<String>| match part {
            part if part.key().is_some_and(|key| !sees.sees(key)) => {
                WatchPart::Bookmark { version: part.version().clone(), initial_events_end: false }
            }
            WatchPart::Applied(object) => WatchPart::Applied(renamed(&id, &object)),
            WatchPart::Deleted(object) => WatchPart::Deleted(renamed(&id, &object)),
            other => other,
        };
        let parts = self.until_restart(self.source.watch(request, known));
        parts.map_ok(move |parts| parts.into_iter().map(&seen).collect()).boxed_local()
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        let (id, answer) = (self.id.clone(), self.source.get(key));
        async move { Ok(answer.await?.map(|object| renamed(&id, &object))) }.boxed_local()
    }
}
