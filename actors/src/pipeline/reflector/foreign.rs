//! The check that a source brings only objects of its own cluster.
//!
//! Answers "does every key of this answer name the cluster that the source was declared for?". An answer with another
//! key fails as a whole, so that no part of it is applied; the error names the key. Otherwise objects of one name in
//! two clusters would become one object. Read next: `session.rs`, which checks every answer.

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
        ListPart::Undecodable(undecodable) => check(cluster, std::iter::once(&undecodable.key))?,
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
