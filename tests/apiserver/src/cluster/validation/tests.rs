//! Causes of invalid objects, as recorded from a real server.
//!
//! They answer: which members are reported, in which order, and how often? `tests/judged/refusals.rs` compares with a
//! real server.
use serde_json::{Value, json};

use super::{of_change, of_new};
use crate::cluster::builtin;
use crate::cluster::status::Cause;

fn fields(causes: &[Cause]) -> Vec<&str> {
    causes.iter().map(|cause| cause.field.as_str()).collect()
}

fn told(group: &str, plural: &str, spec: Value) -> Vec<String> {
    let kind = builtin::kinds().find(|kind| kind.resource.is(group, plural)).unwrap();
    let body = json!({"metadata": {"name": "a"}, "spec": spec});
    fields(&of_new(&kind, &body)).into_iter().map(str::to_owned).collect()
}

#[test]
fn e20_causes_are_in_the_order_of_the_api() {
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "C"}, {"name": "c", "image": "i"}, {"name": "c"}]}});
    let deployment = json!({"replicas": -1, "minReadySeconds": -1, "selector": {}, "template": template,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "x", "maxSurge": 0}}});
    assert_eq!(
        told("apps", "deployments", deployment),
        [
            "spec.replicas",
            "spec.selector",
            "spec.template.spec.containers[0].name",
            "spec.template.spec.containers[0].image",
            "spec.template.spec.containers[2].image",
            "spec.template.spec.containers[2].name",
            "spec.template.spec.restartPolicy",
            "spec.strategy.rollingUpdate.maxUnavailable",
            "spec.strategy.rollingUpdate.maxUnavailable",
            "spec.minReadySeconds",
        ]
    );
    let peer = json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/8", "10.1.0.0/16", "x"]}, "podSelector": {}});
    assert_eq!(
        told("networking.k8s.io", "networkpolicies", json!({"ingress": [{"from": [peer]}]})),
        [
            "spec.ingress[0].from[0].ipBlock.except[0]",
            "spec.ingress[0].from[0].ipBlock.except[2]",
            "spec.ingress[0].from[0]"
        ]
    );
}

#[test]
fn e20_faults_in_metadata_of_a_change_are_reported_once_per_check() {
    for (group, plural, times) in [("", "configmaps", 4), ("apps", "deployments", 3), ("", "limitranges", 3)]
    {
        let kind = builtin::kinds().find(|kind| kind.resource.is(group, plural)).unwrap();
        let old = json!({"metadata": {"name": "a"}, "spec": {}});
        let new = json!({"metadata": {"name": "a", "labels": {"-": ""}}, "spec": {}});
        let causes = of_change(&kind, &old, &new);
        assert_eq!(fields(&causes), vec!["metadata.labels"; times], "{plural}");
    }
}
