//! Defaults of pods and of the specs of pods inside other objects, where they depend on something.
//!
//! Answers: how is an image pulled, what does a container ask for, which quality of service does that come to?
//! 1. `spec` holds for every template too; `pod` for pods alone, where admission adds its own.
use serde_json::{Map, Value, json};

use super::path::put_missing;
use super::table;

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
/// The two taints of a node in trouble that every pod bears for a while.
const TROUBLES: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const TROUBLE_SECONDS: i64 = 300;

/// The defaults of a pod's spec.
pub(super) fn spec(spec: &mut Value) {
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if volume.as_object().is_some_and(|volume| volume.len() == 1 && volume.contains_key("name")) {
            volume["emptyDir"] = json!({});
        }
    }
    let host = spec["hostNetwork"] == true;
    for list in CONTAINER_LISTS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if container.is_object() {
                complete_container(container, host);
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
    for (at, text) in table::POD_SPEC {
        put_missing(spec, at, text);
    }
}

fn complete_container(container: &mut Value, host: bool) {
    if container.get("imagePullPolicy").is_none() {
        let policy = if is_latest(container["image"].as_str().unwrap_or_default()) {
            "Always"
        } else {
            "IfNotPresent"
        };
        container["imagePullPolicy"] = json!(policy);
    }
    for probe in PROBES {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            for (at, text) in table::PROBE {
                put_missing(probe, at, text);
            }
        }
    }
    if host {
        for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if port.get("hostPort").is_none() {
                port["hostPort"] = port["containerPort"].clone();
            }
        }
    }
    for (at, text) in table::CONTAINER {
        put_missing(container, at, text);
    }
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
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            request_limits(container);
        }
    }
    put_missing(spec, "/enableServiceLinks", "true");
}

/// What admission sets when a pod is made.
pub(super) fn admit(pod: &mut Value, new: bool) {
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if new {
        if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
            spec["terminationGracePeriodSeconds"] = json!(1);
        }
        put_missing(spec, "/priority", "0");
        put_missing(spec, "/preemptionPolicy", "\"PreemptLowerPriority\"");
        bear_troubles(spec);
        let quality = quality(spec);
        let phase = pod.pointer("/status/phase").cloned().unwrap_or_else(|| json!("Pending"));
        pod["status"] = json!({"phase": phase, "qosClass": quality});
    }
}

/// What is limited is also asked for.
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

/// The quality of service: what all containers ask for and are limited to, taken together.
pub(in super::super) fn quality(spec: &Value) -> &'static str {
    let lists =
        ["initContainers", "containers"].into_iter().filter_map(|list| spec[list].as_array()).flatten();
    let (mut any, mut guaranteed) = (false, true);
    for container in lists {
        let of = |name: &str, what: &str| {
            container["resources"][name].get(what).filter(|amount| **amount != json!("0"))
        };
        for what in ["cpu", "memory"] {
            let (request, limit) = (of("requests", what), of("limits", what));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
