//! What may be shown of an object: no value of a Secret; and how many bytes its fields have.
//!
//! The mark of a hidden value tells whether it has changed. It is a hash with a key of this process: it tells nothing about the
//! value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use serde_json::Value;
use serde_json::value::RawValue;

/// Their members are fields of their own. The names below others are often the user's, and differ from object to object.
const PARTED: [&str; 3] = ["metadata", "spec", "status"];
/// Two quotes, a colon and a comma.
const AROUND: u64 = 4;
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// JSON without `managedFields`, and of a Secret without values. `None` without a known kind, which may be a Secret, or if it is
/// not JSON. `kind`: what was requested.
pub(crate) fn shown(bytes: &[u8], kind: Option<&str>) -> Option<Arc<str>> {
    let mut object: Value = serde_json::from_slice(bytes).ok()?;
    let kind = object.get("kind").and_then(Value::as_str).or(kind)?;
    // Metadata may be that of a Secret.
    let (is_secret, may_be_secret) = (kind == "Secret", matches!(kind, "Secret" | "PartialObjectMetadata"));
    if let Some(Value::Object(meta)) = object.get_mut("metadata") {
        meta.remove("managedFields");
    }
    if is_secret {
        for field in ["data", "stringData"] {
            object.get_mut(field).into_iter().for_each(hide_all);
        }
    }
    let annotations = object.pointer_mut("/metadata/annotations").filter(|_| may_be_secret);
    if let Some(applied) = annotations.and_then(|all| all.get_mut(LAST_APPLIED)) {
        hide(applied);
    }
    Some(object.to_string().into())
}

/// Each with the bytes of its name and its value.
pub(crate) fn field_bytes(object: &str) -> Option<Vec<(String, u64)>> {
    let mut fields = Vec::new();
    for (name, value) in members(object)? {
        let inner = PARTED.contains(&&*name).then(|| members(value.get())).flatten();
        match inner {
            Some(inner) => fields.extend(
                inner.iter().map(|(inner, value)| (format!("{name}.{inner}"), bytes_of(inner, value))),
            ),
            None => fields.push((name.to_string(), bytes_of(&name, value))),
        }
    }
    Some(fields)
}

fn members(text: &str) -> Option<BTreeMap<Cow<'_, str>, &RawValue>> {
    serde_json::from_str(text).ok()
}

fn bytes_of(name: &str, value: &RawValue) -> u64 {
    AROUND + (name.len() + value.get().len()) as u64
}

fn hide_all(values: &mut Value) {
    match values {
        Value::Object(values) => values.values_mut().for_each(hide),
        other => hide(other),
    }
}

fn hide(value: &mut Value) {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    *value = format!("(hidden, {:08x})", KEY.hash_one(value.to_string()) >> 32).into();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value_of(object: &Value, kind: Option<&str>) -> Option<Value> {
        object_of(object, kind).map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    fn object_of(object: &Value, kind: Option<&str>) -> Option<Arc<str>> {
        shown(object.to_string().as_bytes(), kind)
    }

    #[test]
    fn no_value_of_a_secret_is_shown_and_a_change_of_one_is() {
        let secret = |value: &str| {
            let applied = format!("{{\"data\":\"{value}\"}}");
            let annotations = json!({ LAST_APPLIED: applied, "note": "seen" });
            json!({ "metadata": { "name": "key", "annotations": annotations }, "data": { "token": value },
                "stringData": { "other": value } })
        };
        for value in ["aHVudGVyMg==", "c2VjcmV0"] {
            let text = object_of(&secret(value), Some("Secret")).expect("its kind is known");
            assert!(!text.contains(value) && text.contains("token") && text.contains("seen"), "{text}");
        }
        // What was asked for as metadata may be that of a Secret.
        let metadata = object_of(&secret("c2VjcmV0"), Some("PartialObjectMetadata")).expect("known");
        let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
        assert!(!metadata["metadata"].to_string().contains("c2VjcmV0"), "{metadata}");
        let token = |value| value_of(&secret(value), Some("Secret")).expect("known")["data"]["token"].clone();
        assert_eq!(token("one"), token("one"));
        assert_ne!(token("one"), token("two"));
        let told = json!({ "kind": "Secret", "data": "of another shape" });
        assert!(!object_of(&told, Some("ConfigMap")).expect("known").contains("of another shape"));
    }

    #[test]
    fn the_bytes_of_fields_are_known_by_path_and_no_value_is_told() {
        let object = r#"{"kind":"Pod","metadata":{"name":"a","labels":{"app":"b"}},"spec":{"nodeName":"n"},"data":{"secret":"value"}}"#;
        let fields = field_bytes(object).expect("JSON");
        let expected = [
            ("data", 26),
            ("kind", 13),
            ("metadata.labels", 21),
            ("metadata.name", 11),
            ("spec.nodeName", 15),
        ];
        assert_eq!(fields, expected.map(|(path, bytes)| (path.to_owned(), bytes)));
        assert_eq!((field_bytes("[]"), field_bytes(object.trim_end_matches('}'))), (None, None));
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown_and_managed_fields_never_are() {
        let object = json!({ "metadata": { "managedFields": [1], "name": "web" }, "data": { "a": "b" } });
        assert_eq!(object_of(&object, None), None);
        let expected = json!({ "metadata": { "name": "web" }, "data": { "a": "b" } });
        assert_eq!(value_of(&object, Some("ConfigMap")), Some(expected));
        assert_eq!(shown(b"{", Some("ConfigMap")), None);
    }
}
