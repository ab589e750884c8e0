//! Waiting until the caches have seen what a reconcile has written.
//!
//! Answers "for how long is a key held back after its reconcile?": until each object that it wrote or removed is seen
//! by the cache that has it, for at most the bound. Meanwhile the key counts as being processed, and no worker waits.
//! Invariants:
//! 1. A write that is not seen in time is counted and logged, and the key goes on: as a warning at most once in ten minutes
//!    for each informer.
//! 2. The wait ends when the controller stops.
//!
//! Read next: `watched.rs`, one wait; `informer_core::controller::Awaited`.

use std::sync::Arc;

use informer_core::controller::Writes;
use informer_core::meta::ObjectKey;
use informer_core::words::Brief;

use super::shared::Shared;
use crate::pipeline::messages::Body;
use crate::runtime::within;

/// What of these is not seen yet.
pub(super) fn unseen<S: Body>(shared: &Shared<S>, mut writes: Writes) -> Writes {
    let left_out = writes.left_out();
    if left_out > 0 {
        shared.counters.writes_left_out.add(left_out);
    }
    writes.drop_seen(|informer, key, awaited| shared.watched[informer].is_seen(key, awaited));
    writes
}

/// Waits until these are seen, or the bound has passed.
pub(super) async fn settle<S: Body>(shared: &Arc<Shared<S>>, key: &ObjectKey, mut writes: Writes) {
    shared.counters.writes_waited.add(writes.len() as u64);
    let limit = shared.limits.write_wait;
    let waiting = within(limit, seen(shared, &writes));
    if shared.stop.run_until_cancelled(waiting).await.is_none() {
        return;
    }
    writes.drop_seen(|informer, key, awaited| shared.watched[informer].is_seen(key, awaited));
    for ((informer, object), awaited) in writes {
        shared.counters.writes_not_seen.add(1);
        shared.ledger.not_seen(informer, &object);
        let told = shared.failures.not_seen(informer, shared.runtime.now());
        let informer = shared.watched[informer].any_informer();
        let (controller, informer, version, within) =
            (&shared.name, informer.name(), &awaited.version, Brief(limit));
        match told {
            Some(count) => {
                tracing::warn!(target: "actix_informer::controller", %controller, %key, informer, %object, %version, count, "controller {controller}: informer {informer:?} has not shown within {within} what the reconcile of {key} wrote to {object}, version {version}; {key} goes on without it ({count} writes since the last warning)");
            }
            None => {
                tracing::debug!(target: "actix_informer::controller", %controller, %key, informer, %object, %version, "controller {controller}: informer {informer:?} has not shown within {within} what the reconcile of {key} wrote to {object}, version {version}");
            }
        }
    }
}

/// Waits for one after the other, the newest first: when that one is seen, mostly all are.
async fn seen<S: Body>(shared: &Shared<S>, writes: &Writes) {
    for (informer, object, awaited) in writes.newest_first() {
        let watched = &shared.watched[informer];
        if !watched.is_seen(object, awaited) {
            watched.seen(object.clone(), awaited.clone()).await;
        }
    }
}
