//! The two roots of discovery: aggregated for clients that ask for it, plain for the rest.
//!
//! Answers: which form does this Accept header want, and does the client have that state already? The core makes the
//! documents.
//! 1. Only v2 of the aggregated form is known, as on servers since 1.33; `accept.rs` chooses.
//! 2. An aggregated answer carries an ETag; a request that names it gets 304 and no body.
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use actix_web::HttpResponse;
use actix_web::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, VARY};

use super::accept;
use crate::cluster::discovery;
use crate::cluster::status::ApiError;
use crate::world::World;

/// What the content type of the aggregated form says after the language.
const AGGREGATED: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a root in the aggregated form; none if the client wants the plain one.
///
/// # Errors
/// 406 if the client accepts neither.
pub(crate) fn root(world: &World, headers: &HeaderMap, core: bool) -> Result<Option<HttpResponse>, ApiError> {
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
