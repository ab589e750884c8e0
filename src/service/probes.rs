//! `/healthz` and `/readyz` over HTTP.
//!
//! Answers two questions of a kubelet: "would a restart help?" and "does it have what it serves?". It changes
//! nothing. Invariants:
//! 1. Healthy: no arbiter is stuck, no informer has work that it does not do, and supervision has given up on nothing;
//!    each is what a restart repairs. A cluster that is away does not make it unhealthy.
//! 2. Ready: every kind has synced (latched), nothing has ended, and no drain has begun. A kind that is away later
//!    leaves it ready: what is cached is still served.
//! 3. An answer is one word. Reasons, which quote servers and name kinds, are told only with `?verbose` and only to
//!    this machine: a port that is open to the network tells strangers nothing.
//! 4. Nobody can silence it by holding connections: a request has seconds, a connection serves one request, and who
//!    opens more than some connections at once loses the oldest of their own.
//!
//! Effects: one thread, at most 64 connections. Read next: `probes/held.rs`, which connection has to go.

use std::convert::Infallible;
use std::future::ready;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_http::body::BoxBody;
use actix_http::{HttpService, KeepAlive, Method, Request, Response, StatusCode};
use actix_service::{Service as _, ServiceFactory as _, fn_service};
use tokio::sync::oneshot;

use super::error::Error;
use super::follow::Followed;
use super::lines::state_name;
use super::printable::printable;
use crate::runtime::{Runtime, StuckKind};
use crate::status::InformerStatus;
use held::Held;

mod held;

/// An arbiter without a pulse for so long is stuck: pulses come each second.
const STUCK: Duration = Duration::from_secs(30);
/// How long the head of a request may take: a kubelet sends it at once, and waits one second by default.
const HEAD_DEADLINE: Duration = Duration::from_secs(2);
/// How long a connection may last, whatever happens on it.
const CONNECTION_DEADLINE: Duration = Duration::from_secs(5);
/// How long nothing is accepted after the system refused to: it has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Answers until it is dropped.
#[derive(Debug)]
pub(super) struct Probes {
    /// Its thread ends when this is dropped.
    _stop: oneshot::Sender<Infallible>,
}

/// Answers on this socket, on a thread of its own: what holds up the service does not hold up its probes.
pub(super) fn serve(
    (listener, address): (TcpListener, SocketAddr),
    vitals: Arc<Vitals>,
) -> Result<Probes, Error> {
    let failed = |source| Error::Probes { address, source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (stop, stopped) = oneshot::channel();
    let serving = move || {
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            tokio::select! {
                biased;
                _ = stopped => {}
                () = answer_all(listener, vitals) => {}
            }
        });
    };
    std::thread::Builder::new().name("informerd-probes".to_owned()).spawn(serving).map_err(failed)?;
    Ok(Probes { _stop: stop })
}

async fn answer_all(listener: TcpListener, vitals: Arc<Vitals>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the probes cannot be served"),
    };
    let one = move |request: Request| ready(Ok::<_, Infallible>(answer(&vitals, &request)));
    let http = HttpService::build()
        .client_request_timeout(HEAD_DEADLINE)
        .client_disconnect_timeout(HEAD_DEADLINE)
        .keep_alive(KeepAlive::Disabled)
        .h1(fn_service(one))
        .tcp();
    let Ok(http) = http.new_service(()).await else {
        return tracing::error!("the probes cannot be served");
    };
    let http = Rc::new(http);
    let mut held = Held::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let http = Rc::clone(&http);
                // How a connection ends is its peer's business: whoever did not get an answer asks again.
                let served =
                    async move { drop(tokio::time::timeout(CONNECTION_DEADLINE, http.call(stream)).await) };
                held.hold(peer.ip(), tokio::task::spawn_local(served).abort_handle());
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to the probes could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn answer(vitals: &Vitals, request: &Request) -> Response<BoxBody> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return worded(StatusCode::METHOD_NOT_ALLOWED, "GET only".to_owned());
    }
    let (reasons, word) = match request.path() {
        "/healthz" => (vitals.unhealthy(), "unhealthy"),
        "/readyz" => (vitals.unready(), "unready"),
        _ => return worded(StatusCode::NOT_FOUND, "not found".to_owned()),
    };
    if reasons.is_empty() {
        return worded(StatusCode::OK, "ok".to_owned());
    }
    let told = if may_see_reasons(request.peer_addr(), request.uri().query()) {
        reasons.iter().map(|reason| printable(reason)).collect::<Vec<_>>().join("\n")
    } else {
        word.to_owned()
    };
    worded(StatusCode::SERVICE_UNAVAILABLE, told)
}

/// Reasons are told to who asks for them from this machine, also by `kubectl port-forward`.
fn may_see_reasons(peer: Option<SocketAddr>, query: Option<&str>) -> bool {
    let local = peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    local
        && query.unwrap_or_default().split('&').any(|word| word == "verbose" || word.starts_with("verbose="))
}

fn worded(status: StatusCode, text: String) -> Response<BoxBody> {
    Response::build(status)
        .insert_header(("content-type", "text/plain; charset=utf-8"))
        .body(text + "\n")
        .map_into_boxed_body()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_to_who_asks_for_them_on_this_machine_and_to_nobody_else() {
        let peer = |text: &str| Some(text.parse().unwrap());
        for local in ["127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(may_see_reasons(peer(local), Some("verbose")), "{local}");
            assert!(may_see_reasons(peer(local), Some("a=b&verbose=1")), "{local}");
            assert!(!may_see_reasons(peer(local), None) && !may_see_reasons(peer(local), Some("verboser")));
        }
        for other in ["10.0.0.1:1", "[fd00::1]:1", "[::ffff:10.0.0.1]:1"] {
            assert!(!may_see_reasons(peer(other), Some("verbose")), "{other}");
        }
        assert!(!may_see_reasons(None, Some("verbose")));
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests_of_progress {
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

#[cfg(test)]
mod given_up;
