//! The HTTP half of the API server: thin handlers that read a request, call the core, and write its answer.
//!
//! Answers: which handler answers this request, from its head to its answer? Log, user and fault switches come first.
//!
//! Reading order: `route` (what does the path mean) → `ask` (the request) → [`handle`] (from head to answer) → `read`, `write`,
//! `patch` (the verbs) → `respond`, `list_body`, `watch_body` (bytes). `auth`, `accept` and `connections` serve them.
//!
//! 1. No rule of the API is decided here, except those about HTTP itself.
//! 2. Heads carry what a real server sends, and nothing of the framework's own.
//! 3. Every request is logged, also one that is refused.
//! 4. Authorization comes before everything else, as on a real server.

pub(crate) mod accept;
pub(crate) mod ask;
pub(crate) mod auth;
pub(crate) mod body;
mod channels;
pub(crate) mod connections;
pub(crate) mod documents;
pub(crate) mod list_body;
pub(crate) mod patch;
pub(crate) mod pod_streams;
pub(crate) mod ranges;
mod read;
pub(crate) mod respond;
pub(crate) mod review;
pub(crate) mod route;
pub(crate) mod subresource;
pub(crate) mod watch_body;
pub(crate) mod websocket;
pub(crate) mod write;

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, USER_AGENT};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use serde_json::json;

use crate::access::user::User;
use crate::cluster::encoding::Encoding;
use crate::cluster::kind::Kind;
use crate::cluster::status::ApiError;
use crate::cluster::{ResourceId, discovery, go_json};
use crate::fault_state::{Dial, Refused, Switch};
use crate::world::World;
use ask::{Ask, Heard, header};
use connections::Connection;
use route::{Route, Target};

/// The largest body that is read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The handler of every request.
pub(crate) async fn handle(
    request: HttpRequest,
    payload: web::Payload,
    world: web::Data<World>,
) -> HttpResponse {
    let world = world.into_inner();
    let heard = Heard::of(&request);
    let plain = arrive(&world, &heard).await;
    let encoding = accept::of_status(header(&request, &ACCEPT));
    let answer = match auth::enter(&world, &request, &heard) {
        Err(error) => respond::barred(&error, plain, encoding),
        Ok((user, _place)) => {
            let changes = !matches!(heard.method.as_str(), "GET" | "HEAD");
            let deprecated = deprecation(&world, &heard.route);
            let answer = answered(&request, payload, &world, user, heard).await;
            if changes {
                world.settled().await;
            }
            let answer = answer.unwrap_or_else(|error| respond::refusal(&error, plain, encoding));
            respond::warned_first(answer, &deprecated)
        }
    };
    if plain && answer.status().as_u16() >= 400 {
        world.with(|inner| inner.faults.note(Switch::PlainTextErrors.name(), None, 1));
    }
    if takes_gzip(&request) { respond::compressed(answer) } else { answer }
}

/// Records a request and delays it while a fault switch asks for that. Returns whether refusals are plain
/// text.
async fn arrive(world: &World, heard: &Heard) -> bool {
    let about = match &heard.route {
        Route::Resource(target) => ResourceId::new(&target.group, &target.plural),
        _ => ResourceId::new("", ""),
    };
    let (plain, frozen, latency) = world.with(|inner| {
        inner.log.push(heard.logged());
        let holds = |switch| inner.faults.holds_everywhere(switch);
        let (plain, frozen) = (holds(Switch::PlainTextErrors), holds(Switch::FreezeServer));
        let latency = inner.faults.size(Dial::Latency, &about);
        if frozen {
            inner.faults.count_switch(Switch::FreezeServer, &about, 1);
        }
        if latency.is_some() {
            inner.faults.count_setting(Dial::Latency, &about);
        }
        (plain, frozen, latency)
    });
    if frozen {
        world.until(|faults| !faults.holds_everywhere(Switch::FreezeServer)).await;
    }
    if let Some(milliseconds) = latency {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
    plain
}

/// The answer to a request that is authorized.
async fn answered(
    request: &HttpRequest,
    payload: web::Payload,
    world: &Arc<World>,
    user: User,
    heard: Heard,
) -> Result<HttpResponse, ApiError> {
    let Heard { method, path, query, route, .. } = heard;
    match route {
        Route::Resource(target) => resource_request(request, payload, world, (user, target, query)).await,
        Route::Health => documents::health(&path, &query),
        Route::CoreVersions | Route::Groups if method == "GET" => {
            let core = route == Route::CoreVersions;
            match documents::discovery_root(world, request.headers(), core)? {
                Some(aggregated) => Ok(aggregated),
                None => meta(request, world, &route, &method),
            }
        }
        Route::OpenApi(name) if method == "GET" => Ok(documents::v3(request, world, &name, &query)),
        Route::OpenApiV2 if method == "GET" => Ok(documents::v2(request, world)),
        other => meta(request, world, &other, &method),
    }
}

fn takes_gzip(request: &HttpRequest) -> bool {
    header(request, &ACCEPT_ENCODING).is_some_and(|value| value.contains("gzip"))
}

/// Every path that is not a resource.
fn meta(request: &HttpRequest, world: &World, route: &Route, method: &str) -> Result<HttpResponse, ApiError> {
    match (route, method) {
        (Route::Unknown, _) => return Err(ApiError::no_such_path()),
        (_, "GET") => {}
        _ => return Err(ApiError::method_not_allowed()),
    }
    let info = request.connection_info();
    let host = info.host();
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
    let document = document.ok_or_else(|| match route {
        Route::Resources { group, .. } if builtin(group) => ApiError::no_such_resource(),
        _ => ApiError::no_such_path(),
    })?;
    let wanted = header(request, &ACCEPT);
    let encoding = match route {
        Route::Version => accept::json_only(wanted).map(|()| Encoding::Json)?,
        Route::Resources { group, .. } => accept::of_document(wanted, builtin(group))?,
        route => accept::of_document(wanted, *route == Route::CoreVersions)?,
    };
    Ok(respond::value(200, encoding, &document))
}

fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-06-09T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
        "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
    })
}

/// The warning for a client of a deprecated version, whether it is answered or refused.
fn deprecation(world: &World, route: &Route) -> Vec<String> {
    let Route::Resource(target) = route else { return Vec::new() };
    world.with(|inner| {
        let kind = inner.cluster.registry.find(&target.group, &target.version, &target.plural);
        kind.and_then(|kind| kind.deprecation.clone()).into_iter().collect()
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
    if let Some(refused) = world.with(|inner| inner.faults.refuse(verb, &resource)) {
        let Refused::With(error, plain) = refused else {
            return Err(auth::forbidden(&user, &auth::wish(&target, verb, &query), ""));
        };
        let encoding = accept::of_status(header(request, &ACCEPT));
        return Ok(respond::refusal(&error, plain, encoding));
    }
    let kind = served_kind(world, &target, verb)?;
    let upgrade = (verb == "watch" || subresource::is_stream(target.sub.as_deref()))
        && websocket::is_asked(request.headers());
    let (body, rest) =
        if upgrade { (Bytes::new(), Some(payload)) } else { (read_body(payload).await?, None) };
    let content_type = header(request, &CONTENT_TYPE).unwrap_or_default().to_owned();
    let body = if is_json(&content_type) { go_json::mended(body) } else { body };
    let ask = Ask {
        world: Arc::clone(world),
        user,
        target,
        verb,
        kind,
        manager: write::manager_of(&query, header(request, &USER_AGENT)),
        query,
        accept: header(request, &ACCEPT).map(str::to_owned),
        content_type,
        gzip: takes_gzip(request),
        body,
        connection: request.conn_data::<Arc<Connection>>().cloned(),
    };
    acted(request, ask, rest).await
}

/// Whether a body of this type is read as JSON; without a type it is.
fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    media.is_empty() || media.ends_with("json")
}

/// The answer to a request that is read completely; `socket` is what the client of a websocket still sends.
async fn acted(
    request: &HttpRequest,
    ask: Ask,
    socket: Option<web::Payload>,
) -> Result<HttpResponse, ApiError> {
    if let Some(reviewed) = review::answer(&ask) {
        return reviewed;
    }
    if subresource::is_own(ask.target.sub.as_deref()) {
        return subresource::answer(request.headers(), &ask, socket);
    }
    if *ask.kind.resource.plural == *"bindings" && !ask.kind.custom {
        return subresource::bind(&ask);
    }
    match ask.verb {
        "list" => read::list(ask).await,
        "watch" => match socket {
            Some(payload) => {
                let (watched, encoding) = read::watched(ask).await?;
                websocket::answer(request.headers(), payload, watched.chunks(), encoding)
            }
            None => read::watch(ask).await,
        },
        "get" => read::get(&ask).await,
        "create" => write::create(&ask),
        "update" => write::update(&ask),
        "patch" => patch::patch(&ask),
        "delete" => write::delete(&ask),
        "deletecollection" => write::delete_collection(&ask),
        _ => Err(ApiError::method_not_allowed()),
    }
}

async fn read_body(payload: web::Payload) -> Result<Bytes, ApiError> {
    match payload.to_bytes_limited(BODY_LIMIT).await {
        Ok(body) => body.map_err(|error| ApiError::bad_request(error.to_string())),
        Err(_) => Err(ApiError::too_large()),
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
        // A kind that can only be created has no objects to read.
        Some(verbs) if target.name.is_some() && target.sub.is_none() && **verbs == ["create"] => {
            Err(absent())
        }
        Some(verbs) if !verbs.iter().any(|known| known == verb) => Err(ApiError::method_not_allowed()),
        Some(_) => Ok(kind),
    }
}
