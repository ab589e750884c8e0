//! Compares what is read of a message with what is read of the JSON that Go would send instead. The in-memory server
//! writes the messages; Go's own bytes judge it.

use std::collections::BTreeMap;

use informer_apiserver::fuzzing::to_protobuf;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::table::TABLE;
use super::*;
use crate::wire::{FieldPath, WireKind};

mod broken;
mod split;
mod values;

use split::{list, split};
use values::{any_object, choices};

fn nothing() -> FieldTree {
    FieldTree::default()
}

fn kind_of_value(object: &Value) -> ProtobufKind {
    let text = |name: &str| object[name].as_str().expect("a text");
    ProtobufKind::of_types(text("apiVersion"), text("kind")).expect("a built-in kind")
}

fn written(object: &Value) -> Vec<u8> {
    to_protobuf(object).unwrap_or_else(|| panic!("no message: {object}"))
}

/// The message without its envelope, as the item of a list.
fn item(object: &Value) -> Vec<u8> {
    let bytes = written(object);
    open(kind_of_value(object), &bytes).expect("an envelope").raw.to_vec()
}

fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn pod() -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": "web-0", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "web", "e": ""},
            "annotations": {"a": "é\"<\n"}, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": true}],
            "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}]},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}], "nodeName": "n"},
        "status": {"phase": "Running"},
    })
}

#[test]
fn the_text_has_the_order_and_the_omissions_of_go() {
    let text = kind_of_value(&pod()).text(&written(&pod()), &nothing()).expect("readable");
    assert_eq!(
        text,
        concat!(
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop","uid":"u-1","#,
            r#""resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web","e":""},"#,
            r#""annotations":{"a":"é\"<\n"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","#,
            r#""uid":"r","controller":true}],"managedFields":[{"manager":"m","fieldsType":"","fieldsV1":{"f:a":{}}}]},"#,
            r#""spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1"}}}],"nodeName":"n"},"#,
            r#""status":{"phase":"Running"}}"#
        )
        .replace(r#""fieldsType":"","#, "")
    );
}

#[test]
fn an_object_is_identified_with_its_envelope_and_without_it() {
    let (whole, bare) = (written(&pod()), item(&pod()));
    for (bytes, kind) in [(&whole, Some("Pod")), (&bare, None)] {
        let found = identify(bytes);
        assert_eq!(found.kind.as_deref(), kind);
        assert_eq!(found.key().expect("a name").to_string(), "shop/web-0");
        assert_eq!((found.uid_text(), found.version.as_deref()), (Some("u-1"), Some("7")));
        let labels: Vec<_> = labels(&found).map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(labels, ["app=web", "e="]);
        let owner = owners(&found).next().expect("an owner");
        assert_eq!(
            (owner.kind.as_deref(), owner.api_version.as_deref()),
            (Some("ReplicaSet"), Some("apps/v1"))
        );
        assert_eq!(
            (owner.name.as_deref(), owner.uid.as_deref(), owner.is_controller),
            (Some("web"), Some("r"), true)
        );
        assert_eq!((generation(bytes), annotations(bytes).count()), (Some(3), 1));
    }
    let fields = field_bytes(kind_of_value(&pod()), &whole).expect("an object");
    let names: BTreeMap<_, _> = fields.into_iter().collect();
    assert!(names.contains_key("spec.nodeName") && names["metadata.managedFields"] > 5, "{names:?}");
}

#[test]
fn every_prefix_gives_the_fields_before_the_cut() {
    let bytes = written(&pod());
    for end in 0..bytes.len() {
        let found = identify(&bytes[..end]);
        assert!(found.name.as_deref().is_none_or(|name| name == "web-0"), "{end}");
        assert!(found.version.as_deref().is_none_or(|version| version == "7"), "{end}");
    }
    assert!(identify(&bytes[..bytes.len() / 2]).version().is_ok());
}

#[test]
fn an_event_has_its_type_and_an_object_in_an_envelope() {
    let frame = |event_type: &str, object: &[u8]| {
        let mut out = Vec::new();
        reader::put_bytes(&mut out, 1, event_type.as_bytes());
        reader::put_message(&mut out, 2, |out| reader::put_bytes(out, 1, object));
        out
    };
    let object = written(&pod());
    let bytes = frame("ADDED", &object);
    let read = event(&bytes).expect("an event");
    assert_eq!(
        (read.event_type, read.object, read.is_certain),
        (super::super::EventType::Added, &*object, true)
    );
    let head = event_head(&bytes[..bytes.len() - 40]).expect("its beginning");
    assert_eq!(identify(head.object).key().expect("a name").to_string(), "shop/web-0");
    for broken in [&[][..], &frame("ADDED", b"")[..4], &[0x0b]] {
        assert!(event(broken).is_err());
    }
    let bookmark_of = |annotations: Value| {
        let metadata = json!({"resourceVersion": "9", "annotations": annotations});
        bookmark(&written(&json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})))
    };
    assert_eq!(bookmark_of(json!({})), Ok(("9".to_owned(), false)));
    assert_eq!(bookmark_of(json!({"k8s.io/initial-events-end": "true"})), Ok(("9".to_owned(), true)));
    assert!(bookmark(b"").is_err());
}

#[test]
fn the_error_names_the_field_and_shows_no_value() {
    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Numbers {
        data: BTreeMap<String, u8>,
    }
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"k": "hunter2"}});
    let error = kind_of_value(&map).decode::<Numbers>(&written(&map), &nothing()).expect_err("a text");
    assert_eq!(error.to_string(), "data.k: invalid type: string, expected u8");

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Images {
        spec: BTreeMap<String, Option<Vec<Image>>>,
    }
    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Image {
        image: Option<bool>,
    }
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{}, {"image": "hunter2"}]}});
    let error = kind_of_value(&pod).decode::<Images>(&written(&pod), &nothing()).expect_err("a text");
    assert_eq!(error.to_string(), "spec.containers[1].image: invalid type: string, expected a boolean");
}

#[test]
fn of_a_secret_no_value_is_shown_and_a_status_is_read_as_json() {
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "aHVudGVyMg=="}});
    for bytes in [written(&secret), item(&secret)] {
        let wire = WireKind::Protobuf(kind_of_value(&secret));
        let shown = wire.shown(&bytes, Some("Secret")).expect("its kind is known");
        assert!(!shown.contains("aHVudGVyMg") && shown.contains("hidden"), "{shown}");
    }
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 410});
    let wire = WireKind::Protobuf(kind_of_value(&secret));
    let read = value_of(&wire.error_text(&written(&status)));
    assert_eq!(
        (&read["kind"], &read["message"], &read["code"]),
        (&json!("Status"), &json!("no"), &json!(410))
    );
}

#[test]
fn of_a_field_that_comes_twice_the_last_value_counts_and_numbers_are_packed_or_not() {
    let map =
        |name: &str| item(&json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}));
    let kind = ProtobufKind::of("v1", "ConfigMap").expect("built in");
    let twice = [map("a"), map("b")].concat();
    assert_eq!(identify(&twice).name.as_deref(), Some("b"));
    let decoded: ConfigMap = kind.decode(&twice, &nothing()).expect("readable");
    assert_eq!(decoded.metadata.name.as_deref(), Some("b"));

    let pod = ProtobufKind::of("v1", "Pod").expect("built in");
    let groups = |context: &[u8]| {
        let mut out = Vec::new();
        reader::put_message(&mut out, 2, |out| reader::put_bytes(out, 14, context));
        let pod: Pod = pod.decode(&out, &nothing()).expect("readable");
        pod.spec.and_then(|spec| spec.security_context?.supplemental_groups)
    };
    // The handler of a probe, whose fields stand among those of the probe.
    let probe = |handlers: &[&[u8]]| {
        let handlers = handlers.iter().flat_map(|handler| [&[0x0a, handler.len() as u8], *handler].concat());
        let handlers: Vec<u8> = handlers.collect();
        let mut out = Vec::new();
        reader::put_message(&mut out, 2, |out| {
            reader::put_message(out, 2, |out| reader::put_bytes(out, 10, &handlers));
        });
        let pod: Pod = pod.decode(&out, &nothing()).expect("readable");
        let probe = pod.spec.and_then(|mut spec| spec.containers.pop()?.liveness_probe).expect("a probe");
        (probe.exec.is_some(), probe.tcp_socket.is_some())
    };
    assert_eq!(probe(&[&[0x0a, 0], &[0x1a, 0]]), (false, true));
    // Field 4, one by one, and packed.
    assert_eq!(groups(&[0x20, 1, 0x20, 2]), Some(vec![1, 2]));
    assert_eq!(groups(&[0x22, 2, 1, 2, 0x20, 3]), Some(vec![1, 2, 3]));
    assert_eq!(groups(&[0x22, 0]), None);
}

/// A tree of one path.
fn tree(path: &FieldPath, is_choice: bool) -> FieldTree {
    let mut tree = FieldTree::default();
    if is_choice {
        ["apiVersion", "kind"].into_iter().for_each(|name| {
            tree.choose(name.parse::<FieldPath>().expect("a path").steps());
        });
        tree.choose(path.steps());
    } else {
        tree.cut(path.steps().iter().filter_map(|step| match step {
            PathStep::Field(name) => Some(name.clone()),
            PathStep::Elements => None,
        }));
    }
    tree
}

/// A path of this value, drawn.
fn path_in(value: &Value, choices: &[u32]) -> FieldPath {
    let (mut at, mut text) = (value, String::new());
    for choice in choices {
        match at {
            Value::Object(members) if !members.is_empty() => {
                let drawn = *choice as usize % members.len();
                let (name, inner) = members.iter().nth(drawn).expect("fewer");
                text.push_str(&format!("['{name}']"));
                at = inner;
            }
            Value::Array(items) if !items.is_empty() => {
                text.push_str("[*]");
                at = &items[0];
            }
            _ => break,
        }
    }
    let text = if text.is_empty() { "none" } else { &text };
    text.parse().expect("a path")
}

fn cut_as_json(object: &Value, fields: &FieldTree) -> Value {
    let mut out = Vec::new();
    let done =
        super::super::cut_json(object.to_string().as_bytes(), fields, super::super::LeftOut::Gone, &mut out);
    assert_eq!(done, super::super::Cut::Done);
    value_of(&String::from_utf8(out).expect("a text"))
}

proptest! {
    #[test]
    fn an_object_of_any_kind_reads_as_its_json(at in 0usize..10_000, choices in choices()) {
        let object = any_object(at, &choices);
        let (kind, bytes) = (kind_of_value(&object), written(&object));
        for bytes in [&bytes[..], &kind.kept(&bytes, &nothing()).unwrap(), &item(&object)] {
            prop_assert!(object["metadata"].is_null() || is_document(kind, bytes));
            let text = kind.text(bytes, &nothing()).unwrap();
            let mut read = value_of(&text);
            // Options and statuses are of every version.
            read["apiVersion"] = object["apiVersion"].clone();
            prop_assert_eq!(&read, &object);
        }
    }

    #[test]
    fn a_cut_object_is_what_its_json_is_without_the_field(
        at in 0usize..10_000,
        choices in choices(),
        path in prop::collection::vec(any::<u32>(), 1..6),
        is_choice in any::<bool>(),
    ) {
        let object = any_object(at, &choices);
        let (kind, bytes) = (kind_of_value(&object), written(&object));
        let path = path_in(&object, &path);
        prop_assume!(!["['kind']", "['apiVersion']"].contains(&&*path.to_string()));
        let fields = tree(&path, is_choice);
        let mut expected = cut_as_json(&object, &fields);
        expected["apiVersion"] = object["apiVersion"].clone();
        let kept = kind.kept(&bytes, &fields).unwrap();
        let texts = [kind.text(&kept, &nothing()).unwrap(), kind.text(&item(&object), &fields).unwrap()];
        for text in texts {
            let mut read = value_of(&text);
            read["apiVersion"] = object["apiVersion"].clone();
            prop_assert_eq!(&read, &expected, "{} {}", path, is_choice);
        }
    }

    #[test]
    fn the_values_at_a_path_are_those_in_its_json(
        at in 0usize..10_000,
        choices in choices(),
        path in prop::collection::vec(any::<u32>(), 1..9),
    ) {
        let object = any_object(at, &choices);
        let path = path_in(&object, &path);
        let mut found = Vec::new();
        values_at(kind_of_value(&object), &written(&object), path.steps(), &mut found);
        let mut expected = Vec::new();
        super::super::json::scan(object.to_string().as_bytes(), path.steps(), &mut expected);
        if path.to_string() != "['apiVersion']" {
            prop_assert_eq!(found, expected, "{}", path);
        }
    }
}

macro_rules! as_types {
    ($($name:ident: $kind:ty,)*) => {
        proptest! {
            $(#[test]
            fn $name(choices in choices()) {
                let of = kube_core::TypeMeta::resource::<$kind>();
                let kind = ProtobufKind::of(&of.api_version, &of.kind).unwrap();
                let object = values::object_of(kind, &choices);
                // A condition without a time has no type.
                let from_json: Option<$kind> = serde_json::from_value(object.clone()).ok();
                for bytes in [written(&object), item(&object)] {
                    let read: Option<$kind> = kind.decode(&bytes, &nothing()).ok();
                    prop_assert_eq!(&read, &from_json);
                }
            })*
        }

        #[test]
        fn of_each_type_there_are_objects_that_decode() {
            $({
                let of = kube_core::TypeMeta::resource::<$kind>();
                let kind = ProtobufKind::of(&of.api_version, &of.kind).unwrap();
                let mut runner = TestRunner::deterministic();
                let decodes = (0..64).any(|_| {
                    let choices = choices().new_tree(&mut runner).expect("choices").current();
                    serde_json::from_value::<$kind>(values::object_of(kind, &choices)).is_ok()
                });
                assert!(decodes, "{}", of.kind);
            })*
        }
    };
}

use k8s_openapi::api::{apps, autoscaling, coordination, core, networking};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;

as_types! {
    a_pod_decodes_as_from_its_json: Pod,
    a_node_decodes_as_from_its_json: core::v1::Node,
    a_secret_decodes_as_from_its_json: core::v1::Secret,
    a_config_map_decodes_as_from_its_json: ConfigMap,
    a_service_decodes_as_from_its_json: core::v1::Service,
    a_deployment_decodes_as_from_its_json: apps::v1::Deployment,
    an_event_decodes_as_from_its_json: core::v1::Event,
    a_lease_decodes_as_from_its_json: coordination::v1::Lease,
    a_definition_decodes_as_from_its_json: apiextensions::v1::CustomResourceDefinition,
    an_autoscaler_decodes_as_from_its_json: autoscaling::v2::HorizontalPodAutoscaler,
    an_ingress_decodes_as_from_its_json: networking::v1::Ingress,
    a_network_policy_decodes_as_from_its_json: networking::v1::NetworkPolicy,
    a_stateful_set_decodes_as_from_its_json: apps::v1::StatefulSet,
    a_revision_decodes_as_from_its_json: apps::v1::ControllerRevision,
}
