//! What reads foreign bytes in here, as functions for the fuzz targets of `fuzz/`.
//!
//! Answers: how does a fuzzer reach the readers of bodies and request lines, which are private? Only the feature
//! `fuzzing` makes this public; nothing else uses it.
//! 1. Each function is one of bytes alone: no server, no clock.
use serde_json::Value;

use crate::cluster::builtin;
use crate::cluster::options::{ListOptions, WatchOptions};
use crate::http::route::{Route, percent_decoded};
use crate::protobuf::{Expected, decode};

/// A protobuf body, read as this kind where it does not name its own.
#[must_use]
pub fn protobuf(api_version: &str, kind: &str, body: &[u8]) -> Option<Value> {
    decode(body, Expected { api_version, kind }).ok()
}

/// A YAML body.
#[must_use]
pub fn yaml(body: &[u8]) -> Option<Value> {
    crate::yaml::decode(body).ok()
}

/// What a request line was read as.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The parts of the path that name a resource: group, version, namespace, plural, name, subresource.
    pub parts: Vec<String>,
    /// The verb of a GET.
    pub verb: &'static str,
    /// Whether the query is one of a list, and one of a watch.
    pub options: (bool, bool),
}

/// A path and its query, as an HTTP request holds them; none if it is no resource.
///
/// # Panics
/// If the table of kinds has no pods.
#[must_use]
pub fn request_line(path: &str, query: &str) -> Option<Line> {
    let pods = builtin::kinds().find(|kind| kind.kind == "Pod").expect("the table has pods");
    let query = actix_web::web::Query::<Vec<(String, String)>>::from_query(query).ok()?.into_inner();
    let Route::Resource(target) = Route::parse(&percent_decoded(path)) else { return None };
    let verb = target.verb("GET", &query);
    let options =
        (ListOptions::parse(&query, &pods).is_ok(), WatchOptions::parse(&query, &pods, true).is_ok());
    let named = [target.namespace, target.name, target.sub].into_iter().flatten();
    let parts = [target.group, target.version, target.plural].into_iter().chain(named).collect();
    Some(Line { parts, verb, options })
}
