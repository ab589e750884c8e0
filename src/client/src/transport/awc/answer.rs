//! Converts an answer of awc to types of the crate `http`. The end of the connection is an error here
//! ([`TransportError::Truncated`] if it is orderly); where it may end the body, `read_ahead.rs` hides it.
//!
//! A watch ends cleanly at most 20 s after a new TLS configuration is seen, and its reader watches again on a
//! new connection. Open watches look for one also while no request is sent. A renewed token does not end a
//! watch: the server checked the old one when the watch began.

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

pub(super) struct Answer(Response<Payload>);

impl Answer {
    pub(super) fn new<S>(answer: awc::ClientResponse<S>) -> Result<Self, TransportError>
    where
        S: Stream<Item = Result<Bytes, PayloadError>> + Unpin + 'static,
    {
        let head = head_of(answer.status().as_u16(), answer.headers())?;
        Ok(Self(head.map(|()| answer.boxed_local())))
    }

    pub(super) fn of(status: u16, headers: &HeaderMap, payload: Payload) -> Result<Self, TransportError> {
        Ok(Self(head_of(status, headers)?.map(|()| payload)))
    }

    pub(super) fn is_success(&self) -> bool {
        self.0.status().is_success()
    }

    /// For a refused watch, whose body says why: a server may encode it although the request accepts no
    /// encoding. A body that cannot be decoded becomes empty.
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

fn end_of(error: PayloadError) -> TransportError {
    let source = match error {
        PayloadError::Incomplete(None) => return TransportError::Truncated,
        PayloadError::Incomplete(Some(source)) | PayloadError::Io(source) => source,
        error => return TransportError::Malformed(error.to_string()),
    };
    // An orderly end has this kind, too.
    match source.kind() {
        io::ErrorKind::UnexpectedEof => TransportError::Truncated,
        _ => TransportError::Broken { during: "in the body", source },
    }
}

/// How often an open watch looks. The files are read once a minute for all watches.
const LOOK_EACH: Duration = Duration::from_secs(20);

pub(super) struct Renewal {
    identities: Arc<Identities>,
    connections: u64,
    look_at: Instant,
}

impl Renewal {
    /// `None` if the TLS configuration cannot change.
    pub(super) fn new(identities: &Arc<Identities>, connections: u64) -> Option<Self> {
        let look_at = Instant::now() + LOOK_EACH;
        identities.tls_can_change().then(|| Self { identities: Arc::clone(identities), connections, look_at })
    }

    /// Cancel safe.
    pub(super) async fn is_needed(&mut self) {
        loop {
            sleep_until(self.look_at).await;
            // A failed renewal is logged there; the old connection stays.
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
