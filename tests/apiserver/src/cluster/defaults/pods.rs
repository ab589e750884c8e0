//! Defaults of pods and of the specs of pods inside other objects that depend on other members.
//!
//! Answers: how is an image pulled, what does a container request, which quality of service follows?
//! 1. `spec` applies to every template too; `pod` only to pods, where admission adds more.
use serde_json::{Map, Value, json};

use super::{put_missing, rows};
use crate::cluster::metadata::timestamp;
use crate::cluster::schema::quantity;

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
/// The two taints of an unhealthy node that every pod tolerates for a while.
const TROUBLES: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const TROUBLE_SECONDS: i64 = 300;
/// The priority classes that every cluster has from the start.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// The defaults of a pod's spec.
pub(super) fn spec(spec: &mut Value) {
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if volume.as_object().is_some_and(|volume| volume.len() == 1 && volume.contains_key("name")) {
            volume["emptyDir"] = json!({});
        }
        for (at, text) in rows("volume-source") {
            put_missing(volume, at, text);
        }
        if let Some(image) = volume.get_mut("image").filter(|image| image.get("pullPolicy").is_none()) {
            image["pullPolicy"] = json!(pull_policy(image["reference"].as_str().unwrap_or_default()));
        }
    }
    for list in CONTAINER_LISTS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if container.is_object() {
                complete_container(container);
            }
        }
    }
    // The old name of the account is kept equal to the new one.
    let text = |name: &str| spec[name].as_str().unwrap_or_default().to_owned();
    match (text("serviceAccountName"), text("serviceAccount")) {
        (new, old) if !new.is_empty() && old != new => spec["serviceAccount"] = json!(new),
        (new, old) if new.is_empty() && !old.is_empty() => spec["serviceAccountName"] = json!(old),
        _ => {}
    }
    for (at, text) in rows("pod-spec") {
        put_missing(spec, at, text);
    }
}

fn complete_container(container: &mut Value) {
    if container.get("imagePullPolicy").is_none() {
        container["imagePullPolicy"] = json!(pull_policy(container["image"].as_str().unwrap_or_default()));
    }
    for probe in PROBES {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            for (at, text) in rows("probe") {
                put_missing(probe, at, text);
            }
        }
    }
    for (at, text) in rows("container") {
        put_missing(container, at, text);
    }
}

fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) { "Always" } else { "IfNotPresent" }
}

/// Whether an image is named without a tag or digest, or by `latest`.
fn is_latest(image: &str) -> bool {
    if image.contains('@') || image.is_empty() {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// The defaults of a pod itself.
pub(super) fn pod(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let host = spec["hostNetwork"] == true;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            request_limits(container);
            if host {
                publish_ports(container);
            }
        }
    }
    request_pod_limits(spec);
    put_missing(spec, "/enableServiceLinks", "true");
}

/// What admission sets when a pod is created. `class` finds a priority class.
pub(super) fn admit(pod: &mut Value, new: bool, now: i64, class: &dyn Fn(&str) -> Option<Value>) {
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if !new {
        return;
    }
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    prioritize(spec, class);
    bear_troubles(spec);
    let mut status = json!({"phase": "Pending", "qosClass": quality(spec)});
    if spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        status["conditions"] = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": message, "lastProbeTime": null, "lastTransitionTime": timestamp(now)}]);
    }
    for (name, value) in pod["status"].as_object().cloned().into_iter().flatten() {
        status[name] = value;
    }
    pod["status"] = status;
}

/// A pod has the priority of its class, or of the default class.
fn prioritize(spec: &mut Value, class: &dyn Fn(&str) -> Option<Value>) {
    let name = spec["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let system = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name);
    let found = class(&name);
    let told = |member: &str| found.as_ref().and_then(|class| class.get(member)).cloned();
    if let (true, Some(default)) = (name.is_empty(), found.as_ref()) {
        spec["priorityClassName"] = default["metadata"]["name"].clone();
    }
    let value = told("value").or_else(|| system.map(|(_, value)| json!(value))).unwrap_or_else(|| json!(0));
    put_missing(spec, "/priority", &value.to_string());
    let preemption = told("preemptionPolicy").unwrap_or_else(|| json!("PreemptLowerPriority"));
    put_missing(spec, "/preemptionPolicy", &preemption.to_string());
}

/// A container on the network of its node has the ports of the node.
fn publish_ports(container: &mut Value) {
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.get("hostPort").is_none() {
            port["hostPort"] = port.get("containerPort").cloned().unwrap_or_else(|| json!(0));
        }
    }
}

/// A limit is also the default of the request.
fn request_limits(container: &mut Value) {
    let Some(limits) = container.pointer("/resources/limits").and_then(Value::as_object).cloned() else {
        return;
    };
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let requests = resources.entry("requests").or_insert_with(|| Value::Object(Map::new()));
    for (name, limit) in limits {
        if requests.get(&name).is_none() {
            requests[name] = limit;
        }
    }
}

/// A pod that is limited as a whole requests the sum of its containers' requests, else its limits.
fn request_pod_limits(spec: &mut Value) {
    let limits = spec.pointer("/resources/limits").and_then(Value::as_object).cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let mut asked: Vec<(&str, Value)> = Vec::new();
    for name in ["cpu", "memory"] {
        let lists = spec["containers"].as_array().into_iter().flatten();
        let amounts = lists.filter_map(|container| container["resources"]["requests"][name].as_str());
        let sum = amounts.map(str::to_owned).reduce(|sum, amount| quantity::add(&sum, &amount));
        asked.extend(sum.map(|sum| (name, json!(sum))));
    }
    let requests = &mut spec["resources"]["requests"];
    if !requests.is_object() {
        *requests = json!({});
    }
    let of_pods = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    let limits = limits.iter().map(|(name, limit)| (name.as_str(), limit.clone()));
    for (name, amount) in asked.into_iter().chain(limits).filter(|(name, _)| of_pods(name)) {
        if requests.get(name).is_none() {
            requests[name] = amount;
        }
    }
}

fn bear_troubles(spec: &mut Value) {
    let known = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let borne = |taint: &str| {
        known.iter().any(|toleration| {
            let is = |name: &str, wanted: &str| {
                toleration[name].as_str().is_none_or(|text| text.is_empty() || text == wanted)
            };
            is("key", taint) && is("effect", "NoExecute")
        })
    };
    let missing = TROUBLES.into_iter().filter(|taint| !borne(taint));
    let added: Vec<Value> = missing
        .map(|key| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TROUBLE_SECONDS}))
        .collect();
    if !added.is_empty() {
        spec["tolerations"] = Value::Array(known.into_iter().chain(added).collect());
    }
}

/// The quality of service: from the requests and limits of all containers together; for a pod that is limited
/// as a whole, from its own.
pub(in super::super) fn quality(spec: &Value) -> &'static str {
    let whole = [spec];
    let lists =
        ["initContainers", "containers"].into_iter().filter_map(|list| spec[list].as_array()).flatten();
    let asked: Vec<&Value> = if spec["resources"].is_object() { whole.to_vec() } else { lists.collect() };
    let (mut any, mut guaranteed) = (false, true);
    for container in asked {
        let of = |name: &str, what: &str| {
            container["resources"][name].get(what).filter(|amount| **amount != json!("0"))
        };
        for what in ["cpu", "memory"] {
            let (request, limit) = (of("requests", what), of("limits", what));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request.is_none_or(|request| is_same(request, limit));
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Whether both are the same amount, in any form.
fn is_same(request: &Value, limit: Option<&Value>) -> bool {
    let nanos = |amount: Option<&Value>| amount.and_then(Value::as_str).map(quantity::nanos);
    Some(request) == limit || nanos(Some(request)) == nanos(limit)
}
