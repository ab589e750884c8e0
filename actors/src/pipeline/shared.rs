//! What outlives the actors of an informer and is shared by them.
//!
//! Answers "what does an actor find again after its restart?": the published cell, the status board, the notes of what
//! each source has handed over, and the indices. Wiring makes it once for each informer. Invariants:
//! 1. It knows no actor, so that every actor may know it.
//! 2. The locks here guard small maps, are never held over an await, and no actor reaches another through them.
//!
//! Read next: `pipeline/published.rs` and `pipeline/status.rs`; `pipeline/wiring.rs`, who makes it.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use informer_core::index::IndexSpec;
use informer_core::indexer::Reported;
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::off_arbiter::{Freeing, OffArbiter};
use informer_core::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;

use crate::pipeline::board::{Figures, StatusBoard};
use crate::pipeline::messages::{Body, Epoch, IndexCall};
use crate::pipeline::odd_data;
use crate::pipeline::published::Published;
use crate::pipeline::sources::Sources;
use crate::runtime::Runtime;
use crate::runtime::faults::Site;
use crate::runtime::progress::Progress;

/// Parts of an informer that outlive its actors and that they share. Cloning copies a pointer.
pub(crate) struct PipelineShared<S: Body>(pub(crate) Arc<Common<S>>);

pub(crate) struct Common<S: Body> {
    pub(crate) name: Arc<str>,
    pub(crate) runtime: Runtime,
    pub(crate) published: Arc<Published<S>>,
    pub(crate) board: StatusBoard,
    pub(crate) progress: Arc<Progress>,
    pub(crate) handed: Handed,
    pub(crate) sources: Sources,
    pub(crate) indices: IndexRegistry<S>,
    /// Cancelled first at a stop: nothing new comes in, so that what is owed can be delivered.
    pub(crate) stop_reading: CancellationToken,
}

impl<S: Body> Deref for PipelineShared<S> {
    type Target = Common<S>;

    fn deref(&self) -> &Common<S> {
        &self.0
    }
}

impl<S: Body> PipelineShared<S> {
    pub(crate) fn strike(&self, site: Site) {
        self.runtime.0.faults.strike(site);
    }

    /// Whether a test wants this left undone.
    pub(crate) fn stalls(&self, site: Site) -> bool {
        self.runtime.0.faults.stalls(site)
    }

    /// Keeps a value that is freed off the arbiter, wherever it is dropped.
    pub(crate) fn off_arbiter<T: Send + 'static>(&self, value: T) -> OffArbiter<T> {
        Freeing::whole(self.runtime.0.freeing.release()).keep(value)
    }

    /// Publishes a snapshot and shows its figures in one step, unless a newer epoch has begun: whoever has seen the
    /// one sees the other, on any thread.
    pub(crate) fn publish(&self, epoch: Epoch, snapshot: Snapshot<S>, synced: bool) -> bool {
        let figures = Figures {
            objects: snapshot.len(),
            set_aside: snapshot.set_aside_len(),
            versions: &snapshot.clone(),
            synced,
            now: self.runtime.now(),
        };
        let published = self.board.publish(&figures, || self.published.publish(epoch, snapshot));
        if published {
            self.published.wake();
        }
        published
    }

    pub(crate) fn count_stale_message(&self) {
        self.board.count_data(|data| data.stale_messages += 1);
    }

    /// Counts and logs what was odd in the data.
    pub(crate) fn report(&self, incidents: &[Reported]) {
        if incidents.is_empty() {
            return;
        }
        self.board.count_data(|data| incidents.iter().for_each(|odd| data.count(&odd.incident)));
        incidents.iter().for_each(|odd| odd_data::log(&self.name, odd));
    }
}

impl<S: Body> Clone for PipelineShared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The newest version that each source has put into the queue, per epoch: where a new Reflector goes on.
#[derive(Debug, Default)]
pub(crate) struct Handed(Mutex<BTreeMap<SourceId, (Epoch, ResourceVersion)>>);

impl Handed {
    pub(crate) fn note(&self, epoch: Epoch, source: &SourceId, version: &ResourceVersion) {
        locked(&self.0).insert(source.clone(), (epoch, version.clone()));
    }

    /// Whether a source has handed over more than is published. One that is being removed has not: it is to be
    /// forgotten.
    pub(crate) fn is_ahead_of<S>(&self, published: &Snapshot<S>, sources: &Sources) -> bool {
        let is_ahead = |source: &SourceId, handed| Some(handed) > published.version(source);
        let handed = locked(&self.0).clone();
        handed.iter().any(|(source, (_, handed))| is_ahead(source, handed) && sources.contains(source))
    }

    /// The source has been removed: one that comes under its name begins anew.
    pub(crate) fn forget(&self, source: &SourceId) {
        locked(&self.0).remove(source);
    }

    pub(crate) fn newest(&self, epoch: Epoch, source: &SourceId) -> Option<ResourceVersion> {
        locked(&self.0).get(source).filter(|(noted, _)| *noted == epoch).map(|(_, version)| version.clone())
    }
}

/// The indices that every life of the Indexer has, and by which call each was added later, if it was.
pub(crate) struct IndexRegistry<S>(Mutex<Vec<(IndexSpec<S>, Option<IndexCall>)>>);

impl<S> IndexRegistry<S> {
    pub(crate) fn new(specs: &[IndexSpec<S>]) -> Self {
        Self(Mutex::new(specs.iter().map(|spec| (spec.clone(), None)).collect()))
    }

    pub(crate) fn all(&self) -> Vec<IndexSpec<S>> {
        locked(&self.0).iter().map(|(spec, _)| spec.clone()).collect()
    }

    pub(crate) fn add(&self, spec: IndexSpec<S>, call: IndexCall) {
        locked(&self.0).push((spec, Some(call)));
    }

    /// Whether an earlier life of the Indexer took the index of this very call.
    pub(crate) fn was_added_by(&self, call: &IndexCall) -> bool {
        locked(&self.0).iter().any(|(_, by)| by.as_ref().is_some_and(|by| by.is(call)))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
