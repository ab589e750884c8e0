//! Discovery: the documents that tell clients which groups, versions and resources there are.
//!
//! Answers `/api`, `/apis`, `/apis/<group>` and the resource list of one group and version, always from the registry,
//! so a definition shows up in the very next answer. The aggregated form is not told; clients fall back by content type.
use serde_json::{Value, json};

use super::kind::Kind;
use super::registry::Registry;

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `/api`; `address` is the host and port clients reached.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
pub(crate) fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> = registry.groups().iter().map(|name| members(registry, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`; none if there is no such group.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    if name.is_empty() || registry.versions(name).is_empty() {
        return None;
    }
    let mut group = members(registry, name);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

fn members(registry: &Registry, name: &str) -> Value {
    let version = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = registry.versions(name).iter().map(version).collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// `/api/v1` or `/apis/<group>/<version>`; none if nothing is served there.
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for kind in registry.in_version(group, version) {
        resources.push(resource(kind));
        if kind.status {
            resources.push(json!({
                "name": format!("{}/status", kind.resource.plural), "singularName": "",
                "namespaced": kind.namespaced, "kind": kind.kind, "verbs": ["get", "patch", "update"],
            }));
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources});
    (!resources.is_empty()).then_some(list)
}

fn resource(kind: &Kind) -> Value {
    let verbs: Vec<&str> = match &*kind.resource.plural {
        "namespaces" => VERBS.into_iter().filter(|verb| *verb != "deletecollection").collect(),
        _ => VERBS.to_vec(),
    };
    let mut resource = json!({
        "name": &*kind.resource.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": verbs,
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    resource
}
