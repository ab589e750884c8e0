//! What a publish will hand out, while it is being collected.
//!
//! Answers "what has changed and what is to be reported since the last publish?"; it decides nothing. Bounds: changes
//! in chunks of at most 250; at most 250 incidents in full, the rest as counts by reason.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Incident, Reason, Reported};
use crate::delta::Change;
use crate::index::{Index, IndexSpec};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;

/// How many changes travel together, and how many incidents of one publish are reported in full.
const CHUNK: usize = 250;

/// One publish: the snapshot, and exactly what it changes.
pub struct Applied<S> {
    /// The snapshot to publish.
    pub snapshot: Snapshot<S>,
    /// The one before it. Dropping the last handle frees nodes, so drop it off the arbiter, too.
    pub before: Snapshot<S>,
    /// The difference to the snapshot before, in order of application, in chunks of at most 250.
    pub changes: Vec<Arc<[Change<S>]>>,
    /// Objects that left the store or never came into it, in several allocations so that none was ever moved: to be
    /// dropped off the arbiter.
    pub replaced: Vec<Vec<Object<S>>>,
    /// What has to be counted and logged.
    pub reported: Vec<Reported>,
}

impl<S> fmt::Debug for Applied<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applied")
            .field("snapshot", &self.snapshot)
            .field("before", &self.before)
            .field("changes", &self.changes.iter().map(|chunk| chunk.len()).sum::<usize>())
            .field("replaced", &self.replaced.iter().map(Vec::len).sum::<usize>())
            .field("reported", &self.reported)
            .finish()
    }
}

pub(super) struct Draft<S> {
    chunks: Vec<Arc<[Change<S>]>>,
    open: Vec<Change<S>>,
    replaced: Vec<Vec<Object<S>>>,
    reported: Vec<Reported>,
    omitted: BTreeMap<Reason, usize>,
}

impl<S> Draft<S> {
    pub(super) fn change(&mut self, change: Change<S>) {
        self.open.push(change);
        if self.open.len() == CHUNK {
            self.chunks.push(Arc::from_iter(self.open.drain(..)));
        }
    }

    /// Keeps an object that left the store, or never came into it, from being freed here.
    pub(super) fn discard(&mut self, object: Object<S>) {
        match self.replaced.last_mut() {
            Some(last) if last.len() < last.capacity() => last.push(object),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(object);
                self.replaced.push(chunk);
            }
        }
    }

    pub(super) fn report(&mut self, source: &SourceId, incident: Incident) {
        if self.reported.len() < CHUNK {
            self.reported.push(Reported::of(source, incident));
        } else {
            *self.omitted.entry(incident.reason()).or_default() += 1;
        }
    }

    /// Brings an index up to an object's state; if the function fails, the object is in no entry of it.
    pub(super) fn index(&mut self, index: &mut Index, spec: &IndexSpec<S>, object: &Object<S>) {
        match spec.values_of(object) {
            Ok(values) => index.set(object.key(), values),
            Err(error) => {
                index.forget(object.key());
                let (index, key) = (Arc::clone(&spec.name), object.key().clone());
                self.report(object.source(), Incident::IndexFailed { index, key, error });
            }
        }
    }

    pub(super) fn finish(mut self, before: Snapshot<S>, snapshot: Snapshot<S>) -> Applied<S> {
        if !self.open.is_empty() {
            self.chunks.push(self.open.into());
        }
        let omitted = self.omitted.into_iter().map(|(reason, count)| Incident::Omitted { reason, count });
        self.reported.extend(omitted.map(|incident| Reported { source: None, incident }));
        Applied { snapshot, before, changes: self.chunks, replaced: self.replaced, reported: self.reported }
    }
}

impl<S> Default for Draft<S> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            open: Vec::new(),
            replaced: Vec::new(),
            reported: Vec::new(),
            omitted: BTreeMap::new(),
        }
    }
}
