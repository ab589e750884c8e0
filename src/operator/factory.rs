//! A factory as a part of an operator: it is ready when each of its informers is synced.
//!
//! Answers "when are the caches filled?". Those count that are requested before it starts; a source that supervision has
//! given up is revived when the part is started again. Read next: `factory.rs`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use informer_actors::informer::AnyInformer;
use informer_core::reflector::SourceState;

use super::{Part, PartContext, PartError};
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
        synced = AnyInformer::all_synced_within(&informers, Duration::MAX) => synced?,
    }
    // From here on an informer stops when its last other handle is dropped.
    drop(informers);
    context.ready();
    let limit = context.stopping().await;
    shutdown(&factory, limit).await
}

async fn shutdown(factory: &InformerFactory, limit: Duration) -> Result<(), PartError> {
    let report = factory.shutdown(limit).await;
    if report.is_clean() { Ok(()) } else { Err(report.to_string().into()) }
}
