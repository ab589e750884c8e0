//! Label selectors as members of objects: their keys, operators and values, and the templates of pods they must match.
//!
//! Answers: is this selector valid, does it match the pods of this template, and is the template valid?
//! 1. A selector with a fault matches nothing; a missing selector has no fault, and finds nothing.
//! 2. Pods of workloads that do not end always restart.

use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use super::{metadata, pods};
use crate::cluster::{names, selector};

/// Whether the selector at this place is valid; faults are reported.
pub(super) fn check(field: &str, selector: Option<&Value>, causes: &mut Causes) -> bool {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else { return true };
    let before = causes.count();
    metadata::labels(&format!("{field}.matchLabels"), selector.get("matchLabels"), causes);
    for (at, expression) in list(selector, "matchExpressions").iter().enumerate() {
        check_expression(&format!("{field}.matchExpressions[{at}]"), expression, causes);
    }
    causes.count() == before
}

fn check_expression(field: &str, expression: &Value, causes: &mut Causes) {
    let values = list(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.required(&format!("{field}.values"), why);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.forbidden(&format!("{field}.values"), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            causes.invalid(&format!("{field}.operator"), &other.into(), "not a valid selector operator");
        }
    }
    let key = text(expression, "key");
    causes.invalid_for(&format!("{field}.key"), &key.into(), names::label_key_faults(key));
    for (at, value) in values.iter().enumerate() {
        let faults = names::label_value_faults(value.as_str().unwrap_or_default());
        causes.invalid_for(&format!("{field}.values[{at}]"), value, faults);
    }
}

/// Whether it has no requirement: it would match everything.
pub(super) fn is_empty(selector: &Value) -> bool {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    labels.is_none_or(serde_json::Map::is_empty) && list(selector, "matchExpressions").is_empty()
}

/// A selector as a Go server writes it: the labels first.
pub(super) fn written(selector: &Value) -> String {
    let parts = ["matchLabels", "matchExpressions"].into_iter().filter_map(|name| {
        let part = selector.get(name)?;
        Some(format!("{name:?}:{part}"))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

const UNFIT: &str = "`selector` does not match template `labels`";

/// A template: labels, annotations, the spec of a pod.
pub(super) fn check_template(field: &str, template: &Value, causes: &mut Causes) {
    let part = |name: &str| template["metadata"].get(name);
    metadata::labels(&format!("{field}.labels"), part("labels"), causes);
    metadata::annotations(&format!("{field}.annotations"), part("annotations"), causes);
    pods::spec(&format!("{field}.spec"), &template["spec"], causes);
}

/// Whether the selector finds the pods of the template; checked for a valid one.
pub(super) fn fits(spec: &Value, causes: &mut Causes) {
    let labels = spec.pointer("/template/metadata/labels");
    let has = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    if !selector::chooses(selector, &has) {
        causes.invalid("spec.template.metadata.labels", labels.unwrap_or(&Value::Null), UNFIT);
    }
}

/// The same for kinds that refuse an empty selector as such, and not because of what it matches.
pub(super) fn fits_unless_empty(spec: &Value, causes: &mut Causes) {
    if spec.get("selector").is_none_or(|selector| selector.is_null() || !is_empty(selector)) {
        fits(spec, causes);
    }
}

/// A selector that must be there and must not be empty. Returns whether it is valid.
pub(super) fn selector(spec: &Value, kind: &str, causes: &mut Causes) -> bool {
    let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) else {
        causes.required("spec.selector", "");
        return true;
    };
    let sound = check("spec.selector", Some(selector), causes);
    refuse_empty(selector, kind, causes);
    sound
}

pub(super) fn refuse_empty(selector: &Value, kind: &str, causes: &mut Causes) {
    if is_empty(selector) {
        causes.invalid("spec.selector", &json!({}), &format!("empty selector is invalid for {kind}"));
    }
}

/// Pods of workloads that do not end always restart, and have no deadline.
pub(super) fn serves(spec: &Value, kind: &str, causes: &mut Causes) {
    let pod = &spec["template"]["spec"];
    let policy = text(pod, "restartPolicy");
    if policy != "Always" {
        causes.unsupported("spec.template.spec.restartPolicy", json!(policy), &["Always"]);
    }
    if pod.get("activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.forbidden("spec.template.spec.activeDeadlineSeconds", &why);
    }
}
