//! What a publish will hand out, while it is being collected.
//!
//! Answers "what has changed and what is to be reported since the last publish?"; it decides nothing. Bounds: at
//! most two changes for each part; at most 250 incidents in full, the rest as counts by reason.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::once;
use std::sync::Arc;

use super::{Incident, Reason, Reported};
use crate::delta::{Cause, Change, Changes};
use crate::index::{Index, IndexSpec};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;

/// How many incidents of one publish are reported in full, and how many discarded objects share an allocation.
const CHUNK: usize = 250;

/// One publish: the snapshot, and exactly what it changes.
pub struct Applied<S> {
    /// The snapshot to publish.
    pub snapshot: Snapshot<S>,
    /// The one before it. Dropping the last handle frees nodes, so drop it off the arbiter, too.
    pub before: Snapshot<S>,
    /// The difference to the snapshot before: of parts in the order of application, of a list as the two snapshots. A
    /// list that changes nothing is told, too; parts that change nothing, and a new index, are not.
    pub changes: Option<Changes<S>>,
    /// Objects that left the store or never came into it, in several allocations so that none was ever moved: to be
    /// dropped off the arbiter.
    pub replaced: Vec<Vec<Object<S>>>,
    /// What has to be counted and logged.
    pub reported: Vec<Reported>,
}

impl<S> fmt::Debug for Applied<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes = match &self.changes {
            None => "none".to_owned(),
            Some(Changes::Parts(changes)) => changes.len().to_string(),
            Some(Changes::Listed { source, cause, .. }) => format!("list of {source}, {cause}"),
        };
        f.debug_struct("Applied")
            .field("snapshot", &self.snapshot)
            .field("before", &self.before)
            .field("changes", &changes)
            .field("replaced", &self.replaced.iter().map(Vec::len).sum::<usize>())
            .field("reported", &self.reported)
            .finish()
    }
}

pub(super) struct Draft<S> {
    /// The first change and the others: a lone one needs no vector.
    first: Option<Change<S>>,
    others: Vec<Change<S>>,
    /// It is one part alone: what that takes out of the store is in the snapshot before, which keeps it.
    is_lone: bool,
    /// A list was applied, or its source removed.
    listed: Option<(SourceId, Cause)>,
    replaced: Vec<Vec<Object<S>>>,
    reported: Vec<Reported>,
    omitted: BTreeMap<Reason, usize>,
}

impl<S> Draft<S> {
    pub(super) fn change(&mut self, change: Change<S>) {
        match &self.first {
            None => self.first = Some(change),
            Some(_) => self.others.push(change),
        }
    }

    /// One part alone is applied: [`Self::discard_stored`] has nothing to do.
    pub(super) fn expect_one_part(&mut self) {
        self.is_lone = true;
    }

    /// Keeps an object that left the store from being freed here.
    pub(super) fn discard_stored(&mut self, object: &Object<S>) {
        if !self.is_lone {
            self.discard(object.clone());
        }
    }

    /// What this publish changes is told as the difference that a list made.
    pub(super) fn list(&mut self, source: SourceId, cause: Cause) {
        self.listed = Some((source, cause));
    }

    /// Keeps an object that never came into the store from being freed here.
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
        let changes = match self.listed {
            Some((source, cause)) => {
                let (before, after) = (before.clone(), snapshot.clone());
                Some(Changes::Listed { source, before, after, cause })
            }
            None => self.first.map(|first| Changes::Parts(once(first).chain(self.others).collect())),
        };
        let omitted = self.omitted.into_iter().map(|(reason, count)| Incident::Omitted { reason, count });
        self.reported.extend(omitted.map(|incident| Reported { source: None, incident }));
        Applied { snapshot, before, changes, replaced: self.replaced, reported: self.reported }
    }
}

impl<S> Default for Draft<S> {
    fn default() -> Self {
        Self {
            first: None,
            others: Vec::new(),
            is_lone: false,
            listed: None,
            replaced: Vec::new(),
            reported: Vec::new(),
            omitted: BTreeMap::new(),
        }
    }
}
