//! The warnings for a client that writes a built-in object: fields that are deprecated, ignored or surprising.
//!
//! Answers: which warnings does the server send for this object, although it stores it? Nothing is refused here.
//! 1. The sentences are those of the real server, in its order; where it follows a hash map, ours is alphabetical.
//! 2. Objects are in their stored form: complete, with values in the form of the API.
//! 3. A change of a workload gets warnings only if it changes the spec; a change of a pod never does.
//! 4. An IPv6 address or network that is not in the canonical form of RFC 5952 gets a warning. An invalid one, or one with
//!    leading zeros, is refused elsewhere.
//!
//! Next: `pods.rs` and `volumes.rs` for what is in a pod, `kinds.rs` for the rest.

mod kinds;
mod pods;
mod volumes;

use std::net::Ipv6Addr;

use serde_json::Value;

use super::kind::Kind;
use super::metadata::member;
use super::names::{self, NameRule};

/// The warnings for an object that replaces `old`, if there is one.
pub(super) fn of(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<String> {
    if kind.custom {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
    let surprising = match (group, plural) {
        ("", "pods") => Some("this is used in the Pod's hostname"),
        ("apps", "deployments" | "replicasets") | ("batch", _) | ("", "replicationcontrollers") => {
            Some("this is used in Pod names and hostnames")
        }
        _ => None,
    };
    if let (Some(used), None) = (surprising, old) {
        let faults = names::faults(member(object, "name"), NameRule::Label);
        if !faults.is_empty() {
            warnings.push(format!(
                "metadata.name: {used}, which can result in surprising behavior; a DNS label is recommended: [{}]",
                faults.join(" ")
            ));
        }
    }
    if let Some(at) = template(group, plural) {
        let same = |old: &Value| match plural {
            "pods" => true,
            "daemonsets" => old.pointer(at) == object.pointer(at),
            _ => old["metadata"]["generation"] == object["metadata"]["generation"],
        };
        if let Some(pod) = object.pointer(at).filter(|_| !old.is_some_and(same)) {
            let place = at.trim_start_matches('/').replace('/', ".");
            if group == "batch" {
                warnings.extend(kinds::job(&place, object.pointer(at.trim_end_matches("/template"))));
            }
            pods::check(&place, pod, &mut warnings);
        }
    }
    kinds::check(group, plural, (object, old), &mut warnings);
    warnings
}

/// Removes duplicate owners from a body; `patched` says whether they come from a patch.
pub(super) fn take_repeated_owners(body: &mut Value, patched: bool) -> Option<String> {
    let owners = body.pointer_mut("/metadata/ownerReferences")?.as_array_mut()?;
    let (mut kept, mut repeated) = (Vec::new(), Vec::new());
    for owner in std::mem::take(owners) {
        if kept.contains(&owner) {
            repeated.push(text(&owner, "uid").to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    let when = if patched { " after mutating admission happens" } else { "" };
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

/// Where a kind has its pod, with its metadata.
pub(super) fn template(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "pods") => Some(""),
        ("", "podtemplates") => Some("/template"),
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("", "replicationcontrollers")
        | ("batch", "jobs") => Some("/spec/template"),
        ("batch", "cronjobs") => Some("/spec/jobTemplate/spec/template"),
        _ => None,
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    value[name].as_array().into_iter().flatten().enumerate()
}

/// A label of nodes that has another name now.
fn renamed_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
        "beta.kubernetes.io/os" => r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
        "failure-domain.beta.kubernetes.io/region" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#
        }
        "beta.kubernetes.io/instance-type" => {
            r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => r#"use "node-role.kubernetes.io/control-plane" instead"#,
        _ => return None,
    })
}

/// The terms of a node selector, below `place`; for `preferred` terms the values are checked too.
fn node_terms(place: &str, term: &Value, preferred: bool, warnings: &mut Vec<String>) {
    for (at, expression) in items(term, "matchExpressions") {
        let key = text(expression, "key");
        if let Some(why) = renamed_label(key) {
            warnings.push(format!("{place}.matchExpressions[{at}].key: {key} is {why}"));
        }
        if preferred {
            for (nth, value) in items(expression, "values") {
                let value = value.as_str().unwrap_or_default();
                for why in names::label_value_faults(value) {
                    warnings.push(format!(
                        "{place}.matchExpressions[{at}].values[{nth}]: {value} is invalid, {why}"
                    ));
                }
            }
        }
    }
}

/// The warning for an address.
fn of_address(place: &str, text: &str) -> Option<String> {
    let canonical = text.parse::<Ipv6Addr>().ok()?.to_string();
    (canonical != text).then(|| {
        format!("{place}: IPv6 address {text:?} should be in RFC 5952 canonical format ({canonical:?})")
    })
}

/// The warning for a network.
fn of_network(place: &str, text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let canonical = format!("{}/{length}", address.parse::<Ipv6Addr>().ok()?);
    (canonical != text).then(|| {
        format!("{place}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({canonical:?})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_28_ipv6_that_is_not_canonical_gets_a_warning() {
        assert_eq!(of_address("f", "10.1.2.3"), None);
        assert_eq!(of_address("f", "fd00::1"), None);
        let of = of_address("f", "FD00::0:1").unwrap();
        assert_eq!(of, r#"f: IPv6 address "FD00::0:1" should be in RFC 5952 canonical format ("fd00::1")"#);
        assert_eq!(of_network("f", "10.0.0.0/8"), None);
        assert!(of_network("f", "FD00::/64").unwrap().ends_with(r#"canonical format ("fd00::/64")"#));
    }
}
