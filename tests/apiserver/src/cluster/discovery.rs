//! Discovery: the documents that list the groups, versions and resources for clients.
//!
//! Answers `/api`, `/apis`, `/apis/<group>` and the resource list of one group and version, and the two roots in their
//! aggregated form, always from the registry, so a definition appears in the next answer.
//! 1. All content is a column of `Kind`; no kind is treated specially.
//! 2. Subresources follow their resource, in the order of the table.
//!
//! Next: `http/documents.rs` chooses between the two forms of a root.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::kind::{Kind, Subresource};
use super::registry::Registry;

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
        resources.extend(kind.subresources.iter().map(|sub| below(kind, sub)));
    }
    if resources.is_empty() {
        return None;
    }
    let list = json!({"kind": "APIResourceList", "resources": resources});
    // The list of the core group carries no version of its own kind.
    Some(with_versions(list, group, version))
}

fn with_versions(mut list: Value, group: &str, version: &str) -> Value {
    if group.is_empty() {
        list["groupVersion"] = json!(version);
    } else {
        list["apiVersion"] = json!("v1");
        list["groupVersion"] = json!(format!("{group}/{version}"));
    }
    list
}

fn resource(kind: &Kind) -> Value {
    let mut resource = json!({
        "name": &*kind.resource.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": kind.verbs,
    });
    put_names(&mut resource, kind);
    // Stored kinds can be watched; kinds that are only requests or answers cannot.
    if kind.verbs.iter().any(|verb| verb == "watch") {
        resource["storageVersionHash"] = json!(stored_hash(kind));
    }
    resource
}

/// It shows clients that the stored version of a resource has changed.
fn stored_hash(kind: &Kind) -> String {
    let stored = format!("{}/{}/{}", kind.storage.group, kind.stored_version, kind.kind);
    let hash = ring::digest::digest(&ring::digest::SHA256, stored.as_bytes());
    STANDARD.encode(&hash.as_ref()[..8])
}

fn put_names(resource: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
}

fn below(kind: &Kind, sub: &Subresource) -> Value {
    let mut resource = json!({
        "name": format!("{}/{}", kind.resource.plural, sub.name), "singularName": "",
        "namespaced": kind.namespaced, "kind": sub.kind, "verbs": sub.verbs,
    });
    if !sub.group.is_empty() {
        resource["group"] = json!(sub.group);
        resource["version"] = json!(sub.version);
    }
    resource
}

/// The root of the core group, or of all others, with everything below it in one document.
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let names = if core { vec![""] } else { registry.groups() };
    let groups: Vec<Value> = names.into_iter().map(|name| whole_group(registry, name)).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups})
}

fn whole_group(registry: &Registry, name: &str) -> Value {
    let version = |version: &&str| {
        let resources: Vec<Value> = registry.in_version(name, version).map(|kind| whole(kind)).collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let versions: Vec<Value> = registry.versions(name).iter().map(version).collect();
    let metadata = if name.is_empty() { json!({}) } else { json!({ "name": name }) };
    json!({"metadata": metadata, "versions": versions})
}

fn whole(kind: &Kind) -> Value {
    let mut resource = json!({
        "resource": &*kind.resource.plural, "responseKind": own_type(kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": kind.verbs,
    });
    put_names(&mut resource, kind);
    let subs: Vec<Value> = kind.subresources.iter().map(|sub| whole_below(kind, sub)).collect();
    if !subs.is_empty() {
        resource["subresources"] = json!(subs);
    }
    resource
}

/// Built-in kinds omit their own group and version.
fn own_type(kind: &Kind) -> Value {
    let (group, version) =
        if kind.custom { (&*kind.resource.group, kind.version.as_str()) } else { ("", "") };
    json!({"group": group, "version": version, "kind": kind.kind})
}

fn whole_below(kind: &Kind, sub: &Subresource) -> Value {
    let response = if sub.group.is_empty() {
        let mut response = own_type(kind);
        response["kind"] = json!(sub.kind);
        response
    } else {
        json!({"group": sub.group, "version": sub.version, "kind": sub.kind})
    };
    json!({"subresource": sub.name, "responseKind": response, "verbs": sub.verbs})
}
