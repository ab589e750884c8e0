//! Ingresses and network policies: hosts, paths, backends, peers and ports.
//!
//! Answers: are the targets of requests, or the allowed connections, valid? No address is looked up.
//! 1. A backend is a service or a resource, and a service's port has a name or a number.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use super::containers::port_name_faults;
use super::selectors;
use crate::cluster::names::{self, NameRule};

const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const WITHIN: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const AT_END: [&str; 2] = ["/..", "/."];

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    let empty = json!({});
    let spec = body.get("spec").unwrap_or(&empty);
    match plural {
        "ingresses" => ingress(spec, causes),
        "networkpolicies" => policy(spec, causes),
        _ => {}
    }
}

fn ingress(spec: &Value, causes: &mut Causes) {
    let backend = spec.get("defaultBackend");
    if backend.is_none() && list(spec, "rules").is_empty() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.invalid("spec", &Value::Null, why);
    }
    for (at, tls) in list(spec, "tls").iter().enumerate() {
        for (host_at, host) in list(tls, "hosts").iter().enumerate() {
            let faults = host_faults(host.as_str().unwrap_or_default());
            causes.invalid_for(&format!("spec.tls[{at}].hosts[{host_at}]"), host, faults);
        }
        let field = format!("spec.tls[{at}].secretName");
        causes.name(&field, text(tls, "secretName"), NameRule::Subdomain);
    }
    for (at, rule) in list(spec, "rules").iter().enumerate() {
        ingress_rule(&format!("spec.rules[{at}]"), rule, causes);
    }
    if let Some(backend) = backend {
        check_backend("spec.defaultBackend", backend, causes);
    }
    causes.name("spec.ingressClassName", text(spec, "ingressClassName"), NameRule::Subdomain);
}

/// A host may begin with `*.`: then it means all hosts below it.
fn host_faults(host: &str) -> Vec<String> {
    match host.strip_prefix("*.") {
        Some(rest) if names::faults(rest, NameRule::Subdomain).is_empty() => Vec::new(),
        _ => names::faults(host, NameRule::Subdomain),
    }
}

fn ingress_rule(field: &str, rule: &Value, causes: &mut Causes) {
    let host = text(rule, "host");
    let at = format!("{field}.host");
    if host.parse::<IpAddr>().is_ok() {
        causes.invalid(&at, &json!(host), "must be a DNS name, not an IP address");
    } else if !host.is_empty() {
        causes.invalid_for(&at, &json!(host), host_faults(host));
    }
    let Some(http) = rule.get("http").filter(|http| http.is_object()) else { return };
    if list(http, "paths").is_empty() {
        causes.required(&format!("{field}.http.paths"), "");
    }
    for (at, path) in list(http, "paths").iter().enumerate() {
        ingress_path(&format!("{field}.http.paths[{at}]"), path, causes);
    }
}

fn ingress_path(field: &str, path: &Value, causes: &mut Causes) {
    let (at, value) = (format!("{field}.path"), text(path, "path"));
    match path.get("pathType").and_then(Value::as_str) {
        None => {
            causes.required(&format!("{field}.pathType"), "pathType must be specified");
            return;
        }
        Some("Exact" | "Prefix") => {
            if !value.starts_with('/') {
                causes.invalid(&at, &json!(value), "must be an absolute path");
            }
            for part in WITHIN.into_iter().filter(|part| !value.is_empty() && value.contains(part)) {
                causes.invalid(&at, &json!(value), &format!("must not contain '{part}'"));
            }
            for part in AT_END.into_iter().filter(|part| value.ends_with(part)) {
                causes.invalid(&at, &json!(value), &format!("cannot end with '{part}'"));
            }
        }
        Some("ImplementationSpecific") => {
            if !value.is_empty() && !value.starts_with('/') {
                causes.invalid(&at, &json!(value), "must be an absolute path");
            }
        }
        Some(_) => causes.one_of(&format!("{field}.pathType"), path.get("pathType"), &PATH_TYPES),
    }
    check_backend(&format!("{field}.backend"), &path["backend"], causes);
}

fn check_backend(field: &str, backend: &Value, causes: &mut Causes) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    if service.is_some() && resource.is_some() {
        causes.invalid(field, &json!(""), "cannot set both resource and service backends");
        return;
    }
    let Some(service) = service else {
        if resource.is_none() {
            causes.invalid(field, &json!(""), "resource or service backend is required");
        }
        return;
    };
    causes.needed_name(&format!("{field}.service.name"), text(service, "name"), NameRule::Label);
    let port = &service["port"];
    let number = port.get("number").filter(|number| **number != json!(0));
    match (text(port, "name"), number) {
        ("", None) => causes.required(field, "port name or number is required"),
        ("", Some(number)) => causes.port(&format!("{field}.service.port.number"), number),
        (_, Some(_)) => causes.invalid(field, &json!(""), "cannot set both port name & port number"),
        (name, None) => {
            causes.invalid_for(&format!("{field}.service.port.name"), &json!(name), port_name_faults(name));
        }
    }
}

fn policy(spec: &Value, causes: &mut Causes) {
    selectors::check("spec.podSelector", spec.get("podSelector"), causes);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in list(spec, direction).iter().enumerate() {
            let field = format!("spec.{direction}[{at}]");
            for (at, port) in list(rule, "ports").iter().enumerate() {
                policy_port(&format!("{field}.ports[{at}]"), port, causes);
            }
            for (at, peer) in list(rule, peers).iter().enumerate() {
                check_peer(&format!("{field}.{peers}[{at}]"), peer, causes);
            }
        }
    }
    let types = list(spec, "policyTypes");
    if types.len() > 2 {
        causes.invalid("spec.policyTypes", &json!(types), "may not specify more than two policyTypes");
        return;
    }
    for (at, known) in types.iter().enumerate() {
        causes.one_of(&format!("spec.policyTypes[{at}]"), Some(known), &["Ingress", "Egress"]);
    }
}

fn policy_port(field: &str, port: &Value, causes: &mut Causes) {
    causes.one_of(&format!("{field}.protocol"), port.get("protocol"), &["TCP", "UDP", "SCTP"]);
    let (at, end) = (format!("{field}.port"), port.get("endPort"));
    match port.get("port") {
        Some(Value::String(name)) => {
            if end.is_some() {
                let why = "may not be specified when `port` is non-numeric";
                causes.invalid(&format!("{field}.endPort"), end.unwrap_or(&Value::Null), why);
            }
            causes.invalid_for(&at, &json!(name), port_name_faults(name));
        }
        Some(number) => {
            causes.port(&at, number);
            if end.is_some_and(|end| end.as_i64() < number.as_i64()) {
                // A real server reports the first port here, not the last.
                let why = "must be greater than or equal to `port`";
                causes.invalid(&format!("{field}.endPort"), number, why);
            }
        }
        None if end.is_some() => {
            let why = "may not be specified when `port` is not specified";
            causes.invalid(&format!("{field}.endPort"), end.unwrap_or(&Value::Null), why);
        }
        None => {}
    }
}

fn check_peer(field: &str, peer: &Value, causes: &mut Causes) {
    let mut count = 0;
    for name in ["podSelector", "namespaceSelector"] {
        count += usize::from(peer.get(name).is_some());
        selectors::check(&format!("{field}.{name}"), peer.get(name), causes);
    }
    let block = peer.get("ipBlock");
    if let Some(block) = block {
        ip_block(&format!("{field}.ipBlock"), block, causes);
    }
    if count == 0 && block.is_none() {
        causes.required(field, "must specify a peer");
    } else if count > 0 && block.is_some() {
        causes.forbidden(field, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(field: &str, block: &Value, causes: &mut Causes) {
    let cidr = text(block, "cidr");
    if cidr.is_empty() {
        causes.required(&format!("{field}.cidr"), "");
        return;
    }
    let Some(outer) = range(cidr) else {
        causes.invalid(&format!("{field}.cidr"), &json!(cidr), CIDR);
        return;
    };
    for (at, except) in list(block, "except").iter().enumerate() {
        let field = format!("{field}.except[{at}]");
        match except.as_str().and_then(range) {
            None => causes.invalid(&field, except, CIDR),
            Some(inner) if !is_within(inner, outer) => {
                causes.invalid(&field, except, "must be a strict subset of `cidr`");
            }
            Some(_) => {}
        }
    }
}

/// An address and the length of the prefix that counts.
fn range(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    let (address, length): (IpAddr, u32) = (address.parse().ok()?, length.parse().ok()?);
    let most = if address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
    (length <= most).then_some((address, length))
}

fn is_within((inner, longer): (IpAddr, u32), (outer, shorter): (IpAddr, u32)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, true),
        IpAddr::V6(address) => (address.to_bits(), false),
    };
    let ((inner, inner_is_old), (outer, outer_is_old)) = (bits(inner), bits(outer));
    let mask = u128::MAX.checked_shl(128 - shorter).unwrap_or(0);
    inner_is_old == outer_is_old && longer > shorter && inner & mask == outer & mask
}
