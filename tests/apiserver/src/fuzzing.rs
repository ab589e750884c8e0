//! The functions that read bytes from outside, for the fuzz targets of `fuzz/` and for the judge of `tests/judged/`.
//!
//! Answers: how do the fuzz targets reach the readers of bodies and request lines, which are private? Only the feature
//! `fuzzing` makes this public; nothing else uses it.
//! 1. Each function depends only on its bytes: no server, no clock.
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::cluster::builtin;
use crate::cluster::call::{Call, PatchKind};
use crate::cluster::options::{ListOptions, WatchOptions};
use crate::cluster::status::ApiError;
use crate::cluster::store::{Cluster, Settings};
use crate::http::route::Route;
use crate::protobuf::{Expected, answer, decode, decode_answer};

/// A protobuf body, read as this kind where it does not name its own.
#[must_use]
pub fn protobuf(api_version: &str, kind: &str, body: &[u8]) -> Option<Value> {
    decode(body, Expected { api_version, kind }).ok()
}

/// A protobuf answer, a list too.
#[must_use]
pub fn protobuf_answer(body: &[u8]) -> Option<Value> {
    decode_answer(body).ok()
}

/// A value of a built-in kind as protobuf.
#[must_use]
pub fn to_protobuf(value: &Value) -> Option<Vec<u8>> {
    answer::value(value).map(|bytes| bytes.to_vec())
}

/// A value as YAML.
#[must_use]
pub fn to_yaml(value: &Value) -> String {
    crate::cluster::encoding::write_yaml(value, false)
}

/// A YAML body.
#[must_use]
pub fn yaml(body: &[u8]) -> Option<Value> {
    crate::cluster::encoding::read_yaml(body).ok()
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
    let Route::Resource(target) = Route::parse(&percent_decode_str(path).decode_utf8_lossy()) else {
        return None;
    };
    let verb = target.verb("GET", &query);
    let options =
        (ListOptions::parse(&query, &pods).is_ok(), WatchOptions::parse(&query, &pods, true).is_ok());
    let named = [target.namespace, target.name, target.sub].into_iter().flatten();
    let parts = [target.group, target.version, target.plural].into_iter().chain(named).collect();
    Some(Line { parts, verb, options })
}

/// In which language a patch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Of built-in kinds, by their schemas.
    Strategic,
    /// Server-side apply, in YAML, forced.
    Apply,
}

/// Patches a small deployment: returns what is stored afterwards, or what is stored and the code of the
/// refusal.
///
/// # Panics
/// If the deployment cannot be created.
#[must_use]
pub fn patch(language: Language, body: &[u8]) -> (Value, Option<u16>) {
    let mut cluster = cluster();
    let kind = cluster.registry.find("apps", "v1", "deployments").expect("the table has deployments").clone();
    let call = Call::plain(&kind, "default", "a", NOW);
    let container = json!({"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}]});
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}});
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    let made =
        cluster.create(&call, json!({"metadata": {"name": "a", "finalizers": ["x.y/z"]}, "spec": spec}));
    made.expect("the deployment is sound");
    let call = Call { manager: "fuzzer", ..call };
    let written = match language {
        Language::Json => cluster.patch(&call, PatchKind::Json, body),
        Language::Merge => cluster.patch(&call, PatchKind::Merge, body),
        Language::Strategic => cluster.patch(&call, PatchKind::Strategic, body),
        Language::Apply => match crate::cluster::encoding::read_yaml(body) {
            Ok(config) => cluster.apply(&call, config, true),
            Err(why) => Err(ApiError::bad_request(why)),
        },
    };
    let stored = cluster.get(&kind, "default", "a").expect("no patch deletes").decode_as(&kind);
    (stored, written.err().map(|refusal| refusal.code()))
}

/// Defines a kind with this schema and creates an object of it with this body: the object, if both were taken.
#[must_use]
pub fn custom(schema: &Value, body: &Value) -> Option<Value> {
    let mut cluster = cluster();
    let kind = cluster.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")?.clone();
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names =
        json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    let spec = json!({"group": "fuzz.io", "scope": "Namespaced", "names": names, "versions": [version]});
    let name = "widgets.fuzz.io";
    let call = Call::plain(&kind, "", name, NOW);
    cluster.create(&call, json!({"metadata": {"name": name}, "spec": spec})).ok()?;
    let widgets = cluster.registry.find("fuzz.io", "v1", "widgets")?.clone();
    let mut widget = body.clone();
    let members = widget.as_object_mut()?;
    members.insert("apiVersion".to_owned(), json!("fuzz.io/v1"));
    members.insert("kind".to_owned(), json!("Widget"));
    members.insert("metadata".to_owned(), json!({"name": "a"}));
    cluster.create(&Call::plain(&widgets, "default", "a", NOW), widget).ok()?;
    Some(cluster.get(&widgets, "default", "a").ok()?.decode_as(&widgets))
}

const NOW: i64 = 1_700_000_000;

fn cluster() -> Cluster {
    let (managed_fields, validation) = (true, true);
    let bounds = Settings {
        first_revision: 1,
        event_window: 10,
        watch_queue: 10,
        seed: 1,
        managed_fields,
        validation,
    };
    Cluster::new(bounds, NOW)
}
