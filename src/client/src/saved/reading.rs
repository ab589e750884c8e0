//! Reads the file as the parts of a list, off the arbiter.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::{Stream, StreamExt, stream};
use informer_actors::list_watch::{KnownObjects, ObjectSample, SavedNote};
use informer_core::delta::{ListPart, Undecodable};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, Uid};
use tokio::sync::mpsc;

use super::file::{FileError, Found, SetAside};
use super::{OfSource, Saved};

/// Objects in one part of a list.
const AT_ONCE: usize = 250;
const AHEAD: usize = 4;

impl<S: Send + Sync + 'static> Saved<S> {
    /// Nothing counts before the last part.
    pub(super) fn parts(
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
                false => sender.blocking_send(part).is_ok(),
            };
            let read = AssertUnwindSafe(|| self.read(&found, &of_source, &known, |part| send(Ok(part))));
            // redb panics on damage that its checksums did not find.
            if let Err(error) = catch_unwind(read).unwrap_or(Err(FileError::Unfinished)) {
                known.note_saved(SavedNote::Problem(error.to_string().into()));
                // The next list is the server's.
                self.is_damaged.store(true, Ordering::Release);
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
        let file = self.disk().file.clone().ok_or(FileError::Unfinished)?;
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
        if goes_on {
            next(ListPart::End { version, token: None });
        }
        Ok(())
    }

    fn sample(&self, body: &S, wire_bytes: u32) -> ObjectSample {
        let (text, fields) = self.saves.fields(body);
        let kept = self.saves.saved(body).map(|saved| saved.bytes().len() as u64);
        ObjectSample { sent: wire_bytes.into(), text, kept, fields }
    }
}

fn key_of(known: &mut BTreeMap<String, ObjectKey>, namespace: Option<&str>, name: &str) -> ObjectKey {
    let Some(namespace) = namespace else { return ObjectKey::cluster(name) };
    if let Some(sibling) = known.get(namespace) {
        return sibling.sibling(name);
    }
    let key = ObjectKey::namespaced(namespace, name);
    known.insert(namespace.to_owned(), key.clone());
    key
}
