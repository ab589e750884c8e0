//! The endpoints of the admin port, each a few lines between JSON and a method of the library.
//!
//! Answers: which request sets which switch, and what does the port report about the server? `HELP` is the whole list.
//! 1. What can block (a port that closes waits for its threads) runs off the serving thread.
//! 2. An answer is JSON, but for the help and the kubeconfig; a refusal is `{"error": text}`.
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::kind::ResourceId;
use crate::fault::Fault;
use crate::faults::{FaultError, Faults};

const BODY_LIMIT: usize = 1024 * 1024;
const HELP: &str = "\
GET    /status      version, objects and watches by resource, clock, standing faults
GET    /faults      the standing faults
POST   /faults      a fault: {\"fault\": \"freeze-watches\", \"resource\": \"pods\"}; \"seconds\" takes it back after so much time of the server's clock
DELETE /faults      put all switches back
GET    /counts      how often each fault that was set has acted
DELETE /counts      forget the counts
GET    /requests    the requests seen, oldest first
DELETE /requests    forget them
GET    /kubeconfig  a kubeconfig for the API
POST   /clock       any of {\"set\": \"2030-01-01T00:00:00Z\", \"advanceSeconds\": 60, \"stopped\": true}

`informer-apiserver fault --help` lists the faults; their names and members are those of the command.
";

/// A change of the clock.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClockChange {
    stopped: Option<bool>,
    /// A time stamp as the API writes them.
    set: Option<String>,
    advance_seconds: Option<u64>,
}

/// The handler of every request.
pub(super) async fn handle(
    request: HttpRequest,
    payload: web::Payload,
    faults: web::Data<Faults>,
) -> HttpResponse {
    let faults = faults.get_ref().clone();
    let (method, path) = (request.method().as_str(), request.path());
    if method == "POST" && !is_json(&request) {
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json");
    }
    let Ok(Ok(body)) = payload.to_bytes_limited(BODY_LIMIT).await else {
        return refused(StatusCode::BAD_REQUEST, "the body cannot be read");
    };
    match (method, path) {
        ("GET", "/") => HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(HELP),
        ("GET", "/status") => HttpResponse::Ok().json(status(&faults)),
        ("GET", "/faults") => standing(&faults),
        ("POST", "/faults") => fault(faults, &body).await,
        ("DELETE", "/faults") => {
            faults.clear();
            let opened = web::block(move || faults.accept_connections().map(|()| faults)).await;
            match opened {
                Ok(Ok(faults)) => standing(&faults),
                _ => refused(StatusCode::CONFLICT, "cannot listen again"),
            }
        }
        ("GET", "/counts") => HttpResponse::Ok().json(faults.counts()),
        ("DELETE", "/counts") => {
            faults.clear_counts();
            HttpResponse::Ok().json(json!([]))
        }
        ("GET", "/requests") => HttpResponse::Ok().json(requests(&faults)),
        ("DELETE", "/requests") => {
            faults.world.with(|inner| inner.log.clear());
            HttpResponse::Ok().json(json!([]))
        }
        ("GET", "/kubeconfig") => {
            HttpResponse::Ok().content_type("application/yaml").body(faults.door.kubeconfig())
        }
        ("POST", "/clock") => clock(&faults, &body),
        _ => refused(StatusCode::NOT_FOUND, "no such path; GET / tells what there is"),
    }
}

fn is_json(request: &HttpRequest) -> bool {
    let given = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    given.is_some_and(|value| value.split(';').next().unwrap_or_default().trim() == "application/json")
}

fn refused(code: StatusCode, why: &str) -> HttpResponse {
    HttpResponse::build(code).json(json!({ "error": why }))
}

fn standing(faults: &Faults) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "faults": faults.active() }))
}

/// Applies the fault in the body, and ends it later if the body says so.
async fn fault(faults: Faults, body: &[u8]) -> HttpResponse {
    let (fault, seconds) = match parsed(body) {
        Ok(parsed) => parsed,
        Err(why) => return refused(StatusCode::BAD_REQUEST, &why),
    };
    if let (Some(seconds), Some(undone)) = (seconds, fault.undone()) {
        let faults = faults.clone();
        let due = faults.world.clock.elapsed().saturating_add(Duration::from_secs(seconds));
        actix_web::rt::spawn(async move {
            faults.world.clock.sleep_until(due).await;
            // If it cannot be ended, no client is left to report that to.
            let _late = web::block(move || faults.apply(&undone)).await;
        });
    }
    match web::block(move || faults.apply(&fault).map(|()| faults)).await {
        Ok(Ok(faults)) => standing(&faults),
        Ok(Err(error @ (FaultError::UnknownResource { .. } | FaultError::UnknownVerb(_)))) => {
            refused(StatusCode::BAD_REQUEST, &error.to_string())
        }
        Ok(Err(error)) => refused(StatusCode::CONFLICT, &error.to_string()),
        Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn parsed(body: &[u8]) -> Result<(Fault, Option<u64>), String> {
    let mut value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let seconds = match value.as_object_mut().and_then(|members| members.remove("seconds")) {
        Some(seconds) => Some(seconds.as_u64().ok_or_else(|| "seconds must be a whole number".to_owned())?),
        None => None,
    };
    let fault: Fault = serde_json::from_value(value).map_err(|error| error.to_string())?;
    if seconds.is_some() && fault.undone().is_none() {
        return Err("this fault is over as soon as it has happened: it takes no seconds".to_owned());
    }
    Ok((fault, seconds))
}

fn clock(faults: &Faults, body: &[u8]) -> HttpResponse {
    let change: ClockChange = match serde_json::from_slice(body) {
        Ok(change) => change,
        Err(error) => return refused(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let set = change.set.as_deref().map(str::parse::<jiff::Timestamp>).transpose();
    let set = match set {
        Ok(set) => set,
        Err(error) => return refused(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let clock = &faults.world.clock;
    match change.stopped {
        Some(true) => clock.stop(),
        Some(false) => clock.resume(),
        None => {}
    }
    if let Some(to) = set {
        clock.set(to.into());
    }
    if let Some(seconds) = change.advance_seconds {
        clock.advance(Duration::from_secs(seconds));
    }
    HttpResponse::Ok().json(json!({ "now": clock.timestamp().to_string() }))
}

fn status(faults: &Faults) -> Value {
    let (revision, counts) = faults.world.with(|inner| (inner.cluster.revision(), inner.cluster.counts()));
    let resource = |(id, objects, watches): &(ResourceId, usize, usize)| {
        (id.to_string(), json!({ "objects": objects, "watches": watches }))
    };
    let resources: serde_json::Map<String, Value> = counts.iter().map(resource).collect();
    json!({
        "url": faults.door.url(), "revision": revision.to_string(), "resources": resources,
        "now": faults.world.clock.timestamp().to_string(), "faults": faults.active(),
    })
}

fn requests(faults: &Faults) -> Value {
    let all = faults.world.with(|inner| inner.log.all());
    all.iter()
        .map(|seen| {
            json!({"number": seen.number, "method": seen.method, "path": seen.path, "query": seen.query,
                "verb": seen.verb, "resource": seen.resource})
        })
        .collect()
}
