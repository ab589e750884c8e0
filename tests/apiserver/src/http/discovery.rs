//! The two roots of discovery: aggregated for clients that ask for it, plain for the rest.
//!
//! Answers: which form does this Accept header want, and does the client have that state already? The documents are the core's.
//! 1. The first acceptable range wins; only v2 of the aggregated form is known, as on servers since 1.33.
//! 2. An aggregated answer carries an ETag; a request that names it gets 304 and no body.
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use actix_web::HttpResponse;
use actix_web::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, VARY};

use crate::cluster::discovery;
use crate::cluster::status::ApiError;
use crate::world::World;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a root in the aggregated form; none if the client wants the plain one.
///
/// # Errors
/// 406 if the client accepts neither.
pub(crate) fn root(world: &World, headers: &HeaderMap, core: bool) -> Result<Option<HttpResponse>, ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if !wants_aggregated(text(ACCEPT))? {
        return Ok(None);
    }
    let document = world.with(|inner| discovery::aggregated(&inner.cluster.registry, core)).to_string();
    let mut hasher = DefaultHasher::new();
    document.hash(&mut hasher);
    let tag = format!("\"{:016X}\"", hasher.finish());
    let known = text(IF_NONE_MATCH) == Some(tag.as_str());
    let mut answer = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer.insert_header((CACHE_CONTROL, "public")).insert_header((VARY, "Accept"));
    answer.insert_header((ETAG, tag));
    if known {
        return Ok(Some(answer.finish()));
    }
    answer.insert_header((CONTENT_TYPE, AGGREGATED));
    Ok(Some(answer.body(document)))
}

fn wants_aggregated(header: Option<&str>) -> Result<bool, ApiError> {
    let Some(header) = header.filter(|header| !header.trim().is_empty()) else { return Ok(false) };
    let chosen = header.split(',').find_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        match parts.next().unwrap_or_default() {
            "*/*" | "application/*" => Some(false),
            "application/json" => wanted(parts),
            _ => None,
        }
    });
    chosen.ok_or_else(ApiError::no_discovery_form)
}

fn wanted<'a>(parameters: impl Iterator<Item = &'a str>) -> Option<bool> {
    let parameters: Vec<(&str, &str)> = parameters.filter_map(|part| part.split_once('=')).collect();
    let parameter = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    match (parameter("as"), parameter("g"), parameter("v")) {
        (None, _, _) => Some(false),
        (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::wants_aggregated;

    #[test]
    fn api_33_the_first_range_that_is_known_chooses_the_form() {
        let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        for (header, aggregated) in [
            (None, Some(false)),
            (Some("*/*".to_owned()), Some(false)),
            (Some(new.to_owned()), Some(true)),
            (Some(format!("{new};profile=nopeer")), Some(true)),
            (Some(format!("{old},{new},application/json")), Some(true)),
            (Some(format!("{old},application/json")), Some(false)),
            (Some(old.to_owned()), None),
        ] {
            assert_eq!(wants_aggregated(header.as_deref()).ok(), aggregated, "{header:?}");
        }
    }
}
