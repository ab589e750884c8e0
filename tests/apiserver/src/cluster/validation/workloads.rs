//! Deployments, sets, jobs: selectors and templates that fit each other, and what may not change.
//!
//! Answers: will the pods of this template be found by this selector?
//! 1. A missing selector fits nothing, an empty one fits everything and is refused for that.
use serde_json::{Value, json};

use super::causes::{Causes, NO_CHANGE, text};
use super::{metadata, pods};
use crate::cluster::label_selector;

const STATEFUL_FIXED: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const STATEFUL_FREE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
const JOB_RESTARTS: &str = "valid values: \"OnFailure\", \"Never\"";

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    let spec = &body["spec"];
    match plural {
        "deployments" | "replicasets" | "daemonsets" | "statefulsets" => {
            causes.not_negative("spec.replicas", spec.get("replicas"));
            selected(plural, spec, causes);
        }
        "jobs" => {
            for name in ["parallelism", "completions", "backoffLimit"] {
                causes.not_negative(&format!("spec.{name}"), spec.get(name));
            }
            job_template("spec.template", &spec["template"], causes);
        }
        "cronjobs" => {
            schedule(spec, causes);
            job_template("spec.jobTemplate.spec.template", &spec["jobTemplate"]["spec"]["template"], causes);
        }
        _ => {}
    }
}

fn selected(plural: &str, spec: &Value, causes: &mut Causes) {
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    let labels = spec.pointer("/template/metadata/labels");
    let empty = selector.is_some_and(|selector| label_selector::text(selector).is_empty());
    match selector {
        None => causes.required("spec.selector", ""),
        Some(_) if empty => {
            let kind = if plural == "replicasets" { "deployment" } else { plural.trim_end_matches('s') };
            causes.invalid("spec.selector", &json!({}), &format!("empty selector is invalid for {kind}"));
        }
        Some(_) => {}
    }
    let has = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
    if !empty && !label_selector::chooses(selector, &has) {
        let why = "`selector` does not match template `labels`";
        causes.invalid("spec.template.metadata.labels", labels.unwrap_or(&Value::Null), why);
    }
    metadata::labels("spec.template.labels", labels, causes);
    let template = &spec["template"]["spec"];
    pods::spec("spec.template.spec", template, causes);
    let restart =
        template.get("restartPolicy").filter(|policy| matches!(policy.as_str(), Some("OnFailure" | "Never")));
    if let Some(policy) = restart {
        causes.unsupported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
}

fn job_template(at: &str, template: &Value, causes: &mut Causes) {
    let spec = &template["spec"];
    pods::spec(&format!("{at}.spec"), spec, causes);
    if matches!(text(spec, "restartPolicy"), "" | "Always") {
        causes.required(&format!("{at}.spec.restartPolicy"), JOB_RESTARTS);
    }
}

fn schedule(spec: &Value, causes: &mut Causes) {
    let schedule = text(spec, "schedule");
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() {
        causes.required("spec.schedule", "");
    } else if !schedule.starts_with('@') && fields.len() != 5 {
        let why = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
        causes.invalid("spec.schedule", &json!(schedule), &why);
    }
}

pub(super) fn change(plural: &str, old: &Value, new: &Value, causes: &mut Causes) {
    let (before, after) = (&old["spec"], &new["spec"]);
    match plural {
        "deployments" | "replicasets" | "daemonsets" if before["selector"] != after["selector"] => {
            causes.invalid_text("spec.selector", &written(&after["selector"]), NO_CHANGE);
        }
        "statefulsets" => {
            let fixed = |spec: &Value| {
                let mut spec = spec.as_object().cloned().unwrap_or_default();
                spec.retain(|name, _| !STATEFUL_FREE.contains(&name.as_str()));
                spec
            };
            if fixed(before) != fixed(after) {
                causes.forbidden("spec", STATEFUL_FIXED);
            }
        }
        "jobs" => {
            causes.unchanged("spec.completions", before.get("completions"), after.get("completions"));
            causes.unchanged("spec.selector", before.get("selector"), after.get("selector"));
        }
        _ => {}
    }
}

/// A selector as a Go server writes it: the labels first.
fn written(selector: &Value) -> String {
    let parts = ["matchLabels", "matchExpressions"].into_iter().filter_map(|name| {
        let part = selector.get(name)?;
        Some(format!("{name:?}:{part}"))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}
