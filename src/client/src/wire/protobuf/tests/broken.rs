//! Bytes that are no object, or more than one should be.

use super::values::any_object;
use super::*;

#[test]
fn of_a_list_in_a_message_of_its_own_an_unknown_number_is_passed() {
    use super::super::reader::{put_bytes, put_message};
    // status.user.extra["k"], whose items have number 1.
    let mut review = Vec::new();
    put_message(&mut review, 3, |status| {
        put_message(status, 2, |user| {
            put_message(user, 4, |entry| {
                put_bytes(entry, 1, b"k");
                put_message(entry, 2, |extra| {
                    put_bytes(extra, 1, b"a");
                    put_bytes(extra, 2, b"newer");
                });
            });
        });
    });
    let kind = ProtobufKind::of("authentication.k8s.io/v1", "TokenReview").expect("it is in the table");
    let read: Value = kind.decode(&review, &nothing()).expect("a review");
    assert_eq!(read.pointer("/status/user/extra"), Some(&json!({"k": ["a"]})));
}

/// Everything that reads an object.
fn read_all(kind: ProtobufKind, bytes: &[u8]) {
    let found = identify(bytes);
    let _ = (labels(&found).count(), owners(&found).count(), annotations(bytes).count(), generation(bytes));
    let fields = tree(&"metadata.annotations['a']".parse().expect("a path"), false);
    let is_text = kind.text(bytes, &nothing()).map(|text| value_of(&text)).is_ok();
    if is_text {
        assert!(kind.decode::<Value>(bytes, &nothing()).is_ok(), "what has a text decodes");
    }
    let _ = (kind.decode::<Pod>(bytes, &nothing()), kind.kept(bytes, &fields), field_bytes(kind, bytes));
    let _ = (event(bytes), event_head(bytes), bookmark(bytes), is_document(kind, bytes));
    let _ = decode_metadata::<Value>(bytes);
    let mut values = Vec::new();
    values_at(
        kind,
        bytes,
        "spec.containers[*].name".parse::<FieldPath>().expect("a path").steps(),
        &mut values,
    );
}

#[test]
fn many_values_in_few_bytes_are_refused() {
    let kind = ProtobufKind::of("v1", "Pod").expect("built in");
    let (mut pod, containers) = (Vec::new(), [0x12, 0].repeat(1_100_000));
    reader::put_bytes(&mut pod, 2, &containers);
    let error = kind.text(&pod, &nothing()).expect_err("too many");
    let path = error.path().expect("where it was");
    assert!(path.starts_with("spec.containers[") && error.reason == Fault::TooMany.to_string(), "{error}");
    assert!(kind.decode::<Pod>(&pod, &nothing()).is_err());
}

#[test]
fn messages_that_are_nested_too_deeply_are_refused() {
    // A schema's field 28 (`not`) holds a schema.
    let schema = (0..200).fold(Vec::new(), |inner, _| {
        let mut out = Vec::new();
        reader::put_bytes(&mut out, 28, &inner);
        out
    });
    let (context, raw) = (Context::new(), &*schema);
    let object = Object { context: &context, message: TABLE.schema, raw, types: None };
    let refused = Value::deserialize(object).expect_err("too deep");
    assert_eq!((refused.reason, refused.path), (Fault::TooDeep.to_string(), Some(["not"; 64].join("."))));
    let fields = (0..200).fold(FieldTree::default(), |mut tree, depth| {
        tree.cut((0..depth).map(|_| "not".into()).chain(["title".into()]));
        tree
    });
    assert_eq!(cut::cut((TABLE.schema, &schema), &fields, 0, &mut Vec::new()), Err(Fault::TooDeep));
}

/// As deep as is allowed, on the stack of a thread.
#[test]
fn schemas_within_schemas_decode_up_to_the_limit_and_do_not_overflow_the_stack() {
    let definition = |depth: usize| {
        let mut schema = (0..depth).fold(json!({"title": "in"}), |inner, _| json!({"not": inner}));
        schema["type"] = "object".into();
        json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "spec": {"group": "a",
            "names": {"plural": "a", "kind": "A"}, "scope": "Cluster", "versions": [{"name": "v1", "served": true,
                "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
    };
    let decoded = |depth| {
        let object = definition(depth);
        kind_of_value(&object)
            .decode::<apiextensions::v1::CustomResourceDefinition>(&written(&object), &nothing())
    };
    assert!(decoded(56).is_ok());
    assert_eq!(decoded(70).map(drop).map_err(|error| error.reason), Err(Fault::TooDeep.to_string()));
}

#[test]
fn many_unknown_numbers_are_cut_around_in_linear_time() {
    let kind = ProtobufKind::of("v1", "ConfigMap").expect("built in");
    let mut bytes = item(&json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}));
    (100..300_000_u64).for_each(|number| {
        reader::put_varint(&mut bytes, number << 3);
        bytes.push(1);
    });
    let fields = tree(&"metadata.managedFields".parse().expect("a path"), false);
    let kept = kind.kept(&bytes, &fields).expect("an object");
    assert!(kept.len() > bytes.len() && identify(&kept).name.as_deref() == Some("a"));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in 0usize..100,
        cut in 0usize..200,
    ) {
        let kinds: Vec<_> = TABLE.kinds().collect();
        read_all(kinds[at % kinds.len()], &bytes);
        let _ = split(&bytes, &[cut], 8);
        let _ = split(&[identify::MAGIC, &bytes].concat(), &[cut], 8);
    }

    #[test]
    fn a_broken_object_is_an_error_or_an_object(
        at in 0usize..10_000,
        choices in choices(),
        position in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let object = any_object(at, &choices);
        let mut bytes = written(&object);
        let position = position.index(bytes.len());
        bytes[position] = byte;
        read_all(kind_of_value(&object), &bytes);
        read_all(kind_of_value(&object), &bytes[..position]);
        let mut list = list(&object, std::slice::from_ref(&object));
        let position = position % list.len();
        list[position] = byte;
        let _ = split(&list, &[position], 64);
    }
}
