//! What transports that make their own connections do with an answer.
//!
//! A watch ends cleanly at most 20 s after a new TLS configuration is seen; its reader watches again on a new connection. Open
//! watches look for one also while no request is sent. A renewed token does not end a watch: the server checked the old one when
//! the watch began.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_http::ContentEncoding;
use actix_http::encoding::Decoder;
use actix_http::error::PayloadError;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{HeaderMap, HeaderValue, Response, header};
use tokio::time::{Instant, sleep_until};

use super::Body;
use crate::connection_settings::ConnectionSettings;
use crate::error::TransportError;
use crate::identity::{Identities, Identity};
use crate::request::RequestKind;

/// Unless the request names an encoding.
pub(super) fn accepted(settings: &ConnectionSettings, kind: RequestKind) -> HeaderValue {
    HeaderValue::from_static(match kind {
        RequestKind::Unary if settings.accepts_compression => "gzip",
        _ => "identity",
    })
}

/// Refuses an encoded stream, and ends a watch whose connection is out of date.
pub(super) fn of_stream(
    mut answer: Response<Body>,
    kind: RequestKind,
    settings: &ConnectionSettings,
    identity: &Identity,
) -> Result<Response<Body>, TransportError> {
    if encoding_of(answer.headers()).is_some() {
        if answer.status().is_success() {
            let why = "the server encoded a stream although the request accepts no encoding";
            return Err(TransportError::Malformed(why.to_owned()));
        }
        answer = decoded(answer);
    }
    let is_watch = matches!(kind, RequestKind::Watch { .. });
    let renewal = is_watch.then(|| Renewal::new(&settings.identities, identity.connections)).flatten();
    Ok(match renewal {
        None => answer,
        Some(mut renewal) => {
            answer.map(|body| body.take_until(async move { renewal.is_needed().await }).boxed_local())
        }
    })
}

fn encoding_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    let encoding = headers.get(header::CONTENT_ENCODING)?;
    (!encoding.as_bytes().eq_ignore_ascii_case(b"identity")).then_some(encoding)
}

/// Decodes gzip and deflate, pieces of more than 2 KiB on a thread for blocking work. A body of another encoding becomes empty.
pub(super) fn decoded(answer: Response<Body>) -> Response<Body> {
    let Some(encoding) = encoding_of(answer.headers()) else { return answer };
    let encoding = encoding.to_str().ok().and_then(|text| text.parse().ok());
    answer.map(|body| match encoding {
        Some(encoding @ (ContentEncoding::Gzip | ContentEncoding::Deflate)) => {
            let body = body.map_err(|error| PayloadError::Io(io::Error::other(error)));
            Decoder::new(body, encoding).map_err(of_decoder).boxed_local()
        }
        _ => stream::empty().boxed_local(),
    })
}

fn of_decoder(error: PayloadError) -> TransportError {
    match error {
        PayloadError::Io(source) => match source.downcast() {
            Ok(error) => error,
            Err(source) => TransportError::Malformed(source.to_string()),
        },
        error => TransportError::Malformed(error.to_string()),
    }
}

/// How often an open watch looks. All watches share one reading of the files each minute.
const LOOK_EACH: Duration = Duration::from_secs(20);

struct Renewal {
    identities: Arc<Identities>,
    connections: u64,
    look_at: Instant,
}

impl Renewal {
    /// `None` if the TLS configuration cannot change.
    fn new(identities: &Arc<Identities>, connections: u64) -> Option<Self> {
        let look_at = Instant::now() + LOOK_EACH;
        identities.tls_can_change().then(|| Self { identities: Arc::clone(identities), connections, look_at })
    }

    /// Cancel safe.
    async fn is_needed(&mut self) {
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
