//! `/healthz`, `/livez`, `/readyz`: as one word, as a text, and check by check.
//!
//! Answers: is this server healthy? It is, as long as it answers and can keep its writes; the checks are those of a
//! real server that apply here.
//! 1. A single check is plain text without `X-Content-Type-Options`, as on a real server.
use actix_web::HttpResponse;
use actix_web::http::header::X_CONTENT_TYPE_OPTIONS;

use super::respond;
use crate::cluster::options::Query;
use crate::cluster::status::ApiError;
use crate::world::World;

const ALIVE: &[&str] = &["ping", "log", "etcd"];
const READY: &[&str] = &["ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"];

/// The check that fails when changes are not kept any more.
const STORE: &str = "etcd";

/// # Errors
/// 404 for a check that is not there.
pub(crate) fn answer(world: &World, path: &str, query: &Query) -> Result<HttpResponse, ApiError> {
    let path = path.trim_matches('/');
    let (probe, check) = path.split_once('/').unwrap_or((path, ""));
    let checks = if probe == "readyz" { READY } else { ALIVE };
    let fails = |check: &str| check == STORE && world.kept().is_err();
    if !check.is_empty() {
        if !checks.contains(&check) {
            return Err(ApiError::no_such_path());
        }
        if fails(check) {
            return Ok(respond::text(500, "internal server error: reason withheld\n".to_owned()));
        }
        let mut answer = respond::text(200, "ok".to_owned());
        answer.headers_mut().remove(X_CONTENT_TYPE_OPTIONS);
        return Ok(answer);
    }
    let excluded = |check: &str| query.iter().any(|(name, value)| name == "exclude" && value == check);
    let failed = checks.iter().any(|check| fails(check) && !excluded(check));
    if !failed && !query.iter().any(|(name, _)| name == "verbose") {
        return Ok(respond::text(200, "ok".to_owned()));
    }
    let line = |check: &&str| match (excluded(check), fails(check)) {
        (true, _) => format!("[+]{check} excluded: ok\n"),
        (false, true) => format!("[-]{check} failed: reason withheld\n"),
        (false, false) => format!("[+]{check} ok\n"),
    };
    let lines: String = checks.iter().map(line).collect();
    let (code, verdict) = if failed { (500, "failed") } else { (200, "passed") };
    Ok(respond::text(code, format!("{lines}{probe} check {verdict}\n")))
}
