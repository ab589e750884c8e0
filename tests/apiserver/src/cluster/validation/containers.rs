//! Containers: names, images, ports, variables, mounts, resources and probes, in the order of the API.
//!
//! Answers: is this container valid? `pods.rs` checks containers against each other.
//! 1. A port's name is a label of letters, digits and hyphens, with a letter in it.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use crate::cluster::names::NameRule;
use crate::cluster::schema::quantity;

const PULLS: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const TERMINATIONS: [&str; 2] = ["File", "FallbackToLogsOnError"];
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
/// The fields of its pod that a variable may refer to.
const POD_FIELDS: [&str; 14] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.labels",
    "metadata.annotations",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// One container of either kind.
pub(super) fn check(field: &str, container: &Value, volumes: &BTreeSet<&str>, causes: &mut Causes) {
    let at = |name: &str| format!("{field}.{name}");
    causes.needed_name(&at("name"), text(container, "name"), NameRule::Label);
    if text(container, "image").is_empty() {
        causes.required(&at("image"), "");
    }
    let termination = container.get("terminationMessagePolicy");
    causes.one_of(&at("terminationMessagePolicy"), termination, &TERMINATIONS);
    ports(&at("ports"), list(container, "ports"), causes);
    for (index, variable) in list(container, "env").iter().enumerate() {
        check_variable(&format!("{field}.env[{index}]"), variable, causes);
    }
    mounts(&at("volumeMounts"), list(container, "volumeMounts"), volumes, causes);
    causes.one_of(&at("imagePullPolicy"), container.get("imagePullPolicy"), &PULLS);
    resources(&at("resources"), &container["resources"], causes);
}

/// All faults of a port's name.
pub(super) fn port_name_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 15 {
        faults.push("must be no more than 15 characters".to_owned());
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.bytes().all(plain) || name.is_empty() {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

fn ports(field: &str, ports: &[Value], causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = |name: &str| format!("{field}[{index}].{name}");
        let name = text(port, "name");
        let faults = if name.is_empty() { Vec::new() } else { port_name_faults(name) };
        if faults.is_empty() && !name.is_empty() && !seen.insert(name) {
            causes.duplicate(&at("name"), name);
        }
        causes.invalid_for(&at("name"), &json!(name), faults);
        match port.get("containerPort").filter(|number| **number != json!(0)) {
            None => causes.required(&at("containerPort"), ""),
            Some(number) => causes.port(&at("containerPort"), number),
        }
        if let Some(number) = port.get("hostPort").filter(|number| **number != json!(0)) {
            causes.port(&at("hostPort"), number);
        }
        causes.one_of(&at("protocol"), port.get("protocol"), &PROTOCOLS);
    }
}

fn check_variable(field: &str, variable: &Value, causes: &mut Causes) {
    let name = text(variable, "name");
    if name.is_empty() {
        causes.required(&format!("{field}.name"), "");
    } else if !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        causes.invalid(&format!("{field}.name"), &json!(name), why);
    }
    let Some(from) = variable.get("valueFrom").filter(|from| from.is_object()) else { return };
    let at = format!("{field}.valueFrom");
    if let Some(path) = from.get("fieldRef").map(|reference| text(reference, "fieldPath"))
        && !POD_FIELDS.contains(&path.split('[').next().unwrap_or_default())
    {
        let why = format!("error converting fieldPath: field label not supported: {path}");
        causes.invalid(&format!("{at}.fieldRef.fieldPath"), &json!(path), &why);
    }
    let why = match SOURCES.iter().filter(|source| from.get(**source).is_some()).count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    causes.invalid(&at, &json!(""), why);
}

fn mounts(field: &str, mounts: &[Value], volumes: &BTreeSet<&str>, causes: &mut Causes) {
    let mut paths = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let at = |name: &str| format!("{field}[{index}].{name}");
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            causes.required(&at("name"), "");
        }
        if !volumes.contains(name) {
            causes.not_found(&at("name"), name);
        }
        if path.is_empty() {
            causes.required(&at("mountPath"), "");
        }
        if !paths.insert(path) {
            causes.invalid(&at("mountPath"), &json!(path), "must be unique");
        }
    }
}

fn resources(field: &str, resources: &Value, causes: &mut Causes) {
    let part = |name: &str| resources.get(name).and_then(Value::as_object);
    let amount = |text: &Value| quantity::nanos(text.as_str()?);
    for name in ["limits", "requests"] {
        for (resource, asked) in part(name).into_iter().flatten() {
            if amount(asked).is_some_and(i128::is_negative) {
                let at = format!("{field}.{name}[{resource}]");
                causes.invalid(&at, asked, "must be greater than or equal to 0");
            }
            let limit = part("limits").and_then(|limits| limits.get(resource));
            if let Some(limit) = limit.filter(|_| name == "requests")
                && amount(asked) > amount(limit)
            {
                let limit = limit.as_str().unwrap_or_default();
                let why = format!("must be less than or equal to {resource} limit of {limit}");
                causes.invalid(&format!("{field}.requests"), asked, &why);
            }
        }
    }
}

/// The probes that an init container may not have.
pub(super) fn probes(field: &str, container: &Value, causes: &mut Causes) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get(name).filter(|probe| probe.is_object()) {
            check_probe(&format!("{field}.{name}"), probe, causes);
        }
    }
}

fn check_probe(field: &str, probe: &Value, causes: &mut Causes) {
    let mut handlers = HANDLERS.iter().filter(|handler| probe.get(**handler).is_some());
    match handlers.next() {
        None => causes.required(field, "must specify a handler type"),
        Some(&"exec") if list(&probe["exec"], "command").is_empty() => {
            causes.required(&format!("{field}.exec.command"), "");
        }
        Some(_) => {}
    }
    for other in handlers {
        causes.forbidden(&format!("{field}.{other}"), "may not specify more than 1 handler type");
    }
    let names =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    causes.counts(field, probe, &names);
}
