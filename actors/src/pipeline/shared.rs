//! The parts of an informer that its actors share and find again after a restart.
//!
//! 1. This file depends on no actor, so every actor may depend on it.
//! 2. The locks guard small maps and are never held over an await. Actors exchange no messages through them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use informer_core::index::AnyIndex;
use informer_core::indexer::{Publish, Reported};
use informer_core::listener::Policy;
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::off_arbiter::{Freeing, OffArbiter};
use informer_core::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;

use crate::pipeline::board::{StatusBoard, StoreFigures};
use crate::pipeline::messages::{Body, Epoch, IndexCall};
use crate::pipeline::namespace_set::NamespaceSets;
use crate::pipeline::published::Published;
use crate::pipeline::sources::Sources;
use crate::pipeline::unexpected_data;
use crate::runtime::Runtime;
use crate::runtime::faults::Site;
use crate::runtime::labels::Turns;
use crate::runtime::locked::Guarded;
use crate::runtime::progress::Progress;

pub(crate) struct PipelineShared<S: Body>(pub(crate) Arc<Common<S>>);

pub(crate) struct Common<S: Body> {
    pub(crate) name: Arc<str>,
    pub(crate) runtime: Runtime,
    pub(crate) published: Arc<Published<S>>,
    pub(crate) board: StatusBoard,
    pub(crate) progress: Arc<Progress>,
    pub(crate) handed_over: HandedOver,
    pub(crate) sources: Sources,
    pub(crate) namespaces: NamespaceSets<S>,
    pub(crate) indices: IndexRegistry<S>,
    pub(crate) resync: Option<Duration>,
    pub(crate) policy: Policy,
    /// Of all listeners.
    pub(crate) listener_turns: Arc<Turns>,
    /// Cancelled at the start. Until then sources receive no request.
    pub(crate) begun: CancellationToken,
    /// Cancelled first at a stop: reading ends, so that the waiting events can be delivered.
    pub(crate) stop_reading: CancellationToken,
}

impl<S: Body> Deref for PipelineShared<S> {
    type Target = Common<S>;

    fn deref(&self) -> &Common<S> {
        &self.0
    }
}

impl<S: Body> PipelineShared<S> {
    pub(crate) fn fail_point(&self, site: Site) {
        self.runtime.0.faults.fail_point(site);
    }

    pub(crate) fn stalls(&self, site: Site) -> bool {
        self.runtime.0.faults.stalls(site)
    }

    /// Freed off the arbiter, wherever it is dropped.
    pub(crate) fn off_arbiter<T: Send + 'static>(&self, value: T) -> OffArbiter<T> {
        Freeing::whole(self.runtime.0.freeing.as_release()).keep(value)
    }

    /// In one step, unless a newer epoch has begun: who sees the snapshot sees its figures, and the reverse. The
    /// store began with it at `began`.
    pub(crate) fn publish(
        &self,
        epoch: Epoch,
        applied: &Publish<S>,
        sources: &[SourceId],
        (synced, began): (bool, Duration),
    ) -> bool {
        let newest = &applied.snapshot;
        let figures = StoreFigures {
            objects: newest.len(),
            undecodable: newest.undecodable_len(),
            snapshot: newest,
            touched: sources,
            synced,
            began,
            now: self.runtime.now(),
        };
        let published = self.board.publish(&figures, || self.published.publish(epoch, newest.clone()));
        if published
            && let Some(mut news) = self.published.news(newest, sources, applied.changes.as_ref())
            && self.published.wake(&mut news)
        {
            let published = Arc::clone(&self.published);
            // Not a part of the actor, whose restart would lose these wakes.
            actix_rt::spawn(async move {
                tokio::task::yield_now().await;
                while published.wake(&mut news) {
                    tokio::task::yield_now().await;
                }
            });
        }
        published
    }

    pub(crate) fn count_stale_message(&self) {
        self.board.count_data(|data| data.stale_messages += 1);
    }

    pub(crate) fn report(&self, incidents: &[Reported]) {
        if incidents.is_empty() {
            return;
        }
        self.board.count_data(|data| incidents.iter().for_each(|odd| data.count(&odd.incident)));
        incidents.iter().for_each(|odd| unexpected_data::log(&self.name, odd));
    }
}

informer_core::clone_of!([S: Body] PipelineShared<S>);

/// By epoch, the newest version that each source has put into the queue.
#[derive(Debug, Default)]
pub(crate) struct HandedOver(Guarded<BTreeMap<SourceId, (Epoch, ResourceVersion)>>);

impl HandedOver {
    pub(crate) fn note(&self, epoch: Epoch, source: &SourceId, version: &ResourceVersion) {
        self.0.with(|handed| handed.insert(source.clone(), (epoch, version.clone())));
    }

    /// Sources being removed do not count.
    pub(crate) fn is_ahead_of<S>(&self, published: &Snapshot<S>, sources: &Sources) -> bool {
        let is_ahead = |source: &SourceId, handed| Some(handed) > published.version(source);
        let handed = self.0.with(|handed| handed.clone());
        handed.iter().any(|(source, (_, handed))| is_ahead(source, handed) && sources.contains(source))
    }

    /// A later source of this name starts without a version.
    pub(crate) fn forget(&self, source: &SourceId) {
        self.0.with(|handed| handed.remove(source));
    }

    pub(crate) fn newest(&self, epoch: Epoch, source: &SourceId) -> Option<ResourceVersion> {
        self.0.with(|handed| {
            handed.get(source).filter(|(noted, _)| *noted == epoch).map(|(_, version)| version.clone())
        })
    }
}

/// The Indexer's indices after each restart; with the call that added one later.
pub(crate) struct IndexRegistry<S>(Guarded<Vec<(AnyIndex<S>, Option<IndexCall>)>>);

impl<S> IndexRegistry<S> {
    pub(crate) fn new(indices: &[AnyIndex<S>]) -> Self {
        Self(Guarded::new(indices.iter().map(|index| (index.clone(), None)).collect()))
    }

    pub(crate) fn all(&self) -> Vec<AnyIndex<S>> {
        self.0.with(|indices| indices.iter().map(|(index, _)| index.clone()).collect())
    }

    pub(crate) fn add(&self, index: AnyIndex<S>, call: IndexCall) {
        self.0.with(|indices| indices.push((index, Some(call))));
    }

    pub(crate) fn was_added_by(&self, call: &IndexCall) -> bool {
        self.0.with(|indices| indices.iter().any(|(_, by)| by.as_ref().is_some_and(|by| by.is(call))))
    }
}
