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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt, TryStreamExt, stream};
use informer_actors::list_watch::{KnownObjects, ListStream, SavedNote};
use informer_core::delta::{ListPart, Undecodable};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::request::{AskedVersion, ListRequest};
use informer_core::snapshot::Snapshot;
use tokio::sync::mpsc;

use crate::representation::{LateFindings, Prune, Saves};
use crate::scope::Scope;
use file::{About, Change, Entry, File, FileError, Found, Head, SetAside};

mod file;

/// How often what has changed is written.
const EVERY: Duration = Duration::from_secs(1);
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
    is_begun: AtomicBool,
    state: Mutex<State<S>>,
}

struct State<S> {
    file: Option<File>,
    /// What the file holds; `None` if that is not known.
    written: Option<Snapshot<S>>,
    /// The newest dictionary when all objects of the file were written by it.
    settled: Option<Option<u32>>,
}

/// Whose the objects of a file are, and where their readers tell what does not decode.
type OfSource = (SourceId, Arc<LateFindings>);

impl<S: Send + Sync + 'static> Saved<S> {
    pub(crate) fn new(
        saves: Arc<dyn Saves<S>>,
        (scope, prune): (&Scope, &Prune),
        absent_name: &str,
    ) -> Arc<Self> {
        let path = saves.file();
        let what = format!("{scope:?} without {prune:?}").into();
        let state = State { file: None, written: None, settled: None };
        let absent_name = absent_name.to_owned();
        Arc::new(Self {
            path,
            what,
            saves,
            absent_name,
            is_begun: AtomicBool::new(false),
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
        cluster: impl Future<Output = Result<Option<String>, ListWatchError>> + 'static,
        (of_source, known): (OfSource, KnownObjects<S>),
        (question, from_server): (ListStream<S>, ListStream<S>),
    ) -> ListStream<S> {
        if self.is_begun.load(Ordering::Acquire) {
            return from_server;
        }
        let saved = Arc::clone(self);
        known.note_saved(SavedNote::File(self.path.display().to_string().into()));
        let opened = async move {
            // A failure of the request comes again with the next list.
            let cluster = cluster.await?;
            saved.is_begun.store(true, Ordering::Release);
            let Some(cluster) = cluster else {
                known.note_saved(SavedNote::Problem(
                    "the namespace kube-system cannot be read, which says of which cluster a file is".into(),
                ));
                return Ok::<_, ListWatchError>(from_server);
            };
            let opening = Arc::clone(&saved);
            match blocking(move || opening.open(cluster.into())).await {
                Ok(Some(found)) if is_rewound(&found, question).await? => {
                    let why = format!(
                        "the server is at a version before {}: it was restored from a backup",
                        found.version
                    );
                    known.note_saved(SavedNote::Problem(why.into()));
                    Ok(from_server)
                }
                Ok(Some(found)) => {
                    known.note_saved(SavedNote::Began(age(found.saved_at)));
                    Ok(saved.parts(found, of_source).boxed_local())
                }
                Ok(None) => Ok(from_server),
                Err(error) => {
                    known.note_saved(SavedNote::Problem(error.to_string().into()));
                    Ok(from_server)
                }
            }
        };
        stream::once(opened).try_flatten().boxed_local()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, cluster: Arc<str>) -> Result<Option<Found>, FileError> {
        let about = About { cluster, what: Arc::clone(&self.what) };
        let (file, found) = File::open(&self.path, about)?;
        self.state().file = Some(file);
        Ok(found)
    }

    /// What the file holds, as the parts of a list. Before its last part nothing counts.
    fn parts(
        self: Arc<Self>,
        found: Found,
        of_source: OfSource,
    ) -> impl futures_util::Stream<Item = Result<ListPart<S>, ListWatchError>> {
        let (sender, mut receiver) = mpsc::channel(AHEAD);
        let reading = tokio::task::spawn_blocking(move || {
            let read = self.read(&found, &of_source, |part| sender.blocking_send(Ok(part)).is_ok());
            if let Err(error) = read {
                // The receiver may be gone.
                drop(sender.blocking_send(Err(ListWatchError::source(format!("the saved cache: {error}")))));
            }
        });
        drop(reading);
        stream::poll_fn(move |cx| receiver.poll_recv(cx))
    }

    fn read(
        &self,
        found: &Found,
        (source, late): &OfSource,
        mut next: impl FnMut(ListPart<S>) -> bool,
    ) -> Result<(), FileError> {
        let state = self.state();
        let file = state.file.as_ref().ok_or(FileError::Damaged("it is closed"))?;
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
        if goes_on {
            next(ListPart::End { version, token: None });
        }
        Ok(())
    }

    /// Writes what is published, again and again, until it is dropped.
    pub(crate) async fn keep(self: Arc<Self>, known: KnownObjects<S>, source: SourceId) {
        let mut last_problem = None;
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(snapshot) = known.snapshot() else { continue };
            let (saved, source) = (Arc::clone(&self), source.clone());
            match blocking(move || saved.write(snapshot, &source)).await {
                Ok(true) => known.note_saved(SavedNote::Saved),
                Ok(false) => continue,
                Err(error) if last_problem.as_ref() != Some(&error.to_string()) => {
                    last_problem = Some(error.to_string());
                    known.note_saved(SavedNote::Problem(error.to_string().into()));
                }
                Err(_) => {}
            }
        }
    }

    /// Returns false if there is nothing new.
    fn write(&self, snapshot: Snapshot<S>, source: &SourceId) -> Result<bool, FileError> {
        let mut state = self.state();
        let State { file, written, settled } = &mut *state;
        let (Some(file), Some(version)) = (&*file, snapshot.version(source)) else { return Ok(false) };
        let (newest, has_former) = self.saves.newest();
        // When no object needs a former dictionary any more, all are written anew, by the newest one.
        let is_renewed = !has_former && *settled != Some(newest);
        let before = written.take().filter(|_| !is_renewed);
        if before.as_ref().is_some_and(|before| before.ptr_eq(&snapshot)) {
            *written = before;
            return Ok(false);
        }
        let set_aside = set_aside(&snapshot, source);
        let head = Head { version: &version.to_string(), saved_at: now(), newest, set_aside: &set_aside };
        match &before {
            Some(before) => file.write(&head, self.changes(before, &snapshot, source), None)?,
            None => {
                let is_there = |namespace: Option<&str>, name: &str| {
                    snapshot.named(None, namespace, name).is_some_and(|object| object.source() == source)
                };
                let all = snapshot.iter().filter(|object| object.source() == source);
                file.write(&head, all.map(|object| self.put(object)), Some(&is_there))?;
                *settled = (!has_former).then_some(newest);
            }
        }
        *written = Some(snapshot);
        Ok(true)
    }

    fn changes<'a>(
        &'a self,
        before: &'a Snapshot<S>,
        snapshot: &'a Snapshot<S>,
        source: &'a SourceId,
    ) -> impl Iterator<Item = Result<Change, FileError>> + use<'a, S> {
        before.diff(snapshot).map(move |difference| {
            let key = difference.key();
            match snapshot.get(key).filter(|object| object.source() == source) {
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
async fn is_rewound<S>(found: &Found, mut question: ListStream<S>) -> Result<bool, ListWatchError> {
    while let Some(part) = question.next().await {
        if let ListPart::End { version, .. } = part? {
            return Ok(found.version.parse().is_ok_and(|saved: ResourceVersion| version < saved));
        }
    }
    Err(ListWatchError::Protocol("the answer to a question for the version did not end".into()))
}

fn set_aside<S>(snapshot: &Snapshot<S>, source: &SourceId) -> Vec<SetAside> {
    let is_ours = |one: &&Undecodable| snapshot.get(&one.key).is_none_or(|object| object.source() == source);
    let set_aside = snapshot.undecodable().filter(is_ours).map(|one| SetAside {
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

async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    tokio::task::spawn_blocking(job).await.unwrap_or(Err(FileError::Unfinished))
}

/// Seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "a file is as old as the real clock says, also where time is simulated"
)]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn age(saved_at: u64) -> Duration {
    Duration::from_secs(now().saturating_sub(saved_at))
}
