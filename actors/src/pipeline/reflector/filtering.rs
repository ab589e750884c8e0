//! The filter of a cluster-wide source, the check for foreign clusters, and the notes of a take-over.
//!
//! Only objects of kept namespaces pass the filter. A source may drop others before it decodes them
//! ([`KnownObjects::follows`]).
//! 1. Watches keep what the list before them keeps, so a kept namespace is whole.
//! 2. If more namespaces are requested, the source is listed again, one list at a time; if only fewer are,
//!    only if objects of the others are in the store.
//! 3. Namespaces count as listed when a list that kept them is published.
//! 4. A dropped object moves the version: it becomes a bookmark, and of several in a row one is left.
//!
//! [`KnownObjects::follows`]: crate::list_watch::KnownObjects::follows

use std::future::pending;
use std::sync::Arc;

use actix::dev::OneshotSender;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ClusterName, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::namespaces::Names;
use informer_core::reflector::Delivery;

use super::ReflectorSpec;
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::shared::PipelineShared;
use crate::pipeline::sources::AskedFor;
use crate::runtime::mailbox::{Closed, answer};

/// An error means that the DeltaFifo has died.
type IsClean = LocalBoxFuture<'static, Result<bool, Closed>>;

#[derive(Default)]
pub(super) struct Filtering(Option<Filtered>);

struct Filtered {
    filter: Arc<NamespaceFilter>,
    kept: Names,
    is_delivered: bool,
    settling: Option<IsClean>,
    /// The store has objects of namespaces that are no longer kept.
    is_stale: bool,
}

impl Filtering {
    pub(super) fn new(filter: Option<Arc<NamespaceFilter>>) -> Self {
        Self(filter.map(|filter| {
            let kept = filter.asked();
            Filtered { filter, kept, is_delivered: false, settling: None, is_stale: false }
        }))
    }

    /// `is_list`: a list, or a watch-list, from its beginning.
    pub(super) fn begin(&mut self, is_list: bool) {
        if let Some(filtered) = self.0.as_mut().filter(|_| is_list) {
            filtered.kept = filtered.filter.asked();
            (filtered.is_delivered, filtered.settling, filtered.is_stale) = (false, None, false);
        }
    }

    pub(super) fn kept(&self) -> Option<Names> {
        self.0.as_ref().map(|filtered| Names::clone(&filtered.kept))
    }

    /// To be answered when the list is published.
    pub(super) fn deliver(&mut self) -> Option<OneshotSender<()>> {
        let filtered = self.0.as_mut()?;
        let (sender, published) = answer();
        filtered.filter.deliver(&filtered.kept);
        filtered.is_delivered = true;
        filtered.settling = Some(async { published.await.map(|()| true) }.boxed_local());
        Some(sender)
    }

    /// True if the source must be listed again. If only fewer namespaces are requested, the store is searched
    /// for objects of the others once it has all up to `newest`.
    pub(super) fn look<S: Body>(&mut self, of: &ReflectorSpec<S>, newest: Option<&ResourceVersion>) -> bool {
        let Some(Filtered { filter, kept, is_delivered: true, settling, is_stale }) = &mut self.0 else {
            return false;
        };
        if settling.is_some() {
            return false;
        }
        let asked = filter.asked();
        if *is_stale || !asked.is_subset(kept) {
            return true;
        }
        if *kept == asked {
            if filter.list(kept) {
                of.shared.board.sources_moved().raise();
            }
            return false;
        }
        let others = kept.difference(&asked).cloned().collect();
        *kept = asked;
        let (source, scope) = ((of.source.clone(), newest.cloned()), (of.cluster.clone(), others));
        *settling = Some(is_clean(of.shared.clone(), source, scope).boxed_local());
        false
    }

    /// Ready when the store has what is kept, or when others are requested after `seen`; never without a
    /// filter.
    pub(super) async fn news(&mut self, seen: u64) -> Result<(), Closed> {
        let Some(Filtered { filter, kept, settling, is_stale, .. }) = &mut self.0 else {
            return pending().await;
        };
        let Some(wait) = settling else {
            filter.changed.since(seen).await;
            return Ok(());
        };
        if wait.await? {
            filter.list(kept);
        } else {
            *is_stale = true;
        }
        *settling = None;
        Ok(())
    }

    /// Read it before [`Self::look`].
    pub(super) fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |filtered| filtered.filter.changed.count())
    }

    pub(super) fn keep_listed<S>(&self, part: ListPart<S>) -> ListPart<S> {
        let Some(Filtered { kept, .. }) = &self.0 else { return part };
        match part {
            ListPart::Objects(mut objects) => {
                objects.retain(|object| keeps(kept, object.key()));
                ListPart::Objects(objects)
            }
            ListPart::Undecodable(undecodable) if !keeps(kept, &undecodable.key) => {
                ListPart::Objects(Vec::new())
            }
            part => part,
        }
    }

    pub(super) fn keep_watched<S>(&self, parts: Vec<WatchPart<S>>) -> Vec<WatchPart<S>> {
        let Some(Filtered { kept: names, .. }) = &self.0 else { return parts };
        let mut kept: Vec<WatchPart<S>> = Vec::with_capacity(parts.len());
        for part in parts {
            let part = match part.key() {
                Some(key) if !keeps(names, key) => {
                    WatchPart::Bookmark { version: part.version().clone(), initial_events_end: false }
                }
                _ => part,
            };
            if is_passing_mark(&part) && kept.last().is_some_and(is_passing_mark) {
                kept.pop();
            }
            kept.push(part);
        }
        kept
    }
}

/// Waits until all deliveries are published. Then: whether no object of these namespaces is left, decoded or
/// not.
async fn is_clean<S: Body>(
    shared: PipelineShared<S>,
    (source, newest): (SourceId, Option<ResourceVersion>),
    (cluster, namespaces): (Option<ClusterName>, Vec<Arc<str>>),
) -> Result<bool, Closed> {
    if let Some(newest) = newest {
        loop {
            let reached = shared.published.reaching(&source, &newest);
            if shared.published.snapshot().version(&source).is_some_and(|version| *version >= newest) {
                break;
            }
            reached.await;
        }
    }
    let snapshot = shared.published.snapshot();
    let is_empty = |namespace: &Arc<str>| match &cluster {
        Some(cluster) => snapshot.namespace_in(cluster, namespace).next().is_none(),
        None => snapshot.namespace(namespace).next().is_none(),
    };
    // A new list forgets undecodable objects and their repairs.
    let is_readable = !snapshot.undecodable().any(|undecodable| {
        let key = &undecodable.key;
        let is_of = |namespace: &Arc<str>| key.namespace() == Some(&**namespace);
        key.cluster_name() == cluster.as_ref() && namespaces.iter().any(is_of)
    });
    Ok(is_readable && namespaces.iter().all(is_empty))
}

fn is_passing_mark<S>(part: &WatchPart<S>) -> bool {
    matches!(part, WatchPart::Bookmark { initial_events_end: false, .. })
}

fn keeps(names: &Names, key: &ObjectKey) -> bool {
    key.namespace().is_some_and(|namespace| names.contains(namespace))
}

// The check for foreign clusters: without it, objects of one name in two clusters would become one. An answer
// with a foreign key fails as a whole, and the error names the key.

pub(super) fn check_watched<S>(
    cluster: Option<&ClusterName>,
    parts: Vec<WatchPart<S>>,
) -> Result<Vec<WatchPart<S>>, ListWatchError> {
    check(cluster, parts.iter().filter_map(WatchPart::key)).map(|()| parts)
}

pub(super) fn check_listed<S>(
    cluster: Option<&ClusterName>,
    part: ListPart<S>,
) -> Result<ListPart<S>, ListWatchError> {
    match &part {
        ListPart::Objects(objects) => check(cluster, objects.iter().map(Object::key))?,
        ListPart::Undecodable(undecodable) => check(cluster, std::iter::once(&undecodable.key))?,
        _ => {}
    }
    Ok(part)
}

pub(super) fn check<'a>(
    cluster: Option<&ClusterName>,
    mut keys: impl Iterator<Item = &'a ObjectKey>,
) -> Result<(), ListWatchError> {
    match keys.find(|key| key.cluster_name() != cluster) {
        None => Ok(()),
        Some(key) => Err(ListWatchError::ForeignCluster { key: key.clone(), cluster: cluster.cloned() }),
    }
}

// A source that takes over from others.
// 1. Its list reaches the newest version that its exchange delivered before the request, even by sources that
//    have left.
// 2. The store keeps for it what the others deliver after the request, so the request is noted first.

/// Returns the version that the list must reach.
pub(super) fn begin<S: Body>(of: &ReflectorSpec<S>, asked: AskedFor) -> Option<ResourceVersion> {
    of.shared.sources.begin_list(&of.source, asked)
}

/// A list after a rewind counts only when it is published: a source that lists before notices the rewind,
/// too, even if this list is lost with its actor.
pub(super) fn note<S: Body>(of: &ReflectorSpec<S>, delivery: &Delivery<S>) {
    let version = match delivery {
        Delivery::Replace(list) => Some(&list.version),
        Delivery::Delta(parts) => parts.iter().rev().find_map(WatchPart::reached),
        _ => None,
    };
    if let Some(version) = version {
        of.shared.sources.note_delivered(&of.source, version);
    }
}
