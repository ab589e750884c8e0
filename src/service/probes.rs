//! `/healthz` and `/readyz` over HTTP.
//!
//! Answers two questions of a kubelet: "would a restart help?" and "does it have what it serves?". It changes
//! nothing. Invariants:
//! 1. Healthy: no arbiter is stuck, no informer has work that it does not do, and supervision has given up on nothing;
//!    each is what a restart repairs. A cluster that is away is none of that.
//! 2. Ready: every kind has synced (latched), nothing has ended, and no drain has begun. A kind that is away later
//!    leaves it ready: what is cached is still served.
//! 3. An answer that is no says why, a reason a line.
//!
//! Effects: one worker thread, at most 64 connections.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};

use super::error::Error;
use super::follow::Followed;
use super::lines::state_name;
use crate::runtime::{Runtime, StuckKind};
use crate::status::InformerStatus;

/// An arbiter without a pulse for so long is stuck: pulses come each second.
const STUCK: Duration = Duration::from_secs(30);
/// Probes come one at a time; this is for several curious persons.
const CONNECTIONS: usize = 64;

/// What the probes look at.
pub(super) struct Vitals {
    pub(super) followed: Vec<Arc<dyn Followed>>,
    pub(super) runtime: Runtime,
    pub(super) draining: AtomicBool,
}

impl Vitals {
    /// Why it is not healthy; empty if it is.
    fn unhealthy(&self) -> Vec<String> {
        let stuck = self.runtime.arbiters().into_iter().filter(|arbiter| arbiter.since_pulse > STUCK);
        let stuck = stuck.map(|arbiter| {
            let doing = arbiter.running.map(|what| format!(", busy with {what}")).unwrap_or_default();
            format!("thread {} shows no pulse for {} s{doing}", arbiter.name, arbiter.since_pulse.as_secs())
        });
        let stalled =
            self.followed.iter().filter_map(|followed| stalled(followed.kind(), &followed.doing().status));
        stuck.chain(stalled).chain(self.given_up()).collect()
    }

    /// Why it is not ready; empty if it is.
    fn unready(&self) -> Vec<String> {
        let draining = self.draining.load(Ordering::Relaxed).then(|| "draining".to_owned());
        let unsynced = self.followed.iter().filter_map(|followed| {
            let status = followed.doing().status;
            let error = status.last_error().map(|error| format!(": {error}")).unwrap_or_default();
            let state = state_name(&status.state());
            (!status.synced).then(|| format!("{} is not synced, {state}{error}", followed.kind()))
        });
        draining.into_iter().chain(unsynced).chain(self.given_up()).collect()
    }

    fn given_up(&self) -> impl Iterator<Item = String> {
        self.followed.iter().filter_map(|followed| {
            let failed = followed.doing().status.failed.map(|why| why.to_string());
            let why = failed.or_else(|| followed.silent().map(|why| why.to_string()))?;
            Some(format!("{} is given up: {why}", followed.kind()))
        })
    }
}

/// Why a kind is not healthy whose informer turns and does not get on with what it has to do.
fn stalled(kind: &str, status: &InformerStatus) -> Option<String> {
    let stuck = status.stuck.as_ref().filter(|stuck| stuck.kind == StuckKind::NoProgress)?;
    let actor = stuck.actor.as_deref().unwrap_or(&stuck.arbiter);
    Some(format!("{kind} is not up to date: {actor} makes no progress although there is work"))
}

/// Takes the address, before anything else has begun.
pub(super) fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Probes { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Answers on this socket until the handle says stop.
pub(super) fn serve(
    (listener, address): (TcpListener, SocketAddr),
    vitals: Arc<Vitals>,
) -> Result<ServerHandle, Error> {
    let data = web::Data::from(vitals);
    let app = move || {
        App::new()
            .app_data(data.clone())
            .route("/healthz", web::get().to(healthz))
            .route("/readyz", web::get().to(readyz))
    };
    let server = HttpServer::new(app)
        .workers(1)
        .max_connections(CONNECTIONS)
        .disable_signals()
        .shutdown_timeout(1)
        .listen(listener)
        .map_err(|source| Error::Probes { address, source })?
        .run();
    let handle = server.handle();
    // It ends with its handle, or with the process; a failed accept is its own business.
    drop(tokio::spawn(server));
    Ok(handle)
}

async fn healthz(vitals: web::Data<Vitals>) -> HttpResponse {
    answer(vitals.unhealthy())
}

async fn readyz(vitals: web::Data<Vitals>) -> HttpResponse {
    answer(vitals.unready())
}

fn answer(reasons: Vec<String>) -> HttpResponse {
    if reasons.is_empty() {
        HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("ok\n")
    } else {
        let body = reasons.join("\n") + "\n";
        HttpResponse::ServiceUnavailable().content_type("text/plain; charset=utf-8").body(body)
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::stalled;
    use crate::faults::{Faults, Site};
    use crate::informer::Informer;
    use crate::runtime::Runtime;
    use crate::testing::Server;

    #[test]
    fn an_informer_that_turns_without_getting_on_is_not_healthy() {
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
