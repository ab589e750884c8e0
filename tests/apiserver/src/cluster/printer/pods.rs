//! The row of a pod: its phase, containers and conditions as one word.
//!
//! Answers: how many containers are ready, what is the pod doing, how often has it restarted?
//! 1. The word is the phase, unless the status has a reason of its own or a container has a more specific one.
//! 2. While an init container has not finished, only init containers are checked.
use serde_json::{Value, json};

use super::view::{View, seconds};

/// What is collected while containers are checked.
struct Summary {
    word: String,
    restarts: i64,
    last_restart: Option<i64>,
    ready: usize,
}

impl Summary {
    fn count(&mut self, status: &Value) {
        self.restarts += status["restartCount"].as_i64().unwrap_or(0);
        let finished = status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str);
        self.last_restart = self.last_restart.max(finished.and_then(seconds));
    }
}

pub(super) fn cells(view: &View<'_>) -> Vec<Value> {
    let mut summary = Summary { word: phase(view), restarts: 0, last_restart: None, ready: 0 };
    let sidecars = view.list("/spec/initContainers").iter().filter(|one| is_sidecar(one)).count();
    let total = view.list("/spec/containers").len() + sidecars;
    let (initializing, of_sidecars) = init_containers(view, &mut summary);
    if !initializing || view.holds("Initialized") {
        (summary.restarts, summary.last_restart) = of_sidecars;
        containers(view, &mut summary);
    }
    if view.is_going() && view.text("/status/reason") == "NodeLost" {
        summary.word = "Unknown".to_owned();
    } else if view.is_going() && !matches!(view.text("/status/phase"), "Succeeded" | "Failed") {
        summary.word = "Terminating".to_owned();
    }
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            let stamp = jiff::Timestamp::from_second(last).unwrap_or_default().to_string();
            format!("{} ({} ago)", summary.restarts, view.since_text(&stamp))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        view.name(),
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.word),
        json!(restarts),
        view.age(),
        view.or("/status/podIPs/0/ip", "<none>"),
        view.or("/spec/nodeName", "<none>"),
        view.or("/status/nominatedNodeName", "<none>"),
        gates(view),
    ]
}

fn phase(view: &View<'_>) -> String {
    let gated = view.condition("PodScheduled").filter(|condition| condition["reason"] == "SchedulingGated");
    let word = match (gated, view.text("/status/reason")) {
        (Some(_), _) => "SchedulingGated",
        (None, "") => view.text("/status/phase"),
        (None, reason) => reason,
    };
    word.to_owned()
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// Checks the init containers: whether they are still running, and the restarts of those that run beside the
/// pod.
fn init_containers(view: &View<'_>, summary: &mut Summary) -> (bool, (i64, Option<i64>)) {
    let mut sidecars = Summary { word: String::new(), restarts: 0, last_restart: None, ready: 0 };
    let specs = view.list("/spec/initContainers");
    for (at, status) in view.list("/status/initContainerStatuses").iter().enumerate() {
        summary.count(status);
        let sidecar = specs.iter().find(|spec| spec["name"] == status["name"]).is_some_and(is_sidecar);
        if sidecar {
            sidecars.count(status);
        }
        if status.pointer("/state/terminated/exitCode") == Some(&json!(0)) {
            continue;
        }
        if sidecar && status["started"] == true {
            summary.ready += usize::from(status["ready"] == true);
            continue;
        }
        summary.word = unfinished(status, at, specs.len());
        return (true, (sidecars.restarts, sidecars.last_restart));
    }
    (false, (sidecars.restarts, sidecars.last_restart))
}

fn unfinished(status: &Value, at: usize, total: usize) -> String {
    if let Some(ended) = status.pointer("/state/terminated") {
        return format!("Init:{}", end_of(ended));
    }
    match status.pointer("/state/waiting/reason").and_then(Value::as_str) {
        Some(reason) if !matches!(reason, "" | "PodInitializing") => format!("Init:{reason}"),
        _ => format!("Init:{at}/{total}"),
    }
}

fn end_of(terminated: &Value) -> String {
    let signal = terminated["signal"].as_i64().unwrap_or(0);
    match terminated["reason"].as_str() {
        Some(reason) if !reason.is_empty() => reason.to_owned(),
        _ if signal != 0 => format!("Signal:{signal}"),
        _ => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
    }
}

/// The containers themselves, the last one first, so that the first one decides.
fn containers(view: &View<'_>, summary: &mut Summary) {
    let (mut running, mut error) = (false, None);
    for status in view.list("/status/containerStatuses").iter().rev() {
        summary.count(status);
        let waiting = status.pointer("/state/waiting/reason").and_then(Value::as_str);
        if let Some(reason) = waiting.filter(|reason| !reason.is_empty()) {
            summary.word = reason.to_owned();
        } else if let Some(ended) = status.pointer("/state/terminated") {
            summary.word = end_of(ended);
            if ended["exitCode"].as_i64().unwrap_or(0) != 0 {
                error = Some(summary.word.clone());
            }
        } else if status["ready"] == true && status.pointer("/state/running").is_some() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.word == "Completed" {
        if running && view.holds("Ready") {
            summary.word = "Running".to_owned();
        } else if let Some(error) = error {
            summary.word = error;
        } else if running {
            summary.word = "NotReady".to_owned();
        }
    }
}

fn gates(view: &View<'_>) -> Value {
    let gates = view.list("/spec/readinessGates");
    if gates.is_empty() {
        return json!("<none>");
    }
    let open =
        gates.iter().filter(|gate| gate["conditionType"].as_str().is_some_and(|name| view.holds(name)));
    json!(format!("{}/{}", open.count(), gates.len()))
}

/// The conditions in the row of a finished pod.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod.pointer("/status/phase").and_then(Value::as_str) {
        Some("Succeeded") => ("Succeeded", "The pod has completed successfully."),
        Some("Failed") => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}
