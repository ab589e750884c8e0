//! One request from its head to its answer: log, who asks, fault switches, then the endpoint.
//!
//! Answers: which handler answers this request? Each endpoint's work is in `read.rs` and `write.rs`.
//! 1. Every request is logged, also one that is refused.
//! 2. Authorization comes before everything else, as on a real server.
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, USER_AGENT};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use serde_json::json;

use super::connections::Connection;
use super::route::{Route, Target};
use super::{
    auth, discovery as discovery_root, manager, openapi, patch, read, respond, review, subresource, write,
};
use crate::access::user::User;
use crate::cluster::discovery;
use crate::cluster::kind::{Kind, ResourceId};
use crate::cluster::status::ApiError;
use crate::fault_state::{Dial, Refused, Switch};
use crate::requests::Request;
use crate::world::World;

/// The largest body that is read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// One request, read completely.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) world: Arc<World>,
    pub(crate) user: User,
    pub(crate) target: Target,
    pub(crate) verb: &'static str,
    pub(crate) kind: Arc<Kind>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) accept: Option<String>,
    pub(crate) content_type: String,
    pub(crate) gzip: bool,
    /// In whose name fields are set.
    pub(crate) manager: String,
    pub(crate) body: Bytes,
    pub(crate) connection: Option<Arc<Connection>>,
}

fn header<'a>(request: &'a HttpRequest, name: &actix_web::http::header::HeaderName) -> Option<&'a str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

/// The handler of every request.
pub(crate) async fn handle(
    request: HttpRequest,
    payload: web::Payload,
    world: web::Data<World>,
) -> HttpResponse {
    let world = world.into_inner();
    let path = percent_decoded(request.path());
    let query = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let query = query.map(web::Query::into_inner).unwrap_or_default();
    let route = Route::parse(&path);
    let method = request.method().as_str();
    let (verb, resource) = match &route {
        Route::Resource(target) => (target.verb(method, &query), target.resource()),
        _ => ("", String::new()),
    };
    let logged = Request {
        number: 0,
        method: method.to_owned(),
        path: path.clone(),
        query: query.clone(),
        verb: verb.to_owned(),
        resource,
    };
    let about = match &route {
        Route::Resource(target) => ResourceId::new(&target.group, &target.plural),
        _ => ResourceId::new("", ""),
    };
    let (plain, frozen, latency) = world.with(|inner| {
        inner.log.push(logged);
        let holds = |switch| inner.faults.holds_everywhere(switch);
        (
            holds(Switch::PlainTextErrors),
            holds(Switch::FreezeServer),
            inner.faults.size(Dial::Latency, &about),
        )
    });
    if frozen {
        world.until(|faults| !faults.holds_everywhere(Switch::FreezeServer)).await;
    }
    if let Some(milliseconds) = latency {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
    let entry = auth::Entry { route: &route, verb, path: &path, query: &query };
    let user = match auth::enter(&world, &request, &entry) {
        Ok(user) => user,
        Err(error) => return respond::barred(&error, plain),
    };
    let answer = match route {
        Route::Resource(target) => resource_request(&request, payload, &world, (user, target, query)).await,
        Route::CoreVersions | Route::Groups if method == "GET" => {
            let core = route == Route::CoreVersions;
            let plain = || meta(&world, &route, method, request.connection_info().host());
            discovery_root::root(&world, request.headers(), core).and_then(|root| root.map_or_else(plain, Ok))
        }
        Route::OpenApi(name) if method == "GET" => Ok(openapi::v3(&request, &world, &name, &query)),
        Route::OpenApiV2 if method == "GET" => Ok(openapi::v2(&request, &world)),
        other => meta(&world, &other, method, request.connection_info().host()),
    };
    if !matches!(method, "GET" | "HEAD") {
        world.settled().await;
    }
    answer.unwrap_or_else(|error| respond::refusal(&error, plain))
}

fn percent_decoded(path: &str) -> String {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.as_bytes();
    while let Some((first, rest)) = bytes.split_first() {
        let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(code.unwrap_or(*first));
        bytes = if code.is_some() { &rest[2..] } else { rest };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Everything that is not a resource.
fn meta(world: &World, route: &Route, method: &str, host: &str) -> Result<HttpResponse, ApiError> {
    match (route, method) {
        (Route::Health, "GET" | "HEAD") => return Ok(respond::text(200, "ok".to_owned())),
        (Route::Unknown, _) => return Err(ApiError::no_such_path()),
        (_, "GET") => {}
        _ => return Err(ApiError::method_not_allowed()),
    }
    let document = world.with(|inner| {
        let registry = &inner.cluster.registry;
        match route {
            Route::CoreVersions => Some(discovery::core_versions(host)),
            Route::Groups => Some(discovery::groups(registry)),
            Route::Group(name) => discovery::group(registry, name),
            Route::Resources { group, version } => discovery::resources(registry, group, version),
            Route::Version => Some(version()),
            Route::Health | Route::OpenApi(_) | Route::OpenApiV2 | Route::Unknown | Route::Resource(_) => {
                None
            }
        }
    });
    let builtin = |group: &str| world.with(|inner| inner.cluster.registry.is_builtin_group(group));
    document.map(|document| respond::document(&document)).ok_or_else(|| match route {
        Route::Resources { group, .. } if builtin(group) => ApiError::no_such_resource(),
        _ => ApiError::no_such_path(),
    })
}

fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-06-09T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
        "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
    })
}

async fn resource_request(
    request: &HttpRequest,
    payload: web::Payload,
    world: &Arc<World>,
    (user, target, query): (User, Target, Vec<(String, String)>),
) -> Result<HttpResponse, ApiError> {
    let verb = target.verb(request.method().as_str(), &query);
    let resource = ResourceId::new(&target.group, &target.plural);
    match world.with(|inner| inner.faults.refuse(verb, &resource)) {
        Some(Refused::Denied) => {
            return Err(auth::forbidden(&user, &auth::wish(&target, verb, &query), ""));
        }
        Some(Refused::With(error, plain)) => return Ok(respond::refusal(&error, plain)),
        None => {}
    }
    let kind = served_kind(world, &target, verb)?;
    let body = match payload.to_bytes_limited(BODY_LIMIT).await {
        Ok(body) => body.map_err(|error| ApiError::bad_request(error.to_string()))?,
        Err(_) => return Err(ApiError::too_large()),
    };
    let ask = Ask {
        world: Arc::clone(world),
        user,
        target,
        verb,
        kind,
        manager: manager::of(&query, header(request, &USER_AGENT)),
        query,
        accept: header(request, &ACCEPT).map(str::to_owned),
        content_type: header(request, &CONTENT_TYPE).unwrap_or_default().to_owned(),
        gzip: header(request, &ACCEPT_ENCODING).is_some_and(|value| value.contains("gzip")),
        body,
        connection: request.conn_data::<Arc<Connection>>().cloned(),
    };
    if let Some(reviewed) = review::answer(&ask) {
        return reviewed;
    }
    if subresource::is_own(ask.target.sub.as_deref()) {
        return subresource::answer(&ask);
    }
    if *ask.kind.resource.plural == *"bindings" && !ask.kind.custom {
        return subresource::bind(&ask);
    }
    match ask.verb {
        "list" => read::list(ask).await,
        "watch" => read::watch(ask).await,
        "get" => read::get(&ask).await,
        "create" => write::create(&ask),
        "update" => write::update(&ask),
        "patch" => patch::patch(&ask),
        "delete" => write::delete(&ask),
        "deletecollection" => write::delete_collection(&ask),
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// The kind a target names, with its scope and subresource checked.
fn served_kind(world: &World, target: &Target, verb: &str) -> Result<Arc<Kind>, ApiError> {
    let (found, builtin) = world.with(|inner| {
        let registry = &inner.cluster.registry;
        let found = registry.find(&target.group, &target.version, &target.plural).cloned();
        (found, registry.is_builtin_group(&target.group))
    });
    let absent = || if builtin { ApiError::no_such_resource() } else { ApiError::no_such_path() };
    let kind = found.ok_or_else(absent)?;
    let scoped = if kind.namespaced {
        target.namespace.is_some() || target.name.is_none()
    } else {
        target.namespace.is_none()
    };
    let verbs = match &target.sub {
        None => Some(&kind.verbs),
        Some(name) => kind.subresource(name).map(|sub| &sub.verbs),
    };
    match verbs.filter(|_| scoped) {
        None => Err(absent()),
        // A kind that is only created has no objects to be asked for.
        Some(verbs) if target.name.is_some() && target.sub.is_none() && **verbs == ["create"] => {
            Err(absent())
        }
        Some(verbs) if !verbs.iter().any(|known| known == verb) => Err(ApiError::method_not_allowed()),
        Some(_) => Ok(kind),
    }
}
