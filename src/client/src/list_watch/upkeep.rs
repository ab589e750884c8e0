//! Runs the [`Upkeep`] of a representation for the kept objects while a list or a watch is read: on the
//! decode pool, some objects at a time.
//!
//! The sources that share a representation take turns, each for one round over all objects.

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, LocalBoxStream};
use futures_util::{FutureExt, StreamExt};
use informer_actors::list_watch::KnownObjects;
use informer_actors::runtime::{DecodePool, JobPanicked};
use informer_core::meta::ObjectKey;

use crate::representation::Upkeep;

/// Objects of one job.
const AT_ONCE: usize = 250;

pub(super) fn keeping_up<T: 'static, S: Send + Sync + 'static>(
    upkeep: Option<Arc<dyn Upkeep<S>>>,
    (pool, known): (DecodePool, KnownObjects<S>),
    stream: LocalBoxStream<'static, T>,
) -> LocalBoxStream<'static, T> {
    match upkeep {
        Some(upkeep) => beside(keep_up(upkeep, pool, known).boxed_local(), stream),
        None => stream,
    }
}

/// The same stream; the work goes on while it is read.
pub(super) fn beside<T: 'static>(
    mut work: LocalBoxFuture<'static, ()>,
    mut stream: LocalBoxStream<'static, T>,
) -> LocalBoxStream<'static, T> {
    let mut rests = false;
    stream::poll_fn(move |cx| {
        // Some work looks at what the stream has just brought.
        let next = stream.poll_next_unpin(cx);
        rests = rests || work.poll_unpin(cx).is_ready();
        next
    })
    .boxed_local()
}

async fn keep_up<S: Send + Sync + 'static>(
    upkeep: Arc<dyn Upkeep<S>>,
    pool: DecodePool,
    known: KnownObjects<S>,
) {
    loop {
        let turn = Arc::clone(&upkeep).due().await;
        if let Err(error) = round(&upkeep, &pool, &known).await {
            tracing::warn!(target: "actix_informer::informer", %error, "what is kept is not compressed again until the next watch");
            return;
        }
        upkeep.round_ended();
        drop(turn);
    }
}

async fn round<S: Send + Sync + 'static>(
    upkeep: &Arc<dyn Upkeep<S>>,
    pool: &DecodePool,
    known: &KnownObjects<S>,
) -> Result<(), JobPanicked> {
    let of_job = Arc::clone(upkeep);
    pool.run(move || of_job.prepare()).await?;
    let (mut behind, mut objects, mut bytes): (Option<ObjectKey>, u64, u64) = (None, 0, 0);
    loop {
        let (upkeep, known) = (Arc::clone(upkeep), known.clone());
        let job = move || {
            let (mut last, mut part) = (None, (0, 0));
            let snapshot = known.snapshot()?;
            for object in snapshot.objects_behind(behind.as_ref()).take(AT_ONCE) {
                part = (part.0 + 1, part.1 + upkeep.renew(object.body()) as u64);
                last = Some(object.key().clone());
            }
            // Queued to be freed, it would keep all that was replaced meanwhile.
            snapshot.free_here();
            Some((last?, part))
        };
        let Some((last, part)) = pool.run(job).await? else { break };
        (behind, objects, bytes) = (Some(last), objects + part.0, bytes + part.1);
        tokio::task::yield_now().await;
    }
    if let Some(mean) = bytes.checked_div(objects) {
        known.note_kept(mean);
    }
    Ok(())
}
