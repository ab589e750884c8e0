//! `/healthz`, `/livez`, `/readyz`: as one word, as a text, and check by check.
//!
//! Answers: is this server healthy? It is, as long as it answers; the checks are those of a real server that apply here.
//! 1. A single check is plain text without `X-Content-Type-Options`, as on a real server.
use actix_web::HttpResponse;
use actix_web::http::header::X_CONTENT_TYPE_OPTIONS;

use super::respond;
use crate::cluster::options::Query;
use crate::cluster::status::ApiError;

const ALIVE: &[&str] = &["ping", "log", "etcd"];
const READY: &[&str] = &["ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"];

/// # Errors
/// 404 for a check that is not there.
pub(crate) fn answer(path: &str, query: &Query) -> Result<HttpResponse, ApiError> {
    let path = path.trim_matches('/');
    let (probe, check) = path.split_once('/').unwrap_or((path, ""));
    let checks = if probe == "readyz" { READY } else { ALIVE };
    if !check.is_empty() {
        if !checks.contains(&check) {
            return Err(ApiError::no_such_path());
        }
        let mut answer = respond::text(200, "ok".to_owned());
        answer.headers_mut().remove(X_CONTENT_TYPE_OPTIONS);
        return Ok(answer);
    }
    let excluded = |check: &str| query.iter().any(|(name, value)| name == "exclude" && value == check);
    if !query.iter().any(|(name, _)| name == "verbose") {
        return Ok(respond::text(200, "ok".to_owned()));
    }
    let line = |check: &&str| match excluded(check) {
        true => format!("[+]{check} excluded: ok\n"),
        false => format!("[+]{check} ok\n"),
    };
    let lines: String = checks.iter().map(line).collect();
    Ok(respond::text(200, format!("{lines}{probe} check passed\n")))
}
