//! Defaults of other kinds that depend on other members: strategies, selectors, subjects, secrets, storage.
//!
//! Answers: which defaults follow from what the client wrote, and which are written only when the object is created?
//! 1. `create` runs once in an object's life, `complete` at every write.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::put_missing;
use crate::cluster::convert::{TEMPLATES, templates};
use crate::cluster::metadata::{member, metadata_mut, timestamp};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The count of a daemon set's templates, which only the server sets.
pub(super) fn count_templates(set: &mut Value, old: Option<&Value>) {
    let count = match old {
        None => templates(set).max(1),
        Some(old) => templates(old) + i64::from(old["spec"]["template"] != set["spec"]["template"]),
    };
    let annotations = metadata_mut(set).entry("annotations").or_insert_with(|| json!({}));
    annotations[TEMPLATES] = json!(count.to_string());
}

/// What is written when the object is created.
pub(super) fn create(group: &str, plural: &str, body: &mut Value, now: i64) {
    match (group, plural) {
        ("apiregistration.k8s.io", "apiservices") if body.pointer("/spec/service").is_none() => {
            body["status"] = json!({"conditions": [{"type": "Available", "status": "True", "reason": "Local",
                "message": "Local APIServices are always available", "lastTransitionTime": timestamp(now)}]});
        }
        ("discovery.k8s.io", "endpointslices") => drop_topology(body),
        ("storage.k8s.io", "volumeattributesclasses") => protect(body, "kubernetes.io/vac-protection"),
        ("batch", "jobs") => select_own_pods(body),
        ("", "persistentvolumes") => protect(body, "kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims") => {
            protect(body, "kubernetes.io/pvc-protection");
            body["status"] = json!({"phase": "Pending"});
        }
        ("", "nodes") => taint(body),
        _ => {}
    }
}

/// Members of disabled feature gates.
pub(super) fn drop_unserved(set: &mut Value) {
    if let Some(rolling) =
        set.pointer_mut("/spec/updateStrategy/rollingUpdate").and_then(Value::as_object_mut)
    {
        rolling.remove("maxUnavailable");
    }
}

/// The topology of an endpoint is a member of versions that are not served any more.
fn drop_topology(slice: &mut Value) {
    for endpoint in slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(endpoint) = endpoint.as_object_mut() {
            endpoint.remove("deprecatedTopology");
        }
    }
}

fn protect(body: &mut Value, finalizer: &str) {
    let finalizers = metadata_mut(body).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut().filter(|list| !list.contains(&json!(finalizer))) {
        list.push(json!(finalizer));
    }
}

/// A node is not ready until it reports it.
fn taint(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    if !node["spec"].is_object() {
        node["spec"] = json!({});
    }
    let taints =
        node["spec"].as_object_mut().expect("made above").entry("taints").or_insert_with(|| json!([]));
    if let Some(list) =
        taints.as_array_mut().filter(|list| !list.iter().any(|known| known["key"] == taint["key"]))
    {
        list.push(taint);
    }
}

/// A job selects its pods by its own uid, unless the client sets the selector.
fn select_own_pods(job: &mut Value) {
    if !job["spec"].is_object() || job["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (member(job, "uid").to_owned(), member(job, "name").to_owned());
    let own = json!({"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name});
    let template =
        job["spec"].as_object_mut().expect("checked above").entry("template").or_insert_with(|| json!({}));
    if !template["metadata"].is_object() {
        template["metadata"] = json!({});
    }
    let labels = template["metadata"]
        .as_object_mut()
        .expect("made above")
        .entry("labels")
        .or_insert_with(|| json!({}));
    for (name, value) in own.as_object().into_iter().flatten() {
        labels[name] = value.clone();
    }
    if !job["spec"]["selector"]["matchLabels"].is_object() {
        job["spec"]["selector"] = json!({"matchLabels": {}});
    }
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = json!(uid);
}

/// A job without labels gets the labels of its pods when it is created.
pub(super) fn label_like_pods(job: &mut Value) {
    if let Some(labels) = job.pointer("/spec/template/metadata/labels").cloned() {
        metadata_mut(job).insert("labels".into(), labels);
    }
}

/// What follows from the rest of the object.
pub(super) fn complete(group: &str, plural: &str, body: &mut Value) {
    if (group, plural) == ("apps", "daemonsets") {
        let annotations = metadata_mut(body).entry("annotations").or_insert_with(|| json!({}));
        put_missing(annotations, &format!("/{TEMPLATES}"), "\"0\"");
    }
    match (group, plural) {
        ("apps", "deployments") => {
            let kind = body.pointer("/spec/strategy/type").and_then(Value::as_str).unwrap_or("RollingUpdate");
            if kind == "RollingUpdate" && body["spec"].is_object() {
                put_missing(body, "/spec/strategy", r#"{"type":"RollingUpdate"}"#);
                put_missing(body, "/spec/strategy/rollingUpdate", "{}");
                put_missing(body, "/spec/strategy/rollingUpdate/maxUnavailable", "\"25%\"");
                put_missing(body, "/spec/strategy/rollingUpdate/maxSurge", "\"25%\"");
            }
        }
        ("apps", "daemonsets" | "statefulsets") => {
            let rolling =
                body.pointer("/spec/updateStrategy/type").is_none_or(|kind| kind == "RollingUpdate");
            let parts: &[(&str, &str)] = if plural == "daemonsets" {
                &[("maxUnavailable", "1"), ("maxSurge", "0")]
            } else {
                &[("partition", "0")]
            };
            if rolling {
                put_missing(body, "/spec/updateStrategy", "{}");
                put_missing(body, "/spec/updateStrategy/rollingUpdate", "{}");
                for (name, text) in parts {
                    put_missing(body, &format!("/spec/updateStrategy/rollingUpdate/{name}"), text);
                }
            }
        }
        ("batch", "jobs") => complete_job(body),
        ("", "replicationcontrollers") => complete_controller(body),
        ("", "secrets") => encode_texts(body),
        ("", "limitranges") => complete_limits(body),
        ("networking.k8s.io", "networkpolicies") => name_policy_types(body),
        (RBAC_GROUP, "rolebindings" | "clusterrolebindings") => complete_binding(body),
        _ => {}
    }
}

fn complete_job(job: &mut Value) {
    let has = |name: &str| job["spec"].get(name).is_some();
    if !has("completions") && !has("parallelism") {
        put_missing(job, "/spec/completions", "1");
    }
    put_missing(job, "/spec/parallelism", "1");
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|_| job.pointer("/metadata/labels").is_none()) {
        metadata_mut(job).insert("labels".into(), labels);
    }
}

/// A replication controller without selector or labels takes those of its template.
fn complete_controller(controller: &mut Value) {
    let Some(labels) = controller.pointer("/spec/template/metadata/labels").cloned() else { return };
    if controller["spec"].get("selector").is_none() {
        controller["spec"]["selector"] = labels.clone();
    }
    if controller.pointer("/metadata/labels").is_none() {
        metadata_mut(controller).insert("labels".into(), labels);
    }
}

/// `stringData` is written into `data`, over what is there.
fn encode_texts(secret: &mut Value) {
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|secret| secret.remove("stringData"))
    else {
        return;
    };
    if !secret["data"].is_object() && !texts.is_empty() {
        secret["data"] = json!({});
    }
    for (name, text) in texts {
        secret["data"][name] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
    }
}

/// The limit of a container is its default, and the default is its request.
fn complete_limits(range: &mut Value) {
    for limit in range.pointer_mut("/spec/limits").and_then(Value::as_array_mut).into_iter().flatten() {
        if limit["type"] != "Container" {
            continue;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            for (name, amount) in limit[from].as_object().cloned().into_iter().flatten() {
                if limit.get(to).is_none() {
                    limit[to] = json!({});
                }
                if limit[to].get(&name).is_none() {
                    limit[to][name] = amount;
                }
            }
        }
    }
}

fn name_policy_types(policy: &mut Value) {
    let Some(spec) =
        policy.get_mut("spec").filter(|spec| spec.is_object() && spec.get("policyTypes").is_none())
    else {
        return;
    };
    let egress = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
    spec["policyTypes"] = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
}

fn complete_binding(binding: &mut Value) {
    put_missing(binding, "/roleRef/apiGroup", "\"rbac.authorization.k8s.io\"");
    for subject in binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            put_missing(subject, "/apiGroup", "\"rbac.authorization.k8s.io\"");
        }
    }
}
