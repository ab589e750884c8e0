//! `/openapi/v3` and `/openapi/v2` on the wire: media types, ETags and addresses that may be cached for ever.
//!
//! Answers: is this document new to the client, and in which form may it be told? What it says is made in the core.
//! 1. An address with the current hash may be cached for a year; one with an old hash is sent to the current one.
//! 2. Only JSON is spoken: a client that takes nothing but protobuf gets 406.
use actix_web::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderValue, IF_NONE_MATCH, LOCATION, VARY,
};
use actix_web::{HttpRequest, HttpResponse};

use super::respond;
use crate::cluster::openapi;
use crate::cluster::options::{Query, value};
use crate::world::World;

const YEAR_SECONDS: i64 = 365 * 24 * 60 * 60;

fn accepts_json(request: &HttpRequest) -> bool {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let fits = |range: &str| {
        matches!(
            range.split(';').next().unwrap_or_default().trim(),
            "" | "*/*" | "application/*" | "application/json"
        )
    };
    accept.split(',').any(fits)
}

/// Answers a GET below `/openapi/v3`; `name` is what follows, empty for the index.
pub(super) fn v3(request: &HttpRequest, world: &World, name: &str, query: &Query) -> HttpResponse {
    if name.is_empty() {
        let index = world.with(|inner| openapi::index(&inner.cluster.registry));
        let mut answer = respond::text(200, index.to_string());
        answer.headers_mut().remove("X-Content-Type-Options");
        return answer;
    }
    let registry = world.with(|inner| inner.cluster.registry.clone());
    let Some(document) = openapi::document(&registry, name) else {
        return respond::head(404).finish();
    };
    if !accepts_json(request) {
        return refused(&["Accept"]);
    }
    let tag = format!("\"{}\"", document.hash);
    let (asked, known) = (value(query, "hash"), request.headers().get(IF_NONE_MATCH));
    let code = match () {
        () if !asked.is_empty() && asked != document.hash => 301,
        () if known.and_then(|known| known.to_str().ok()) == Some(&tag) => 304,
        () => 200,
    };
    let mut answer = respond::head(code);
    answer.insert_header((ETAG, tag)).insert_header((VARY, "Accept"));
    match code {
        301 => {
            let current = format!("/openapi/v3/{name}?hash={}", document.hash);
            answer.insert_header((LOCATION, current)).finish()
        }
        304 => answer.finish(),
        _ => {
            if !asked.is_empty() {
                let expires = jiff::Timestamp::from_second(world.now() + YEAR_SECONDS).unwrap_or_default();
                answer.insert_header((CACHE_CONTROL, "public, immutable"));
                answer.insert_header((EXPIRES, expires.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string()));
            }
            answer.body(document.body)
        }
    }
}

/// 406 without a word.
fn refused(vary: &[&'static str]) -> HttpResponse {
    let mut answer = respond::head(406).finish();
    answer.headers_mut().remove(CONTENT_TYPE);
    for name in vary {
        answer.headers_mut().append(VARY, HeaderValue::from_static(name));
    }
    answer
}

/// Answers a GET of `/openapi/v2`.
pub(super) fn v2(request: &HttpRequest, world: &World) -> HttpResponse {
    if !accepts_json(request) {
        return refused(&["Accept-Encoding", "Accept"]);
    }
    let registry = world.with(|inner| inner.cluster.registry.clone());
    respond::head(200).insert_header((VARY, "Accept")).body(openapi::v2(&registry).to_string())
}
