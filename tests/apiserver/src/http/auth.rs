//! Authentication, impersonation and authorization: the first step of every request.
//!
//! Answers: may this request go on, and as which user? `access` checks credentials, the core checks roles; what the request
//! wants is said in the words of RBAC.
//! 1. An invalid credential is 401, on every path.
//! 2. Then the request is authorized, before it is known whether the resource exists at all.
//! 3. Health is open to all. In an open server the anonymous user may read the version too, and the rest only while
//!    the server has no credentials.
//! 4. A request may act as another user by the `Impersonate-...` headers of `kubectl --as`. Without `Impersonate-User` the
//!    other headers are refused, as a real server does.
//! 5. Each name, group and extra value is a right of its own, `impersonate` on `users`, `groups`, `userextras`.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderName};

use super::ask::Heard;
use super::route::{Route, Target};
use super::websocket;
use crate::access::certificate::PeerCertificate;
use crate::access::service_account::{Claims, Reference};
use crate::access::user::{User, nobody};
use crate::access::{Authorization, Unauthenticated};
use crate::cluster::options::{Query, value};
use crate::cluster::rbac::{Decision, On, Wish};
use crate::cluster::status::{ApiError, Named};
use crate::cluster::store::Cluster;
use crate::requests::Place;
use crate::world::World;

/// The user of a request who may do what it asks, and the request's place in the server.
///
/// # Errors 401, 429 where too many requests are in flight, or 403.
pub(crate) fn enter(world: &World, request: &HttpRequest, heard: &Heard) -> Result<(User, Place), ApiError> {
    let shown = authenticate(world, request)?;
    let acted = asked_user(request.headers())?;
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
        Some(acted) => permitted(world, &shown, &wish, acted)?,
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
    |claims| world.with(|inner| has_account(&inner.cluster, claims))
}

/// Whether the service account, and the pod if one is named, are still the same as at the issue.
fn has_account(cluster: &Cluster, claims: &Claims) -> bool {
    let lives = |plural: &str, reference: &Reference| {
        let kind = cluster.registry.find("", "v1", plural).expect("the table has pods and service accounts");
        let found = cluster.get(kind, &claims.about.namespace, &reference.name);
        found.is_ok_and(|object| *object.uid == *reference.uid)
    };
    lives("serviceaccounts", &claims.about.serviceaccount)
        && claims.about.pod.as_ref().is_none_or(|pod| lives("pods", pod))
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

const EXTRA: &str = "impersonate-extra-";

/// The user a request wants to act as; none if it is its own.
///
/// # Errors
/// 400 for headers that name no user.
pub(crate) fn asked_user(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let texts = |name: &'static str| {
        let values = headers.get_all(HeaderName::from_static(name));
        values.filter_map(|value| value.to_str().ok()).map(str::to_owned)
    };
    let mut user = User::new(texts("impersonate-user").next().unwrap_or_default());
    user.uid = texts("impersonate-uid").next().unwrap_or_default();
    user.groups = texts("impersonate-group").collect();
    for (name, value) in headers {
        if let (Some(key), Ok(value)) = (name.as_str().strip_prefix(EXTRA), value.to_str()) {
            user.extra.entry(key.to_owned()).or_default().push(value.to_owned());
        }
    }
    if user == User::default() {
        return Ok(None);
    }
    if user.name.is_empty() {
        let groups: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
        return Err(ApiError::bad_request(format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:[]string{{{}}}, Extra:map[string][]string(nil)}} without impersonating a user name",
            user.uid,
            groups.join(", ")
        )));
    }
    Ok(Some(user))
}

/// The user to act as, with the groups that come by themselves.
///
/// # Errors
/// 403 if the request's own user may not act as this one.
pub(crate) fn permitted(world: &World, own: &User, wish: &Wish<'_>, user: User) -> Result<User, ApiError> {
    let may = |group: &str, plural: &str, sub: &str, namespace: &str, name: &str| {
        let on = On::Resource { group, plural, sub, namespace, name };
        decide(world, own, &Wish { verb: "impersonate", on }).allowed
    };
    let named = match user.as_service_account() {
        Some((namespace, name)) => may("", "serviceaccounts", "", namespace, name),
        None => may("", "users", "", "", &user.name),
    };
    let groups = user.groups.iter().all(|group| may("", "groups", "", "", group));
    let authentication = "authentication.k8s.io";
    let uid = user.uid.is_empty() || may(authentication, "uids", "", "", &user.uid);
    let mut extras = user.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
    let extra = extras.all(|(key, value)| may(authentication, "userextras", key, "", value));
    if !(named && groups && uid && extra) {
        let verb = format!("impersonate-on:user-info:{}", wish.verb);
        return Err(forbidden(own, &Wish { verb: &verb, on: wish.on }, ""));
    }
    Ok(completed(user))
}

fn completed(mut user: User) -> User {
    if user.is_nobody() && user.groups.is_empty() {
        return nobody();
    }
    let account = user.as_service_account().map(|(namespace, name)| User::service_account(namespace, name));
    if let (Some(account), true) = (account, user.groups.is_empty()) {
        user.groups = account.groups;
    }
    user.authenticated()
}
