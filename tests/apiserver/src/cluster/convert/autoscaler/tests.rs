//! The conversion of autoscalers, both ways.
//!
//! They answer: is everything that v1 has no member for shown, and does it come back?
use serde_json::{Value, json};

use super::{BEHAVIOR, METRICS, in_old_form, store, tell};

fn stored() -> Value {
    json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "metrics": [
        {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "5"}}},
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
    ], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}},
        "status": {"currentReplicas": 1, "currentMetrics": null, "desiredReplicas": 2, "conditions": [
            {"type": "AbleToScale", "status": "True", "lastTransitionTime": null}]}})
}

#[test]
fn what_the_first_version_has_no_member_for_is_shown_in_annotations() {
    let mut value = stored();
    tell(&mut value);
    assert_eq!(value["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 60}));
    let annotations = &value["metadata"]["annotations"];
    assert_eq!(annotations[METRICS], json!([stored()["spec"]["metrics"][0]]).to_string());
    assert_eq!(annotations[BEHAVIOR], r#"{"scaleDown":{"stabilizationWindowSeconds":5}}"#);
}

#[test]
fn a_text_in_the_form_of_the_first_version_is_refused() {
    let mut value = stored();
    tell(&mut value);
    assert_eq!(in_old_form(&value), None);
    value["metadata"]["annotations"][METRICS] =
        r#"[{"type":"Pods","pods":{"metricName":"q","targetAverageValue":"5"}}]"#.into();
    assert_eq!(in_old_form(&value), Some(METRICS));
    value["metadata"]["annotations"][METRICS] = "no JSON".into();
    assert_eq!(in_old_form(&value), None);
    store(&mut value);
    assert_eq!(value["spec"]["metrics"], json!([stored()["spec"]["metrics"][1]]));
}

#[test]
fn a_conversion_in_both_directions_gives_the_same_object() {
    let mut value = stored();
    tell(&mut value);
    store(&mut value);
    assert_eq!(value, stored());
    store(&mut value);
    assert_eq!(value, stored(), "what has the stored shape is left as it is");
}
