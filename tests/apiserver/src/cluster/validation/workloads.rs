//! Deployments and sets: selectors, templates and strategies that fit each other, and what may not change.
//!
//! Answers: is this workload valid? Each kind has its own order of checks, as in a real server.
//! 1. A strategy that is refused as a whole is shown as in Go: with Go's names and order of members.
//!
//! Next: `selectors.rs` checks templates of pods; `jobs.rs` has jobs.
use serde_json::{Value, json};

use super::causes::{Causes, NO_CHANGE, at_most_all, is_zero, not_negative, text};
use super::metadata;
use super::selectors::{self, written};

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

pub(super) fn check(plural: &str, spec: &Value, causes: &mut Causes) {
    match plural {
        "deployments" => deployment(spec, causes),
        "replicasets" => replica_set(spec, causes),
        "daemonsets" => daemon_set(spec, causes),
        "statefulsets" => stateful_set(spec, causes),
        _ => {}
    }
}

fn deployment(spec: &Value, causes: &mut Causes) {
    causes.counts("spec", spec, &["replicas"]);
    selected(spec, "deployment", causes);
    let (field, strategy) = ("spec.strategy", &spec["strategy"]);
    match text(strategy, "type") {
        "RollingUpdate" => rolling_deployment(&strategy["rollingUpdate"], causes),
        "Recreate" => {
            if strategy.get("rollingUpdate").is_some() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                causes.forbidden("spec.strategy.rollingUpdate", why);
            }
        }
        _ => {
            let told = strategy_as_told(strategy, &["maxUnavailable", "maxSurge"], "0");
            causes.unsupported(field, &told, &["Recreate", "RollingUpdate"]);
        }
    }
    causes.counts("spec", spec, &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"]);
    let number = |name: &str| spec.get(name).and_then(Value::as_i64);
    if let Some(deadline) = number("progressDeadlineSeconds")
        && deadline <= number("minReadySeconds").unwrap_or(0)
    {
        causes.invalid(
            "spec.progressDeadlineSeconds",
            &json!(deadline),
            "must be greater than minReadySeconds",
        );
    }
}

/// Selector and template of a kind that runs a number of equal pods.
fn selected(spec: &Value, kind: &str, causes: &mut Causes) {
    if selectors::selector(spec, kind, causes) {
        selectors::fits_unless_empty(spec, causes);
        selectors::check_template("spec.template", &spec["template"], causes);
        selectors::serves(spec, "ReplicaSet", causes);
    } else {
        causes.invalid_text("spec.selector", &written(&spec["selector"]), "invalid label selector");
    }
}

fn rolling_deployment(rolling: &Value, causes: &mut Causes) {
    let field = |name: &str| format!("spec.strategy.rollingUpdate.{name}");
    let (missing, more) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    not_negative(&field("maxUnavailable"), missing, causes);
    not_negative(&field("maxSurge"), more, causes);
    if is_zero(missing) && is_zero(more) {
        let value = missing.unwrap_or(&Value::Null);
        causes.invalid(&field("maxUnavailable"), value, "may not be 0 when `maxSurge` is 0");
    }
    at_most_all(&field("maxUnavailable"), missing, causes);
}

fn replica_set(spec: &Value, causes: &mut Causes) {
    causes.counts("spec", spec, &["replicas", "minReadySeconds"]);
    selected(spec, "deployment", causes);
}

fn daemon_set(spec: &Value, causes: &mut Causes) {
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    if selectors::check("spec.selector", selector, causes) {
        selectors::fits(spec, causes);
    }
    if let Some(selector) = selector {
        selectors::refuse_empty(selector, "daemonset", causes);
    }
    selectors::check_template("spec.template", &spec["template"], causes);
    selectors::serves(spec, "DaemonSet", causes);
    causes.counts("spec", spec, &["minReadySeconds"]);
    let strategy = &spec["updateStrategy"];
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => rolling_daemon_set(&strategy["rollingUpdate"], causes),
        _ => {
            let told = strategy_as_told(strategy, &["maxUnavailable", "maxSurge"], "0");
            causes.unsupported("spec.updateStrategy", &told, &["RollingUpdate", "OnDelete"]);
        }
    }
    causes.counts("spec", spec, &["revisionHistoryLimit"]);
}

fn rolling_daemon_set(rolling: &Value, causes: &mut Causes) {
    let field = |name: &str| format!("spec.updateStrategy.rollingUpdate.{name}");
    let (missing, more) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    for (name, value) in [("maxUnavailable", missing), ("maxSurge", more)] {
        not_negative(&field(name), value, causes);
    }
    for (name, value) in [("maxUnavailable", missing), ("maxSurge", more)] {
        at_most_all(&field(name), value, causes);
    }
    match (is_zero(missing), is_zero(more)) {
        (false, false) => {
            let value = more.unwrap_or(&Value::Null);
            causes.invalid(&field("maxSurge"), value, "may not be set when maxUnavailable is non-zero");
        }
        (true, true) => causes.required(&field("maxUnavailable"), "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

fn stateful_set(spec: &Value, causes: &mut Causes) {
    let strategy = &spec["updateStrategy"];
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let partition = strategy["rollingUpdate"].get("partition");
            causes.not_negative("spec.updateStrategy.rollingUpdate.partition", partition);
        }
        _ => {
            let told = strategy_as_told(strategy, &["partition", "maxUnavailable"], "null");
            let told = told.replace("\"Partition\":null", "\"Partition\":0");
            causes.invalid_text("spec.updateStrategy", &told, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
    causes.counts("spec", spec, &["replicas", "minReadySeconds"]);
    if selectors::selector(spec, "statefulset", causes) {
        selectors::fits_unless_empty(spec, causes);
        selectors::check_template("spec.template", &spec["template"], causes);
        let part = |name: &str| spec["template"]["metadata"].get(name);
        metadata::labels("spec.template.labels", part("labels"), causes);
        metadata::annotations("spec.template.annotations", part("annotations"), causes);
    } else {
        causes.invalid_text("spec.selector", &written(&spec["selector"]), "");
    }
    selectors::serves(spec, "StatefulSet", causes);
}

/// A strategy as Go prints it; `missing` is the text for a missing part.
fn strategy_as_told(strategy: &Value, parts: &[&str], missing: &str) -> String {
    let rolling = strategy.get("rollingUpdate").map_or_else(
        || "null".to_owned(),
        |rolling| {
            let part = |name: &&str| {
                let value = rolling.get(*name).map_or_else(|| missing.to_owned(), Value::to_string);
                let (first, rest) = name.split_at(1);
                format!("\"{}{rest}\":{value}", first.to_uppercase())
            };
            format!("{{{}}}", parts.iter().map(part).collect::<Vec<_>>().join(","))
        },
    );
    format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", json!(text(strategy, "type")))
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
