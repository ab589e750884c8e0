//! Does what a representation wants done with the objects that are kept ([`Upkeep`]), while a list or a watch is
//! read: on the decode pool, some objects at a time.
//!
//! 1. One source of an informer does it for all. When its stream ends, the next one goes on.
//! 2. What is not published yet is done later. It is looked for after a second, then after two, up to a minute.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, LocalBoxStream};
use futures_util::{FutureExt, StreamExt};
use informer_actors::list_watch::KnownObjects;
use informer_actors::runtime::{DecodePool, JobPanicked};
use informer_core::meta::ObjectKey;

use crate::representation::Upkeep;

/// Objects of one job.
const AT_ONCE: usize = 250;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The same stream, which does the work while it is read.
pub(super) fn keeping_up<T: 'static, S: Send + Sync + 'static>(
    upkeep: Option<Arc<dyn Upkeep<S>>>,
    (pool, known): (DecodePool, KnownObjects<S>),
    stream: LocalBoxStream<'static, T>,
) -> LocalBoxStream<'static, T> {
    match upkeep {
        // After a panic, or when the pool is closed, the work rests until the next stream.
        Some(upkeep) => beside(keep_up(upkeep, pool, known).map(drop).boxed_local(), stream),
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
        rests = rests || work.poll_unpin(cx).is_ready();
        stream.poll_next_unpin(cx)
    })
    .boxed_local()
}

async fn keep_up<S: Send + Sync + 'static>(
    upkeep: Arc<dyn Upkeep<S>>,
    pool: DecodePool,
    known: KnownObjects<S>,
) -> Result<(), JobPanicked> {
    loop {
        let _turn = Arc::clone(&upkeep).due().await;
        let mut wait = FIRST_WAIT;
        loop {
            let of_job = Arc::clone(&upkeep);
            if pool.run(move || of_job.prepare()).await? {
                wait = FIRST_WAIT;
            }
            renew_all(&upkeep, &pool, &known).await?;
            if !upkeep.is_left() {
                break;
            }
            tokio::time::sleep(wait).await;
            wait = LONGEST_WAIT.min(wait * 2);
        }
    }
}

async fn renew_all<S: Send + Sync + 'static>(
    upkeep: &Arc<dyn Upkeep<S>>,
    pool: &DecodePool,
    known: &KnownObjects<S>,
) -> Result<(), JobPanicked> {
    let mut behind: Option<ObjectKey> = None;
    loop {
        let (upkeep, known) = (Arc::clone(upkeep), known.clone());
        let job = move || {
            let mut last = None;
            for object in known.snapshot()?.objects_behind(behind.as_ref()).take(AT_ONCE) {
                upkeep.renew(object.body());
                last = Some(object.key().clone());
            }
            last
        };
        behind = pool.run(job).await?;
        if behind.is_none() {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
}
