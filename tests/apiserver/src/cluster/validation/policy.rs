//! Roles, bindings, autoscalers, budgets, leases, priorities and classes.
//!
//! Answers: does this rule say to whom and what, and may it be changed?
//! 1. What a binding binds to stays; whoever wants another role makes another binding.
use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use crate::cluster::rbac::GROUP;

const HIGHEST_PRIORITY: i64 = 1_000_000_000;

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    let spec = &body["spec"];
    match plural {
        "roles" | "clusterroles" => rules(plural, body, causes),
        "rolebindings" | "clusterrolebindings" => binding(plural, body, causes),
        "horizontalpodautoscalers" => autoscaler(spec, causes),
        "poddisruptionbudgets" => budget(spec, causes),
        "leases" => {
            let duration = spec.get("leaseDurationSeconds");
            if let Some(duration) =
                duration.filter(|duration| duration.as_i64().is_some_and(|seconds| seconds <= 0))
            {
                causes.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0");
            }
        }
        "priorityclasses" => {
            let own = text(&body["metadata"], "name").starts_with("system-");
            if !own && body["value"].as_i64().is_some_and(|value| value > HIGHEST_PRIORITY) {
                let why = format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}");
                causes.forbidden("value", &why);
            }
        }
        _ => {}
    }
}

fn rules(plural: &str, body: &Value, causes: &mut Causes) {
    let aggregation = body.get("aggregationRule").filter(|_| plural == "clusterroles");
    if let Some(aggregation) = aggregation.filter(|aggregation| aggregation.is_object())
        && list(aggregation, "clusterRoleSelectors").is_empty()
    {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.required("aggregationRule.clusterRoleSelectors", why);
    }
    for (at, rule) in list(body, "rules").iter().enumerate() {
        let field = |name: &str| format!("rules[{at}].{name}");
        if list(rule, "verbs").is_empty() {
            causes.required(&field("verbs"), "verbs must contain at least one value");
        }
        let urls = list(rule, "nonResourceURLs");
        if !urls.is_empty() {
            let urls = json!(urls);
            if plural == "roles" {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.invalid(&field("nonResourceURLs"), &urls, why);
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|name| !list(rule, name).is_empty()) {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.invalid(&field("nonResourceURLs"), &urls, why);
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            causes.required(&field("apiGroups"), "resource rules must supply at least one api group");
        }
        if list(rule, "resources").is_empty() {
            causes.required(&field("resources"), "resource rules must supply at least one resource");
        }
    }
}

/// A subject is of the group of roles, or an account of a namespace.
fn subject(plural: &str, subject: &Value, field: &dyn Fn(&str) -> String, causes: &mut Causes) {
    let group = text(subject, "apiGroup");
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !group.is_empty() {
                causes.unsupported(&field("apiGroup"), &json!(group), &[""]);
            }
            if plural == "clusterrolebindings" && text(subject, "namespace").is_empty() {
                causes.required(&field("namespace"), "");
            }
        }
        "User" | "Group" if group != GROUP => {
            causes.unsupported(&field("apiGroup"), &json!(group), &[GROUP]);
        }
        "User" | "Group" => {}
        other => {
            causes.unsupported(&field("kind"), &json!(other), &["ServiceAccount", "User", "Group"]);
        }
    }
}

fn binding(plural: &str, body: &Value, causes: &mut Causes) {
    let role = &body["roleRef"];
    if text(role, "apiGroup") != GROUP {
        causes.unsupported("roleRef.apiGroup", &json!(text(role, "apiGroup")), &[GROUP]);
    }
    let known: &[&str] = if plural == "rolebindings" { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !known.contains(&text(role, "kind")) {
        causes.unsupported("roleRef.kind", &json!(text(role, "kind")), known);
    }
    if text(role, "name").is_empty() {
        causes.required("roleRef.name", "");
    }
    for (at, subject) in list(body, "subjects").iter().enumerate() {
        let field = |name: &str| format!("subjects[{at}].{name}");
        if text(subject, "name").is_empty() {
            causes.required(&field("name"), "");
        }
        self::subject(plural, subject, &field, causes);
    }
}

fn autoscaler(spec: &Value, causes: &mut Causes) {
    let most = spec.get("maxReplicas").and_then(Value::as_i64).unwrap_or(0);
    if most < 1 {
        causes.required("spec.maxReplicas", "must be set and greater than 0");
    }
    if spec.get("minReplicas").and_then(Value::as_i64).is_some_and(|least| most < least) {
        causes.invalid("spec.maxReplicas", &json!(most), "must be greater than or equal to `minReplicas`");
    }
    let target = &spec["scaleTargetRef"];
    for name in ["kind", "name"].into_iter().filter(|name| text(target, name).is_empty()) {
        causes.required(&format!("spec.scaleTargetRef.{name}"), "");
    }
    if text(target, "apiVersion").is_empty() {
        causes.invalid("spec.scaleTargetRef.apiVersion", &json!(""), "apiVersion must specify API group");
    }
}

fn budget(spec: &Value, causes: &mut Causes) {
    let (Some(least), Some(most)) = (spec.get("minAvailable"), spec.get("maxUnavailable")) else { return };
    let selector = spec.get("selector").unwrap_or(&Value::Null);
    let value = format!(
        "{{\"MinAvailable\":{least},\"Selector\":{selector},\"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":null}}"
    );
    causes.invalid_text("spec", &value, "minAvailable and maxUnavailable cannot be both set");
}

pub(super) fn change(plural: &str, old: &Value, new: &Value, causes: &mut Causes) {
    match plural {
        "rolebindings" | "clusterrolebindings" if old["roleRef"] != new["roleRef"] => {
            let part = |name: &str| json!(text(&new["roleRef"], name));
            let value = format!(
                "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
                part("apiGroup"),
                part("kind"),
                part("name")
            );
            causes.invalid_text("roleRef", &value, "cannot change roleRef");
        }
        "storageclasses" => {
            for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                causes.unchanged(name, old.get(name), new.get(name));
            }
        }
        "priorityclasses" if old["value"] != new["value"] => {
            causes.forbidden("value", "may not be changed in an update.");
        }
        _ => {}
    }
}
