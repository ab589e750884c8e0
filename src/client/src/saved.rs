//! A cache that is saved to a file while it is followed, and from which the informer begins after a restart.
//!
//! 1. The first list is answered from the file, if it is of this cluster (the uid of the namespace `kube-system`),
//!    of the same resource, selectors and cut fields. The watch then goes on at the saved version; if the server
//!    does not know it any more, everything is listed, as after any 410. A server that is at an earlier version than
//!    the file was restored from a backup: then the file is not used.
//! 2. Once a second what has changed is written in one transaction, with the version up to which it is
//!    complete. So a crash loses at most the last second, and what is read was true at one version.
//! 3. It is written from published snapshots, so the watch waits for no disk. What cannot be read or written is told
//!    in the status (`InformerStatus::saved`) and in the log; the informer then works without the file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{LocalBoxFuture, join};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use informer_actors::list_watch::{KnownObjects, ListStream, ObjectSample, SavedNote};
use informer_actors::runtime::DecodePool;
use informer_core::delta::{ListPart, Undecodable};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::request::{AskedVersion, ListRequest};
use informer_core::snapshot::Snapshot;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::representation::{LateFindings, Prune, Saves};
use crate::scope::Scope;
use crate::wire::WireKind;
use file::{About, Change, Entry, File, FileError, Found, Head, SetAside};

mod file;

/// How often what has changed is written.
const EVERY: Duration = Duration::from_secs(1);
/// After a failure it is tried again after a second, then after two, up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How often it is looked whether the source has caught up with the server.
const LOOK: Duration = Duration::from_millis(100);
/// Failed requests before the file is left aside.
const ATTEMPTS: u32 = 3;
/// Objects of one part of a list.
const AT_ONCE: usize = 250;
/// Parts that are read ahead.
const AHEAD: usize = 4;

/// The file of one source.
pub(crate) struct Saved<S> {
    path: Arc<Path>,
    what: Arc<str>,
    saves: Arc<dyn Saves<S>>,
    /// No object has this name.
    absent_name: String,
    pool: DecodePool,
    /// What the informer begins with is decided.
    is_begun: AtomicBool,
    attempts: AtomicU32,
    state: Mutex<State<S>>,
}

struct State<S> {
    /// The uid of the namespace `kube-system`.
    cluster: Option<Arc<str>>,
    file: Option<Arc<File>>,
    /// What the file holds; `None` if that is not known.
    written: Option<Snapshot<S>>,
    set_aside: Option<Vec<SetAside>>,
    /// The newest dictionary when all objects of the file were written by it.
    settled: Option<Option<u32>>,
    /// Where the server was when the informer began with the file.
    server: Option<ResourceVersion>,
    next_write: Option<Instant>,
    wait: Duration,
}

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
enum SavedError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("it is not known of which cluster a file is: {0}")]
    Request(#[from] ListWatchError),
    #[error("it is not known of which cluster a file is: the namespace kube-system cannot be read")]
    NoRight,
    #[error("the server is at a version before {0}: it was restored from a backup")]
    Rewound(String),
}

/// Whose the objects of a file are, and where their readers tell what does not decode.
pub(crate) type OfSource = (SourceId, Arc<LateFindings>);
/// Asks for the uid of the namespace `kube-system`; `None` without the right to read it.
pub(crate) type AskCluster = Box<dyn Fn() -> LocalBoxFuture<'static, Result<Option<String>, ListWatchError>>>;

impl<S: Send + Sync + 'static> Saved<S> {
    pub(crate) fn new(
        saves: Arc<dyn Saves<S>>,
        (scope, prune): (&Scope, &Prune),
        absent_name: &str,
        pool: DecodePool,
    ) -> Arc<Self> {
        let state = State {
            cluster: None,
            file: None,
            written: None,
            set_aside: None,
            settled: None,
            server: None,
            next_write: None,
            wait: EVERY,
        };
        Arc::new(Self {
            path: saves.file(),
            what: format!("{scope:?} without {prune:?}").into(),
            saves,
            absent_name: absent_name.to_owned(),
            pool,
            is_begun: AtomicBool::new(false),
            attempts: AtomicU32::new(0),
            state: Mutex::new(state),
        })
    }

    /// The answer says at which version the server is.
    pub(crate) fn question(&self) -> ListRequest {
        let name = Some(self.absent_name.clone());
        ListRequest { version: AskedVersion::Latest, limit: None, token: None, name }
    }

    /// The first list of the source: from the file, or else from the server.
    pub(crate) fn first_list(
        self: &Arc<Self>,
        ask_cluster: AskCluster,
        (of_source, known): (OfSource, KnownObjects<S>),
        (question, from_server): (ListStream<S>, ListStream<S>),
    ) -> ListStream<S> {
        if self.is_begun.load(Ordering::Acquire) {
            return from_server;
        }
        let saved = Arc::clone(self);
        known.note_saved(SavedNote::File(self.path.display().to_string().into()));
        let opened = async move {
            let found = match saved.found(&ask_cluster, question).await {
                // The next list tries again: the server may be away.
                Err(SavedError::Request(error))
                    if saved.attempts.fetch_add(1, Ordering::AcqRel) < ATTEMPTS =>
                {
                    return Err(error);
                }
                found => found,
            };
            saved.is_begun.store(true, Ordering::Release);
            match found {
                Ok(Some(found)) => return Ok(saved.parts(found, of_source, known).boxed_local()),
                Ok(None) => {}
                Err(error) => known.note_saved(SavedNote::Problem(error.to_string().into())),
            }
            Ok(from_server)
        };
        stream::once(opened).try_flatten().boxed_local()
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn found(
        self: &Arc<Self>,
        ask_cluster: &AskCluster,
        question: ListStream<S>,
    ) -> Result<Option<Found>, SavedError> {
        let Some(found) = self.opened(ask_cluster).await? else { return Ok(None) };
        let server = version_of(question).await?;
        if found.version.parse().is_ok_and(|saved: ResourceVersion| server < saved) {
            return Err(SavedError::Rewound(found.version));
        }
        self.state().server = Some(server);
        Ok(Some(found))
    }

    /// Opens the file if it is not open.
    async fn opened(self: &Arc<Self>, ask_cluster: &AskCluster) -> Result<Option<Found>, SavedError> {
        let known = self.state().cluster.clone();
        let cluster = match known {
            Some(cluster) => cluster,
            None => ask_cluster().await?.ok_or(SavedError::NoRight)?.into(),
        };
        self.state().cluster = Some(Arc::clone(&cluster));
        let saved = Arc::clone(self);
        let opening = move || {
            if let Some(file) = saved.state().file.clone() {
                return file.found();
            }
            let (file, found) = File::open(&saved.path, About { cluster, what: Arc::clone(&saved.what) })?;
            saved.state().file = Some(Arc::new(file));
            Ok(found)
        };
        Ok(self.on_disk(opening).await?)
    }

    /// Off the arbiter; in simulation in place.
    async fn on_disk<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        match self.pool.is_inline() {
            true => job(),
            false => tokio::task::spawn_blocking(job).await.unwrap_or(Err(FileError::Unfinished)),
        }
    }

    /// What the file holds, as the parts of a list. Before its last part nothing counts.
    fn parts(
        self: Arc<Self>,
        found: Found,
        of_source: OfSource,
        known: KnownObjects<S>,
    ) -> impl Stream<Item = Result<ListPart<S>, ListWatchError>> {
        let (sender, mut receiver) = mpsc::channel(AHEAD);
        let is_inline = self.pool.is_inline();
        let mut in_place = Vec::new();
        let reading = move |in_place: &mut Vec<_>| {
            let mut send = |part| match is_inline {
                true => {
                    in_place.push(part);
                    true
                }
                // The receiver may be gone.
                false => sender.blocking_send(part).is_ok(),
            };
            if let Err(error) = self.read(&found, &of_source, &known, |part| send(Ok(part))) {
                known.note_saved(SavedNote::Problem(error.to_string().into()));
                send(Err(ListWatchError::source(format!(
                    "the saved cache {}: {error}",
                    self.path.display()
                ))));
            }
        };
        if is_inline {
            reading(&mut in_place);
            drop(reading);
        } else {
            drop(tokio::task::spawn_blocking(move || reading(&mut Vec::new())));
        }
        stream::iter(in_place).chain(stream::poll_fn(move |cx| receiver.poll_recv(cx)))
    }

    fn read(
        &self,
        found: &Found,
        (source, late): &OfSource,
        known: &KnownObjects<S>,
        mut next: impl FnMut(ListPart<S>) -> bool,
    ) -> Result<(), FileError> {
        let file = self.state().file.clone().ok_or(FileError::Unfinished)?;
        let (dictionaries, newest) = file.dictionaries()?;
        let dictionaries = self
            .saves
            .restore(dictionaries, newest)
            .ok_or(FileError::Damaged("a dictionary does not fit"))?;
        let (mut keys, mut objects, mut damaged, mut goes_on) = (BTreeMap::new(), Vec::new(), None, true);
        file.read(|entry| {
            let body = self.saves.body(&dictionaries, entry.body, late);
            match body.zip(entry.version.parse().ok()) {
                Some((body, version)) => {
                    if known.is_sampled() {
                        known.note_sample(self.sample(&body, entry.wire_bytes));
                    }
                    let key = key_of(&mut keys, entry.namespace.as_deref(), &entry.name);
                    let meta = Meta::new(key, version, source.clone()).uid(Uid::new(&entry.uid));
                    objects.push(Object::new(meta.wire_bytes(entry.wire_bytes), body));
                }
                None => damaged = Some(FileError::Damaged("an object has no version, or no dictionary")),
            }
            if objects.len() == AT_ONCE {
                goes_on = next(ListPart::Objects(std::mem::take(&mut objects)));
            }
            goes_on && damaged.is_none()
        })?;
        if let Some(damaged) = damaged {
            return Err(damaged);
        }
        goes_on = goes_on && next(ListPart::Objects(objects));
        for SetAside { namespace, name, version, error } in file.undecodable()? {
            let key = key_of(&mut keys, namespace.as_deref(), &name);
            let version = version.parse().map_err(|_| FileError::Damaged("a version"))?;
            goes_on =
                goes_on && next(ListPart::Undecodable(Undecodable { key, version, error: error.into() }));
        }
        let version = found.version.parse().map_err(|_| FileError::Damaged("its version"))?;
        if goes_on && let Some(server) = self.state().server.clone() {
            let age = seconds(known.wall_time()).saturating_sub(found.saved_at);
            known.note_saved(SavedNote::Began { age: Duration::from_secs(age), server });
            next(ListPart::End { version, token: None });
        }
        Ok(())
    }

    fn sample(&self, body: &S, wire_bytes: u32) -> ObjectSample {
        let text = self.saves.text(body);
        ObjectSample {
            sent: wire_bytes.into(),
            text: text.len() as u64,
            kept: self.saves.saved(body).map(|saved| saved.bytes().len() as u64),
            fields: WireKind::Json.field_bytes(&text).unwrap_or_default(),
        }
    }

    /// Writes what is published, again and again, until it is dropped.
    pub(crate) async fn keep(self: Arc<Self>, known: KnownObjects<S>, source: SourceId, ask: AskCluster) {
        let catching_up = self.catch_up(&known, &source);
        let writing = async {
            loop {
                let next = *self.state().next_write.get_or_insert_with(|| Instant::now() + EVERY);
                sleep_until(next).await;
                let written = self.write_published(&known, &source, &ask).await;
                let wait = {
                    let mut state = self.state();
                    state.wait = if written.is_ok() { EVERY } else { LONGEST_WAIT.min(state.wait * 2) };
                    state.wait
                };
                match written {
                    Ok(true) => known.note_saved(SavedNote::Saved),
                    Ok(false) => {}
                    Err(error) => known.note_saved(SavedNote::Problem(error.to_string().into())),
                }
                self.state().next_write = Some(Instant::now() + wait);
            }
        };
        join(catching_up, writing).await;
    }

    /// Until then the objects are those of the file.
    async fn catch_up(&self, known: &KnownObjects<S>, source: &SourceId) {
        let Some(server) = self.state().server.clone() else { return };
        while known.snapshot().is_none_or(|now| now.version(source).is_none_or(|at| *at < server)) {
            sleep(LOOK).await;
        }
        self.state().server = None;
        known.note_saved(SavedNote::CaughtUp);
    }

    /// Returns false if there is nothing new.
    async fn write_published(
        self: &Arc<Self>,
        known: &KnownObjects<S>,
        source: &SourceId,
        ask: &AskCluster,
    ) -> Result<bool, SavedError> {
        let Some(snapshot) = known.snapshot() else { return Ok(false) };
        if snapshot.version(source).is_none() {
            return Ok(false);
        }
        let is_open = self.state().file.is_some();
        if !is_open {
            self.opened(ask).await?;
        }
        let (saved, source, saved_at) = (Arc::clone(self), source.clone(), seconds(known.wall_time()));
        Ok(self.on_disk(move || saved.write(snapshot, &source, saved_at)).await?)
    }

    fn write(&self, snapshot: Snapshot<S>, source: &SourceId, saved_at: u64) -> Result<bool, FileError> {
        let mut state = self.state();
        let State { file, written, set_aside, settled, .. } = &mut *state;
        let (Some(open), Some(version)) = (file.clone(), snapshot.version(source)) else { return Ok(false) };
        let (newest, has_former) = self.saves.newest();
        // When no object needs a former dictionary any more, all are written anew, by the newest one.
        let is_renewed = !has_former && *settled != Some(newest);
        let before = written.take().filter(|_| !is_renewed);
        if before.as_ref().is_some_and(|before| before.ptr_eq(&snapshot)) {
            *written = before;
            return Ok(false);
        }
        if snapshot.versions().iter().nth(1).is_some() {
            return Err(FileError::OtherSources);
        }
        let aside = set_aside_of(&snapshot);
        let aside_before = set_aside.take();
        let head = Head {
            version: &version.to_string(),
            saved_at,
            newest,
            set_aside: (aside_before.as_ref() != Some(&aside)).then_some(&*aside),
        };
        let done = match &before {
            Some(before) => open.write(&head, self.changes(before, &snapshot), None),
            None => {
                let is_there =
                    |namespace: Option<&str>, name: &str| snapshot.named(None, namespace, name).is_some();
                open.write(&head, snapshot.iter().map(|object| self.put(object)), Some(&is_there))
            }
        };
        if let Err(error) = done {
            // After an error of the disk a database refuses everything until it is opened anew.
            *file = None;
            return Err(error);
        }
        if before.is_none() {
            *settled = (!has_former).then_some(newest);
        }
        (*written, *set_aside) = (Some(snapshot), Some(aside));
        Ok(true)
    }

    fn changes<'a>(
        &'a self,
        before: &'a Snapshot<S>,
        snapshot: &'a Snapshot<S>,
    ) -> impl Iterator<Item = Result<Change, FileError>> + use<'a, S> {
        before.diff(snapshot).map(move |difference| {
            let key = difference.key();
            match snapshot.get(key) {
                Some(object) => self.put(object),
                None => Ok(Change::Delete {
                    namespace: key.namespace().map(str::to_owned),
                    name: key.name().to_owned(),
                }),
            }
        })
    }

    fn put(&self, object: &Object<S>) -> Result<Change, FileError> {
        let body = self.saves.saved(object.body()).ok_or(FileError::Unpacked)?;
        let entry = Entry {
            namespace: object.key().namespace().map(str::to_owned),
            name: object.key().name().to_owned(),
            version: object.version().to_string(),
            uid: object.object_uid().map(ToString::to_string).unwrap_or_default(),
            wire_bytes: object.wire_bytes(),
            body: body.bytes().to_vec(),
        };
        Ok(Change::Put(entry, body))
    }
}

/// The answer of a server to a list of nothing says at which version it is.
async fn version_of<S>(mut question: ListStream<S>) -> Result<ResourceVersion, ListWatchError> {
    while let Some(part) = question.next().await {
        if let ListPart::End { version, .. } = part? {
            return Ok(version);
        }
    }
    Err(ListWatchError::Protocol("the answer to a question for the version did not end".into()))
}

fn set_aside_of<S>(snapshot: &Snapshot<S>) -> Vec<SetAside> {
    let set_aside = snapshot.undecodable().map(|one| SetAside {
        namespace: one.key.namespace().map(str::to_owned),
        name: one.key.name().to_owned(),
        version: one.version.to_string(),
        error: one.error.to_string(),
    });
    set_aside.collect()
}

/// Keys of a namespace share its text.
fn key_of(known: &mut BTreeMap<String, ObjectKey>, namespace: Option<&str>, name: &str) -> ObjectKey {
    let Some(namespace) = namespace else { return ObjectKey::cluster(name) };
    if let Some(sibling) = known.get(namespace) {
        return sibling.sibling(name);
    }
    let key = ObjectKey::namespaced(namespace, name);
    known.insert(namespace.to_owned(), key.clone());
    key
}

/// Since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
