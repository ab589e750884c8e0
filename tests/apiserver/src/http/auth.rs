//! Who asks: a static bearer token, or nobody.
//!
//! Answers: may this request go on? There are no roles: who has the token may do everything.
//! 1. Without a configured token everyone may do everything.
//! 2. With one, a wrong token is 401; none at all is the anonymous user, who is refused with 403 except on
//!    health and version, as on a real server.
use crate::cluster::status::{ApiError, Named};

use super::route::{Route, Target};

const OPEN: [Route; 2] = [Route::Health, Route::Version];

/// # Errors
/// 401 or 403.
pub(crate) fn check(
    token: Option<&str>,
    header: Option<&str>,
    route: &Route,
    verb: &str,
    path: &str,
) -> Result<(), ApiError> {
    let Some(token) = token else { return Ok(()) };
    match header.and_then(|header| header.strip_prefix("Bearer ")) {
        Some(given) if given.trim() == token => Ok(()),
        Some(_) => Err(ApiError::unauthorized()),
        None if OPEN.contains(route) => Ok(()),
        None => Err(match route {
            Route::Resource(target) => forbidden(target, verb, "system:anonymous"),
            _ => ApiError::forbidden_path(path),
        }),
    }
}

/// The 403 of a user who may not do this.
pub(crate) fn forbidden(target: &Target, verb: &str, user: &str) -> ApiError {
    let place = match &target.namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User {user:?} cannot {verb} resource {:?} in API group {:?} {place}",
        target.plural, target.group
    );
    let name = target.name.as_deref().unwrap_or_default();
    ApiError::forbidden(Named { group: &target.group, kind: &target.plural, name }, &why)
}
