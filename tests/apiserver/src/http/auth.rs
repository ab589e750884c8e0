//! Authentication and authorization: the first step of every request.
//!
//! Answers: may this request go on, and as which user? `access` checks credentials, the core checks roles.
//! 1. An invalid credential is 401, on every path.
//! 2. Then the request is authorized, before it is known whether the resource exists at all.
//! 3. Health is open to all. In an open server the anonymous user may read the version too, and the rest only while
//!    the server has no credentials.
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::AUTHORIZATION;

use super::handle::Heard;
use super::in_flight::Place;
use super::route::{Route, Target};
use super::{impersonate, websocket};
use crate::access::certificate::PeerCertificate;
use crate::access::service_account::Claims;
use crate::access::user::User;
use crate::access::{Authorization, Unauthenticated};
use crate::cluster::options::{Query, value};
use crate::cluster::rbac::{Decision, On, Wish};
use crate::cluster::status::{ApiError, Named};
use crate::world::World;

/// The user of a request who may do what it asks, and the request's place in the server.
///
/// # Errors 401, 429 where too many requests are in flight, or 403.
pub(crate) fn enter(world: &World, request: &HttpRequest, heard: &Heard) -> Result<(User, Place), ApiError> {
    let shown = authenticate(world, request)?;
    let acted = impersonate::asked(request.headers())?;
    let open = world.access.authorization == Authorization::Open;
    let method = request.method().as_str().to_lowercase();
    let admit =
        |user: &User| world.limits.admit(if heard.verb.is_empty() { &method } else { heard.verb }, user);
    if heard.route == Route::Health || (open && heard.route == Route::Version) {
        let user = acted.unwrap_or(shown);
        return admit(&user).map(|place| (user, place));
    }
    let wish = match &heard.route {
        Route::Resource(target) => wish(target, heard.verb, &heard.query),
        _ => Wish { verb: &method, on: On::Path(&heard.path) },
    };
    let user = match acted {
        Some(acted) => impersonate::permitted(world, &shown, &wish, acted)?,
        None => shown,
    };
    let place = admit(&user)?;
    let decision = decide(world, &user, &wish);
    if decision.allowed { Ok((user, place)) } else { Err(forbidden(&user, &wish, &decision.reason)) }
}

fn authenticate(world: &World, request: &HttpRequest) -> Result<User, ApiError> {
    let certificate = request.conn_data::<Arc<PeerCertificate>>();
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let among_protocols = websocket::token(request.headers()).map(|token| format!("Bearer {token}"));
    let header = among_protocols.as_deref().or(header);
    let user =
        world.access.authenticate(certificate.map(|shown| &**shown), header, &lives(world), world.now());
    user.map_err(|Unauthenticated| ApiError::unauthorized())
}

/// Whether the service account of a token is still in the store.
pub(crate) fn lives(world: &World) -> impl Fn(&Claims) -> bool {
    |claims| world.with(|inner| claims.lives(&inner.cluster))
}

/// Authorizes a request in the server's mode.
pub(crate) fn decide(world: &World, user: &User, wish: &Wish<'_>) -> Decision {
    match world.access.authorization {
        Authorization::Rbac => world.with(|inner| inner.cluster.policy()).decide(user, wish),
        Authorization::Open => {
            let allowed = world.access.is_open_to_nobody() || !user.is_nobody();
            Decision { allowed, reason: String::new() }
        }
    }
}

/// What a request does with a resource. A read of a collection that selects one name is about that object.
pub(crate) fn wish<'a>(target: &'a Target, verb: &'a str, query: &'a Query) -> Wish<'a> {
    let selected = || {
        let fields = value(query, "fieldSelector").split(',');
        let name = |field: &'a str| field.strip_prefix("metadata.name=");
        fields.filter_map(name).map(|name| name.trim_start_matches('=')).next()
    };
    let reads = matches!(verb, "list" | "watch" | "deletecollection");
    let name = target.name.as_deref().or_else(|| selected().filter(|_| reads)).unwrap_or_default();
    // A namespace belongs to itself.
    let home = (target.group.is_empty() && target.plural == "namespaces").then_some(name);
    let namespace = target.namespace.as_deref().or(home).unwrap_or_default();
    let sub = target.sub.as_deref().unwrap_or_default();
    Wish { verb, on: On::Resource { group: &target.group, plural: &target.plural, sub, namespace, name } }
}

/// The 403 of a user who may not do this.
pub(crate) fn forbidden(user: &User, wish: &Wish<'_>, reason: &str) -> ApiError {
    let (user, verb) = (&user.name, wish.verb);
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match wish.on {
        On::Path(path) => {
            ApiError::forbidden_path(&format!("User {user:?} cannot {verb} path {path:?}{reason}"))
        }
        On::Resource { group, plural, sub, namespace, name } => {
            let place = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            let resource = if sub.is_empty() { plural.to_owned() } else { format!("{plural}/{sub}") };
            let why = format!(
                "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}{reason}"
            );
            ApiError::forbidden(Named { group, kind: plural, name }, &why)
        }
    }
}
