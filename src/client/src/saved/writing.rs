//! Once a second writes what has changed to the file, off the arbiter.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join;
use informer_actors::list_watch::{KnownObjects, SavedNote};
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ResourceVersion, SourceId};
use informer_core::snapshot::Snapshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::file::{About, Change, Entry, FileError, Head, SetAside};
use super::{AskCluster, Disk, EVERY, LONGEST_WAIT, Saved, SavedError, seconds};

/// How often [`Saved::catch_up`] looks.
const LOOK: Duration = Duration::from_millis(100);
/// A server sends at once what it knows after the version of a watch.
const SILENCE: Duration = Duration::from_secs(2);
/// A watch without a look for this long was not silent: nobody knows.
const UNSEEN: Duration = Duration::from_millis(500);

/// What the reader of a watch has seen. Call [`Self::note`] after each look.
#[derive(Default)]
pub(crate) struct Seen(RefCell<SeenOfWatch>);

type Looked<S> = Result<Vec<WatchPart<S>>, ListWatchError>;

#[derive(Default)]
struct SeenOfWatch {
    is_open: bool,
    /// The first and the last look of those that found nothing.
    silent: Option<(Instant, Instant)>,
    newest: Option<ResourceVersion>,
}

impl Seen {
    pub(crate) fn note<S>(&self, look: &Poll<Option<Looked<S>>>) {
        let (mut seen, now) = (self.0.borrow_mut(), Instant::now());
        seen.silent = match look {
            Poll::Ready(Some(Ok(parts))) => {
                seen.is_open = true;
                let brought = parts.iter().filter_map(WatchPart::reached).max().cloned();
                seen.newest = seen.newest.take().max(brought);
                None
            }
            Poll::Pending if seen.is_open => {
                let former = seen.silent.filter(|(_, looked)| now.duration_since(*looked) < UNSEEN);
                Some((former.map_or(now, |(since, _)| since), now))
            }
            _ => None,
        };
    }

    /// Whether all that the watch brought is published, and nothing more came for a while.
    fn is_over<S>(&self, published: &Snapshot<S>, source: &SourceId) -> bool {
        let seen = self.0.borrow();
        let is_silent = seen.silent.is_some_and(|(since, looked)| looked.duration_since(since) >= SILENCE);
        // The list of the file is published before anything of the watch.
        is_silent
            && published
                .version(source)
                .is_some_and(|at| seen.newest.as_ref().is_none_or(|newest| at >= newest))
    }
}

/// One write at a time, also of watches that have ended. A panic of the job ends it, too.
struct Writing<S: Send + Sync + 'static>(Arc<Saved<S>>);

impl<S: Send + Sync + 'static> Writing<S> {
    fn begin(saved: &Arc<Saved<S>>) -> Option<Self> {
        let mut state = saved.state();
        if state.writing_since.is_some() {
            return None;
        }
        state.writing_since = Some(Instant::now());
        drop(state);
        Some(Self(Arc::clone(saved)))
    }
}

impl<S: Send + Sync + 'static> Drop for Writing<S> {
    fn drop(&mut self) {
        self.0.state().writing_since = None;
    }
}

enum Written {
    Whole,
    Nothing,
    /// Nothing was written: some objects are newer than the version up to which all are there.
    Partly,
}

impl<S: Send + Sync + 'static> Saved<S> {
    /// Writes what is published, again and again. It lives as long as the watch.
    pub(crate) async fn keep(
        self: Arc<Self>,
        (known, source): (KnownObjects<S>, SourceId),
        ask: AskCluster,
        seen: Rc<Seen>,
    ) {
        // A watch comes after a list.
        self.is_begun.store(true, Ordering::Release);
        let writing = async {
            // Asked for each watch: another cluster may answer at the same address.
            let mut about = None;
            loop {
                let next = *self.state().next_write.get_or_insert_with(|| Instant::now() + EVERY);
                sleep_until(next).await;
                if !seen.0.borrow().is_open {
                    self.state().next_write = None;
                    continue;
                }
                if about.is_none() {
                    match self.about(&ask).await {
                        Ok(found) => about = Some(found),
                        Err(error) => self.written(Err(error), &known),
                    }
                }
                if let Some(about) = &about {
                    self.write_published(about.clone(), &known, &source).await;
                }
            }
        };
        join(self.catch_up(&known, &source, &seen), writing).await;
    }

    /// Waits for the server's state; until then the objects are those of the file.
    async fn catch_up(&self, known: &KnownObjects<S>, source: &SourceId, seen: &Seen) {
        let Some(server) = self.state().server.clone() else { return };
        // After a rewind the objects are those of a list.
        let is_there = |now: &Snapshot<S>| {
            now.rewinds() > 0
                || now.version(source).is_some_and(|at| *at >= server)
                || seen.is_over(now, source)
        };
        while !known.snapshot().is_some_and(|now| is_there(&now)) {
            sleep(LOOK).await;
        }
        self.state().server = None;
        known.note_saved(SavedNote::CaughtUp);
    }

    async fn write_published(self: &Arc<Self>, about: About, known: &KnownObjects<S>, source: &SourceId) {
        let Some(snapshot) = known.snapshot() else { return self.written(Ok(Written::Nothing), known) };
        let Some(writing) = Writing::begin(self) else {
            // A former watch still writes.
            self.state().next_write = None;
            return self.note_if_slow(known);
        };
        let (saved, source, of_job) = (Arc::clone(self), source.clone(), known.clone());
        // The result is told in the job: the watch may end before.
        let job = move || {
            let _writing = writing;
            let written = saved.write(about, snapshot, &source, seconds(of_job.wall_time()));
            saved.written(written.map_err(SavedError::File), &of_job);
            Ok(())
        };
        let mut written = pin!(self.on_disk(job));
        let done = loop {
            match timeout(EVERY, &mut written).await {
                Ok(done) => break done,
                Err(_) => self.note_if_slow(known),
            }
        };
        if let Err(error) = done {
            self.written(Err(SavedError::File(error)), known);
        }
    }

    fn note_if_slow(&self, known: &KnownObjects<S>) {
        let since = self.state().writing_since;
        if since.is_some_and(|since| since.elapsed() >= LONGEST_WAIT) {
            self.note_problem(&SavedError::Slow, known);
        }
    }

    fn written(&self, written: Result<Written, SavedError>, known: &KnownObjects<S>) {
        let mut state = self.state();
        let now = Instant::now();
        state.wait = if written.is_ok() { EVERY } else { LONGEST_WAIT.min(state.wait * 2) };
        state.next_write = Some(now + state.wait);
        if !matches!(written, Ok(Written::Partly)) {
            state.partly_since = None;
        }
        let partly_since = *state.partly_since.get_or_insert(now);
        let had_problem = std::mem::take(&mut state.has_problem);
        drop(state);
        match written {
            Ok(Written::Whole) => known.note_saved(SavedNote::Saved),
            // A problem is over: the file holds what is published.
            Ok(Written::Nothing) if had_problem => known.note_saved(SavedNote::Saved),
            Ok(Written::Partly) if now.duration_since(partly_since) >= LONGEST_WAIT => {
                self.note_problem(&SavedError::Partly, known);
            }
            Ok(Written::Partly | Written::Nothing) => {}
            Err(error) => self.note_problem(&error, known),
        }
    }

    pub(super) fn note_problem(&self, problem: &SavedError, known: &KnownObjects<S>) {
        self.state().has_problem = true;
        known.note_saved(SavedNote::Problem(problem.to_string().into()));
    }

    fn write(
        &self,
        about: About,
        snapshot: Snapshot<S>,
        source: &SourceId,
        saved_at: u64,
    ) -> Result<Written, FileError> {
        let mut disk = self.disk();
        let open = disk.open(&self.path, about)?;
        let Disk { file, written, set_aside, settled } = &mut *disk;
        let version = snapshot.version(source).filter(|at| snapshot.newest_version(source) == Some(*at));
        // In the queue order `PerKey` objects may be newer than this version.
        let Some(version) = version else { return Ok(Written::Partly) };
        let (newest, has_former) = self.saves.newest();
        // When no object needs a former dictionary, all are written anew, by the newest one.
        let is_renewed = !has_former && *settled != Some(newest);
        let before = written.take().filter(|_| !is_renewed);
        if before.as_ref().is_some_and(|before| before.ptr_eq(&snapshot)) {
            *written = before;
            return Ok(Written::Nothing);
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
        // After an error of the disk or a panic, a database refuses everything until it is opened anew.
        *file = None;
        match &before {
            Some(before) => open.write(&head, self.changes(before, &snapshot), None),
            None => {
                let is_there =
                    |namespace: Option<&str>, name: &str| snapshot.named(None, namespace, name).is_some();
                open.write(&head, snapshot.iter().map(|object| self.put(object)), Some(&is_there))
            }
        }?;
        match before {
            // If it were queued, it would keep all that was replaced meanwhile.
            Some(before) => before.free_here(),
            None => *settled = (!has_former).then_some(newest),
        }
        (*file, *written, *set_aside) = (Some(open), Some(snapshot), Some(aside));
        Ok(Written::Whole)
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

fn set_aside_of<S>(snapshot: &Snapshot<S>) -> Vec<SetAside> {
    let set_aside = snapshot.undecodable().map(|one| SetAside {
        namespace: one.key.namespace().map(str::to_owned),
        name: one.key.name().to_owned(),
        version: one.version.to_string(),
        error: one.error.to_string(),
    });
    set_aside.collect()
}
