//! Pods, and the specs of pods inside other objects.
//!
//! Answers: are there containers, are they named and do they have images, do they use what is there?
//! 1. `spec` holds for templates too; what may change in a pod that exists is told by `change`.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use crate::cluster::kind::NameRule;
use crate::cluster::names;

const RESTARTS: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PULLS: [&str; 3] = ["Always", "IfNotPresent", "Never"];
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    match plural {
        "pods" => spec("spec", &body["spec"], causes),
        "podtemplates" => spec("template.spec", &body["template"]["spec"], causes),
        "replicationcontrollers" if body["spec"]["template"].is_object() => {
            spec("spec.template.spec", &body["spec"]["template"]["spec"], causes);
        }
        _ => {}
    }
}

/// The spec of a pod.
pub(super) fn spec(at: &str, spec: &Value, causes: &mut Causes) {
    let volumes = volumes(at, spec, causes);
    if list(spec, "containers").is_empty() {
        causes.required(&format!("{at}.containers"), "");
    }
    let mut seen = BTreeSet::new();
    for name in ["containers", "initContainers"] {
        for (index, container) in list(spec, name).iter().enumerate() {
            let field = format!("{at}.{name}[{index}]");
            dns_label(&format!("{field}.name"), text(container, "name"), &mut seen, causes);
            check_container(&field, container, &volumes, causes);
        }
    }
    causes.one_of(&format!("{at}.restartPolicy"), spec.get("restartPolicy"), &RESTARTS);
    causes.one_of(&format!("{at}.dnsPolicy"), spec.get("dnsPolicy"), &DNS);
}

fn volumes<'a>(at: &str, spec: &'a Value, causes: &mut Causes) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        dns_label(&format!("{at}.volumes[{index}].name"), text(volume, "name"), &mut seen, causes);
    }
    seen
}

/// A name that must be there, be a label, and be there once.
fn dns_label<'a>(field: &str, name: &'a str, seen: &mut BTreeSet<&'a str>, causes: &mut Causes) {
    if name.is_empty() {
        causes.required(field, "");
    } else if let faults = names::faults(name, NameRule::Label)
        && !faults.is_empty()
    {
        causes.invalid_for(field, &json!(name), faults);
    } else if !seen.insert(name) {
        causes.duplicate(field, name);
    }
}

fn check_container(field: &str, container: &Value, volumes: &BTreeSet<&str>, causes: &mut Causes) {
    if text(container, "image").is_empty() {
        causes.required(&format!("{field}.image"), "");
    }
    for (index, port) in list(container, "ports").iter().enumerate() {
        let at = format!("{field}.ports[{index}]");
        match port.get("containerPort") {
            None => causes.required(&format!("{at}.containerPort"), ""),
            Some(number) if *number == json!(0) => causes.required(&format!("{at}.containerPort"), ""),
            Some(number) => causes.port(&format!("{at}.containerPort"), number),
        }
        causes.one_of(&format!("{at}.protocol"), port.get("protocol"), &PROTOCOLS);
    }
    for (index, variable) in list(container, "env").iter().enumerate() {
        if text(variable, "name").is_empty() {
            causes.required(&format!("{field}.env[{index}].name"), "");
        }
    }
    let mut paths = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = format!("{field}.volumeMounts[{index}]");
        match text(mount, "name") {
            "" => causes.required(&format!("{at}.name"), ""),
            name if !volumes.contains(name) => causes.not_found(&format!("{at}.name"), name),
            _ => {}
        }
        match text(mount, "mountPath") {
            "" => causes.required(&format!("{at}.mountPath"), ""),
            path if !paths.insert(path) => {
                causes.invalid(&format!("{at}.mountPath"), &json!(path), "must be unique")
            }
            _ => {}
        }
    }
    causes.one_of(&format!("{field}.imagePullPolicy"), container.get("imagePullPolicy"), &PULLS);
}

/// What may change in a pod: images, a deadline, more tolerations.
pub(super) fn change(plural: &str, old: &Value, new: &Value, causes: &mut Causes) {
    if plural != "pods" || old["spec"] == new["spec"] {
        return;
    }
    let (before, mut after) = (&old["spec"], new["spec"].clone());
    if list(before, "containers").len() != list(&after, "containers").len() {
        causes.forbidden("spec.containers", "pod updates may not add or remove containers");
        return;
    }
    for name in ["containers", "initContainers"] {
        let images: Vec<Value> =
            list(before, name).iter().map(|container| container["image"].clone()).collect();
        for (container, image) in
            after.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().zip(images)
        {
            container["image"] = image;
        }
    }
    let kept = list(before, "tolerations").iter().all(|one| list(&after, "tolerations").contains(one));
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
    if *before != after {
        causes.forbidden("spec", FIXED);
    }
}
