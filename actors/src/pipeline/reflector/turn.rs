//! The wait of a source for its turn to list.
//!
//! Answers "may this source list now?": when the runtime's list budget has a permit for it, and enough memory of
//! earlier lists and states has been freed. Without the second wait, each attempt of a list that the server cuts would
//! add another unfreed list to the memory. Read next: `session.rs`, which waits; `runtime/freeing.rs`, which frees.

use std::sync::Arc;

use informer_core::meta::SourceId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pipeline::messages::Body;
use crate::pipeline::shared::PipelineShared;
use crate::runtime::Inner;

/// Waits for a permit of the list budget's `pool`, that of the source's cluster, and until enough memory is freed.
pub(super) async fn turn<S: Body>(
    shared: PipelineShared<S>,
    source: SourceId,
    pool: Arc<Semaphore>,
) -> OwnedSemaphorePermit {
    let Inner { freeing, .. } = &*shared.runtime.0;
    let permit = pool.acquire_owned().await.expect("the list budget is never closed");
    if freeing.is_over_limit() {
        let waits = |waits: bool| {
            shared.board.update_source(&source, |status| {
                status.waits_for_memory = waits;
                true
            });
        };
        waits(true);
        let (informer, mib) = (&shared.name, freeing.pending_bytes() >> 20);
        tracing::info!(target: "actix_informer::informer", %informer, %source, "the next list waits: {mib} MiB of earlier objects are still to be freed");
        freeing.until_below_limit().await;
        waits(false);
    }
    permit
}
