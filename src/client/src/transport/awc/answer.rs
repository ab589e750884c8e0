//! Converts an answer of awc: its head into types of the crate `http`, its body into a stream that ends when it is whole.
//!
//! Answers "when does a body end, and how?" It does not look at the content. A watch also ends when its connection is
//! outdated, and the next one has a connection with the newest TLS configuration. A renewed token does not end a watch: the
//! server has checked the old one when the watch began. Invariants:
//! 1. The end of the connection is an error here, [`TransportError::Truncated`] if the peer closed in order: where it may
//!    be the end of the body, `read_ahead.rs` makes it one.
//! 2. Nothing comes after an error.
//! 3. A watch ends at most 20 s after a renewal of the TLS configuration has been seen here, and cleanly: its reader asks
//!    for a new one from the last version, as after any end.
//! 4. Certificate files are looked at also while no request is sent.
//!
//! Read next: `socket.rs`, which makes the end of a connection visible; `../../identity.rs`, which renews.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_http::ContentEncoding;
use actix_http::encoding::Decoder;
use actix_http::header::HeaderMap;
use awc::error::PayloadError;
use bytes::Bytes;
use futures_util::stream::{self, LocalBoxStream};
use futures_util::{Stream, StreamExt};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use tokio::time::{Instant, sleep_until};

use super::super::{Body, TransportError};
use crate::identity::Identities;

type Payload = LocalBoxStream<'static, Result<Bytes, PayloadError>>;

/// Head and body as awc gives them.
pub(super) struct Answer(Response<Payload>);

impl Answer {
    pub(super) fn new<S>(answer: awc::ClientResponse<S>) -> Result<Self, TransportError>
    where
        S: Stream<Item = Result<Bytes, PayloadError>> + Unpin + 'static,
    {
        let head = head_of(answer.status().as_u16(), answer.headers())?;
        Ok(Self(head.map(|()| answer.boxed_local())))
    }

    /// The answer of its parts.
    pub(super) fn of(status: u16, headers: &HeaderMap, payload: Payload) -> Result<Self, TransportError> {
        Ok(Self(head_of(status, headers)?.map(|()| payload)))
    }

    pub(super) fn is_success(&self) -> bool {
        self.0.status().is_success()
    }

    /// Decodes the body of a refused watch, which a server encoded although the request accepts no encoding: it says why
    /// the watch was refused. A body that cannot be decoded here becomes empty.
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

    /// `renewal` ends the body cleanly when its connection is outdated.
    pub(super) fn with_body(self, renewal: Option<Renewal>) -> Response<Body> {
        self.0.map(|payload| {
            let payload = stream::unfold(Some(payload), move |payload| async move {
                let mut payload = payload?;
                match payload.next().await? {
                    Ok(chunk) => Some((Ok(chunk), Some(payload))),
                    Err(error) => Some((Err(end_of(error)), None)),
                }
            });
            match renewal {
                None => payload.boxed_local(),
                Some(mut renewal) => {
                    payload.take_until(async move { renewal.is_needed().await }).boxed_local()
                }
            }
        })
    }
}

/// The head of an answer in the types of the crate `http`.
fn head_of(status: u16, headers: &HeaderMap) -> Result<Response<()>, TransportError> {
    let malformed = |what: &dyn std::fmt::Display| TransportError::Malformed(what.to_string());
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::from_u16(status).map_err(|error| malformed(&error))?;
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).map_err(|error| malformed(&error))?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|error| malformed(&error))?;
        head.headers_mut().append(name, value);
    }
    Ok(head)
}

/// With which error an error of awc ends the body.
fn end_of(error: PayloadError) -> TransportError {
    let source = match error {
        PayloadError::Incomplete(None) => return TransportError::Truncated,
        PayloadError::Incomplete(Some(source)) | PayloadError::Io(source) => source,
        error => return TransportError::Malformed(error.to_string()),
    };
    // An orderly end is one of these, too.
    match source.kind() {
        io::ErrorKind::UnexpectedEof => TransportError::Truncated,
        _ => TransportError::Broken { during: "in the body", source },
    }
}

/// How often an open watch looks: the files themselves are read once a minute for all watches together.
const LOOK_EACH: Duration = Duration::from_secs(20);

/// The interest of one open watch in renewals.
pub(super) struct Renewal {
    identities: Arc<Identities>,
    connections: u64,
    look_at: Instant,
}

impl Renewal {
    /// For a watch on a connection of the TLS configuration with this count; nothing if it cannot change.
    pub(super) fn new(identities: &Arc<Identities>, connections: u64) -> Option<Self> {
        let look_at = Instant::now() + LOOK_EACH;
        identities.tls_can_change().then(|| Self { identities: Arc::clone(identities), connections, look_at })
    }

    /// Resolves when the connection is outdated. A caller that stops waiting loses nothing.
    pub(super) async fn is_needed(&mut self) {
        loop {
            sleep_until(self.look_at).await;
            // A renewal that fails is logged there; the old connection stays.
            let _ = self.identities.current().await;
            if self.identities.connections() != self.connections {
                return;
            }
            self.look_at = Instant::now() + LOOK_EACH;
        }
    }
}

#[cfg(test)]
mod tests;
