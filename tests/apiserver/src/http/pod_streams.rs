//! Logs, commands, attached processes and forwarded ports of pods: what the agent gives, over HTTP and websockets.
//!
//! Answers: which container is meant, and what does its agent answer? The same for the API and for the kubelet's own
//! paths (`kubelet.rs`); only the names of options differ.
//! 1. A command that ends with a code other than 0 is a Status `NonZeroExitCode`; one that does not exist is an internal
//!    error, as a real kubelet reports it.
//! 2. Each port has two channels, which begin with its number in two bytes.
use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use actix_web::{HttpResponse, web};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::channels::{self, Session, WAITING};
use crate::agent::{Agent, Io, LogOptions};
use crate::cluster::options::{Query, flag};
use crate::cluster::status::ApiError;

/// The channel of a command's status.
const STATUS: u8 = 3;

/// A container: namespace, pod, name.
pub(crate) type ContainerKey = (String, String, String);

/// The container that a request means.
///
/// # Errors 400 if the pod has several, or not the one that is named.
pub(crate) fn container(pod: &Value, name: &str, asked: &str) -> Result<String, ApiError> {
    let list = |field: &str| {
        let containers = pod.pointer(&format!("/spec/{field}")).and_then(Value::as_array);
        let names = containers.into_iter().flatten().filter_map(|container| container["name"].as_str());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let main = list("containers");
    let all = [list("initContainers"), main.clone(), list("ephemeralContainers")].concat();
    match (asked, main.as_slice()) {
        ("", [one]) => Ok(one.clone()),
        ("", []) => Err(ApiError::bad_request(format!("a container name must be specified for pod {name}"))),
        ("", _) => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
        (asked, _) if all.iter().any(|known| known == asked) => Ok(asked.to_owned()),
        _ => Err(ApiError::bad_request(format!("container {asked} is not valid for pod {name}"))),
    }
}

/// A log.
///
/// # Errors
/// 400 if there is none.
pub(crate) fn log(agent: &Agent, key: &ContainerKey, options: LogOptions) -> Result<HttpResponse, ApiError> {
    let (_, pod, container) = key;
    let what = if options.previous { "previous terminated container" } else { "container" };
    let log = agent.log_of(key, options.previous);
    let log =
        log.ok_or_else(|| ApiError::bad_request(format!("{what} {container:?} in pod {pod:?} not found")))?;
    let mut answer = HttpResponse::Ok();
    answer.insert_header((CONTENT_TYPE, "text/plain"));
    Ok(answer.streaming(log.read(options, agent.now())))
}

/// A command, or the main process of a container, which copies its input.
///
/// # Errors
/// 400 for a request without a websocket.
pub(crate) fn run(
    agent: &Agent,
    headers: &HeaderMap,
    payload: web::Payload,
    words: Vec<String>,
    is_terminal: bool,
) -> Result<HttpResponse, ApiError> {
    let name = words.first().cloned().unwrap_or_default();
    let program = agent.program(&name);
    let (said_by_it, said) = mpsc::channel(WAITING);
    let (heard, heard_by_it) = mpsc::channel(WAITING);
    let io = Io { words, is_terminal, heard: heard_by_it, said: said_by_it };
    let work = Box::pin(async move {
        let status = match program {
            Some(program) => status_of(program(io).await),
            None => not_there(&name),
        };
        Some((STATUS, Bytes::from(status.to_string())))
    });
    channels::answer(
        headers,
        payload,
        agent.is_v4_only(),
        Session { work, said, heard, _running: agent.count() },
    )
}

/// Ports: each sends back what it gets, unless the agent refuses it.
///
/// # Errors
/// 400 for a request without a websocket or without ports.
pub(crate) fn ports(
    agent: &Agent,
    headers: &HeaderMap,
    payload: web::Payload,
    pod: &str,
    ports: &str,
) -> Result<HttpResponse, ApiError> {
    let parsed: Result<Vec<u16>, _> = ports.split(',').map(str::parse).collect();
    let ports = parsed.map_err(|_| ApiError::bad_request(format!("query parameter {ports:?} is no port")))?;
    let (said_by_it, said) = mpsc::channel(WAITING);
    let (heard, mut heard_by_it) = mpsc::channel::<(u8, Option<Bytes>)>(WAITING);
    let (agent_of_ports, pod) = (agent.clone(), pod.to_owned());
    let work = Box::pin(async move {
        let mut refused = 0;
        let say = async |channel, bytes: Bytes| drop(said_by_it.send((channel, bytes)).await);
        for (channel, port) in (0_u8..).step_by(2).zip(&ports) {
            say(channel, Bytes::copy_from_slice(&port.to_le_bytes())).await;
            say(channel + 1, Bytes::copy_from_slice(&port.to_le_bytes())).await;
            if let Some(reason) = agent_of_ports.refusal_of(*port) {
                let text = format!("error forwarding port {port} to pod {pod}, uid : {reason}");
                say(channel + 1, Bytes::from(text)).await;
                refused += 1;
            }
        }
        while refused < ports.len()
            && let Some((channel, bytes)) = heard_by_it.recv().await
        {
            let port = ports.get(usize::from(channel / 2));
            let is_open = port.is_some_and(|port| agent_of_ports.refusal_of(*port).is_none());
            if let Some(bytes) = bytes.filter(|_| is_open && channel % 2 == 0) {
                say(channel, bytes).await;
            }
        }
        None
    });
    // Kubelets know no v5 for ports.
    channels::answer(headers, payload, true, Session { work, said, heard, _running: agent.count() })
}

/// The words of a command, and whether it has a terminal.
pub(crate) fn command(query: &Query) -> (Vec<String>, bool) {
    let words = query.iter().filter(|(name, _)| name == "command").map(|(_, word)| word.clone());
    (words.collect(), flag(query, "tty"))
}

fn status_of(code: i32) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit code {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

fn not_there(name: &str) -> Value {
    let why = format!("exec: {name:?}: executable file not found in $PATH");
    let message = format!("error executing command in container: {why}");
    json!({
        "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": format!("Internal error occurred: {message}"), "details": {"causes": [{"message": message}]},
    })
}
