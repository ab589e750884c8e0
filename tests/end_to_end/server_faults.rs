//! Disasters that only the in-memory server can cause: its fault switches.
//!
//! Answers "what if a server does what servers should not?" A kube-apiserver ends the initial events of each
//! watch-list when its watch cache is up to date, and only that bookmark cannot be held back. It answers a watch from
//! an old version inside the stream, never as HTTP 410, but proxies and older servers do. It sheds load only when
//! there is load: that is in `shedding.rs`; a relay answers in its place in `network.rs`.

use std::time::Duration;

use informer_apiserver::ErrorBody;
use informer_core::reflector::ReflectorConfig;

use crate::stage::{Stage, until};
use crate::trial::Trial;

/// More requests than any scenario makes.
const ALL: u32 = u32::MAX;

pub(crate) async fn wl_14_a_watch_list_that_never_ends(stage: Stage) {
    let mut trial = Trial::begin(stage).await;
    let faults = trial.stage.server.in_memory().faults();
    faults.withhold_end_bookmark(true);
    let impatient = |config| ReflectorConfig { initial_events_deadline: Duration::from_secs(10), ..config };
    let endless = trial.observe("endless", impatient, |_| {}).await;
    endless.pods.streams().await;
    let counters = endless.pods.counters();
    assert_eq!((counters.watch_lists, counters.lists, counters.failures), (1, 1, 1), "{counters:?}");
    trial.ends().await;
}

pub(crate) async fn a_410_as_an_http_answer(stage: Stage) {
    let trial = Trial::begin(stage).await;
    let faults = trial.stage.server.in_memory().faults();
    for observer in &trial.observers {
        observer.wire.cut();
        faults.gone_next(1);
        observer.wire.mend();
        until("the refusal is noticed", || observer.pods.counters().expired >= 1).await;
        // The next refusal is for the next informer, not for this one's relist.
        observer.pods.follows().await;
    }
    trial.ends().await;
}

pub(crate) async fn windows_of_refusals_that_also_hit_the_workload(stage: Stage) {
    let trial = Trial::begin(stage).await;
    let faults = trial.stage.server.in_memory().faults();
    for refuse in [
        |faults: &informer_apiserver::Faults| faults.too_many_requests_next(ALL, 1, ErrorBody::Text),
        |faults: &informer_apiserver::Faults| faults.too_many_requests_next(ALL, 1, ErrorBody::Status),
        |faults: &informer_apiserver::Faults| faults.fail_next(ALL, 500),
        |faults: &informer_apiserver::Faults| faults.fail_next(ALL, 503),
        |faults: &informer_apiserver::Faults| faults.fail_next(ALL, 504),
    ] {
        let failures = trial.failures();
        refuse(&faults);
        faults.reset_watches();
        for (observer, before) in trial.observers.iter().zip(failures) {
            until("the refusal is a failure", || observer.pods.counters().failures > before).await;
        }
        faults.clear();
        let mark = trial.mark().await;
        trial.arrives(&mark).await;
    }
    trial.ends().await;
}
