//! Tests what the probes report about an informer whose reflector is no longer restarted.

use std::future::ready;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::follow::Printer;
use crate::lines::KindStatus;
use crate::run::InformerReport;
use actix_informer::informer::RestartPolicy;
use actix_informer::informer::{Informer, ShutdownReport, WaitError};
use actix_informer::source::ListWatch;
use actix_informer::status::InformerStatus;
use actix_informer::subscription::EndReason;
use actix_informer::subscription::Subscription;

/// A kind whose source panics each time it is made.
struct PanickingKind(Informer<()>, Subscription<()>);

fn panicking_source() -> Box<dyn ListWatch<()>> {
    panic!("the source panics")
}

impl PanickingKind {
    fn on(runtime: &Runtime) -> Self {
        let source = actix_informer::source::SourceSpec::new(
            Default::default(),
            Arc::new(panicking_source),
            actix_informer::source::ReflectorConfig::new("panicking"),
        );
        let no_restarts = RestartPolicy { limit: 0, ..RestartPolicy::default() };
        let builder = Informer::builder(runtime, "panicking").source_with(source).restarts(no_restarts);
        let informer = builder.start().expect("the spec is sound");
        let subscription = informer.for_each(|_| ready(())).expect("it runs");
        Self(informer, subscription)
    }
}

impl WatchedKindHandle for PanickingKind {
    fn name(&self) -> &str {
        "Panicking"
    }

    fn status(&self) -> KindStatus {
        let (informer, subscription) = (self.0.status(), self.1.status());
        KindStatus { informer, subscription, version: None, now: self.0.runtime().now() }
    }

    fn subscription_end(&self) -> Option<EndReason> {
        self.1.ended()
    }

    fn delivered_count(&self) -> u64 {
        0
    }

    fn wait_until(
        &self,
        enough: Box<dyn FnMut(&InformerStatus) -> bool + Send>,
    ) -> BoxFuture<'static, Result<InformerStatus, WaitError>> {
        let informer = self.0.clone();
        async move { informer.wait_until(enough).await }.boxed()
    }

    fn shutdown(&self, limit: Duration) -> BoxFuture<'_, ShutdownReport> {
        self.0.shutdown(limit).boxed()
    }

    fn print_cached<'a>(&'a self, _printer: &'a Printer) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }

    fn report(&self) -> InformerReport {
        unreachable!("the probes do not use the report")
    }
}

#[tokio::test]
async fn inf_45_an_informer_that_is_not_restarted_any_more_is_neither_ready_nor_healthy_and_the_probes_say_why()
 {
    let runtime = Runtime::threads().start().expect("threads can be started");
    let kind = Arc::new(PanickingKind::on(&runtime));
    kind.wait_until(Box::new(|status| status.failed.is_some())).await.expect("it is not restarted");
    let draining = AtomicBool::new(false);
    let state = ProbeState { kinds: vec![kind], runtime, draining, stale_limit: None };
    for reasons in [state.unready(), state.unhealthy()] {
        let begin = "Panicking is not restarted any more: reflector/default: ";
        let why = reasons.iter().find(|why| why.starts_with(begin));
        assert!(why.is_some_and(|why| why.contains("the source panics")), "{reasons:?}");
    }
}
