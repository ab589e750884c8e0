//! The sources of a running informer, as they come and go.
//!
//! A removal runs in a task of the informer, also across a restart of the group. If another source holds an object
//! too, neither an addition nor a removal is delivered for it; in a hand-over this holds for every live object,
//! whichever source is ahead.

mod errors;

use std::sync::Arc;

use informer_core::indexer::Successors;
use informer_core::meta::{ClusterName, SourceId};
use tokio_util::sync::CancellationToken;

pub use self::errors::{AddSourceError, HandOverError, RemoveSourceError, ReviveError};
use super::Informer;
use crate::pipeline::messages::{Body, RemoveSource};
use crate::pipeline::owner::show_removed;
use crate::pipeline::source_spec::SourceSpec;
use crate::pipeline::sources::{NotRemoved, Refusal, Refused};
use crate::pipeline::wiring::Pipeline;
use crate::runtime::mailbox::ask;
use crate::supervision::children::NotRevived;

impl<S: Body> Informer<S> {
    /// Follows one more source from now on. Returns at once, before anything of it is listed:
    /// [`Self::source_synced`] waits for that. An informer or a subscription that is synced stays synced; one
    /// that is not waits for this source too.
    ///
    /// # Errors
    /// When the name is taken, this source names a cluster and the others do not (or the reverse), its
    /// coverage overlaps that of another source, or the informer has stopped. Nothing changes then.
    pub fn add_source(&self, source: SourceSpec<S>) -> Result<(), AddSourceError> {
        self.join(vec![source], false)
    }

    /// Stops following a source and forgets what it brought. First, what it has handed over is applied. Then
    /// each object that no other source holds is delivered as `Deleted { exact: false, cause: Relist }`.
    /// Returns when this is published and recorded for every subscription; if this future is dropped earlier,
    /// the removal continues. Afterwards the name may be used again, for a new start.
    ///
    /// The cost is proportional to what the source holds, in slices between which other work runs. The last
    /// source cannot be removed: an informer has at least one.
    ///
    /// # Errors
    /// When there is no such source or no other one, or when it follows namespaces of a set (nothing changes
    /// in these cases); or when the informer has stopped.
    pub async fn remove_source(&self, source: &SourceId) -> Result<(), RemoveSourceError> {
        let (pipeline, ending) = (&self.0.pipeline, &self.0.ending);
        let informer = Arc::clone(&pipeline.parent.name);
        if ending.stop.is_cancelled() {
            return Err(RemoveSourceError::Stopped { informer });
        }
        if pipeline.shared.sources.is_of_set(source) {
            return Err(RemoveSourceError::OfNamespaces { informer, name: source.clone() });
        }
        self.let_go(source, Successors::none()).await
    }

    async fn let_go(&self, source: &SourceId, successors: Successors) -> Result<(), RemoveSourceError> {
        let (pipeline, ending) = (&self.0.pipeline, &self.0.ending);
        let informer = Arc::clone(&pipeline.parent.name);
        let over = match begin_removal(pipeline, source, successors) {
            Ok(over) => over,
            Err(why) => return Err(not_removed(why, informer, source)),
        };
        tokio::select! {
            biased;
            () = over.cancelled() => {}
            () = ending.abandoned() => {}
        }
        if pipeline.shared.sources.is_leaving(source) {
            return Err(RemoveSourceError::Stopped { informer });
        }
        Ok(())
    }

    /// Removes every source of this cluster, one after the other, as [`Self::remove_source`]. Other clusters
    /// are not affected. If the cluster has no source, it returns at once.
    ///
    /// # Errors
    /// As [`Self::remove_source`]: the last source stays; and when the informer has stopped.
    pub async fn remove_cluster(&self, cluster: &ClusterName) -> Result<(), RemoveSourceError> {
        let (shared, informer) = (&self.0.pipeline.shared, || Arc::clone(&self.0.pipeline.parent.name));
        if self.0.ending.stop.is_cancelled() {
            return Err(RemoveSourceError::Stopped { informer: informer() });
        }
        for source in shared.sources.of_cluster(cluster) {
            match self.remove_source(&source).await {
                Err(RemoveSourceError::UnknownSource { .. }) | Ok(()) => {}
                Err(why) => return Err(why),
            }
        }
        for set in shared.namespaces.all().iter().filter(|set| set.cluster.as_ref() == Some(cluster)) {
            let removed = self.set_synced(set, set.remove(), |_| false).await;
            removed.map_err(|_| RemoveSourceError::Stopped { informer: informer() })?;
        }
        Ok(())
    }

    /// Lets the sources `add` take over from the sources `remove`: adds the new ones, waits until each has
    /// listed, and removes the old ones. Both sets may cover the same objects: an object that a new source
    /// holds when the old one is removed is delivered neither as deleted nor as added. Takes as long as the
    /// new sources need to list. If the server refuses one of them, the wait continues; dropping this future
    /// then leaves both sets in place. If the informer is declared but not started, the sources are exchanged
    /// at once.
    ///
    /// Both sets must follow the same server, because their versions are compared. With another numbering (a
    /// restored or moved cluster), objects that the new server does not have may stay until its versions
    /// exceed the old ones: follow such a server with a new informer. `Snapshot::awaited_version` is the
    /// version that a source has yet to reach until the hand-over is settled.
    ///
    /// # Errors
    /// As [`Self::add_source`] for the new sources among themselves, [`Self::source_synced`] and
    /// [`Self::remove_source`]. [`HandOverError`] describes which sources are in place then.
    pub async fn hand_over(&self, remove: &[SourceId], add: Vec<SourceSpec<S>>) -> Result<(), HandOverError> {
        let (pipeline, informer) = (&self.0.pipeline, || Arc::clone(&self.0.pipeline.parent.name));
        if let Some(name) = remove.iter().find(|source| !pipeline.shared.sources.contains(source)) {
            let name = name.clone();
            return Err(RemoveSourceError::UnknownSource { informer: informer(), name }.into());
        }
        if let Some(name) = remove.iter().find(|source| pipeline.shared.sources.is_of_set(source)) {
            let name = name.clone();
            return Err(RemoveSourceError::OfNamespaces { informer: informer(), name }.into());
        }
        let added: Vec<SourceId> = add.iter().map(|source| source.id.clone()).collect();
        let handing_over = pipeline.shared.sources.hand_over(remove, &add);
        self.join(add, true)?;
        // Before the start no objects are held: none can be delivered as deleted.
        for source in added.iter().filter(|_| self.has_begun()) {
            self.source_synced(source).await?;
        }
        for source in remove {
            self.let_go(source, handing_over.successors.clone()).await?;
        }
        Ok(())
    }

    fn join(&self, specs: Vec<SourceSpec<S>>, may_overlap: bool) -> Result<(), AddSourceError> {
        let pipeline = &self.0.pipeline;
        let informer = Arc::clone(&pipeline.parent.name);
        if self.0.ending.stop.is_cancelled() {
            return Err(AddSourceError::Stopped { informer });
        }
        begin_all(pipeline, specs, may_overlap).map_err(|refusal| not_added(refusal, informer))
    }

    /// Follows a source again that was given up because its reflector had failed too often. It continues
    /// where it was: what it held was served all the time, and only differences are delivered. It may restart
    /// as often as a new one. Returns at once; the state of the source is then no longer `GivenUp`. Waits
    /// that ended with [`WaitError::SourceGivenUp`](super::WaitError::SourceGivenUp) may be started again.
    ///
    /// # Errors
    /// When there is no such source, it is not given up, or the informer has stopped; nothing changes then.
    pub fn revive(&self, source: &SourceId) -> Result<(), ReviveError> {
        let (pipeline, name) = (&self.0.pipeline, source.clone());
        let informer = Arc::clone(&pipeline.parent.name);
        if self.0.ending.stop.is_cancelled() {
            return Err(ReviveError::Stopped { informer });
        }
        pipeline.reflectors.revive(source).map_err(|why| match why {
            NotRevived::Unknown => ReviveError::UnknownSource { informer, name },
            NotRevived::NotGivenUp => ReviveError::NotGivenUp { informer, name },
        })
    }
}

/// Follows all of these, or none.
pub(super) fn begin_all<S: Body>(
    pipeline: &Pipeline<S>,
    specs: Vec<SourceSpec<S>>,
    may_overlap: bool,
) -> Result<(), Refusal> {
    pipeline.shared.sources.join(&specs, may_overlap)?;
    for spec in specs {
        let (informer, source) = (&pipeline.parent.name, &spec.id);
        tracing::info!(target: "actix_informer::informer", %informer, %source, "source {source} is added; its first list follows");
        pipeline.shared.board.add_source(source);
        pipeline.follow(spec);
    }
    Ok(())
}

/// Returns the token that is cancelled at the end of the removal.
pub(super) fn begin_removal<S: Body>(
    pipeline: &Pipeline<S>,
    source: &SourceId,
    successors: Successors,
) -> Result<CancellationToken, NotRemoved> {
    let removal = pipeline.shared.sources.begin_removal(source)?;
    if removal.is_new {
        carry_out(pipeline, (source.clone(), successors), removal.over.clone());
    }
    Ok(removal.over)
}

pub(super) fn not_added(refusal: Refusal, informer: Arc<str>) -> AddSourceError {
    let Refusal { id: name, why } = refusal;
    match why {
        Refused::Taken => AddSourceError::NameTaken { informer, name },
        Refused::Cluster { has_cluster } => AddSourceError::MixedClusters { informer, name, has_cluster },
        Refused::Overlaps(other) => AddSourceError::Overlapping { informer, name, other },
    }
}

fn not_removed(why: NotRemoved, informer: Arc<str>, source: &SourceId) -> RemoveSourceError {
    let name = source.clone();
    match why {
        NotRemoved::Unknown => RemoveSourceError::UnknownSource { informer, name },
        NotRemoved::Last => RemoveSourceError::LastSource { informer, name },
    }
}

/// In its own task. `over` is cancelled at the end, also when the informer or its arbiter stops first.
fn carry_out<S: Body>(
    pipeline: &Pipeline<S>,
    (source, successors): (SourceId, Successors),
    over: CancellationToken,
) {
    let (shared, fifo, reflectors) =
        (pipeline.shared.clone(), pipeline.fifo.clone(), pipeline.reflectors.clone());
    let stop = pipeline.parent.stop.clone();
    let (task, over) = (pipeline.parent.tasks.token(), over.drop_guard());
    pipeline.parent.arbiter.spawn(move || async move {
        let (informer, sources) = (&shared.name, &shared.sources);
        let removed = async {
            reflectors.remove(&source).await;
            // If the group dies over the message, its next epoch is asked.
            loop {
                let (epoch, successors) = (shared.published.epoch(), successors.clone());
                let end = RemoveSource { epoch, source: source.clone(), successors };
                match ask(&fifo, end).await {
                    Ok(()) => break,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
            shared.handed_over.forget(&source);
            show_removed(&shared.board, &source);
            sources.forget(&source);
            tracing::info!(target: "actix_informer::informer", %informer, %source, "source {source} is removed; its objects are forgotten");
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = removed => {}
        }
        drop((over, task));
    });
}
