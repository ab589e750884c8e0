//! What the probes of `informerd` report on.
//!
//! 1. Healthy: no arbiter is stuck, no informer leaves its work undone or was given up, every kind is printed: a restart of the
//!    process repairs these.
//! 2. Ready: every kind has synced once, no informer or subscription has ended, no drain has begun. The cache of an unreachable
//!    cluster can still be read: it makes nothing unready without a configured limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Error;
use super::follow::RunningKind;
use super::lines::state_name;
use actix_informer::probes::{Probed, ProbesError, detail, given_up, stalled, stuck_threads};
use actix_informer::runtime::Runtime;

pub(super) struct ProbeState {
    pub(super) kinds: Vec<Arc<RunningKind>>,
    pub(super) runtime: Runtime,
    pub(super) draining: AtomicBool,
    /// A kind that is stale for longer makes the service unready; `None`: never.
    pub(super) stale_limit: Option<Duration>,
}

impl Probed for ProbeState {
    fn unhealthy(&self) -> Vec<String> {
        let stalled = self.kinds.iter().filter_map(|kind| stalled(kind.name(), &kind.status().informer));
        stuck_threads(&self.runtime).into_iter().chain(stalled).chain(self.ended()).collect()
    }

    fn unready(&self) -> Vec<String> {
        let draining = self.draining.load(Ordering::Relaxed).then(|| "draining".to_owned());
        let unsynced = self.kinds.iter().filter_map(|kind| {
            let status = kind.status().informer;
            let error = status.last_error().map(|error| format!(": {error}")).unwrap_or_default();
            let state = state_name(&status.state());
            (!status.synced).then(|| format!("{} is not synced, {state}{error}", kind.name()))
        });
        let stale = self.kinds.iter().filter_map(|kind| {
            let status = kind.status();
            let stale =
                status.informer.stale(status.now).filter(|stale| Some(stale.lasts) > self.stale_limit)?;
            self.stale_limit.map(|_| format!("{} is {stale}", kind.name()))
        });
        draining.into_iter().chain(unsynced).chain(stale).chain(self.ended()).collect()
    }

    fn details(&self) -> Vec<String> {
        let of = |kind: &Arc<RunningKind>| {
            let status = kind.status();
            detail(kind.name(), &status.informer, status.now)
        };
        self.kinds.iter().map(of).collect()
    }
}

impl ProbeState {
    /// Kinds with a part that was given up, or without a subscription.
    fn ended(&self) -> impl Iterator<Item = String> {
        self.kinds.iter().filter_map(|kind| {
            let end = || kind.subscription_end();
            given_up(kind.name(), &kind.status().informer)
                .or_else(|| Some(format!("{} is not printed any more: {}", kind.name(), end()?)))
        })
    }
}

impl From<ProbesError> for Error {
    fn from(ProbesError { address, source, .. }: ProbesError) -> Self {
        Self::Probes { address, source }
    }
}

#[cfg(test)]
mod tests_of_progress {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use actix_informer::informer::Informer;
    use actix_informer::probes::stalled;
    use actix_informer::runtime::Runtime;
    use actix_informer::testing::Server;
    use actix_informer::testing::{Faults, Site};

    #[test]
    fn an_informer_that_runs_but_makes_no_progress_is_not_healthy() {
        for stalls in [false, true] {
            let faults = Faults::stalling(Site::IndexerApply, Arc::new(AtomicBool::new(stalls)));
            Runtime::simulation(1).faults(faults).watched().build().run(|runtime| async move {
                let server = Server::<String>::new();
                server.apply("a/one", String::new());
                let informer = Informer::builder(&runtime, "Pod").source(move || server.clone()).start();
                let informer = informer.expect("the spec is sound");
                tokio::time::sleep(Duration::from_secs(30)).await;
                let why = stalled("Pod", &informer.status());
                let expected =
                    "Pod is not up to date: Pod/indexer makes no progress although there is work".to_owned();
                assert_eq!(why, stalls.then_some(expected));
            });
        }
    }
}

#[cfg(test)]
mod given_up;
