//! Answers as bytes: an object, a document, a refusal.
//!
//! Answers: what is in the head of this answer? Bodies of lists and watches are made elsewhere.
//! 1. Every API answer says `Cache-Control: no-cache, private`, as a real server does.
//! 2. A refusal is a `Status` object, unless it is always plain text or a fault switch asks for text.
//! 3. The content type names the language the body is in, and nothing else.
//! 4. An answer that is complete before it is sent is compressed as gzip from 128 KiB on, if the client accepts it, as a
//!    real server does. Lists are compressed while they are written, in `list_body.rs`.

use std::io;
use std::io::Write as _;

use actix_web::body::{BodySize, MessageBody as _};
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, WARNING,
    X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::cluster::encoding::Encoding;
use crate::cluster::status::ApiError;

/// From this size on an answer is compressed, if the client takes it.
pub(crate) const COMPRESS_FROM: usize = 128 * 1024;

/// The head of a JSON answer.
pub(crate) fn head(code: u16) -> HttpResponseBuilder {
    head_in(code, Encoding::Json)
}

/// The head of an answer in a language.
pub(crate) fn head_in(code: u16, encoding: Encoding) -> HttpResponseBuilder {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut head = HttpResponse::build(code);
    head.insert_header((CACHE_CONTROL, "no-cache, private"));
    head.insert_header((CONTENT_TYPE, encoding.media_type()));
    head
}

/// A whole body in a language.
pub(crate) fn body(code: u16, encoding: Encoding, body: Bytes) -> HttpResponse {
    head_in(code, encoding).body(body)
}

/// A value that contains its own type.
pub(crate) fn value(code: u16, encoding: Encoding, value: &Value) -> HttpResponse {
    body(code, encoding, encoding.value(value))
}

/// How many letters the warnings of an answer have, and one of them where all would have more.
const MOST_WARNED: usize = 4096;
const MOST_TOLD: usize = 256;

/// The same answer with a `Warning` header for each sentence.
pub(crate) fn warned(mut answer: HttpResponse, warnings: &[String]) -> HttpResponse {
    let length = |text: &String| text.chars().count();
    let most = if warnings.iter().map(length).sum::<usize>() > MOST_WARNED { MOST_TOLD } else { MOST_WARNED };
    let mut told = 0;
    for warning in warnings {
        if told >= MOST_WARNED {
            break;
        }
        let warning: String = warning.chars().take(most).collect();
        told += length(&warning);
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{text}\"")) {
            answer.headers_mut().append(WARNING, value);
        }
    }
    answer
}

/// The same answer with warnings before its own: warnings about the request, not about the body.
pub(crate) fn warned_first(mut answer: HttpResponse, warnings: &[String]) -> HttpResponse {
    let others: Vec<HeaderValue> = answer.headers_mut().remove(WARNING).collect();
    let mut answer = warned(answer, warnings);
    others.into_iter().for_each(|warning| answer.headers_mut().append(WARNING, warning));
    answer
}

pub(crate) fn text(code: u16, body: String) -> HttpResponse {
    let mut head = head(code);
    head.insert_header((CONTENT_TYPE, "text/plain; charset=utf-8"));
    head.insert_header(("X-Content-Type-Options", "nosniff"));
    head.body(body)
}

/// A refusal by authorization: a real server adds `X-Content-Type-Options: nosniff` to these, and to no other
/// refusals.
pub(crate) fn barred(error: &ApiError, plain: bool, encoding: Encoding) -> HttpResponse {
    let mut answer = refusal(error, plain, encoding);
    if error.code() == 403 {
        answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    answer
}

pub(crate) fn refusal(error: &ApiError, plain: bool, encoding: Encoding) -> HttpResponse {
    let mut answer = if plain || error.is_plain() {
        text(error.code(), format!("{}\n", error.message()))
    } else {
        value(error.code(), encoding, &error.to_status())
    };
    if let Some(seconds) = error.retry_after() {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    warned(answer, error.warnings())
}

/// The answer, compressed if it is large and not compressed yet.
pub(crate) fn compressed(answer: HttpResponse) -> HttpResponse {
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
