//! Pods, and the specs of pods inside other objects.
//!
//! Answers: are there containers, do they fit each other, can the pod be scheduled? `containers.rs` checks single
//! containers.
//! 1. `spec` applies to templates too; `change` defines what may change in an existing pod.
//! 2. A container's name is compared with those before it after all other checks of the container.
use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use super::{containers, metadata};
use crate::cluster::names::{self, NameRule};

const RESTARTS: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const MOST_SECONDS: i64 = 2_147_483_647;
const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    match plural {
        "pods" => {
            spec("spec", &body["spec"], causes);
            for name in ["containers", "initContainers"] {
                for (at, container) in list(&body["spec"], name).iter().enumerate() {
                    let image = text(container, "image");
                    if image.trim() != image {
                        let why = "must not have leading or trailing whitespace";
                        causes.invalid(&format!("spec.{name}[{at}].image"), &json!(image), why);
                    }
                }
            }
        }
        "podtemplates" => spec("template.spec", &body["template"]["spec"], causes),
        "replicationcontrollers" if body["spec"]["template"].is_object() => {
            spec("spec.template.spec", &body["spec"]["template"]["spec"], causes);
        }
        _ => {}
    }
}

/// The spec of a pod.
pub(super) fn spec(at: &str, spec: &Value, causes: &mut Causes) {
    let field = |name: &str| format!("{at}.{name}");
    let volumes = volumes(at, spec, causes);
    if list(spec, "containers").is_empty() {
        causes.required(&field("containers"), "");
    }
    let mut seen = BTreeSet::new();
    for name in ["containers", "initContainers"] {
        for (index, container) in list(spec, name).iter().enumerate() {
            let field = format!("{at}.{name}[{index}]");
            containers::check(&field, container, &volumes, causes);
            if !seen.insert(text(container, "name")) {
                causes.duplicate(&format!("{field}.name"), text(container, "name"));
            }
            if name == "containers" {
                containers::probes(&field, container, causes);
            }
        }
    }
    causes.one_of(&field("restartPolicy"), spec.get("restartPolicy"), &RESTARTS);
    causes.one_of(&field("dnsPolicy"), spec.get("dnsPolicy"), &DNS);
    metadata::labels(&field("nodeSelector"), spec.get("nodeSelector"), causes);
    if text(spec, "dnsPolicy") == "None" && spec.get("dnsConfig").is_none() {
        causes.required(&field("dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None");
    }
    let name = |member: &str, rule: NameRule, causes: &mut Causes| {
        causes.name(&field(member), text(spec, member), rule);
    };
    name("serviceAccountName", NameRule::Subdomain, causes);
    name("nodeName", NameRule::Subdomain, causes);
    if let Some(seconds) = spec.get("activeDeadlineSeconds")
        && !seconds.as_i64().is_some_and(|seconds| (1..=MOST_SECONDS).contains(&seconds))
    {
        let why = format!("must be between 1 and {MOST_SECONDS}, inclusive");
        causes.invalid(&field("activeDeadlineSeconds"), seconds, &why);
    }
    name("hostname", NameRule::Label, causes);
    name("subdomain", NameRule::Label, causes);
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        tolerates(&format!("{at}.tolerations[{index}]"), toleration, causes);
    }
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        host_alias(&format!("{at}.hostAliases[{index}]"), alias, causes);
    }
    name("priorityClassName", NameRule::Subdomain, causes);
}

fn volumes<'a>(at: &str, spec: &'a Value, causes: &mut Causes) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let (field, name) = (format!("{at}.volumes[{index}].name"), text(volume, "name"));
        let faults = names::faults(name, NameRule::Label);
        if name.is_empty() {
            causes.required(&field, "");
        } else if !faults.is_empty() {
            causes.invalid_for(&field, &json!(name), faults);
        } else if !seen.insert(name) {
            causes.duplicate(&field, name);
        }
    }
    seen
}

fn tolerates(field: &str, toleration: &Value, causes: &mut Causes) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
    let at = |name: &str| format!("{field}.{name}");
    if !key.is_empty() {
        causes.invalid_for(&at("key"), &json!(key), names::label_key_faults(key));
    } else if operator != "Exists" {
        let why =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        causes.invalid(&at("operator"), &json!(operator), why);
    }
    if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.invalid(&at("effect"), &json!(effect), why);
    }
    match operator {
        "Equal" | "" => {
            let faults = names::label_value_faults(value);
            if !faults.is_empty() {
                causes.invalid(&at("operator"), &json!(value), &faults.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            causes.invalid(&at("operator"), &json!(value), why);
        }
        "Exists" => {}
        other => causes.unsupported(&at("operator"), json!(other), &["Equal", "Exists"]),
    }
    if !effect.is_empty() {
        causes.one_of(&at("effect"), toleration.get("effect"), &EFFECTS);
    }
}

fn host_alias(field: &str, alias: &Value, causes: &mut Causes) {
    let ip = text(alias, "ip");
    if ip.parse::<IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.invalid(&format!("{field}.ip"), &json!(ip), why);
    }
    for (at, name) in list(alias, "hostnames").iter().enumerate() {
        let faults = names::faults(name.as_str().unwrap_or_default(), NameRule::Subdomain);
        causes.invalid_for(&format!("{field}.hostnames[{at}]"), name, faults);
    }
}

/// What may change in a pod: images, a deadline, more tolerations.
pub(super) fn change(plural: &str, old: &Value, new: &Value, causes: &mut Causes) {
    if plural != "pods" || old["spec"] == new["spec"] {
        return;
    }
    let (before, mut after) = (&old["spec"], new["spec"].clone());
    for name in ["containers", "initContainers"] {
        if !container_change(name, before, &after, causes) {
            return;
        }
    }
    if let Some(seconds) = after.get("activeDeadlineSeconds").filter(|seconds| seconds.as_i64() < Some(0)) {
        let why = format!("must be between 0 and {MOST_SECONDS}, inclusive");
        causes.invalid("spec.activeDeadlineSeconds", seconds, &why);
        return;
    }
    free(before, &mut after);
    if *before != after {
        causes.forbidden("spec", FIXED);
    }
}

/// Whether there are as many containers as before; each has an image.
fn container_change(name: &str, before: &Value, after: &Value, causes: &mut Causes) -> bool {
    if list(before, name).len() != list(after, name).len() {
        causes.forbidden(&format!("spec.{name}"), "pod updates may not add or remove containers");
        return false;
    }
    for (at, container) in list(after, name).iter().enumerate() {
        if text(container, "image").trim().is_empty() {
            causes.required(&format!("spec.{name}[{at}].image"), "");
        }
    }
    true
}

/// Copies into the new spec the old values of all that may change.
fn free(before: &Value, after: &mut Value) {
    for name in ["containers", "initContainers"] {
        let images: Vec<Value> =
            list(before, name).iter().map(|container| container["image"].clone()).collect();
        let containers = after.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, image) in containers.zip(images) {
            container["image"] = image;
        }
    }
    let kept = list(before, "tolerations").iter().all(|one| list(after, "tolerations").contains(one));
    for name in ["activeDeadlineSeconds", "tolerations"] {
        if name == "tolerations" && !kept {
            continue;
        }
        match before.get(name) {
            Some(value) => after[name] = value.clone(),
            None => {
                after.as_object_mut().and_then(|after| after.remove(name));
            }
        }
    }
}
