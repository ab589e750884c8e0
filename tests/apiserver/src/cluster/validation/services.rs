//! Services: ports, types, addresses.
//!
//! Answers: are its ports and type valid, and is its address unchanged?
//! 1. An assigned cluster address stays, unless the type of the service changes.
use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use super::containers::{PROTOCOLS, port_name_faults};
use super::metadata;
use crate::cluster::names::{self, NameRule};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const NODE_PORTS: &str = "provided port is not in the valid range. The range of valid ports is 30000-32767";

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    if plural == "services" {
        service(&body["spec"], causes);
    }
}

fn service(spec: &Value, causes: &mut Causes) {
    let (kind, ports) = (text(spec, "type"), list(spec, "ports"));
    if ports.is_empty() && kind != "ExternalName" && text(spec, "clusterIP") != "None" {
        causes.required("spec.ports", "");
    }
    if kind == "ExternalName" {
        external(spec, causes);
    }
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        service_port(&format!("spec.ports[{at}]"), port, ports.len() > 1, &mut seen, causes);
    }
    metadata::labels("spec.selector", spec.get("selector"), causes);
    let affinity = spec.get("sessionAffinity");
    causes.one_of("spec.sessionAffinity", affinity, &["ClientIP", "None"]);
    causes.one_of("spec.type", spec.get("type"), &TYPES);
    node_ports(kind, ports, causes);
    doubled(ports, causes);
    let policy = spec.get("ipFamilyPolicy");
    causes.one_of("spec.ipFamilyPolicy", policy, &["PreferDualStack", "RequireDualStack", "SingleStack"]);
    for (at, address) in list(spec, "clusterIPs").iter().enumerate().filter(|_| kind != "ExternalName") {
        let sound = address.as_str().is_some_and(|text| text == "None" || text.parse::<IpAddr>().is_ok());
        if !sound {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.invalid(&format!("spec.clusterIPs[{at}]"), address, why);
        }
    }
    // Ports are assigned last, to a valid service.
    for (at, port) in ports.iter().enumerate().filter(|_| causes.count() == 0) {
        let node = port.get("nodePort").filter(|node| **node != json!(0));
        if let Some(node) =
            node.filter(|node| !node.as_i64().is_some_and(|node| (30_000..=32_767).contains(&node)))
        {
            causes.invalid(&format!("spec.ports[{at}].nodePort"), node, NODE_PORTS);
            return;
        }
    }
}

/// A service that is only a name for another one.
fn external(spec: &Value, causes: &mut Causes) {
    if !list(spec, "clusterIPs").is_empty() || !text(spec, "clusterIP").is_empty() {
        causes.forbidden("spec.clusterIPs", "may not be set for ExternalName services");
    }
    let name = text(spec, "externalName");
    if name.is_empty() {
        causes.required("spec.externalName", "");
    } else {
        let whole = name.strip_suffix('.').unwrap_or(name);
        causes.invalid_for("spec.externalName", &json!(name), names::faults(whole, NameRule::Subdomain));
    }
}

fn service_port<'a>(
    field: &str,
    port: &'a Value,
    several: bool,
    seen: &mut BTreeSet<&'a str>,
    causes: &mut Causes,
) {
    let (at, name) = (format!("{field}.name"), text(port, "name"));
    causes.name(&at, name, NameRule::Label);
    if name.is_empty() && several {
        causes.required(&at, "");
    } else if !name.is_empty() && !seen.insert(name) {
        causes.duplicate(&at, name);
    }
    let zero = json!(0);
    causes.port(&format!("{field}.port"), port.get("port").unwrap_or(&zero));
    causes.one_of(&format!("{field}.protocol"), port.get("protocol"), &PROTOCOLS);
    match port.get("targetPort").unwrap_or(&zero) {
        Value::String(name) => {
            causes.invalid_for(&format!("{field}.targetPort"), &json!(name), port_name_faults(name));
        }
        number => causes.port(&format!("{field}.targetPort"), number),
    }
}

fn node_ports(kind: &str, ports: &[Value], causes: &mut Causes) {
    for (at, port) in ports.iter().enumerate().filter(|_| kind == "ClusterIP") {
        if port.get("nodePort").is_some_and(|node| *node != json!(0)) {
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.forbidden(&format!("spec.ports[{at}].nodePort"), why);
        }
    }
}

/// Two ports of one number and protocol; of such a port only these two are reported.
fn doubled(ports: &[Value], causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let (number, protocol) = (port["port"].as_i64().unwrap_or(0), text(port, "protocol"));
        if !seen.insert((number, protocol)) {
            let value = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                json!(protocol)
            );
            causes.duplicate_text(&format!("spec.ports[{at}]"), &value);
        }
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
