//! The next publish while it is collected, with the objects that leave the store: the arbiter must not free them.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::once;
use std::sync::Arc;

use super::{Incident, Reason, Reported};
use crate::chunks::Chunks;
use crate::delta::{Cause, Change, Changes};
use crate::index::{AnyIndex, NamedTable};
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;

const REPORTED: usize = 250;

/// One publish: the snapshot, and exactly what changed.
pub struct Publish<S> {
    /// The snapshot to publish.
    pub snapshot: Snapshot<S>,
    /// The snapshot before it. While it is kept, so is every object that was replaced since: see
    /// [`Snapshot::free_here`].
    pub before: Snapshot<S>,
    /// The difference from the snapshot before: for parts in the order of application, for a list as the two
    /// snapshots. A list that changes nothing is included. `None` for parts that change nothing, and for a
    /// new index.
    pub changes: Option<Changes<S>>,
    /// The sources that have a version for the first time: each has listed.
    pub first: Vec<SourceId>,
    /// Objects that left the store or were never stored, to be dropped off the arbiter.
    pub replaced: Chunks<Object<S>>,
    /// The only one of these, if there is one alone: then [`Self::replaced`] is empty.
    pub lone: Option<Object<S>>,
    /// The bytes of those on the wire.
    pub replaced_bytes: usize,
    /// Incidents to count and log.
    pub reported: Vec<Reported>,
}

impl<S> fmt::Debug for Publish<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes = match &self.changes {
            None => "none".to_owned(),
            Some(Changes::Parts(changes)) => changes.len().to_string(),
            Some(Changes::Listed { source, cause, .. }) => format!("list of {source}, {cause}"),
        };
        f.debug_struct("Publish")
            .field("snapshot", &self.snapshot)
            .field("before", &self.before)
            .field("changes", &changes)
            .field("replaced", &(self.replaced.len() + usize::from(self.lone.is_some())))
            .field("reported", &self.reported)
            .finish()
    }
}

pub(super) struct Draft<S> {
    /// Not in `others`: a single change needs no vector.
    first: Option<Change<S>>,
    others: Vec<Change<S>>,
    listed: Option<(SourceId, Cause)>,
    first_of: Vec<SourceId>,
    replaced: Chunks<Object<S>>,
    /// A single one needs no list.
    lone: Option<Object<S>>,
    replaced_bytes: usize,
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

    pub(super) fn expect_parts(&mut self, count: usize) {
        self.others.reserve(count.saturating_sub(1));
    }

    pub(super) fn list(&mut self, source: SourceId, cause: Cause) {
        self.listed = Some((source, cause));
    }

    pub(super) fn note_first(&mut self, source: SourceId) {
        self.first_of.push(source);
    }

    /// Keeps it from being freed here.
    pub(super) fn discard(&mut self, object: Object<S>) {
        self.replaced_bytes += object.wire_bytes() as usize;
        if self.replaced.is_empty() && self.lone.is_none() {
            self.lone = Some(object);
        } else {
            self.replaced.extend(self.lone.take());
            self.replaced.push(object);
        }
    }

    pub(super) fn report(&mut self, source: &SourceId, incident: Incident) {
        if self.reported.len() < REPORTED {
            self.reported.push(Reported::of(source, incident));
        } else {
            *self.omitted.entry(incident.reason()).or_default() += 1;
        }
    }

    pub(super) fn index(&mut self, table: &mut NamedTable, index: &AnyIndex<S>, object: &Object<S>) {
        if let Err(error) = index.update(table, object) {
            let (index, key) = (Arc::clone(index.name()), object.key().clone());
            self.report(object.source(), Incident::IndexFailed { index, key, error });
        }
    }

    pub(super) fn finish(mut self, before: Snapshot<S>, snapshot: Snapshot<S>) -> Publish<S> {
        let changes = match self.listed {
            Some((source, cause)) => {
                let (before, after) = (before.clone(), snapshot.clone());
                Some(Changes::Listed { source, before, after, cause })
            }
            None => self.first.map(|first| Changes::Parts(once(first).chain(self.others).collect())),
        };
        let omitted = self.omitted.into_iter().map(|(reason, count)| Incident::Omitted { reason, count });
        self.reported.extend(omitted.map(|incident| Reported { source: None, incident }));
        let Self { first_of: first, replaced, lone, replaced_bytes, reported, .. } = self;
        Publish { snapshot, before, changes, first, replaced, lone, replaced_bytes, reported }
    }
}

impl<S> Default for Draft<S> {
    fn default() -> Self {
        Self {
            first: None,
            others: Vec::new(),
            listed: None,
            first_of: Vec::new(),
            replaced: Chunks::new(),
            lone: None,
            replaced_bytes: 0,
            reported: Vec::new(),
            omitted: BTreeMap::new(),
        }
    }
}
