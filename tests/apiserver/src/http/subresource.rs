//! The endpoints below an object, other than its status: which call of the core belongs to a path?
//!
//! Answers with the core's result; a creation below an object (binding, eviction) is answered with a Status of
//! success.
//! 1. The verb has been checked against discovery; the kind has the subresource.
//! 2. Logs, commands and ports are those of the agent; of a pod without one they are refused as by a server without nodes.
use actix_web::http::header::HeaderMap;
use actix_web::{HttpResponse, web};
use serde_json::{Value, json};

use super::accept::Answer;
use super::ask::Ask;
use super::patch::{self, patch_kind};
use super::{pod_streams, respond};
use crate::agent::LogOptions;
use crate::cluster::call::Call;
use crate::cluster::encoding::Encoding;
use crate::cluster::options::value;
use crate::cluster::status::ApiError;
use crate::cluster::store::Cluster;
use crate::cluster::subresource::Part;

/// Whether this is an endpoint of its own (the status is written like the object).
pub(crate) fn is_own(sub: Option<&str>) -> bool {
    !matches!(sub, None | Some("status"))
}

/// Whether a client of this subresource asks for a websocket.
pub(crate) fn is_stream(sub: Option<&str>) -> bool {
    matches!(sub, Some("exec" | "attach" | "portforward"))
}

/// Answers a request below an object.
///
/// # Errors
/// Those of the core; 405 for what is not served here.
pub(crate) fn answer(
    headers: &HeaderMap,
    ask: &Ask,
    socket: Option<web::Payload>,
) -> Result<HttpResponse, ApiError> {
    let sub = ask.target.sub.as_deref().unwrap_or_default();
    if let Some(part) = Part::named(sub) {
        return self::part(ask, part);
    }
    match sub {
        "scale" => scale(ask),
        "binding" | "eviction" => {
            let (encoding, body) = (ask.encoding()?, ask.json()?);
            let act = if sub == "binding" { Cluster::bind } else { Cluster::evict };
            ask.world.with(|inner| act(&mut inner.cluster, &ask.call(), &body))?;
            Ok(success(encoding))
        }
        "log" | "exec" | "attach" | "portforward" => streamed(headers, ask, socket),
        "proxy" if *ask.kind.resource.plural == *"pods" => Err(no_agent(ask)),
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// POST of a `Binding` to its own collection: the pod it names is bound.
///
/// # Errors
/// Those of a binding.
pub(crate) fn bind(ask: &Ask) -> Result<HttpResponse, ApiError> {
    let (encoding, body) = (ask.encoding()?, ask.json()?);
    let name = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    ask.world.with(|inner| {
        let pods = inner.cluster.registry.find("", "v1", "pods").cloned().expect("the table has pods");
        let call = Call { kind: &pods, name, ..ask.call() };
        inner.cluster.bind(&call, &body)
    })?;
    Ok(success(encoding))
}

fn success(encoding: Encoding) -> HttpResponse {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    respond::value(201, encoding, &status)
}

fn scale(ask: &Ask) -> Result<HttpResponse, ApiError> {
    let (encoding, call) = (ask.encoding()?, ask.call());
    let scale = match ask.verb {
        "get" => ask.world.with(|inner| inner.cluster.scale(&call))?,
        "update" => {
            let body = ask.json()?;
            ask.world.with(|inner| inner.cluster.update_scale(&call, &body))?
        }
        _ if patch::is_apply(ask) => {
            let (force, config) = patch::applied(ask)?;
            ask.world.with(|inner| inner.cluster.apply_scale(&call, &config, force))?
        }
        _ => {
            let kind = patch_kind(ask)?;
            ask.world.with(|inner| inner.cluster.patch_scale(&call, kind, &ask.body))?
        }
    };
    Ok(respond::value(200, encoding, &scale))
}

fn part(ask: &Ask, part: Part) -> Result<HttpResponse, ApiError> {
    let (call, representation) = (ask.call(), ask.representation(Answer::Object)?);
    let object = match ask.verb {
        "get" => ask.world.with(|inner| inner.cluster.get(&ask.kind, call.namespace, call.name))?,
        "update" => {
            let body = ask.json()?;
            ask.world.with(|inner| inner.cluster.update_part(&call, part, body))?
        }
        _ => {
            let kind = patch_kind(ask)?;
            ask.world.with(|inner| inner.cluster.patch_part(&call, part, kind, &ask.body))?
        }
    };
    ask.answer(200, representation, &object)
}

/// A log, a command, a process or ports of a pod.
fn streamed(headers: &HeaderMap, ask: &Ask, socket: Option<web::Payload>) -> Result<HttpResponse, ApiError> {
    let (call, agent) = (ask.call(), &ask.world.agent);
    let pod = ask.world.with(|inner| inner.cluster.get(&ask.kind, call.namespace, call.name))?.decode();
    let sub = ask.target.sub.as_deref().unwrap_or_default();
    let options = if sub == "log" { Some(LogOptions::parse(&ask.query, call.name)?) } else { None };
    let container = || pod_streams::container(&pod, call.name, value(&ask.query, "container"));
    let is_bound = pod.pointer("/spec/nodeName").and_then(Value::as_str).is_some_and(|node| !node.is_empty());
    if !is_bound || !agent.has_pod(call.namespace, call.name) {
        return Err(no_agent(ask));
    }
    let upgrade = || socket.ok_or_else(|| ApiError::bad_request("Upgrade request required"));
    let (words, is_terminal) = pod_streams::command(&ask.query);
    match options {
        Some(options) => {
            let key = (call.namespace.to_owned(), call.name.to_owned(), container()?);
            pod_streams::log(agent, &key, options)
        }
        None if sub == "portforward" => {
            let ports = value(&ask.query, "ports");
            pod_streams::ports(agent, headers, upgrade()?, call.name, ports)
        }
        None => {
            container()?;
            let words = if sub == "exec" { words } else { vec!["cat".to_owned()] };
            pod_streams::run(agent, headers, upgrade()?, words, is_terminal)
        }
    }
}

/// The answer for a pod whose node cannot be reached: no node here has an agent.
fn no_agent(ask: &Ask) -> ApiError {
    let call = ask.call();
    match ask.world.with(|inner| inner.cluster.get(&ask.kind, call.namespace, call.name)) {
        Err(error) => error,
        Ok(pod) => {
            let pod = pod.decode();
            match pod.pointer("/spec/nodeName").and_then(Value::as_str) {
                Some(node) => ApiError::not_found(ask.kind.named(node)),
                None => ApiError::bad_request(format!("pod {} does not have a host assigned", call.name)),
            }
        }
    }
}
