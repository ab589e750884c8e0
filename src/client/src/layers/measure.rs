//! A tracing span for each request: a child of the caller's span, on any thread.
//!
//! It holds verb, resource, path without query, status, attempts, Audit-ID and milliseconds until the head;
//! no other header and no byte of a body. The time of the body depends on the reader and is not measured.
//! Without a subscriber at level debug nothing is computed.

use std::future::Future;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Instrument, Level, Span};

use super::super::error::TransportError;
use super::super::request::{RequestKind, RequestTarget, audit_id};
use super::super::transport::Body;
use super::retry::Attempts;

type Answer = Result<Response<Body>, TransportError>;

#[derive(Debug, Clone)]
pub(crate) struct CallersSpan(Span);

impl CallersSpan {
    pub(crate) fn add_to<T>(request: &mut Request<T>) {
        let span = Span::current();
        if !span.is_disabled() {
            request.extensions_mut().insert(Self(span));
        }
    }
}

pub(super) fn span(request: &Request<Bytes>, kind: RequestKind) -> Span {
    if !tracing::span_enabled!(target: "actix_informer::client", Level::DEBUG) {
        return Span::none();
    }
    let _of_caller = request.extensions().get::<CallersSpan>().map(|CallersSpan(span)| span.enter());
    let path = request.uri().path();
    let named = RequestTarget::of(path);
    let verb = named.verb(request.method(), kind);
    tracing::debug_span!(
        target: "actix_informer::client",
        "request",
        verb,
        resource = named.resource(),
        path,
        status = Empty,
        attempts = Empty,
        audit_id = Empty,
        error = Empty,
        milliseconds = Empty,
    )
}

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
            if let Some(id) = audit_id(answer.headers()) {
                span.record("audit_id", display(id));
            }
        }
        Err(error) => {
            span.record("error", display(error));
        }
    }
    span.record("milliseconds", u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    span.in_scope(|| tracing::debug!(target: "actix_informer::client", "the head of the answer is there, or will not come"));
    answer
}
