//! The rows of kinds that create pods, and of events and revisions.
//!
//! Answers: how many replicas are wanted and there, with which containers and which selector?
//! 1. For other kinds it returns none.
use serde_json::{Value, json};

use super::view::{View, human, seconds};

const TEMPLATE: &str = "/spec/template/spec";

pub(super) fn cells(group: &str, plural: &str, view: &View<'_>) -> Option<Vec<Value>> {
    let number = |at: &str| json!(view.number(at));
    let [names, images] = view.containers(TEMPLATE);
    let mut cells = vec![view.name()];
    match (group, plural) {
        ("apps", "deployments") => {
            cells.extend([
                ready(view),
                number("/status/updatedReplicas"),
                number("/status/availableReplicas"),
            ]);
            let selector = view.at("/spec/selector").map(crate::cluster::selector::label_text);
            cells.extend([view.age(), names, images, json!(selector.unwrap_or_default())]);
        }
        ("apps", "statefulsets") => cells.extend([ready(view), view.age(), names, images]),
        ("apps", "replicasets") | ("", "replicationcontrollers") => {
            let selector = if group.is_empty() {
                view.labels("/spec/selector")
            } else {
                view.selector("/spec/selector")
            };
            cells.extend(["/spec/replicas", "/status/replicas", "/status/readyReplicas"].map(number));
            cells.extend([view.age(), names, images, selector]);
        }
        ("apps", "daemonsets") => {
            let counts = [
                "desiredNumberScheduled",
                "currentNumberScheduled",
                "numberReady",
                "updatedNumberScheduled",
                "numberAvailable",
            ];
            cells.extend(counts.map(|name| number(&format!("/status/{name}"))));
            cells.extend([view.labels("/spec/template/spec/nodeSelector"), view.age()]);
            cells.extend([names, images, view.selector("/spec/selector")]);
        }
        ("apps", "controllerrevisions") => {
            cells.extend([controller(view), number("/revision"), view.age()]);
        }
        ("batch", "jobs") => {
            cells.extend([json!(job_status(view)), completions(view), json!(job_duration(view)), view.age()]);
            cells.extend([names, images, view.selector("/spec/selector")]);
        }
        ("batch", "cronjobs") => cells.extend(cron_job(view)),
        ("", "podtemplates") => {
            let [names, images] = view.containers("/template/spec");
            cells.extend([names, images, view.labels("/template/metadata/labels")]);
        }
        ("autoscaling", "horizontalpodautoscalers") => cells.extend(autoscaler(view)),
        ("" | "events.k8s.io", "events") => return Some(event(view)),
        _ => return None,
    }
    Some(cells)
}

fn ready(view: &View<'_>) -> Value {
    json!(format!("{}/{}", view.number("/status/readyReplicas"), view.number("/spec/replicas")))
}

fn controller(view: &View<'_>) -> Value {
    let owner = view.list("/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true);
    let Some(owner) = owner else { return json!("<none>") };
    let text = |name: &str| owner[name].as_str().unwrap_or_default().to_owned();
    let api_version = text("apiVersion");
    let kind = match api_version.split_once('/') {
        Some((group, _)) => format!("{}.{group}", text("kind")),
        None => text("kind"),
    };
    json!(format!("{}/{}", kind.to_lowercase(), text("name")))
}

fn completions(view: &View<'_>) -> Value {
    let (succeeded, parallelism) = (view.number("/status/succeeded"), view.number("/spec/parallelism"));
    json!(match view.at("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    })
}

fn job_status(view: &View<'_>) -> &'static str {
    let over = [("Complete", "Complete"), ("Failed", "Failed")];
    let other = [
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    let found = |words: &[(&str, &'static str)]| {
        words.iter().find(|(condition, _)| view.holds(condition)).map(|(_, word)| *word)
    };
    match found(&over) {
        Some(word) => word,
        None if view.is_going() => "Terminating",
        None => found(&other).unwrap_or("Running"),
    }
}

fn job_duration(view: &View<'_>) -> String {
    let at = |name: &str| seconds(view.text(&format!("/status/{name}")));
    match (at("startTime"), at("completionTime")) {
        (None, _) => String::new(),
        (Some(_), None) => view.since("/status/startTime"),
        (Some(start), Some(end)) => human(end - start),
    }
}

fn cron_job(view: &View<'_>) -> Vec<Value> {
    let suspended = match view.at("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = match view.text("/status/lastScheduleTime") {
        "" => "<none>".to_owned(),
        text => view.since_text(text),
    };
    let [names, images] = view.containers("/spec/jobTemplate/spec/template/spec");
    vec![
        json!(view.text("/spec/schedule")),
        view.or("/spec/timeZone", "<none>"),
        json!(suspended),
        json!(view.len("/status/active")),
        json!(last),
        view.age(),
        names,
        images,
        view.selector("/spec/jobTemplate/spec/selector"),
    ]
}

fn autoscaler(view: &View<'_>) -> Vec<Value> {
    let target =
        format!("{}/{}", view.text("/spec/scaleTargetRef/kind"), view.text("/spec/scaleTargetRef/name"));
    let least = view.at("/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), Value::to_string);
    let current = view.list("/status/currentMetrics");
    let metrics: Vec<String> = view
        .list("/spec/metrics")
        .iter()
        .enumerate()
        .map(|(at, spec)| metric(spec, current.get(at)))
        .collect();
    let shown = match metrics.as_slice() {
        [] => "<none>".to_owned(),
        [first, second, more @ ..] if !more.is_empty() => {
            format!("{first}, {second} + {} more...", more.len())
        }
        all => all.join(", "),
    };
    vec![
        json!(target),
        json!(shown),
        json!(least),
        json!(view.number("/spec/maxReplicas")),
        json!(view.number("/status/currentReplicas")),
        view.age(),
    ]
}

/// One metric as `current/target`.
fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (source, named, averaged) = match spec["type"].as_str() {
        Some("External") => ("external", false, true),
        Some("Pods") => ("pods", false, false),
        Some("Object") => ("object", false, true),
        Some("Resource") => ("resource", true, false),
        Some("ContainerResource") => ("containerResource", true, false),
        _ => return "<unknown type>".to_owned(),
    };
    let target = &spec[source]["target"];
    let current = |name: &str| {
        let found = status.and_then(|status| status[source]["current"].get(name));
        found.map_or_else(|| "<unknown>".to_owned(), plain)
    };
    let text = if let Some(average) = target.get("averageValue") {
        let mark = if averaged { " (avg)" } else { "" };
        format!("{}/{}{mark}", current("averageValue"), plain(average))
    } else if named {
        let wanted = target
            .get("averageUtilization")
            .map_or_else(|| "<auto>".to_owned(), |wanted| format!("{wanted}%"));
        let now = current("averageUtilization");
        let percent = if now == "<unknown>" { "" } else { "%" };
        format!("{now}{percent}/{wanted}")
    } else {
        format!("{}/{}", current("value"), target.get("value").map(plain).unwrap_or_default())
    };
    if named { format!("{}: {text}", spec[source]["name"].as_str().unwrap_or_default()) } else { text }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn event(view: &View<'_>) -> Vec<Value> {
    let first = match view.text("/firstTimestamp") {
        "" => view.since("/eventTime"),
        text => view.since_text(text),
    };
    let series = view.at("/series").is_some();
    let last = match view.text("/lastTimestamp") {
        _ if series => view.since("/series/lastObservedTime"),
        "" => first.clone(),
        text => view.since_text(text),
    };
    let count = if series { view.number("/series/count") } else { view.number("/count").max(1) };
    let (kind, name) = (view.text("/involvedObject/kind").to_lowercase(), view.text("/involvedObject/name"));
    let either = |one: &str, other: &str| match view.text(one) {
        "" => view.text(other).to_owned(),
        text => text.to_owned(),
    };
    let component = either("/source/component", "/reportingComponent");
    let source = match either("/source/host", "/reportingInstance").as_str() {
        "" => component,
        instance => format!("{component}, {instance}"),
    };
    vec![
        json!(last),
        json!(view.text("/type")),
        json!(view.text("/reason")),
        json!(if name.is_empty() { kind } else { format!("{kind}/{name}") }),
        json!(view.text("/involvedObject/fieldPath")),
        json!(source),
        json!(view.text("/message").trim()),
        json!(first),
        json!(count),
        view.name(),
    ]
}
