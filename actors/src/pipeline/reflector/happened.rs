//! The events of a reflector's session, and the waits for them. The drop of a wait loses no event.

use std::future::{Future, pending};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ResourceVersion, SourceId};
use informer_core::reflector::{LogLevel, LogLine, StreamId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::list_watch::{ListStream, WatchStream};
use crate::pipeline::messages::Body;
use crate::pipeline::shared::PipelineShared;
use crate::pipeline::status::Came;
use crate::runtime::mailbox::Closed;
use crate::runtime::{Clock, Inner, sleep_until};

pub(super) enum Happened<S> {
    Timeout,
    Permitted(OwnedSemaphorePermit),
    Version(Result<ResourceVersion, ListWatchError>),
    Watched(StreamId, Option<Result<Vec<WatchPart<S>>, ListWatchError>>),
    Listed(Option<Result<ListPart<S>, ListWatchError>>),
    RepairDue,
    Fetched(Option<Object<S>>),
    /// An empty first list is explained, or what is passed on has settled.
    Explained,
    /// See [`Filtering::news`](super::filtering::Filtering::news).
    Filter(Result<(), Closed>),
}

impl<S> Happened<S> {
    pub(super) fn objects(&self) -> usize {
        match self {
            Self::Watched(_, Some(Ok(parts))) => parts.len(),
            Self::Listed(Some(Ok(ListPart::Objects(objects)))) => objects.len(),
            _ => 1,
        }
    }

    pub(super) fn count(&self, came: &mut Came) {
        match self {
            Self::Watched(_, Some(Ok(parts))) => {
                let is_event = |part: &&WatchPart<S>| part.key().is_some() && part.reached().is_some();
                for part in parts.iter().filter(is_event) {
                    came.watch_events += 1;
                    came.wire_bytes += part.wire_bytes() as u64;
                }
            }
            Self::Watched(_, Some(Err(error))) => came.watch_ends.count(Some(error)),
            Self::Watched(_, None) => came.watch_ends.count(None),
            Self::Listed(Some(Ok(ListPart::Objects(objects)))) => {
                came.wire_bytes += objects.iter().map(|object| u64::from(object.wire_bytes())).sum::<u64>();
            }
            _ => {}
        }
    }
}

/// Waits for ever if there is no deadline.
pub(super) async fn at_last(clock: &Clock, deadline: Option<Duration>) {
    match deadline {
        Some(at) => sleep_until(clock, at).await,
        None => pending().await,
    }
}

/// Waits for ever if no question is open.
pub(super) fn settled<T>(question: &mut Option<LocalBoxFuture<'static, T>>) -> impl Future<Output = T> {
    std::future::poll_fn(move |cx| match question {
        Some(question) => question.poll_unpin(cx),
        None => Poll::Pending,
    })
}

pub(super) fn next_listed<S>(
    list: &mut Option<ListStream<S>>,
) -> impl Future<Output = Option<Result<ListPart<S>, ListWatchError>>> {
    std::future::poll_fn(move |cx| match list {
        Some(list) => list.poll_next_unpin(cx),
        None => Poll::Pending,
    })
}

pub(super) type Watched<S> = (StreamId, Option<Result<Vec<WatchPart<S>>, ListWatchError>>);

pub(super) fn next_watched<S>(
    watches: &mut [(StreamId, WatchStream<S>)],
    wanted: impl Fn(StreamId) -> bool,
) -> impl Future<Output = Watched<S>> {
    std::future::poll_fn(move |cx| {
        for (stream, watch) in watches.iter_mut().filter(|(stream, _)| wanted(*stream)) {
            if let Poll::Ready(item) = watch.poll_next_unpin(cx) {
                return Poll::Ready((*stream, item));
            }
        }
        Poll::Pending
    })
}

pub(super) fn write(informer: &str, source: &SourceId, resource: &str, line: &LogLine) {
    let LogLine { reason, text, .. } = line;
    match line.level {
        LogLevel::Debug => {
            tracing::debug!(target: "actix_informer::informer", informer, %source, resource, reason, "{text}")
        }
        LogLevel::Info => {
            tracing::info!(target: "actix_informer::informer", informer, %source, resource, reason, "{text}")
        }
        _ => {
            tracing::warn!(target: "actix_informer::informer", informer, %source, resource, reason, "{text}")
        }
    }
}

// A list needs a permit of the list budget, and enough freed memory of earlier lists and states: else each attempt of
// a list that the server cuts would add an unfreed list.

/// `pool` is that of the source's cluster.
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
