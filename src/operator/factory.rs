//! A factory as a part of an operator: it is ready when each of its informers is synced.
//!
//! Informers requested before its start count. A new start revives sources that supervision has given up.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, try_join_all};
use futures_util::stream::FuturesUnordered;
use informer_actors::informer::AnyInformer;
use informer_core::reflector::SourceState;

use super::{Part, PartContext, PartError, Stale};
use crate::factory::InformerFactory;

impl Part for InformerFactory {
    fn name(&self) -> Arc<str> {
        "informers".into()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        run(self.clone(), context).boxed()
    }

    fn missing(&self) -> Option<String> {
        let informers = self.informers().into_iter();
        let missing = informers.filter_map(|(_, informer)| Some((Part::missing(&informer)?, informer)));
        let missing: Vec<_> = missing
            .map(|(why, informer)| format!("informer {} is not synced: {why}", informer.name()))
            .collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }

    fn stale(&self) -> Option<Stale> {
        let informers = self.informers().into_iter();
        let stale = informers.filter_map(|(_, informer)| Some((Part::stale(&informer)?, informer)));
        let stale: Vec<_> = stale.collect();
        let lasts = stale.iter().map(|(stale, _)| stale.lasts).max()?;
        let why = stale.iter().map(|(stale, informer)| format!("informer {} is {stale}", informer.name()));
        Some(Stale::new(lasts, why.collect::<Vec<_>>().join(", ")))
    }
}

async fn run(factory: InformerFactory, context: PartContext) -> Result<(), PartError> {
    factory.start()?;
    let informers: Vec<AnyInformer> = factory.informers().into_iter().map(|(_, informer)| informer).collect();
    for informer in &informers {
        for source in informer.status().sources {
            if matches!(source.state, SourceState::GivenUp { .. }) {
                informer.revive(&source.source)?;
            }
        }
    }
    tokio::select! {
        biased;
        limit = context.stopping() => return shutdown(&factory, limit).await,
        // A source that was given up fails the part at once; its next start revives it.
        synced = try_join_all(informers.iter().map(AnyInformer::synced)) => drop(synced?),
    }
    let failures = informers.iter().map(|informer| failure(informer.name().into(), informer.failure()));
    let failures: FuturesUnordered<_> = failures.collect();
    // Now an informer stops when its last other handle is dropped.
    drop(informers);
    context.ready();
    tokio::select! {
        biased;
        limit = context.stopping() => shutdown(&factory, limit).await,
        why = first(failures) => Err(why.into()),
    }
}

/// `None` if it has stopped.
async fn failure(name: Arc<str>, failed: impl Future<Output = Option<Arc<str>>>) -> Option<String> {
    let why = failed.await?;
    Some(format!("informer {name}: a part of it is not restarted any more: {why}"))
}

/// Pending for ever if there is none.
async fn first(mut failures: FuturesUnordered<impl Future<Output = Option<String>>>) -> String {
    while let Some(ended) = failures.next().await {
        if let Some(why) = ended {
            return why;
        }
    }
    std::future::pending().await
}

async fn shutdown(factory: &InformerFactory, limit: Duration) -> Result<(), PartError> {
    let report = factory.shutdown(limit).await;
    if report.is_clean() { Ok(()) } else { Err(report.to_string().into()) }
}
