//! Converts an answer of awc to types of the crate `http`. The end of the connection is an error here
//! ([`TransportError::Truncated`] if it is orderly); where it may end the body, `read_ahead.rs` hides it.

use std::io;

use actix_http::header::HeaderMap;
use awc::error::PayloadError;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::super::{Body, TransportError};

pub(super) fn converted<S>(answer: awc::ClientResponse<S>) -> Result<Response<Body>, TransportError>
where
    S: Stream<Item = Result<Bytes, PayloadError>> + Unpin + 'static,
{
    let head = head_of(answer.status().as_u16(), answer.headers())?;
    Ok(head.map(|()| body_of(answer)))
}

pub(super) fn head_of(status: u16, headers: &HeaderMap) -> Result<Response<()>, TransportError> {
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

/// Ends with the first error.
pub(super) fn body_of(payload: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin + 'static) -> Body {
    let body = stream::unfold(Some(payload), |payload| async move {
        let mut payload = payload?;
        match payload.next().await? {
            Ok(chunk) => Some((Ok(chunk), Some(payload))),
            Err(error) => Some((Err(end_of(error)), None)),
        }
    });
    body.boxed_local()
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
