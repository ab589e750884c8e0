//! A cache that is saved to a file, and from which the informer begins after a restart.
//!
//! 1. The first list is answered from the file, if it is of this cluster (the uid of the namespace `kube-system`), and of the
//!    same resource, selectors and cut fields. The watch goes on at the saved version; after a 410 everything is listed. A server
//!    at an earlier version was restored from a backup: then the file is not used.
//! 2. Each second the changes are written in one transaction, with the version up to which they are complete. So a crash loses
//!    only what came since, and what is read was true at one version.
//! 3. It is written from published snapshots, so the watch waits for no disk. What cannot be read or written is told in
//!    `InformerStatus::saved` and in the log; the informer then works without the file.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use informer_actors::list_watch::{KnownObjects, ListStream, SavedNote};
use informer_actors::runtime::DecodePool;
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::request::{AskedVersion, ListRequest};
use informer_core::snapshot::Snapshot;
use kube_core::discovery::ApiResource;
use tokio::time::{Instant, timeout};

use crate::representation::{LateFindings, Prune, Saves, WireKind};
use crate::scope::Scope;
use file::{About, File, FileError, Found, SetAside};

mod file;
mod reading;
mod writing;

pub(crate) use writing::Seen;

const EVERY: Duration = Duration::from_secs(1);
/// Retries wait two seconds, then four, up to this. A slower disk is told.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Failed requests before the server is listed instead.
const ATTEMPTS: u32 = 3;

pub(crate) struct Saved<S> {
    path: Arc<Path>,
    what: Arc<str>,
    saves: Arc<dyn Saves<S>>,
    /// No object has this name.
    absent_name: String,
    pool: DecodePool,
    /// There was a list. Further ones are the server's.
    is_begun: AtomicBool,
    is_damaged: AtomicBool,
    attempts: AtomicU32,
    state: Mutex<State>,
    /// Locked while the disk works: never on the arbiter.
    disk: Mutex<Disk<S>>,
}

struct State {
    /// The server's version when the informer began with the file.
    server: Option<ResourceVersion>,
    next_write: Option<Instant>,
    wait: Duration,
    /// Since when no published version was whole, and nothing was written.
    partly_since: Option<Instant>,
    writing_since: Option<Instant>,
    has_problem: bool,
}

struct Disk<S> {
    file: Option<Arc<File>>,
    /// `None` if it is not known.
    written: Option<Snapshot<S>>,
    set_aside: Option<Vec<SetAside>>,
    /// The newest dictionary, if it wrote all objects of the file.
    settled: Option<Option<u32>>,
}

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
    #[error("the disk has not answered for a minute")]
    Slow,
    #[error(
        "for a minute no published version was whole: in the queue order `PerKey` objects overtake each other"
    )]
    Partly,
}

pub(crate) type OfSource = (SourceId, Arc<LateFindings>);
/// The uid of the namespace `kube-system`; `None` without the right to read it.
pub(crate) type AskCluster = Box<dyn Fn() -> LocalBoxFuture<'static, Result<Option<String>, ListWatchError>>>;

impl<S: Send + Sync + 'static> Saved<S> {
    pub(crate) fn new(
        saves: Arc<dyn Saves<S>>,
        (scope, prune, wire): (&Scope, &Prune, WireKind),
        absent_name: &str,
        pool: DecodePool,
    ) -> Arc<Self> {
        let state = State {
            server: None,
            next_write: None,
            wait: EVERY,
            partly_since: None,
            writing_since: None,
            has_problem: false,
        };
        let disk = Disk { file: None, written: None, set_aside: None, settled: None };
        Arc::new(Self {
            path: saves.file(),
            what: what(scope, prune, wire).into(),
            saves,
            absent_name: absent_name.to_owned(),
            pool,
            is_begun: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
            attempts: AtomicU32::new(0),
            state: Mutex::new(state),
            disk: Mutex::new(disk),
        })
    }

    /// The answer has the server's version.
    pub(crate) fn question(&self) -> ListRequest {
        let name = Some(self.absent_name.clone());
        ListRequest { version: AskedVersion::Latest, limit: None, token: None, name }
    }

    /// From the file, or else from the server.
    pub(crate) fn first_list(
        self: &Arc<Self>,
        ask_cluster: AskCluster,
        (of_source, known): (OfSource, KnownObjects<S>),
        (question, from_server): (ListStream<S>, ListStream<S>),
    ) -> ListStream<S> {
        if self.is_begun.load(Ordering::Acquire) || self.is_damaged.load(Ordering::Acquire) {
            return from_server;
        }
        let saved = Arc::clone(self);
        known.note_saved(SavedNote::File(self.path.display().to_string().into()));
        let opened = async move {
            let found = match saved.found(&ask_cluster, question).await {
                // The server may be away: each next list asks it again.
                Err(SavedError::Request(error))
                    if saved.attempts.fetch_add(1, Ordering::AcqRel) < ATTEMPTS =>
                {
                    return Err(error);
                }
                found => found,
            };
            match found {
                Ok(Some((found, server))) => return Ok(saved.of_file((found, server), of_source, known)),
                Ok(None) => {}
                Err(error) => {
                    if matches!(error, SavedError::Slow) {
                        // No further list waits for the disk.
                        saved.is_damaged.store(true, Ordering::Release);
                    }
                    saved.note_problem(&error, &known);
                }
            }
            Ok(from_server)
        };
        stream::once(opened).try_flatten().boxed_local()
    }

    /// The informer begins with the file when the list has ended; one that fails before is tried again.
    fn of_file(
        self: &Arc<Self>,
        (found, server): (Found, ResourceVersion),
        of_source: OfSource,
        known: KnownObjects<S>,
    ) -> ListStream<S> {
        let age = Duration::from_secs(seconds(known.wall_time()).saturating_sub(found.saved_at));
        let list = Arc::clone(self).parts(found, of_source, known.clone());
        let saved = Arc::clone(self);
        let noting = move |part: &Result<ListPart<S>, ListWatchError>| {
            if matches!(part, Ok(ListPart::End { .. })) {
                saved.state().server = Some(server.clone());
                known.note_saved(SavedNote::Began { age, server: server.clone() });
            }
        };
        list.inspect(noting).boxed_local()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disk(&self) -> MutexGuard<'_, Disk<S>> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn found(
        self: &Arc<Self>,
        ask_cluster: &AskCluster,
        question: ListStream<S>,
    ) -> Result<Option<(Found, ResourceVersion)>, SavedError> {
        let about = self.about(ask_cluster).await?;
        let saved = Arc::clone(self);
        let opening = move || saved.disk().open(&saved.path, about)?.found();
        let opened = timeout(LONGEST_WAIT, self.on_disk(opening)).await.map_err(|_| SavedError::Slow)?;
        let Some(found) = opened? else { return Ok(None) };
        let server = version_of(question).await?;
        if found.version.parse().is_ok_and(|saved: ResourceVersion| server < saved) {
            return Err(SavedError::Rewound(found.version));
        }
        Ok(Some((found, server)))
    }

    async fn about(&self, ask_cluster: &AskCluster) -> Result<About, SavedError> {
        let cluster = ask_cluster().await?.ok_or(SavedError::NoRight)?.into();
        Ok(About { cluster, what: Arc::clone(&self.what) })
    }

    /// In simulation it runs in place.
    async fn on_disk<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        match self.pool.is_inline() {
            true => job(),
            false => tokio::task::spawn_blocking(job).await.unwrap_or(Err(FileError::Unfinished)),
        }
    }
}

impl<S> Disk<S> {
    fn open(&mut self, path: &Path, about: About) -> Result<Arc<File>, FileError> {
        if let Some(file) = self.file.as_ref().filter(|file| *file.about() == about) {
            return Ok(Arc::clone(file));
        }
        // redb opens a file only once.
        (self.file, self.written) = (None, None);
        let file = Arc::new(File::open(path, about)?);
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }
}

/// A server answers even a list of nothing with its version.
async fn version_of<S>(mut question: ListStream<S>) -> Result<ResourceVersion, ListWatchError> {
    while let Some(part) = question.next().await {
        if let ListPart::End { version, .. } = part? {
            return Ok(version);
        }
    }
    Err(ListWatchError::Protocol("the answer to a question for the version did not end".into()))
}

/// Caches with the same text hold the same objects in the same form. A program without protobuf could not read a file with it.
fn what(scope: &Scope, prune: &Prune, wire: WireKind) -> String {
    let ApiResource { group, version, plural, .. } = &scope.resource;
    let cut = prune.paths();
    let Scope { namespace, labels, fields, .. } = scope;
    let wire = if wire == WireKind::Json { "" } else { " in protobuf" };
    format!(
        "{group}/{version}/{plural} namespace {namespace:?} labels {labels:?} fields {fields:?} without {cut:?}{wire}"
    )
}

/// Since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
