//! Autoscalers in both versions: written in one and read in the other (behaviour 44).
//!
//! They answer: is nothing lost between autoscaling/v1 and v2, and is it shown as by a real server?
use serde_json::{Value, json};

use crate::harness::{Session, judge};

const OLD: &str = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers";
const NEW: &str = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";

fn of(name: &str, spec: &Value) -> Value {
    let mut made = json!({"metadata": {"name": name}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "maxReplicas": 3}});
    if let (Some(into), Some(members)) = (made["spec"].as_object_mut(), spec.as_object()) {
        into.extend(members.clone());
    }
    made
}

fn read(s: &mut Session, name: &str) {
    s.get(format!("{OLD}/{name}"));
    s.get(format!("{NEW}/{name}"));
}

/// One metric of each type.
fn metrics() -> Value {
    json!([
        {"type": "Pods", "pods": {"metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "5k"}}},
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}},
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        {"type": "Object", "object": {"describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"}, "metric": {"name": "r"}, "target": {"type": "Value", "value": "10"}}},
        {"type": "External", "external": {"metric": {"name": "e"}, "target": {"type": "AverageValue", "averageValue": "30"}}},
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}},
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
    ])
}

#[test]
fn api_44_an_autoscaler_of_the_new_version_is_read_in_the_old_one() {
    judge(|s| {
        s.post(NEW, &of("plain", &json!({})));
        read(s, "plain");
        s.post(NEW, &of("all", &json!({"minReplicas": 2, "metrics": metrics()})));
        read(s, "all");
        let behavior = json!({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}, "scaleUp": {"selectPolicy": "Disabled"}}});
        s.post(NEW, &of("mild", &behavior));
        read(s, "mild");
        s.patch("merge", format!("{NEW}/all/status"), &json!({"status": {"currentReplicas": 1, "desiredReplicas": 2,
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "100m"}}},
                {"type": "Pods", "pods": {"metric": {"name": "q"}, "current": {"averageValue": "4"}}}],
            "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z", "reason": "R", "message": "M"}]}}));
        read(s, "all");
        s.get(OLD);
    });
}

#[test]
fn api_44_an_autoscaler_of_the_old_version_is_read_in_the_new_one() {
    judge(|s| {
        s.post(OLD, &of("plain", &json!({})));
        read(s, "plain");
        s.post(OLD, &of("share", &json!({"targetCPUUtilizationPercentage": 50})));
        read(s, "share");
        let mut noted = of("noted", &json!({"targetCPUUtilizationPercentage": 50}));
        noted["metadata"]["annotations"] = json!({"a": "b"});
        s.post(OLD, &noted);
        read(s, "noted");
        s.patch("merge", format!("{OLD}/noted"), &json!({"spec": {"maxReplicas": 9}}));
        s.patch(
            "strategic-merge",
            format!("{OLD}/noted"),
            &json!({"spec": {"targetCPUUtilizationPercentage": 70}}),
        );
        read(s, "noted");
        s.patch("merge", format!("{NEW}/noted"), &json!({"spec": {"metrics": metrics()}}));
        read(s, "noted");
        s.patch("merge", format!("{OLD}/share/status"), &json!({"status": {"currentCPUUtilizationPercentage": 45, "currentReplicas": 2, "desiredReplicas": 2}}));
        read(s, "share");
        s.apply(format!("{OLD}/applied?fieldManager=me"), &json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "applied"}, "spec": of("", &json!({"targetCPUUtilizationPercentage": 10}))["spec"]}));
        read(s, "applied");
        let mut broken = of("broken", &json!({}));
        broken["metadata"]["annotations"] = json!({"autoscaling.alpha.kubernetes.io/metrics": "no JSON"});
        s.post(OLD, &broken);
        read(s, "broken");
        let mut watch = s.watch(format!("{OLD}?watch=1"));
        watch.events(s, 5);
    });
}

#[test]
fn api_44_annotations_in_the_old_form_are_refused() {
    judge(|s| {
        for (name, text) in [
            ("metrics", "[{\"type\":\"Pods\",\"pods\":{\"metricName\":\"q\",\"targetAverageValue\":\"5\"}}]"),
            ("behavior", "{\"ScaleUp\":{\"SelectPolicy\":\"Disabled\"}}"),
        ] {
            let mut noted = of(name, &json!({}));
            noted["metadata"]["annotations"] =
                json!({format!("autoscaling.alpha.kubernetes.io/{name}"): text});
            s.post(OLD, &noted);
        }
    });
}
