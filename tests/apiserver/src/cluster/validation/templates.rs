//! Templates of pods, and selectors that must match their pods.
//!
//! Answers: does this selector match the pods of this template, and is the template valid?
//! 1. A missing selector finds nothing.
//! 2. Pods of workloads that do not end always restart.
use serde_json::{Value, json};

use super::causes::{Causes, text};
use super::{metadata, pods, selectors};
use crate::cluster::label_selector;

const UNFIT: &str = "`selector` does not match template `labels`";

/// A template: labels, annotations, the spec of a pod.
pub(super) fn check(field: &str, template: &Value, causes: &mut Causes) {
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
    if !label_selector::chooses(selector, &has) {
        causes.invalid("spec.template.metadata.labels", labels.unwrap_or(&Value::Null), UNFIT);
    }
}

/// The same for kinds that refuse an empty selector as such, and not because of what it matches.
pub(super) fn fits_unless_empty(spec: &Value, causes: &mut Causes) {
    if spec.get("selector").is_none_or(|selector| selector.is_null() || !selectors::is_empty(selector)) {
        fits(spec, causes);
    }
}

/// A selector that must be there and must not be empty. Returns whether it is valid.
pub(super) fn selector(spec: &Value, kind: &str, causes: &mut Causes) -> bool {
    let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) else {
        causes.required("spec.selector", "");
        return true;
    };
    let sound = selectors::check("spec.selector", Some(selector), causes);
    refuse_empty(selector, kind, causes);
    sound
}

pub(super) fn refuse_empty(selector: &Value, kind: &str, causes: &mut Causes) {
    if selectors::is_empty(selector) {
        causes.invalid("spec.selector", &json!({}), &format!("empty selector is invalid for {kind}"));
    }
}

/// Pods of workloads that do not end always restart, and have no deadline.
pub(super) fn serves(spec: &Value, kind: &str, causes: &mut Causes) {
    let pod = &spec["template"]["spec"];
    let policy = text(pod, "restartPolicy");
    if policy != "Always" {
        causes.unsupported("spec.template.spec.restartPolicy", &json!(policy), &["Always"]);
    }
    if pod.get("activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.forbidden("spec.template.spec.activeDeadlineSeconds", &why);
    }
}
