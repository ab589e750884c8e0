//! Autoscalers, budgets, leases, priorities; and what may not change in bindings and classes.
//!
//! Answers: does this policy have a valid target, and may it be changed?
//! 1. The role of a binding may not change; another role needs another binding.
use serde_json::{Value, json};

use super::causes::{Causes, at_most_all, list, not_negative, text};
use super::selectors;
use crate::cluster::names::NameRule;

const HIGHEST_PRIORITY: i64 = 1_000_000_000;
/// The sources of metrics, and the member each has its own in.
const METRICS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    let spec = &body["spec"];
    match plural {
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

fn autoscaler(spec: &Value, causes: &mut Causes) {
    let number = |name: &str| spec.get(name).and_then(Value::as_i64);
    let (least, most) = (number("minReplicas"), number("maxReplicas").unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        causes.invalid("spec.minReplicas", &json!(least), "must be greater than or equal to 1");
    }
    if most < 1 {
        causes.required("spec.maxReplicas", "must be set and greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        causes.invalid("spec.maxReplicas", &json!(most), "must be greater than or equal to `minReplicas`");
    }
    scaled(&spec["scaleTargetRef"], causes);
    let metrics = list(spec, "metrics");
    for (at, metric) in metrics.iter().enumerate() {
        check_metric(&format!("spec.metrics[{at}]"), metric, causes);
    }
    let outer = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == Some(0) && !metrics.iter().any(outer) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.forbidden("spec.metrics", why);
    }
}

fn scaled(target: &Value, causes: &mut Causes) {
    for name in ["kind", "name"] {
        let field = format!("spec.scaleTargetRef.{name}");
        causes.needed_name(&field, text(target, name), NameRule::PathSegment);
    }
    let version = text(target, "apiVersion");
    let why = match version.split('/').count() {
        _ if version.is_empty() => "apiVersion must specify API group".to_owned(),
        1 | 2 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    causes.invalid("spec.scaleTargetRef.apiVersion", &json!(version), &why);
}

/// One metric for scaling; an unknown source is reported twice.
fn check_metric(field: &str, metric: &Value, causes: &mut Causes) {
    let kind = text(metric, "type");
    let at = format!("{field}.type");
    if kind.is_empty() {
        causes.required(&at, "must specify a metric source type");
    }
    let Some((_, member)) = METRICS.into_iter().find(|(known, _)| *known == kind) else {
        let known = METRICS.map(|(known, _)| known);
        causes.unsupported(&at, json!(kind), &known);
        causes.unsupported(&at, json!(kind), &known);
        return;
    };
    let field = format!("{field}.{member}");
    let Some(source) = metric.get(member) else {
        causes.required(&field, "must populate information for the given metric source");
        return;
    };
    if kind == "Resource" {
        if text(source, "name").is_empty() {
            causes.required(&format!("{field}.name"), "must specify a resource name");
        }
        check_target(&format!("{field}.target"), &source["target"], causes);
    }
}

fn check_target(field: &str, target: &Value, causes: &mut Causes) {
    let kind = text(target, "type");
    if kind.is_empty() {
        causes.required(&format!("{field}.type"), "must specify a metric target type");
    } else if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        causes.invalid(&format!("{field}.type"), &json!(kind), why);
    }
    if target.get("averageUtilization").is_none() && target.get("averageValue").is_none() {
        let why = "must set either a target raw value or a target utilization";
        causes.required(&format!("{field}.averageUtilization"), why);
    }
}

fn budget(spec: &Value, causes: &mut Causes) {
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if let (Some(least), Some(most)) = (least, most) {
        let selector = spec.get("selector").unwrap_or(&Value::Null);
        let value = format!(
            "{{\"MinAvailable\":{least},\"Selector\":{selector},\"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":null}}"
        );
        causes.invalid_text("spec", &value, "minAvailable and maxUnavailable cannot be both set");
    }
    for (field, value) in [("spec.minAvailable", least), ("spec.maxUnavailable", most)] {
        not_negative(field, value, causes);
        at_most_all(field, value, causes);
    }
    selectors::check("spec.selector", spec.get("selector"), causes);
    let policy = spec.get("unhealthyPodEvictionPolicy");
    causes.one_of("spec.unhealthyPodEvictionPolicy", policy, &["AlwaysAllow", "IfHealthyBudget"]);
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
