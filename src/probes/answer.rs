//! The answer to one request of a probe.
//!
//! Answers "which code and which text does this client get?": 200 and `ok`, or 503 and one word. The reasons, and how
//! everything is doing, are for clients on this machine that ask for them. Read next: `probes.rs`, which serves.

use std::net::SocketAddr;

use actix_http::body::BoxBody;
use actix_http::{Method, Request, Response, StatusCode};

use super::Probed;
use crate::printable::printable;

pub(super) fn answer(probed: &impl Probed, request: &Request) -> Response<BoxBody> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain_text(StatusCode::METHOD_NOT_ALLOWED, "GET only".to_owned());
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
    if !may_see_reasons(request.peer_addr(), request.uri().query()) {
        return plain_text(code, word.to_owned());
    }
    let first = if reasons.is_empty() { vec![word.to_owned()] } else { reasons };
    let details = if request.path() == "/readyz" { probed.details() } else { Vec::new() };
    let lines = first.iter().chain(&details).map(|line| printable(line));
    plain_text(code, lines.collect::<Vec<_>>().join("\n"))
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
