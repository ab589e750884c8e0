//! Whether a user may do what a request asks.
//!
//! Answers: what does the request want in the words of RBAC, is it allowed, and how is it refused?
//! 1. Who the user is, is decided before, in `auth.rs`.
use super::route::Target;
use crate::access::Authorization;
use crate::access::user::User;
use crate::cluster::options::{Query, value};
use crate::cluster::rbac::{Decision, On, Wish};
use crate::cluster::status::{ApiError, Named};
use crate::world::World;

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
