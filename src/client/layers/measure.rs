//! A tracing span for each request.
//!
//! Answers "which requests were sent, how did they end, and how long did they take?" Invariants:
//! 1. The span `request` holds the verb and the resource as Kubernetes names them, the path without its query, and, once
//!    known, the status, the attempts, the Audit-ID of the answer and the milliseconds until its head. No other header
//!    and no byte of a body.
//! 2. It is a child of the span in which the caller was, on whatever thread the request is sent.
//! 3. With no subscriber that wants it (level debug) nothing is computed.
//!
//! The time until the head is measured, not until the end of the body: how fast a body is read is the reader's affair,
//! and a watch lasts. Read next: `retry.rs`, whose attempts are counted here.

use std::future::Future;

use bytes::Bytes;
use http::{Method, Request, Response};
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Instrument, Level, Span};

use super::super::audit;
use super::super::error::TransportError;
use super::super::transport::{Body, RequestKind};
use super::retry::Attempts;

type Answer = Result<Response<Body>, TransportError>;

/// The span in which the caller was when it gave the request away.
#[derive(Debug, Clone)]
pub(crate) struct CallersSpan(Span);

impl CallersSpan {
    /// Adds the current span, if there is one, to the request.
    pub(crate) fn add_to<T>(request: &mut Request<T>) {
        let span = Span::current();
        if !span.is_disabled() {
            request.extensions_mut().insert(Self(span));
        }
    }
}

/// The span of a request that begins now; disabled if nobody wants it.
pub(super) fn span(request: &Request<Bytes>, kind: RequestKind) -> Span {
    if !tracing::span_enabled!(Level::DEBUG) {
        return Span::none();
    }
    let _of_caller = request.extensions().get::<CallersSpan>().map(|CallersSpan(span)| span.enter());
    let path = request.uri().path();
    let named = Named::of(path);
    let verb = named.verb(request.method(), kind);
    tracing::debug_span!(
        "request",
        verb,
        resource = named.resource,
        path,
        status = Empty,
        attempts = Empty,
        audit_id = Empty,
        error = Empty,
        milliseconds = Empty,
    )
}

/// Records in `span` how the request ends.
pub(super) async fn send(span: Span, sending: impl Future<Output = Answer>) -> Answer {
    if span.is_disabled() {
        return sending.await;
    }
    let began = Instant::now();
    let answer = sending.instrument(span.clone()).await;
    match &answer {
        Ok(answer) => {
            span.record("status", answer.status().as_u16());
            let attempts = answer.extensions().get().map_or(1, |Attempts(attempts)| *attempts);
            span.record("attempts", attempts);
            if let Some(id) = audit::id_of(answer.headers()) {
                span.record("audit_id", display(id));
            }
        }
        Err(error) => {
            span.record("error", display(error));
        }
    }
    span.record("milliseconds", u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    span.in_scope(|| tracing::debug!("the head of the answer is there, or will not come"));
    answer
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    /// `pods`, `deployments.apps`, `pods/log`; empty if the path is of no resource.
    resource: String,
    /// Whether it names one object.
    is_object: bool,
}

impl Named {
    /// Paths are `/api/v1/...` and `/apis/<group>/<version>/...`, and then `[namespaces/<name>/]<plural>[/<name>[/<sub>]]`.
    fn of(path: &str) -> Self {
        let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _version, rest @ ..] => ("", rest),
            ["apis", group, _version, rest @ ..] => (*group, rest),
            _ => return Self { resource: String::new(), is_object: false },
        };
        let rest = match rest {
            // What follows a namespace is of a resource in it, unless it is a subresource of the namespace itself.
            ["namespaces", _, rest @ ..] if !rest.is_empty() && !matches!(rest, ["status" | "finalize"]) => {
                rest
            }
            rest => rest,
        };
        let Some((plural, rest)) = rest.split_first() else {
            return Self { resource: String::new(), is_object: false };
        };
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let sub = rest.get(1..).filter(|sub| !sub.is_empty()).map(|sub| format!("/{}", sub.join("/")));
        Self { resource: format!("{plural}{group}{}", sub.unwrap_or_default()), is_object: !rest.is_empty() }
    }

    /// The verb of a request for it, as Kubernetes' authorization and audit name it.
    fn verb(&self, method: &Method, kind: RequestKind) -> &'static str {
        match (method.as_str(), kind, self.is_object) {
            ("GET", RequestKind::Watch { .. }, _) => "watch",
            ("GET", ..) if self.resource.is_empty() => "get",
            ("GET", _, false) => "list",
            ("GET", _, true) => "get",
            ("POST", ..) => "create",
            ("PUT", ..) => "update",
            ("PATCH", ..) => "patch",
            ("DELETE", _, true) => "delete",
            ("DELETE", _, false) => "deletecollection",
            _ => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_request_is_named_by_its_verb_and_resource() {
        let unary = RequestKind::Unary;
        let watch = RequestKind::Watch { total: Duration::from_secs(1) };
        for (method, path, kind, verb, resource) in [
            (Method::GET, "/api/v1/pods", unary, "list", "pods"),
            (Method::GET, "/api/v1/pods", watch, "watch", "pods"),
            (Method::GET, "/api/v1/namespaces/a/pods/b", unary, "get", "pods"),
            (Method::GET, "/api/v1/namespaces/a/pods/b/log", unary, "get", "pods/log"),
            (Method::POST, "/api/v1/namespaces/a/pods/b/eviction", unary, "create", "pods/eviction"),
            (Method::PUT, "/apis/apps/v1/namespaces/a/deployments/b", unary, "update", "deployments.apps"),
            (Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/b", unary, "patch", "deployments.apps"),
            (Method::DELETE, "/api/v1/namespaces/a/pods", unary, "deletecollection", "pods"),
            (Method::DELETE, "/api/v1/nodes/a", unary, "delete", "nodes"),
            (Method::GET, "/api/v1/namespaces", unary, "list", "namespaces"),
            (Method::GET, "/api/v1/namespaces/a", unary, "get", "namespaces"),
            (Method::PUT, "/api/v1/namespaces/a/finalize", unary, "update", "namespaces/finalize"),
            (Method::GET, "/version", unary, "get", ""),
            (Method::GET, "/apis/apps/v1", unary, "get", ""),
        ] {
            let named = Named::of(path);
            assert_eq!((named.verb(&method, kind), &*named.resource), (verb, resource), "{method} {path}");
        }
    }
}
