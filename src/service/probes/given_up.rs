//! What the probes say of an informer that supervision has given up on.

use std::future::ready;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::core::restart::RestartPolicy;
use crate::informer::{Informer, ShutdownReport, WaitError};
use crate::list_watch::ListWatch;
use crate::seat::EndReason;
use crate::service::follow::Printer;
use crate::service::lines::Doing;
use crate::service::run::InformerReport;
use crate::status::InformerStatus;
use crate::subscription::Subscription;

/// A kind whose source panics whenever it is made.
struct Doomed(Informer<()>, Subscription<()>);

fn careless() -> Box<dyn ListWatch<()>> {
    panic!("careless")
}

impl Doomed {
    fn on(runtime: &Runtime) -> Self {
        let source = crate::wiring::SourceSpec::new(
            Default::default(),
            Arc::new(careless),
            crate::core::reflector::ReflectorConfig::new("doomed"),
        );
        let never_again = RestartPolicy { limit: 0, ..RestartPolicy::default() };
        let builder = Informer::builder(runtime, "doomed").source_with(source).restarts(never_again);
        let informer = builder.start().expect("the spec is sound");
        let subscription = informer.for_each(|_| ready(())).expect("it runs");
        Self(informer, subscription)
    }
}

impl Followed for Doomed {
    fn kind(&self) -> &str {
        "Doomed"
    }

    fn doing(&self) -> Doing {
        let (status, subscription) = (self.0.status(), self.1.status());
        Doing { status, subscription, version: None, now: self.0.runtime().now() }
    }

    fn silent(&self) -> Option<EndReason> {
        self.1.ended()
    }

    fn told(&self) -> u64 {
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
        unreachable!("the probes ask for no report")
    }
}

#[tokio::test]
async fn inf_45_an_informer_that_is_given_up_is_neither_ready_nor_healthy_and_the_probes_say_why() {
    let runtime = Runtime::threads().start().expect("threads can be started");
    let doomed = Arc::new(Doomed::on(&runtime));
    doomed.wait_until(Box::new(|status| status.failed.is_some())).await.expect("it is given up");
    let draining = AtomicBool::new(false);
    let vitals = Vitals { followed: vec![doomed], runtime, draining };
    for reasons in [vitals.unready(), vitals.unhealthy()] {
        let why = reasons.iter().find(|why| why.starts_with("Doomed is given up: reflector/default: "));
        assert!(why.is_some_and(|why| why.contains("careless")), "{reasons:?}");
    }
}
