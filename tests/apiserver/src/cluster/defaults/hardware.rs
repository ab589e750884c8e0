//! Defaults of nodes, volumes, claims and devices that depend on other members.
//!
//! Answers: which second form has this member, and what does the server add when such an object is created?
//! 1. `complete` does what the types do, before fields get their owners; `admit` comes afterwards.
//! 2. Old and new names of one value are kept equal: a network and the list of networks, a source and its reference.
use serde_json::{Value, json};

use super::{put_missing, rows};
use crate::cluster::metadata::timestamp;

/// What follows from the rest of the object.
pub(super) fn complete(group: &str, plural: &str, body: &mut Value) {
    match (group, plural) {
        ("", "nodes") => {
            pair(&mut body["spec"], "podCIDR", "podCIDRs", Clone::clone);
            let capacity = body.pointer("/status/capacity").cloned();
            if let Some(capacity) = capacity {
                put_missing(body, "/status/allocatable", &capacity.to_string());
            }
        }
        ("", "pods") if body.get("status").is_some() => {
            pair(&mut body["status"], "podIP", "podIPs", |ip| json!({"ip": ip}));
        }
        ("", "persistentvolumes") => {
            for (at, text) in rows("volume-source") {
                put_missing(&mut body["spec"], at, text);
            }
        }
        ("resource.k8s.io", "resourceclaims") => request_devices(&mut body["spec"]),
        ("resource.k8s.io", "resourceclaimtemplates") => request_devices(&mut body["spec"]["spec"]),
        _ => {}
    }
}

/// What the server writes after the fields have owners.
pub(super) fn admit(group: &str, plural: &str, body: &mut Value, now: i64) {
    match (group, plural) {
        ("", "persistentvolumeclaims") => refer_to_source(&mut body["spec"]),
        ("resource.k8s.io", "resourceslices") => {
            let now = json!(timestamp(now)).to_string();
            put_missing(body, "/spec/devices/*/taints/*/timeAdded", &now);
        }
        _ => {}
    }
}

/// Keeps a member and the list that begins with it equal; the member decides.
fn pair(object: &mut Value, one: &str, many: &str, item: impl Fn(&Value) -> Value) {
    let Some(object) = object.as_object_mut() else { return };
    let first = object.get(many).and_then(|list| list.get(0)).cloned();
    match (object.get(one).cloned(), first) {
        (Some(told), first) if first.as_ref() != Some(&item(&told)) => {
            object.insert(many.to_owned(), json!([item(&told)]));
        }
        (None, Some(first)) => {
            let told = first.get("ip").unwrap_or(&first).clone();
            object.insert(one.to_owned(), told);
        }
        _ => {}
    }
}

fn request_devices(spec: &mut Value) {
    for request in spec.pointer_mut("/devices/requests").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly") {
            request_device(exactly);
        }
        let alternatives = request.get_mut("firstAvailable").and_then(Value::as_array_mut);
        alternatives.into_iter().flatten().for_each(request_device);
    }
}

fn request_device(request: &mut Value) {
    for (at, text) in rows("device-request") {
        put_missing(request, at, text);
    }
    if request["allocationMode"] == "ExactCount" {
        put_missing(request, "/count", "1");
    }
}

/// A claim has its source in two members, unless the source is in another namespace.
fn refer_to_source(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => spec["dataSourceRef"] = source,
        (None, Some(mut reference)) if reference.get("namespace").is_none_or(|name| name == "") => {
            if let Some(reference) = reference.as_object_mut() {
                reference.remove("namespace");
            }
            spec["dataSource"] = reference;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e13_a_node_shows_its_network_twice_and_may_allocate_its_capacity() {
        let mut node = json!({"spec": {"podCIDR": "10.9.0.0/24"}, "status": {"capacity": {"cpu": "2"}}});
        complete("", "nodes", &mut node);
        assert_eq!(node["spec"]["podCIDRs"], json!(["10.9.0.0/24"]));
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "2"}));
        let mut node = json!({"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24", "fd00::/64"]}});
        complete("", "nodes", &mut node);
        assert_eq!(node["spec"]["podCIDRs"], json!(["10.1.0.0/24"]), "the single one decides");
    }

    #[test]
    fn api_24_the_first_address_of_a_pod_is_its_address() {
        let mut pod = json!({"status": {"podIPs": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}]}});
        complete("", "pods", &mut pod);
        assert_eq!(pod["status"]["podIP"], "10.1.0.1");
    }

    #[test]
    fn api_22_the_source_of_a_claim_is_written_in_both_members() {
        let mut claim = json!({"spec": {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a"}}});
        admit("", "persistentvolumeclaims", &mut claim, 0);
        assert_eq!(claim["spec"]["dataSource"], claim["spec"]["dataSourceRef"]);
    }
}
