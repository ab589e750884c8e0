//! Services and ingresses: ports, types, addresses, backends.
//!
//! Answers: can this be reached as it says, and is its address still its own?
//! 1. A cluster address once given stays, unless the service becomes one of another type.
use std::net::IpAddr;

use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use super::pods::PROTOCOLS;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const NODE_PORTS: &str = "provided port is not in the valid range. The range of valid ports is 30000-32767";

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    match plural {
        "services" => service(&body["spec"], causes),
        "ingresses" => ingress(body.get("spec"), causes),
        _ => {}
    }
}

fn service(spec: &Value, causes: &mut Causes) {
    let kind = text(spec, "type");
    let ports = list(spec, "ports");
    if ports.is_empty() && kind != "ExternalName" && text(spec, "clusterIP") != "None" {
        causes.required("spec.ports", "");
    }
    for (at, port) in ports.iter().enumerate() {
        service_port(&format!("spec.ports[{at}]"), port, ports.len() > 1, causes);
    }
    causes.one_of("spec.type", spec.get("type"), &TYPES);
    if kind == "ExternalName" && text(spec, "externalName").is_empty() {
        causes.required("spec.externalName", "");
    }
    causes.one_of("spec.sessionAffinity", spec.get("sessionAffinity"), &["ClientIP", "None"]);
    for (at, address) in list(spec, "clusterIPs").iter().enumerate() {
        let sound = address.as_str().is_some_and(|text| text == "None" || text.parse::<IpAddr>().is_ok());
        if !sound {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.invalid(&format!("spec.clusterIPs[{at}]"), address, why);
        }
    }
}

fn service_port(field: &str, port: &Value, several: bool, causes: &mut Causes) {
    if several && text(port, "name").is_empty() {
        causes.required(&format!("{field}.name"), "");
    }
    causes.port(&format!("{field}.port"), &port["port"]);
    causes.one_of(&format!("{field}.protocol"), port.get("protocol"), &PROTOCOLS);
    if let Some(target) = port.get("targetPort").filter(|target| target.is_number()) {
        causes.port(&format!("{field}.targetPort"), target);
    }
    if let Some(node) = port.get("nodePort").filter(|node| node.as_i64().is_some_and(|node| node != 0))
        && !node.as_i64().is_some_and(|node| (30_000..=32_767).contains(&node))
    {
        causes.invalid(&format!("{field}.nodePort"), node, NODE_PORTS);
    }
}

pub(super) fn change(plural: &str, old: &Value, new: &Value, causes: &mut Causes) {
    if plural != "services" {
        return;
    }
    let address = |value: &Value| text(&value["spec"], "clusterIP").to_owned();
    let external = |value: &Value| value["spec"]["type"] == "ExternalName";
    if !external(old) && !external(new) && !address(old).is_empty() && address(old) != address(new) {
        causes.invalid("spec.clusterIPs[0]", &json!([address(new)]), "may not change once set");
    }
}

fn ingress(spec: Option<&Value>, causes: &mut Causes) {
    let empty = json!({});
    let spec = spec.unwrap_or(&empty);
    if spec.get("defaultBackend").is_none() && list(spec, "rules").is_empty() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.invalid("spec", &Value::Null, why);
    }
    for (rule_at, rule) in list(spec, "rules").iter().enumerate() {
        for (path_at, path) in list(&rule["http"], "paths").iter().enumerate() {
            ingress_path(&format!("spec.rules[{rule_at}].http.paths[{path_at}]"), path, causes);
        }
    }
    if let Some(backend) = spec.get("defaultBackend") {
        check_backend("spec.defaultBackend", backend, causes);
    }
}

fn ingress_path(field: &str, path: &Value, causes: &mut Causes) {
    let known = ["Exact", "ImplementationSpecific", "Prefix"];
    match path.get("pathType") {
        None | Some(Value::Null) => {
            causes.required(&format!("{field}.pathType"), "pathType must be specified")
        }
        Some(kind) if kind == "ImplementationSpecific" => {}
        Some(kind) => {
            if !text(path, "path").starts_with('/') && known.iter().any(|known| kind == known) {
                causes.invalid(
                    &format!("{field}.path"),
                    &json!(text(path, "path")),
                    "must be an absolute path",
                );
            }
            causes.one_of(&format!("{field}.pathType"), Some(kind), &known);
        }
    }
    check_backend(&format!("{field}.backend"), &path["backend"], causes);
}

fn check_backend(field: &str, backend: &Value, causes: &mut Causes) {
    let Some(service) = backend.get("service") else { return };
    if text(service, "name").is_empty() {
        causes.required(&format!("{field}.service.name"), "");
    }
    let port = &service["port"];
    if text(port, "name").is_empty() && port.get("number").is_none() {
        causes.required(field, "port name or number is required");
    }
}
