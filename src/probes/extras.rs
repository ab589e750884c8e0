//! What is served beside the probes: metrics, and the page.
//!
//! 1. Metrics go to everybody who can connect, the page only to clients on this machine. What comes through a sidecar is not from
//!    this machine, unless the sidecar connects to a loopback address.
//! 2. The page is answered only under a name of this machine, and not to requests of other web pages: a page whose own name
//!    resolves to this address cannot read it.
//! 3. `/events` sends the state each second as server-sent events, until its connection ends at its time limit; a browser then
//!    reconnects.

use std::time::Duration;

use actix_http::body::{BodyStream, BoxBody};
use actix_http::{HttpMessage as _, Method, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::stream;

use super::reasons::{get_only, is_of_this_machine, is_read, plain_text};
use super::{Extras, Shown, Written};

/// Between two events of the page.
const EACH: Duration = Duration::from_secs(1);
/// The page's.
const PATHS: [&str; 5] = ["/", "/state", "/events", "/objects", "/path"];
/// No script, style or picture from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub(super) fn answer(extras: &Extras, request: &Request) -> Option<Response<BoxBody>> {
    if let Some(write) = extras.metrics.as_ref().filter(|_| request.path() == "/metrics") {
        return Some(if is_read(request) { metrics(write, request) } else { get_only() });
    }
    let shown = extras.page.as_ref().filter(|_| PATHS.contains(&request.path()))?;
    // Only a POST changes what is followed.
    let changes = request.method() == Method::POST && request.path() == "/path";
    if !is_read(request) && !changes {
        return Some(get_only());
    }
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let is_own = header("sec-fetch-site").is_none_or(|from| ["same-origin", "none"].contains(&from));
    if !is_of_this_machine(request) || !names_this_machine(header("host")) || !is_own {
        let text = "the page is for this machine: use kubectl port-forward, and http://127.0.0.1".to_owned();
        return Some(plain_text(StatusCode::FORBIDDEN, text));
    }
    if request.path() == "/events" {
        return Some(events(Shown::clone(shown)));
    }
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let (kind, body) = shown(target, changes)?;
    let answer = Response::build(StatusCode::OK)
        .insert_header(("content-type", kind))
        .insert_header(("cache-control", "no-store"))
        .insert_header(("content-security-policy", POLICY))
        .insert_header(("x-content-type-options", "nosniff"))
        .body(body);
    Some(answer.map_into_boxed_body())
}

fn metrics(write: &Written, request: &Request) -> Response<BoxBody> {
    let accept = request.headers().get("accept").and_then(|accept| accept.to_str().ok());
    match write(accept) {
        Ok((kind, text)) => Response::build(StatusCode::OK)
            .insert_header(("content-type", kind))
            .body(text)
            .map_into_boxed_body(),
        Err(error) => {
            tracing::error!(target: "actix_informer::probes", %error, "a collector of the registry cannot write its metrics");
            plain_text(StatusCode::INTERNAL_SERVER_ERROR, "a collector cannot write its metrics".to_owned())
        }
    }
}

fn events(shown: Shown) -> Response<BoxBody> {
    let events = stream::unfold((shown, false), |(shown, has_begun)| async move {
        if has_begun {
            tokio::time::sleep(EACH).await;
        }
        let (_, state) = shown("/state", false)?;
        let first = if has_begun { "" } else { "retry: 200\n" };
        let event = Bytes::from(format!("{first}data: {state}\n\n"));
        Some((Ok::<_, std::convert::Infallible>(event), (shown, true)))
    });
    Response::build(StatusCode::OK)
        .insert_header(("content-type", "text/event-stream"))
        .insert_header(("cache-control", "no-store"))
        .body(BodyStream::new(Box::pin(events)))
        .map_into_boxed_body()
}

/// A loopback address or `localhost`, with any port.
fn names_this_machine(host: Option<&str>) -> bool {
    let Some(host) = host else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered_with_the_page() {
        for name in ["localhost", "localhost:8081", "127.0.0.1:80", "127.1.2.3", "[::1]:8081", "[::1]"] {
            assert!(names_this_machine(Some(name)), "{name}");
        }
        let others = ["example.org", "localhost.example.org", "10.0.0.1:80", "[fd00::1]:80", ""];
        assert!(others.into_iter().all(|name| !names_this_machine(Some(name))));
        assert!(!names_this_machine(None) && !names_this_machine(Some("127.0.0.1.example.org")));
    }
}
