//! An answer on its way out of awc: its head in our types, its body with our deadlines.
//!
//! Answers "when does a body end, and how?" It reads no content. Invariants:
//! 1. The end of a connection is the end of a body only where HTTP/1.0 says so: no length, no chunks, and a peer that
//!    closed in order. Everything else that stops early is [`TransportError::Truncated`] or worse.
//! 2. A deadline counts only while the reader waits: one who reads slowly is not cut off by the idle deadline, and
//!    what has arrived before the total deadline is delivered.
//!
//! Read next: `socket.rs`, which makes the end of a connection visible.

use std::io;
use std::time::Duration;

use actix_http::ContentEncoding;
use actix_http::encoding::Decoder;
use awc::error::PayloadError;
use bytes::Bytes;
use futures_util::stream::{self, LocalBoxStream};
use futures_util::{Stream, StreamExt};
use http::{HeaderName, HeaderValue, Response, header};
use tokio::time::{Instant, timeout, timeout_at};

use super::super::{Body, SentAuthorization, TransportError};
use super::socket::is_orderly_end;

type Payload = LocalBoxStream<'static, Result<Bytes, PayloadError>>;

/// How long a body may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// Between two reads.
    pub(super) idle: Option<Duration>,
    /// For all of it, and how long that was.
    pub(super) ends: Option<(Instant, Duration)>,
}

/// Head and body, not yet bounded.
pub(super) struct Answer(Response<Payload>);

impl Answer {
    /// `authorization` is what was sent with the request.
    pub(super) fn new<S>(
        answer: awc::ClientResponse<S>,
        authorization: Option<&HeaderValue>,
    ) -> Result<Self, TransportError>
    where
        S: Stream<Item = Result<Bytes, PayloadError>> + Unpin + 'static,
    {
        let malformed = |what: &dyn std::fmt::Display| TransportError::Malformed(what.to_string());
        let mut head = Response::new(());
        *head.status_mut() =
            http::StatusCode::from_u16(answer.status().as_u16()).map_err(|error| malformed(&error))?;
        for (name, value) in answer.headers() {
            let name = HeaderName::from_bytes(name.as_str().as_bytes()).map_err(|error| malformed(&error))?;
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|error| malformed(&error))?;
            head.headers_mut().append(name, value);
        }
        if let Some(sent) = authorization.filter(|_| !head.status().is_success()) {
            let mut sent = sent.clone();
            sent.set_sensitive(true);
            head.extensions_mut().insert(SentAuthorization(sent));
        }
        Ok(Self(head.map(|()| answer.boxed_local())))
    }

    pub(super) fn is_success(&self) -> bool {
        self.0.status().is_success()
    }

    /// With its body decoded, although none but plain text was accepted: it is a refusal, and says why. What cannot be
    /// decoded here is left out.
    pub(super) fn decoded(self) -> Self {
        let encoding = self.0.headers().get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
        let encoding = encoding.and_then(|text| text.parse().ok());
        Self(self.0.map(|payload| match encoding {
            Some(encoding @ (ContentEncoding::Gzip | ContentEncoding::Deflate)) => {
                Decoder::new(payload, encoding).boxed_local()
            }
            _ => stream::empty().boxed_local(),
        }))
    }

    pub(super) fn is_encoded(&self) -> bool {
        let encoding = self.0.headers().get(header::CONTENT_ENCODING);
        encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
    }

    pub(super) fn within(self, deadlines: Deadlines) -> Response<Body> {
        let headers = self.0.headers();
        let ends_by_itself =
            headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING);
        self.0.map(|payload| {
            stream::unfold(Some(payload), move |payload| async move {
                let mut payload = payload?;
                match next(&mut payload, deadlines).await {
                    Ok(Ok(chunk)) => Some((Ok(chunk), Some(payload))),
                    Ok(Err(error)) => failed(error, ends_by_itself).map(|error| (Err(error), None)),
                    Err(End::Clean) => None,
                    Err(End::Late(error)) => Some((Err(error), None)),
                }
            })
            .boxed_local()
        })
    }
}

enum End {
    Clean,
    Late(TransportError),
}

async fn next(payload: &mut Payload, deadlines: Deadlines) -> Result<Result<Bytes, PayloadError>, End> {
    let read = async {
        match deadlines.idle {
            None => Ok(payload.next().await),
            Some(idle) => timeout(idle, payload.next())
                .await
                .map_err(|_| End::Late(TransportError::Timeout { what: "a read of the body", after: idle })),
        }
    };
    let read = match deadlines.ends {
        None => read.await,
        Some((at, total)) => timeout_at(at, read)
            .await
            .unwrap_or(Err(End::Late(TransportError::Timeout { what: "the whole watch", after: total }))),
    };
    read?.ok_or(End::Clean)
}

/// The error that ends a body, or `None` where the end of the connection is its end.
fn failed(error: PayloadError, ends_by_itself: bool) -> Option<TransportError> {
    let source = match error {
        PayloadError::Incomplete(None) => return Some(TransportError::Truncated),
        PayloadError::Incomplete(Some(source)) | PayloadError::Io(source) => source,
        error => return Some(TransportError::Malformed(error.to_string())),
    };
    if is_orderly_end(&source) {
        return ends_by_itself.then_some(TransportError::Truncated);
    }
    Some(match source.kind() {
        io::ErrorKind::UnexpectedEof => TransportError::Truncated,
        _ => TransportError::Broken { during: "in the body", source },
    })
}
