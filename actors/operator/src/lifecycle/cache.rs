//! An informer as a part of an operator: ready when it is synced, ended by a shutdown. A given-up source is a
//! failure of the part, whose next start revives it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use informer_core::reflector::SourceState;

use super::part::{Part, PartContext, PartError, Stale};
use informer_actors::informer::{AnyInformer, Body, Informer};
use informer_actors::status::SavedStatus;

impl Part for AnyInformer {
    fn name(&self) -> Arc<str> {
        Self::name(self).into()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        run(self.clone(), context).boxed()
    }

    fn missing(&self) -> Option<String> {
        let status = self.status();
        let error = status.last_error().filter(|_| status.state().error().is_none());
        let error =
            error.map(|error| format!("; its last error: {}", error.with_causes())).unwrap_or_default();
        let saved = status.saved.as_ref().and_then(SavedStatus::catching_up);
        let saved = saved.map(|why| format!("; {why}")).unwrap_or_default();
        (!status.synced).then(|| format!("{}{saved}{error}", status.state()))
    }

    fn stale(&self) -> Option<Stale> {
        Self::stale(self)
    }
}

impl<S: Body> Part for Informer<S> {
    fn name(&self) -> Arc<str> {
        Self::name(self).into()
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
    tokio::select! {
        biased;
        limit = context.stopping() => shutdown(&informer, limit).await,
        failed = informer.failure() => match failed {
            Some(why) => Err(format!("a part of it is not restarted any more: {why}").into()),
            // It has stopped: this returns why.
            None => informer.wait_until(|_| false).await.map(drop).map_err(PartError::from),
        }
    }
}

async fn shutdown(informer: &AnyInformer, limit: Duration) -> Result<(), PartError> {
    let report = informer.shutdown(limit).await;
    if report.is_clean() { Ok(()) } else { Err(report.to_string().into()) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::lifecycle::Operator;
    use informer_actors::informer::Informer;
    use informer_actors::inner::Followed;
    use informer_actors::runtime::Runtime;
    use informer_actors::testing::Server;

    #[test]
    fn an_informer_that_runs_as_a_part_copies_its_status_for_no_event() {
        Runtime::simulated(1).run(|runtime| async move {
            let server = Server::<String>::new();
            let source = server.clone();
            let texts = Informer::builder(&runtime, "texts").source(move || source.clone());
            let texts = texts.declare().expect("a sound spec");
            let operator = Operator::builder(&runtime).cache(texts.clone()).start().expect("it starts");
            operator.ready_within(Duration::from_secs(60)).await.expect("it is ready");
            let copies = || texts.status_copies();
            let before = copies();
            for number in 0..20 {
                server.apply(&format!("a/{number}"), "text".to_owned());
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert_eq!((texts.snapshot().len(), copies() - before), (20, 0));
        });
    }
}
