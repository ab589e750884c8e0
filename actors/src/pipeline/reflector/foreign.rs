//! What a source may bring: objects of its own cluster and of no other.
//!
//! Answers "does every key of this answer name the cluster that the source was declared for?". An answer that has
//! another key fails as a whole, so that nothing of it is half applied, and the error says which key it was: two
//! clusters' objects of one name would otherwise be one object. Read next: `session.rs`, which asks for every answer.

use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ClusterName, Object, ObjectKey};

/// The parts of a watch, if all are of this cluster.
pub(super) fn check_watched<S>(
    cluster: Option<&ClusterName>,
    parts: Vec<WatchPart<S>>,
) -> Result<Vec<WatchPart<S>>, ListWatchError> {
    check(cluster, parts.iter().filter_map(WatchPart::key)).map(|()| parts)
}

/// A part of a list, if all in it is of this cluster.
pub(super) fn check_listed<S>(
    cluster: Option<&ClusterName>,
    part: ListPart<S>,
) -> Result<ListPart<S>, ListWatchError> {
    match &part {
        ListPart::Objects(objects) => check(cluster, objects.iter().map(Object::key))?,
        ListPart::SetAside(aside) => check(cluster, std::iter::once(&aside.key))?,
        _ => {}
    }
    Ok(part)
}

/// Refuses a key of another cluster.
pub(super) fn check<'a>(
    cluster: Option<&ClusterName>,
    mut keys: impl Iterator<Item = &'a ObjectKey>,
) -> Result<(), ListWatchError> {
    match keys.find(|key| key.cluster_name() != cluster) {
        None => Ok(()),
        Some(key) => Err(ListWatchError::ForeignCluster { key: key.clone(), cluster: cluster.cloned() }),
    }
}
