//! Tests what the probes report about an informer whose reflector is no longer restarted.

use super::*;
use crate::follow::Printer;
use crate::kept::KeptBody;
use crate::lines::Style;
use crate::output::Output;
use actix_informer::informer::{Informer, RestartPolicy};
use actix_informer::source::{ListWatch, ReflectorConfig, SourceSpec};
use actix_informer::subscription::SubscribeOptions;

fn panicking_source() -> Box<dyn ListWatch<KeptBody>> {
    panic!("the source panics")
}

fn panicking_kind(runtime: &Runtime) -> RunningKind {
    let (source, config) = (Arc::new(panicking_source), ReflectorConfig::new("panicking"));
    let source = SourceSpec::new(Default::default(), source, config);
    let no_restarts = RestartPolicy { limit: 0, ..RestartPolicy::default() };
    let builder = Informer::builder(runtime, "panicking").source_with(source).restarts(no_restarts);
    let informer = builder.start().expect("the spec is sound");
    let output = Output::start(std::io::sink()).expect("a thread can be started");
    let printer = Printer { style: Arc::new(Style::Json), output };
    RunningKind::new(("Panicking", Arc::default()), informer, SubscribeOptions::new(), &printer)
}

#[tokio::test]
async fn inf_45_an_informer_that_is_not_restarted_any_more_is_neither_ready_nor_healthy_and_the_probes_say_why()
 {
    let runtime = Runtime::threads().start().expect("threads can be started");
    let kind = Arc::new(panicking_kind(&runtime));
    kind.wait_until(|status| status.failed.is_some()).await.expect("it is not restarted");
    let draining = AtomicBool::new(false);
    let state = ProbeState { kinds: vec![kind], runtime, draining, stale_limit: None };
    for reasons in [state.unready(), state.unhealthy()] {
        let begin = "Panicking is not restarted any more: reflector/default: ";
        let why = reasons.iter().find(|why| why.starts_with(begin));
        assert!(why.is_some_and(|why| why.contains("the source panics")), "{reasons:?}");
    }
}
