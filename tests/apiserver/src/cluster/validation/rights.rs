//! Roles and bindings: rules, subjects, and the referenced role.
//!
//! Answers: are this rule and its subjects valid? Whether the user may grant it is not checked here.
//! 1. Rules about paths and rules about resources are different rules; a namespace has no paths.
use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use crate::cluster::names::NameRule;
use crate::cluster::rbac::GROUP;

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    match plural {
        "roles" | "clusterroles" => {
            let aggregation = body.get("aggregationRule").filter(|_| plural == "clusterroles");
            if let Some(aggregation) = aggregation.filter(|aggregation| aggregation.is_object())
                && list(aggregation, "clusterRoleSelectors").is_empty()
            {
                let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
                causes.required("aggregationRule.clusterRoleSelectors", why);
            }
            for (at, rule) in list(body, "rules").iter().enumerate() {
                check_rule(&format!("rules[{at}]"), rule, plural == "roles", causes);
            }
        }
        "rolebindings" | "clusterrolebindings" => binding(plural, body, causes),
        _ => {}
    }
}

fn check_rule(at: &str, rule: &Value, namespaced: bool, causes: &mut Causes) {
    let field = |name: &str| format!("{at}.{name}");
    let given = |name: &str| !list(rule, name).is_empty();
    if !given("verbs") {
        causes.required(&field("verbs"), "verbs must contain at least one value");
    }
    if given("nonResourceURLs") {
        let urls = &rule["nonResourceURLs"];
        if namespaced {
            let why = "namespaced rules cannot apply to non-resource URLs";
            causes.invalid(&field("nonResourceURLs"), urls, why);
        }
        if given("apiGroups") || given("resources") || given("resourceNames") {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            causes.invalid(&field("nonResourceURLs"), urls, why);
        }
        return;
    }
    if !given("apiGroups") {
        causes.required(&field("apiGroups"), "resource rules must supply at least one api group");
    }
    if !given("resources") {
        causes.required(&field("resources"), "resource rules must supply at least one resource");
    }
}

fn binding(plural: &str, body: &Value, causes: &mut Causes) {
    let (role, namespaced) = (&body["roleRef"], plural == "rolebindings");
    if text(role, "apiGroup") != GROUP {
        causes.unsupported("roleRef.apiGroup", json!(text(role, "apiGroup")), &[GROUP]);
    }
    let known: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !known.contains(&text(role, "kind")) {
        causes.unsupported("roleRef.kind", json!(text(role, "kind")), known);
    }
    causes.needed_name("roleRef.name", text(role, "name"), NameRule::PathSegment);
    for (at, subject) in list(body, "subjects").iter().enumerate() {
        check_subject(&format!("subjects[{at}]"), subject, namespaced, causes);
    }
}

fn check_subject(at: &str, subject: &Value, namespaced: bool, causes: &mut Causes) {
    let field = |name: &str| format!("{at}.{name}");
    let (kind, name, group) = (text(subject, "kind"), text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        causes.required(&field("name"), "");
    }
    match kind {
        "ServiceAccount" => {
            causes.name(&field("name"), name, NameRule::Subdomain);
            if !group.is_empty() {
                causes.unsupported(&field("apiGroup"), json!(group), &[""]);
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                causes.required(&field("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                causes.unsupported(&field("apiGroup"), json!(group), &[GROUP]);
            }
        }
        other => causes.unsupported(&field("kind"), json!(other), &["ServiceAccount", "User", "Group"]),
    }
}
