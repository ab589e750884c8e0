//! Objects whose stored form differs from the form that clients see: events of events.k8s.io, which are stored as
//! core's, daemon sets, whose count of templates is shown as an annotation, autoscalers of autoscaling/v1, which are
//! stored as v2, and custom objects of several versions.
//!
//! Answers: what does this object look like in the version it is asked for, and in the one it is stored in? It is
//! pure: members are moved, nothing is checked and nothing is lost.
//! 1. `into_stored` leaves an object that has the stored shape already as it is.
//! 2. An object that is converted in both directions does not change; a custom one loses the fields that one of its
//!    versions does not have.
//! 3. `managedFields` keep the version they were written in, because every entry names it.
//!
//! Next: `object.rs` and `representation.rs`, where objects enter and leave.
mod autoscaler;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::metadata::metadata_mut;
use super::rules;
use super::status::ApiError;

/// The name of a member in events.k8s.io, and in core.
const EVENT: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
];
/// Members that core shows even if they are empty, and events.k8s.io does not.
const TOLD_EMPTY: [&str; 2] = ["reportingComponent", "reportingInstance"];

/// The annotation with the number of templates that a daemon set has had, and where the number is stored. It
/// is not shown to clients that ask for metadata only.
pub(crate) const TEMPLATES: &str = "deprecated.daemonset.template.generation";
const STORED_TEMPLATES: &str = "templateGeneration";

/// Whether the stored form of objects of this kind differs from the shown one.
pub(crate) fn is_converted(kind: &Kind) -> bool {
    is_renamed(kind) || counts_templates(kind) || is_older_autoscaler(kind) || kind.stored_as.is_some()
}

fn is_renamed(kind: &Kind) -> bool {
    !kind.custom && kind.resource != kind.storage
}

/// Whether this is the autoscaler of autoscaling/v1.
pub(super) fn is_older_autoscaler(kind: &Kind) -> bool {
    kind.version == "v1" && kind.resource.is("autoscaling", "horizontalpodautoscalers")
}

/// Applies to an autoscaler of autoscaling/v1 the changes that its stored form causes.
pub(super) fn renew_autoscaler(value: &mut Value) {
    autoscaler::renew(value);
}

/// # Errors
/// 400 for an autoscaler of autoscaling/v1 with an annotation that is not read.
pub(super) fn check(kind: &Kind, value: &Value) -> Result<(), ApiError> {
    let refused = is_older_autoscaler(kind).then(|| autoscaler::in_old_form(value)).flatten();
    refused.map_or(Ok(()), |name| {
        let why = format!(
            "this server does not read the old form of the annotation {name:?}: see its DIFFERENCES.md"
        );
        Err(ApiError::bad_request(why))
    })
}

pub(super) fn counts_templates(kind: &Kind) -> bool {
    kind.resource.is("apps", "daemonsets")
}

/// Where the values of field selectors are in the stored form, in the order in which they are kept.
pub(super) fn stored_fields(kind: &Kind) -> Vec<Cow<'_, str>> {
    if is_renamed(kind) {
        return rules::fields(&kind.storage).into_iter().map(|(_, at)| at.into()).collect();
    }
    kind.fields.iter().map(|(_, at)| at.as_str().into()).collect()
}

/// Converts a value of this kind to the stored form.
pub(super) fn into_stored(kind: &Kind, value: &mut Value) {
    if counts_templates(kind) {
        store_templates(value);
    }
    if is_older_autoscaler(kind) {
        autoscaler::store(value);
    }
    if let Some(stored) = &kind.stored_as {
        *value = stored.read(value.take());
    }
    if !is_renamed(kind) {
        return;
    }
    let Value::Object(root) = value else { return };
    for (told, stored) in EVENT {
        rename(root, told, stored);
    }
    for name in TOLD_EMPTY {
        root.entry(name).or_insert_with(|| json!(""));
    }
}

/// Converts a value of the stored form to this kind.
pub(super) fn from_stored(kind: &Kind, value: &mut Value) {
    if counts_templates(kind) {
        tell_templates(value);
    }
    if is_older_autoscaler(kind) {
        autoscaler::tell(value);
    }
    if let (Some(_), Some(own)) = (&kind.stored_as, &kind.definition) {
        *value = own.pruned(value.take());
    }
    if !is_renamed(kind) {
        return;
    }
    let Value::Object(root) = value else { return };
    for name in TOLD_EMPTY {
        if root.get(name).is_some_and(|value| value == "") {
            root.remove(name);
        }
    }
    for (told, stored) in EVENT {
        rename(root, stored, told);
    }
}

/// The number of templates in a daemon set's annotation.
pub(super) fn templates(set: &Value) -> i64 {
    let told = set["metadata"]["annotations"][TEMPLATES].as_str();
    told.and_then(|told| told.parse().ok()).unwrap_or(0)
}

fn store_templates(set: &mut Value) {
    let count = templates(set);
    let Some(annotations) = set.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    if annotations.remove(TEMPLATES).is_none() {
        return;
    }
    if annotations.is_empty() {
        metadata_mut(set).remove("annotations");
    }
    if set["spec"].is_object() {
        set["spec"][STORED_TEMPLATES] = json!(count);
    }
}

fn tell_templates(set: &mut Value) {
    let stored = set.get_mut("spec").and_then(Value::as_object_mut);
    let count = stored.and_then(|spec| spec.remove(STORED_TEMPLATES)).unwrap_or_else(|| json!(0));
    let annotations = metadata_mut(set).entry("annotations").or_insert_with(|| json!({}));
    annotations[TEMPLATES] = json!(count.to_string());
}

fn rename(root: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = root.remove(from) {
        root.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::builtin;

    fn kind(group: &str) -> std::sync::Arc<Kind> {
        builtin::kinds().find(|kind| kind.resource.is(group, "events")).unwrap()
    }

    #[test]
    fn e16_an_event_is_renamed_into_the_stored_shape_and_back() {
        let told = json!({"metadata": {"name": "a"}, "regarding": {"name": "b"}, "note": "text", "deprecatedSource": {},
            "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null, "deprecatedCount": 2,
            "reportingController": "c", "reportingInstance": "d", "series": {"count": 3}, "eventTime": null});
        let mut value = told.clone();
        into_stored(&kind("events.k8s.io"), &mut value);
        let stored = json!({"metadata": {"name": "a"}, "involvedObject": {"name": "b"}, "message": "text", "source": {},
            "firstTimestamp": null, "lastTimestamp": null, "count": 2,
            "reportingComponent": "c", "reportingInstance": "d", "series": {"count": 3}, "eventTime": null});
        assert_eq!(value, stored);
        into_stored(&kind("events.k8s.io"), &mut value);
        assert_eq!(value, stored, "what has the stored shape is left as it is");
        from_stored(&kind("events.k8s.io"), &mut value);
        assert_eq!(value, told);
    }

    #[test]
    fn e16_an_event_of_the_core_group_is_shown_as_it_is_stored() {
        let event = json!({"metadata": {}, "message": "text", "reportingComponent": ""});
        let mut value = event.clone();
        from_stored(&kind(""), &mut value);
        into_stored(&kind(""), &mut value);
        assert_eq!(value, event);
    }

    #[test]
    fn e16_an_empty_reporter_is_shown_only_by_core() {
        let mut value = json!({"metadata": {}, "reportingComponent": "", "reportingInstance": ""});
        from_stored(&kind("events.k8s.io"), &mut value);
        assert_eq!(value, json!({"metadata": {}}));
        into_stored(&kind("events.k8s.io"), &mut value);
        assert_eq!(value, json!({"metadata": {}, "reportingComponent": "", "reportingInstance": ""}));
    }

    #[test]
    fn e16_a_daemon_set_shows_its_templates_as_an_annotation() {
        let sets = builtin::kinds().find(|kind| kind.resource.is("apps", "daemonsets")).unwrap();
        let told = json!({"metadata": {"annotations": {TEMPLATES: "2"}}, "spec": {}});
        let mut value = told.clone();
        into_stored(&sets, &mut value);
        assert_eq!(value, json!({"metadata": {}, "spec": {"templateGeneration": 2}}));
        into_stored(&sets, &mut value);
        from_stored(&sets, &mut value);
        assert_eq!(value, told);
    }
}
