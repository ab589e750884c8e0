//! An informer as a part of an operator: it is ready when it is synced, and ends by a shutdown.
//!
//! Answers "when may controllers rely on this cache?". An informer whose supervision has given up on a source is a part
//! that has failed: the source is revived when the part is started again. Read next: `part.rs`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use informer_core::reflector::SourceState;

use super::part::{Part, PartContext, PartError, Stale};
use crate::informer::{AnyInformer, Informer};
use crate::pipeline::messages::Body;

impl Part for AnyInformer {
    fn name(&self) -> Arc<str> {
        self.status().name
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        run(self.clone(), context).boxed()
    }

    fn missing(&self) -> Option<String> {
        let status = self.status();
        let error = status.last_error().filter(|_| status.state().error().is_none());
        let error =
            error.map(|error| format!("; its last error: {}", error.with_causes())).unwrap_or_default();
        (!status.synced).then(|| format!("{}{error}", status.state()))
    }

    fn stale(&self) -> Option<Stale> {
        Self::stale(self)
    }
}

impl<S: Body> Part for Informer<S> {
    fn name(&self) -> Arc<str> {
        AnyInformer::from(self).status().name
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        run(self.into(), context).boxed()
    }

    fn missing(&self) -> Option<String> {
        Part::missing(&AnyInformer::from(self))
    }

    fn stale(&self) -> Option<Stale> {
        Part::stale(&AnyInformer::from(self))
    }
}

async fn run(informer: AnyInformer, context: PartContext) -> Result<(), PartError> {
    informer.begin();
    for source in informer.status().sources {
        if matches!(source.state, SourceState::GivenUp { .. }) {
            informer.revive(&source.source)?;
        }
    }
    tokio::select! {
        biased;
        limit = context.stopping() => return shutdown(&informer, limit).await,
        synced = informer.synced() => drop(synced?),
    }
    context.ready();
    let failed = informer.wait_until(|status| status.failed.is_some());
    tokio::select! {
        biased;
        limit = context.stopping() => shutdown(&informer, limit).await,
        failed = failed => {
            let why = failed?.failed;
            Err(format!("a part of it is not restarted any more: {}", why.as_deref().unwrap_or("unknown")).into())
        }
    }
}

async fn shutdown(informer: &AnyInformer, limit: Duration) -> Result<(), PartError> {
    let report = informer.shutdown(limit).await;
    if report.is_clean() { Ok(()) } else { Err(report.to_string().into()) }
}
