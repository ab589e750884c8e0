//! What a server says of itself: its health, the roots of its discovery, and its OpenAPI documents.
//!
//! Answers: is this document new to the client, and in which form is it sent? The core makes its content.
//! 1. An address of OpenAPI with the current hash may be cached for a year; one with an old hash is sent to the current one.
//! 2. OpenAPI has JSON and protobuf; protobuf has an old name too, which is answered under the new one.
//! 3. A root of discovery is aggregated for clients that ask for it, plain for the rest. Only v2 of the aggregated form is
//!    known, as on servers since 1.33; `accept.rs` chooses.
//! 4. An aggregated answer carries an ETag; a request that names it gets 304 and no body.
//! 5. A server is healthy (`/healthz`, `/livez`, `/readyz`) as long as it answers; the checks are those of a real server
//!    that apply here. A single check is plain text without `X-Content-Type-Options`, as on a real server.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use actix_web::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderMap, HeaderValue, IF_NONE_MATCH, LOCATION,
    VARY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};

use super::ranges::ranges;
use super::{accept, respond};
use crate::cluster::options::{Query, value};
use crate::cluster::status::ApiError;
use crate::cluster::{discovery, openapi};
use crate::world::World;

const YEAR_SECONDS: i64 = 365 * 24 * 60 * 60;

/// The language of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Json,
    Protobuf,
}

impl Language {
    /// The first that a range accepts; `version` is that of OpenAPI.
    fn of(request: &HttpRequest, version: &str) -> Option<Self> {
        let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let accept = accept.filter(|accept| !accept.is_empty()).unwrap_or("*/*");
        let [new, old] = ['.', '@'].map(|sign| media_type(version, sign));
        ranges(accept).into_iter().find_map(|range| {
            let protobuf = || (range.takes(&new) || range.takes(&old)).then_some(Self::Protobuf);
            range.takes("application/json").then_some(Self::Json).or_else(protobuf)
        })
    }

    fn head(self, code: u16, version: &str) -> HttpResponseBuilder {
        let mut head = respond::head(code);
        if self == Self::Protobuf {
            head.insert_header((CONTENT_TYPE, media_type(version, '.')));
        }
        head
    }
}

fn media_type(version: &str, sign: char) -> String {
    format!("application/com.github.proto-openapi.spec.{version}{sign}v1.0+protobuf")
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
    let Some(language) = Language::of(request, "v3") else { return refused(&["Accept"]) };
    let tag = format!("\"{}\"", document.hash);
    let (asked, known) = (value(query, "hash"), request.headers().get(IF_NONE_MATCH));
    let code = match () {
        () if !asked.is_empty() && asked != document.hash => 301,
        () if known.and_then(|known| known.to_str().ok()) == Some(&tag) => 304,
        () => 200,
    };
    let mut answer = language.head(code, "v3");
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
            answer.body(match language {
                Language::Json => document.body,
                Language::Protobuf => {
                    let document = serde_json::from_slice(&document.body).expect("a document is JSON");
                    openapi::protobuf::v3(&document)
                }
            })
        }
    }
}

/// 406 without a body.
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
    let vary = ["Accept-Encoding", "Accept"];
    let Some(language) = Language::of(request, "v2") else { return refused(&vary) };
    let registry = world.with(|inner| inner.cluster.registry.clone());
    let document = openapi::v2(&registry);
    let mut answer = language.head(200, "v2");
    vary.iter().for_each(|name| {
        answer.append_header((VARY, *name));
    });
    match language {
        Language::Json => answer.body(document.to_string()),
        Language::Protobuf => answer.body(openapi::protobuf::v2(&document)),
    }
}

const ALIVE: &[&str] = &["ping", "log", "etcd"];
const READY: &[&str] = &["ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"];

/// Answers a question for the health of the server: as one word, as a text, or check by check.
///
/// # Errors
/// 404 for a check that is not there.
pub(crate) fn health(path: &str, query: &Query) -> Result<HttpResponse, ApiError> {
    let path = path.trim_matches('/');
    let (probe, check) = path.split_once('/').unwrap_or((path, ""));
    let checks = if probe == "readyz" { READY } else { ALIVE };
    if !check.is_empty() {
        if !checks.contains(&check) {
            return Err(ApiError::no_such_path());
        }
        let mut answer = respond::text(200, "ok".to_owned());
        answer.headers_mut().remove(X_CONTENT_TYPE_OPTIONS);
        return Ok(answer);
    }
    let excluded = |check: &str| query.iter().any(|(name, value)| name == "exclude" && value == check);
    if !query.iter().any(|(name, _)| name == "verbose") {
        return Ok(respond::text(200, "ok".to_owned()));
    }
    let line = |check: &&str| match excluded(check) {
        true => format!("[+]{check} excluded: ok\n"),
        false => format!("[+]{check} ok\n"),
    };
    let lines: String = checks.iter().map(line).collect();
    Ok(respond::text(200, format!("{lines}{probe} check passed\n")))
}

/// What the content type of the aggregated form says after the language.
const AGGREGATED: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a root in the aggregated form; none if the client wants the plain one.
///
/// # Errors
/// 406 if the client accepts neither.
pub(crate) fn discovery_root(
    world: &World,
    headers: &HeaderMap,
    core: bool,
) -> Result<Option<HttpResponse>, ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (encoding, aggregated) = accept::of_discovery(text(ACCEPT), core)?;
    if !aggregated {
        return Ok(None);
    }
    let document = world.with(|inner| discovery::aggregated(&inner.cluster.registry, core));
    let mut hasher = DefaultHasher::new();
    document.to_string().hash(&mut hasher);
    let tag = format!("\"{:016X}\"", hasher.finish());
    let known = text(IF_NONE_MATCH) == Some(tag.as_str());
    let mut answer = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer.insert_header((CACHE_CONTROL, "public")).insert_header((VARY, "Accept"));
    answer.insert_header((ETAG, tag));
    if known {
        return Ok(Some(answer.finish()));
    }
    answer.insert_header((CONTENT_TYPE, format!("{}{AGGREGATED}", encoding.media_type())));
    Ok(Some(answer.body(encoding.value(&document))))
}
