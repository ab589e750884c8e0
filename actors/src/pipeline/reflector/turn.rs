//! A source's turn to list.
//!
//! Answers "may this source list now?": when the runtime's list budget has a permit for it, and enough of what earlier
//! lists and states held has been freed. Without the second wait a server that cuts every list could have one more of
//! them in memory with each attempt. Read next: `session.rs`, which waits; `runtime/freeing.rs`, which frees.

use std::sync::Arc;

use informer_core::meta::SourceId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pipeline::messages::Body;
use crate::pipeline::shared::PipelineShared;
use crate::runtime::Inner;

/// Waits for a permit of the list budget's `pool`, that of the source's cluster, and until what was freed before leaves memory for a list.
pub(super) async fn turn<S: Body>(
    shared: PipelineShared<S>,
    source: SourceId,
    pool: Arc<Semaphore>,
) -> OwnedSemaphorePermit {
    let Inner { freeing, .. } = &*shared.runtime.0;
    let permit = pool.acquire_owned().await.expect("the list budget is never closed");
    if freeing.owes_too_much() {
        let waits = |waits: bool| {
            shared.board.update_source(&source, |status| {
                status.awaits_memory = waits;
                true
            });
        };
        waits(true);
        let (informer, mib) = (&shared.name, freeing.owed() >> 20);
        tracing::info!(%informer, %source, "the next list waits: {mib} MiB of earlier objects are still to be freed");
        freeing.until_less().await;
        waits(false);
    }
    permit
}
