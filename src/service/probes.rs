//! Serves `/healthz` and `/readyz` over HTTP.
//!
//! Answers two questions of a kubelet: "would a restart help?" and "are the caches filled?". It changes nothing.
//! Invariants:
//! 1. Healthy: no arbiter is stuck, no informer leaves its work undone, and every part still runs or is restarted. A
//!    restart of the process repairs each of these. An unreachable cluster does not make the service unhealthy.
//! 2. Ready: every kind has synced once, no informer or subscription has ended, and no drain has begun. A cluster that
//!    becomes unreachable later leaves the service ready: the cache can still be read.
//! 3. An answer is one word. The reasons quote servers and name kinds, so they are returned only with `?verbose` and
//!    only to clients on this machine: a port that is open to the network shows nothing to strangers.
//! 4. Clients that hold connections open cannot block the probes: a request must be sent within seconds, a connection
//!    serves one request, and a peer that opens too many connections loses its oldest one.
//!
//! Effects: one thread, at most 64 connections. Read next: `probes/connections.rs`, which connection is closed.

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
use super::follow::WatchedKindHandle;
use super::lines::state_name;
use super::printable::printable;
use crate::runtime::{Runtime, StuckKind};
use crate::status::InformerStatus;
use connections::Connections;

mod connections;

/// An arbiter without a pulse for longer than this is stuck: pulses come each second.
const STUCK_AFTER: Duration = Duration::from_secs(30);
/// How long the head of a request may take: a kubelet sends it at once, and waits one second by default.
const HEAD_DEADLINE: Duration = Duration::from_secs(2);
/// How long a connection may last.
const CONNECTION_DEADLINE: Duration = Duration::from_secs(5);
/// The pause after an accept that failed because the system has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the probes report on.
pub(super) struct ProbeState {
    pub(super) kinds: Vec<Arc<dyn WatchedKindHandle>>,
    pub(super) runtime: Runtime,
    pub(super) draining: AtomicBool,
}

impl ProbeState {
    /// Why the service is not healthy; empty if it is.
    fn unhealthy(&self) -> Vec<String> {
        let stuck = self.runtime.arbiters().into_iter().filter(|arbiter| arbiter.since_pulse > STUCK_AFTER);
        let stuck = stuck.map(|arbiter| {
            let running = arbiter.running.map(|what| format!(", busy with {what}")).unwrap_or_default();
            let seconds = arbiter.since_pulse.as_secs();
            format!("thread {} has not responded for {seconds} s{running}", arbiter.name)
        });
        let stalled = self.kinds.iter().filter_map(|kind| stalled(kind.name(), &kind.status().informer));
        stuck.chain(stalled).chain(self.ended()).collect()
    }

    /// Why the service is not ready; empty if it is.
    fn unready(&self) -> Vec<String> {
        let draining = self.draining.load(Ordering::Relaxed).then(|| "draining".to_owned());
        let unsynced = self.kinds.iter().filter_map(|kind| {
            let status = kind.status().informer;
            let error = status.last_error().map(|error| format!(": {error}")).unwrap_or_default();
            let state = state_name(&status.state());
            (!status.synced).then(|| format!("{} is not synced, {state}{error}", kind.name()))
        });
        draining.into_iter().chain(unsynced).chain(self.ended()).collect()
    }

    /// The kinds of which a part is no longer restarted, or whose subscription has ended, and why.
    fn ended(&self) -> impl Iterator<Item = String> {
        self.kinds.iter().filter_map(|kind| {
            let failed = kind.status().informer.failed;
            let failed = failed.map(|why| format!("{} is not restarted any more: {why}", kind.name()));
            let end = || kind.subscription_end();
            failed.or_else(|| Some(format!("{} is not printed any more: {}", kind.name(), end()?)))
        })
    }
}

/// Why a kind is not healthy whose informer runs but makes no progress with its work.
fn stalled(kind: &str, status: &InformerStatus) -> Option<String> {
    let stuck = status.stuck.as_ref().filter(|stuck| stuck.kind == StuckKind::NoProgress)?;
    let actor = stuck.actor.as_deref().unwrap_or(&stuck.arbiter);
    Some(format!("{kind} is not up to date: {actor} makes no progress although there is work"))
}

/// Binds the address, before anything else is started.
pub(super) fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Probes { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Serves the probes until it is dropped.
#[derive(Debug)]
pub(super) struct Probes {
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<Infallible>,
}

/// Serves the probes on this socket. They have a thread of their own: they also answer while the service is blocked.
pub(super) fn serve(
    (listener, address): (TcpListener, SocketAddr),
    state: Arc<ProbeState>,
) -> Result<Probes, Error> {
    let failed = |source| Error::Probes { address, source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (stop, stopped) = oneshot::channel();
    let serving = move || {
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            tokio::select! {
                biased;
                _ = stopped => {}
                () = answer_all(listener, state) => {}
            }
        });
    };
    std::thread::Builder::new().name("informerd-probes".to_owned()).spawn(serving).map_err(failed)?;
    Ok(Probes { _stop: stop })
}

async fn answer_all(listener: TcpListener, state: Arc<ProbeState>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the probes cannot be served"),
    };
    let one = move |request: Request| ready(Ok::<_, Infallible>(answer(&state, &request)));
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
    let mut connections = Connections::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let http = Rc::clone(&http);
                // Errors of a connection are ignored: a peer without an answer sends its request again.
                let served =
                    async move { drop(tokio::time::timeout(CONNECTION_DEADLINE, http.call(stream)).await) };
                connections.add(peer.ip(), tokio::task::spawn_local(served).abort_handle());
            }
            Err(error) => {
                tracing::debug!(%error, pause = ?ACCEPT_PAUSE,
                    "a connection to the probes could not be accepted; trying again after a pause");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn answer(state: &ProbeState, request: &Request) -> Response<BoxBody> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain_text(StatusCode::METHOD_NOT_ALLOWED, "GET only".to_owned());
    }
    let (reasons, word) = match request.path() {
        "/healthz" => (state.unhealthy(), "unhealthy"),
        "/readyz" => (state.unready(), "unready"),
        _ => return plain_text(StatusCode::NOT_FOUND, "not found".to_owned()),
    };
    if reasons.is_empty() {
        return plain_text(StatusCode::OK, "ok".to_owned());
    }
    let text = if may_see_reasons(request.peer_addr(), request.uri().query()) {
        reasons.iter().map(|reason| printable(reason)).collect::<Vec<_>>().join("\n")
    } else {
        word.to_owned()
    };
    plain_text(StatusCode::SERVICE_UNAVAILABLE, text)
}

/// Reasons are returned to a client on this machine that asks for them, also through `kubectl port-forward`.
fn may_see_reasons(peer: Option<SocketAddr>, query: Option<&str>) -> bool {
    let is_local = peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    let is_verbose = |parameter: &str| parameter == "verbose" || parameter.starts_with("verbose=");
    is_local && query.unwrap_or_default().split('&').any(is_verbose)
}

fn plain_text(status: StatusCode, text: String) -> Response<BoxBody> {
    Response::build(status)
        .insert_header(("content-type", "text/plain; charset=utf-8"))
        .body(text + "\n")
        .map_into_boxed_body()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_returned_only_to_clients_on_this_machine_that_ask_for_them() {
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
    use crate::informer::Informer;
    use crate::runtime::Runtime;
    use crate::testing::Server;
    use informer_actors::testing::{Faults, Site};

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
