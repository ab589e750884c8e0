//! gzip for answers that are complete before they are sent.
//!
//! Answers: is this answer compressed? Lists are compressed while they are written, in `list_body.rs`.
//! 1. From 128 KiB on, if the client accepts it, as a real server does.
use std::io::{self, Write as _};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, MessageBody as _};
use actix_web::http::header::{CONTENT_ENCODING, HeaderValue, VARY};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::list_body::COMPRESS_FROM;

/// The answer, compressed if it is large and not compressed yet.
pub(crate) fn large(answer: HttpResponse) -> HttpResponse {
    let size = match answer.body().size() {
        BodySize::Sized(size) => size,
        BodySize::None | BodySize::Stream => return answer,
    };
    if size < COMPRESS_FROM as u64 || answer.headers().contains_key(CONTENT_ENCODING) {
        return answer;
    }
    let (head, body) = answer.into_parts();
    let bytes = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        Err(body) => return head.set_body(body),
    };
    let Ok(small) = member(&bytes) else { return head.set_body(bytes).map_into_boxed_body() };
    let mut answer = head.set_body(small).map_into_boxed_body();
    answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
    answer
}

/// These bytes as gzip.
///
/// # Errors
/// Never: writing to memory does not fail; the encoder's type says it could.
fn member(bytes: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish().map(Bytes::from)
}
