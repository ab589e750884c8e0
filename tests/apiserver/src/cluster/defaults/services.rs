//! Defaults of services: their type, addresses and ports.
//!
//! Answers: which cluster address and node ports does this service get? No traffic is ever sent to them.
//! 1. Addresses and ports are assigned in order, skipping those in use, so that a run is repeatable.
//! 2. A service keeps its address and ports, unless the client changes them.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::put_missing;

/// The network of cluster addresses, 10.0.0.0/24, as the real server of our tests is started with.
const NETWORK: &str = "10.0.0.";
const FIRST_HOST: u32 = 10;
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// The existing services, read only when an address is needed.
pub(super) struct Addresses<'a>(pub(super) &'a mut dyn FnMut() -> Vec<Value>);

/// Writes the defaults of a service.
pub(super) fn complete(service: &mut Value) {
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    put_missing(spec, "/sessionAffinity", "\"None\"");
    put_missing(spec, "/type", "\"ClusterIP\"");
    put_missing(spec, "/ports/*/protocol", "\"TCP\"");
    if spec["sessionAffinity"] == "ClientIP" {
        put_missing(spec, "/sessionAffinityConfig", r#"{"clientIP":{"timeoutSeconds":10800}}"#);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.get("targetPort").is_none_or(|port| port == "") {
            port["targetPort"] = port.get("port").cloned().unwrap_or_else(|| json!(0));
        }
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    put_missing(spec, "/internalTrafficPolicy", "\"Cluster\"");
    if kind == "LoadBalancer" {
        put_missing(spec, "/allocateLoadBalancerNodePorts", "true");
    }
    let reached = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
    if reached || matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        put_missing(spec, "/externalTrafficPolicy", "\"Cluster\"");
    }
}

/// Gives a service its addresses and ports.
pub(super) fn admit(service: &mut Value, old: Option<&Value>, addresses: &mut Addresses<'_>) {
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    if let Some(old) = old {
        keep(spec, &old["spec"]);
    }
    let selects = spec["selector"].as_object().is_some_and(|selector| !selector.is_empty());
    if spec["clusterIP"] == "None" && !selects {
        // The endpoints that the client will create are not known.
        put_missing(spec, "/?ipFamilies/ipFamilyPolicy", "\"SingleStack\"");
        put_missing(spec, "/ipFamilyPolicy", "\"RequireDualStack\"");
        let families =
            if spec["ipFamilyPolicy"] == "SingleStack" { r#"["IPv4"]"# } else { r#"["IPv4","IPv6"]"# };
        put_missing(spec, "/ipFamilies", families);
    }
    put_missing(spec, "/ipFamilies", r#"["IPv4"]"#);
    put_missing(spec, "/ipFamilyPolicy", "\"SingleStack\"");
    allocate(spec, &kind, addresses);
}

/// Takes over the allocations of the stored service, port by port.
fn keep(spec: &mut Value, old: &Value) {
    if old["type"] == "ExternalName" {
        return;
    }
    for name in ["clusterIP", "clusterIPs"] {
        if spec.get(name).is_none()
            && old.get(name).is_some()
            && spec.get("clusterIP").is_none_or(|ip| *ip == old["clusterIP"])
        {
            spec[name] = old[name].clone();
        }
    }
    if old["clusterIP"] != spec["clusterIP"] && spec["clusterIPs"] == old["clusterIPs"] {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    if !matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        return;
    }
    let known = old["ports"].as_array().cloned().unwrap_or_default();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let same =
            known.iter().find(|known| known["port"] == port["port"] && known["protocol"] == port["protocol"]);
        if let (None, Some(node)) = (port.get("nodePort"), same.and_then(|same| same.get("nodePort"))) {
            port["nodePort"] = node.clone();
        }
    }
}

fn allocate(spec: &mut Value, kind: &str, addresses: &mut Addresses<'_>) {
    let unset = |spec: &Value| spec["clusterIP"].as_str().is_none_or(str::is_empty);
    let wants_ports = matches!(kind, "NodePort") || spec["allocateLoadBalancerNodePorts"] == true;
    let portless =
        spec["ports"].as_array().is_some_and(|ports| ports.iter().any(|port| port.get("nodePort").is_none()));
    let checked = kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    let unchecked = checked && spec.get("healthCheckNodePort").is_none();
    if unset(spec) || (wants_ports && portless) || unchecked {
        let others = (addresses.0)();
        if unset(spec) {
            let used: BTreeSet<&str> =
                others.iter().filter_map(|other| other["spec"]["clusterIP"].as_str()).collect();
            let free = (FIRST_HOST..).map(address).find(|address| !used.contains(address.as_str()));
            spec["clusterIP"] = json!(free.unwrap_or_default());
        }
        if wants_ports {
            hand_out_ports(spec, &others);
        }
        if unchecked {
            let port = free_port(&used_ports(spec, &others));
            put_missing(spec, "/healthCheckNodePort", &json!(port).to_string());
        }
    }
    if spec.get("clusterIPs").is_none() {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
}

/// The address of a host; after the first network the next ones follow.
fn address(host: u32) -> String {
    match host / 256 {
        0 => format!("{NETWORK}{host}"),
        net => format!("10.0.{net}.{}", host % 256),
    }
}

fn hand_out_ports(spec: &mut Value, others: &[Value]) {
    let mut used = used_ports(spec, others);
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port["nodePort"].as_i64().is_none_or(|port| port == 0)
            && let Some(free) = free_port(&used)
        {
            used.insert(free);
            port["nodePort"] = json!(free);
        }
    }
}

fn used_ports(spec: &Value, others: &[Value]) -> BTreeSet<i64> {
    let mut used = BTreeSet::new();
    for spec in others.iter().map(|other| &other["spec"]).chain([spec]) {
        let ports = spec["ports"].as_array().into_iter().flatten();
        used.extend(ports.filter_map(|port| port["nodePort"].as_i64()));
        used.extend(spec["healthCheckNodePort"].as_i64());
    }
    used
}

fn free_port(used: &BTreeSet<i64>) -> Option<i64> {
    NODE_PORTS.clone().find(|port| !used.contains(port))
}
