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

use super::ask::Heard;
use super::rights::{decide, forbidden, wish};
use super::route::Route;
use super::{impersonate, websocket};
use crate::access::certificate::PeerCertificate;
use crate::access::service_account::{Claims, Reference};
use crate::access::user::User;
use crate::access::{Authorization, Unauthenticated};
use crate::cluster::rbac::{On, Wish};
use crate::cluster::status::ApiError;
use crate::cluster::store::Cluster;
use crate::in_flight::Place;
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
