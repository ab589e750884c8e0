//! Acting as another user: the `Impersonate-...` headers of `kubectl --as`.
//!
//! Answers: as which user does this request want to act, and may its user do that?
//! 1. Without `Impersonate-User` the other headers are refused, as a real server does.
//! 2. Each name, group and extra value is a right of its own, `impersonate` on `users`, `groups`, `userextras`.
use actix_web::http::header::{HeaderMap, HeaderName};

use super::rights::{decide, forbidden};
use crate::access::user::{User, nobody};
use crate::cluster::rbac::{On, Wish};
use crate::cluster::status::ApiError;
use crate::world::World;

const EXTRA: &str = "impersonate-extra-";

/// The user a request wants to act as; none if it is its own.
///
/// # Errors
/// 400 for headers that name no user.
pub(crate) fn asked(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
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
