//! Writes what is published to the file, off the arbiter: once a second what has changed.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join;
use informer_actors::list_watch::{KnownObjects, SavedNote};
use informer_core::meta::{Object, SourceId};
use informer_core::snapshot::Snapshot;
use tokio::time::{Instant, sleep, sleep_until};

use super::file::{About, Change, Entry, FileError, Head, SetAside};
use super::{AskCluster, Disk, EVERY, Saved, SavedError, seconds};

/// After a failure it is tried again after two seconds, then after four, up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How often it is looked whether the source has caught up with the server.
const LOOK: Duration = Duration::from_millis(100);
/// A server sends at once what it knows after the version of a watch.
const SILENCE: Duration = Duration::from_secs(2);

impl<S: Send + Sync + 'static> Saved<S> {
    /// Writes what is published, again and again, until it is dropped. `heard` is when the watch brought something.
    pub(crate) async fn keep(
        self: Arc<Self>,
        (known, source): (KnownObjects<S>, SourceId),
        ask: AskCluster,
        heard: Rc<Cell<Option<Instant>>>,
    ) {
        // A watch comes after a list.
        self.is_begun.store(true, Ordering::Release);
        let writing = async {
            loop {
                let next = *self.state().next_write.get_or_insert_with(|| Instant::now() + EVERY);
                sleep_until(next).await;
                match self.about(&ask).await {
                    Ok(about) => self.write_published(about, &known, &source).await,
                    Err(error) => self.written(Err(error), &known),
                }
            }
        };
        join(self.catch_up(&known, &source, &heard), writing).await;
    }

    /// Until then the objects are those of the file.
    async fn catch_up(&self, known: &KnownObjects<S>, source: &SourceId, heard: &Cell<Option<Instant>>) {
        let Some(server) = self.state().server.clone() else { return };
        // After a rewind the objects are those of a list.
        let is_there =
            |now: Snapshot<S>| now.rewinds() > 0 || now.version(source).is_some_and(|at| *at >= server);
        let is_silent = || heard.get().is_some_and(|heard| heard.elapsed() >= SILENCE);
        while !known.snapshot().is_some_and(is_there) && !is_silent() {
            sleep(LOOK).await;
        }
        self.state().server = None;
        known.note_saved(SavedNote::CaughtUp);
    }

    async fn write_published(self: &Arc<Self>, about: About, known: &KnownObjects<S>, source: &SourceId) {
        let Some(snapshot) = known.snapshot() else { return self.written(Ok(false), known) };
        let (saved, source, known) = (Arc::clone(self), source.clone(), known.clone());
        // What becomes of it is told there: the watch may end before.
        let job = move || {
            let written = saved.write(about, snapshot, &source, seconds(known.wall_time()));
            saved.written(written.map_err(SavedError::File), &known);
            Ok(())
        };
        if self.on_disk(job).await.is_err() {
            self.state().next_write = None;
        }
    }

    fn written(&self, written: Result<bool, SavedError>, known: &KnownObjects<S>) {
        let mut state = self.state();
        state.wait = if written.is_ok() { EVERY } else { LONGEST_WAIT.min(state.wait * 2) };
        state.next_write = Some(Instant::now() + state.wait);
        drop(state);
        match written {
            Ok(true) => known.note_saved(SavedNote::Saved),
            Ok(false) => {}
            Err(error) => known.note_saved(SavedNote::Problem(error.to_string().into())),
        }
    }

    /// Returns false if there is nothing new.
    fn write(
        &self,
        about: About,
        snapshot: Snapshot<S>,
        source: &SourceId,
        saved_at: u64,
    ) -> Result<bool, FileError> {
        let mut disk = self.disk();
        let open = disk.open(&self.path, about)?;
        let Disk { file, written, set_aside, settled } = &mut *disk;
        let version = snapshot.version(source).filter(|at| snapshot.newest_version(source) == Some(*at));
        // In the queue order `PerKey` objects may be newer than the version up to which all are there.
        let Some(version) = version else { return Ok(false) };
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
            drop(open);
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

fn set_aside_of<S>(snapshot: &Snapshot<S>) -> Vec<SetAside> {
    let set_aside = snapshot.undecodable().map(|one| SetAside {
        namespace: one.key.namespace().map(str::to_owned),
        name: one.key.name().to_owned(),
        version: one.version.to_string(),
        error: one.error.to_string(),
    });
    set_aside.collect()
}
