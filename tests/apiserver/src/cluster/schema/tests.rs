//! The schema model, tested with small documents and with the data of the real server.
//!
//! Answers: is each type found at its place in the document, with its lists, keys and defaults? Decoding by these
//! types is compared with a real server in `tests/judged/fields.rs`.
use serde_json::json;

use super::{Format, ListMerge, Scalar, Schema, Shape, load};

fn builtin(group: &str, version: &str, kind: &str) -> Schema {
    load::builtin(group, version, kind).unwrap_or_else(|| panic!("{kind} has a schema"))
}

#[test]
fn the_lists_of_a_pod_have_their_keys_and_strategies() {
    let pod = builtin("", "v1", "Pod");
    let containers = pod.at("spec.containers").unwrap();
    assert!(containers.patch_strategy.merge);
    assert_eq!(containers.patch_merge_key.as_deref(), Some("name"));
    let merge = |path: &str| pod.get(pod.at(path).unwrap().id).list().unwrap().merge.clone();
    assert_eq!(merge("spec.containers"), ListMerge::Map(vec!["name".into()]));
    assert_eq!(
        merge("spec.containers.*.ports"),
        ListMerge::Map(vec!["containerPort".into(), "protocol".into()])
    );
    assert_eq!(merge("spec.containers.*.args"), ListMerge::Atomic);
    assert_eq!(merge("metadata.finalizers"), ListMerge::Set);
    let protocol = pod.at("spec.containers.*.ports.*.protocol").unwrap();
    assert_eq!(protocol.default, Some(json!("TCP")));
}

#[test]
fn scalars_quantities_and_free_forms_are_distinguished() {
    let pod = builtin("", "v1", "Pod");
    let scalar = |path: &str| match pod.get(pod.at(path).unwrap().id).shape {
        Shape::Scalar(scalar) => scalar,
        ref other => panic!("{path} is {other:?}"),
    };
    assert_eq!(scalar("spec.priority"), Scalar::Integer(Format::Int32));
    assert_eq!(scalar("spec.containers.*.resources.limits.cpu"), Scalar::Quantity);
    assert_eq!(scalar("spec.containers.*.livenessProbe.httpGet.port"), Scalar::IntegerOrText);
    assert_eq!(scalar("metadata.creationTimestamp"), Scalar::Text(Format::DateTime));
    let fields = pod.at("metadata.managedFields.*.fieldsV1").unwrap();
    assert!(pod.get(fields.id).object().unwrap().open);
}

#[test]
fn maps_are_atomic_by_type_or_by_place() {
    let deployment = builtin("apps", "v1", "Deployment");
    let selector = deployment.at("spec.selector").unwrap();
    assert!(deployment.get(selector.id).object().unwrap().atomic);
    assert!(deployment.at("spec.strategy").unwrap().patch_strategy.retain_keys);
    let volume = builtin("", "v1", "PersistentVolume");
    let claim = volume.at("spec.claimRef").unwrap();
    assert!(volume.get(claim.id).object().unwrap().atomic);
    assert_eq!(claim.atomic, Some(false));
}

#[test]
fn a_recursive_type_is_a_cycle_of_ids() {
    let definition = builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let schema = definition.at("spec.versions.*.schema.openAPIV3Schema").unwrap().id;
    assert_eq!(definition.field(schema, "not").unwrap().id, schema);
}

#[test]
fn a_custom_schema_keeps_its_marks() {
    let source = serde_json::from_value(json!({
        "type": "object",
        "properties": {
            "port": {"x-kubernetes-int-or-string": true},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "none": {"type": "string", "nullable": true, "default": null},
            "list": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        },
    }));
    let schema = load::custom(&source.unwrap());
    let made = |path: &str| schema.get(schema.at(path).unwrap().id);
    assert!(matches!(made("port").shape, Shape::Scalar(Scalar::IntegerOrText)));
    assert!(made("open").object().unwrap().open);
    assert!(made("none").nullable);
    assert_eq!(schema.at("none").unwrap().default, Some(json!(null)));
    assert_eq!(made("list").list().unwrap().merge, ListMerge::Set);
    assert!(!schema.get(schema.root()).object().unwrap().open);
}
