//! What the probes answer about a runtime and its informers.
//!
//! 1. Healthy: no arbiter is stuck, no informer leaves its work undone, every part runs or is restarted. A restart of the process
//!    repairs each of these, but not an unreachable cluster.
//! 2. Ready: every running informer has synced once, and none was given up. An unreachable cluster leaves it ready: the cache can
//!    still be read.

use std::net::SocketAddr;
use std::time::Duration;

use actix_http::body::BoxBody;
use actix_http::{Method, Request, Response, StatusCode};
use informer_core::words::Brief;
use informer_operator::report::Reporting;

use super::Probed;
use crate::printable::printable;
use crate::runtime::{Runtime, StuckKind};
use crate::status::{InformerStatus, SavedStatus};

/// Pulses come each second.
const STUCK_AFTER: Duration = Duration::from_secs(30);

impl Probed for Runtime {
    fn unhealthy(&self) -> Vec<String> {
        let of_informer = |status: InformerStatus| {
            let name = format!("informer {}", status.name);
            [stalled(&name, &status), given_up(&name, &status)].into_iter().flatten()
        };
        stuck_threads(self).into_iter().chain(running(self).flat_map(of_informer)).collect()
    }

    fn unready(&self) -> Vec<String> {
        let of_informer = |status: InformerStatus| {
            let name = format!("informer {}", status.name);
            [unsynced(&name, &status), given_up(&name, &status)].into_iter().flatten()
        };
        running(self).flat_map(of_informer).collect()
    }

    fn details(&self) -> Vec<String> {
        let now = self.now();
        let informers =
            running(self).map(|status| detail(&format!("informer {}", status.name), &status, now));
        // Shows reconciles that hang; not in `unhealthy`, since a long reconcile may be intended.
        let controllers = self.report().controllers.into_iter().map(|controller| controller.to_string());
        informers.chain(controllers).collect()
    }
}

/// In a line: each of many namespaces may have a hint.
const MOST_HINTS: usize = 3;

/// How the informer of a kind is doing: its state, its objects and their age, and what is not well.
pub fn detail(kind: &str, status: &InformerStatus, now: Duration) -> String {
    let age = match status.age(now) {
        Some(age) => format!("heard {} ago", Brief(age)),
        None => "nothing heard yet".to_owned(),
    };
    let mut line = format!("{kind}: {}, {} objects, {age}", status.state(), status.objects);
    if let Some(stale) = status.stale(now) {
        line += &format!("; {stale}");
    } else if let Some(error) = status.last_error().filter(|_| status.state().error().is_none()) {
        line += &format!("; its last error, overcome: {}", error.with_causes());
    }
    for hint in status.sources.iter().filter_map(|source| source.hint.as_ref()).take(MOST_HINTS) {
        line += &format!("; {hint}");
    }
    if let Some(saved) = &status.saved {
        line += &format!("; {saved}");
    }
    line
}

fn running(runtime: &Runtime) -> impl Iterator<Item = InformerStatus> {
    let informers = runtime.report().informers.into_iter();
    informers.map(|informer| informer.status).filter(|status| !status.stopped)
}

/// The threads of a runtime that do not respond.
pub fn stuck_threads(runtime: &Runtime) -> Vec<String> {
    let stuck = runtime.arbiters().into_iter().filter(|arbiter| arbiter.since_pulse > STUCK_AFTER);
    let text = stuck.map(|arbiter| {
        let running = arbiter.running.map(|what| format!(", busy with {what}")).unwrap_or_default();
        let seconds = arbiter.since_pulse.as_secs();
        format!("thread {} has not responded for {seconds} s{running}", arbiter.name)
    });
    text.collect()
}

/// Why a kind is not healthy whose informer runs but makes no progress with its work.
pub fn stalled(kind: &str, status: &InformerStatus) -> Option<String> {
    let stuck = status.stuck.as_ref().filter(|stuck| stuck.kind == StuckKind::NoProgress)?;
    let actor = stuck.actor.as_deref().unwrap_or(&stuck.arbiter);
    Some(format!("{kind} is not up to date: {actor} makes no progress although there is work"))
}

/// Why a part of this kind's informer is not restarted any more.
pub fn given_up(kind: &str, status: &InformerStatus) -> Option<String> {
    status.failed.as_ref().map(|why| format!("{kind} is not restarted any more: {why}"))
}

fn unsynced(kind: &str, status: &InformerStatus) -> Option<String> {
    let error = status.last_error().map(|error| format!(": {error}")).unwrap_or_default();
    let saved = status.saved.as_ref().and_then(SavedStatus::catching_up);
    let saved = saved.map(|why| format!("; {why}")).unwrap_or_default();
    (!status.synced).then(|| format!("{kind} is not synced, {}{error}{saved}", status.state()))
}

pub(super) fn is_read(request: &Request) -> bool {
    request.method() == Method::GET || request.method() == Method::HEAD
}

pub(super) fn get_only() -> Response<BoxBody> {
    plain_text(StatusCode::METHOD_NOT_ALLOWED, "GET only".to_owned())
}

pub(super) fn answer(probed: &impl Probed, request: &Request) -> Response<BoxBody> {
    if !is_read(request) {
        return get_only();
    }
    let (reasons, word) = match request.path() {
        "/livez" | "/healthz" => (probed.unhealthy(), "unhealthy"),
        "/readyz" => (probed.unready(), "unready"),
        _ => return plain_text(StatusCode::NOT_FOUND, "not found".to_owned()),
    };
    let (code, word) = match reasons.is_empty() {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, word),
    };
    if !may_see_reasons(is_of_this_machine(request), request.uri().query()) {
        return plain_text(code, word.to_owned());
    }
    let first = if reasons.is_empty() { vec![word.to_owned()] } else { reasons };
    let details = if request.path() == "/readyz" { probed.details() } else { Vec::new() };
    let lines = first.iter().chain(&details).map(|line| printable(line));
    plain_text(code, lines.collect::<Vec<_>>().join("\n"))
}

/// The local address of a connection.
pub(super) struct CameTo(pub(super) Option<SocketAddr>);

/// Also through `kubectl port-forward`; not through a proxy in the same pod that connects to the address of the pod.
pub(super) fn is_of_this_machine(request: &Request) -> bool {
    are_loopback(request.peer_addr(), request.conn_data::<CameTo>().and_then(|CameTo(at)| *at))
}

fn are_loopback(peer: Option<SocketAddr>, at: Option<SocketAddr>) -> bool {
    [peer, at].iter().all(|address| address.is_some_and(|one| one.ip().to_canonical().is_loopback()))
}

fn may_see_reasons(is_local: bool, query: Option<&str>) -> bool {
    let is_verbose = |parameter: &str| parameter == "verbose" || parameter.starts_with("verbose=");
    is_local && query.unwrap_or_default().split('&').any(is_verbose)
}

pub(super) fn plain_text(status: StatusCode, text: String) -> Response<BoxBody> {
    Response::build(status)
        .insert_header(("content-type", "text/plain; charset=utf-8"))
        .body(text + "\n")
        .map_into_boxed_body()
}

#[cfg(test)]
mod answer_tests {
    use super::*;

    #[test]
    fn reasons_are_returned_only_to_clients_on_this_machine_that_ask_for_them() {
        for query in ["verbose", "a=b&verbose=1"] {
            assert!(may_see_reasons(true, Some(query)) && !may_see_reasons(false, Some(query)), "{query}");
        }
        assert!(!may_see_reasons(true, None) && !may_see_reasons(true, Some("verboser")));
    }

    #[test]
    fn a_client_is_on_this_machine_if_both_ends_are_loopback_addresses() {
        let are = |peer: &str, at: &str| are_loopback(Some(peer.parse().unwrap()), Some(at.parse().unwrap()));
        for local in ["127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(are(local, "127.0.0.1:80") && are(local, "[::1]:80"), "{local}");
            assert!(!are(local, "10.0.0.7:80"), "a sidecar has come to the address of the pod");
        }
        for other in ["10.0.0.1:1", "[fd00::1]:1", "[::ffff:10.0.0.1]:1"] {
            assert!(!are(other, "127.0.0.1:80"), "{other}");
        }
        assert!(!are_loopback(None, Some("127.0.0.1:80".parse().unwrap())) && !are_loopback(None, None));
    }
}
