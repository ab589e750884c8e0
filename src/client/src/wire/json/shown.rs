//! What may be shown of an object: no value of a Secret.
//!
//! A hidden value has a mark that tells whether it has changed. The mark is a hash with a key of this process: it
//! tells nothing about the value.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object as JSON, without `managedFields`, and of a Secret without values. `None` if its kind is not known: it may
/// be a Secret; or if it is not JSON. `kind` is the one that was requested.
pub(crate) fn shown(bytes: &[u8], kind: Option<&str>) -> Option<Arc<str>> {
    let mut object: Value = serde_json::from_slice(bytes).ok()?;
    let is_secret = object.get("kind").and_then(Value::as_str).or(kind)? == "Secret";
    if let Some(Value::Object(meta)) = object.get_mut("metadata") {
        meta.remove("managedFields");
    }
    if is_secret {
        for field in ["data", "stringData"] {
            object.get_mut(field).into_iter().for_each(hide_all);
        }
        if let Some(applied) =
            object.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(LAST_APPLIED))
        {
            hide(applied);
        }
    }
    Some(object.to_string().into())
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
        let token = |value| value_of(&secret(value), Some("Secret")).expect("known")["data"]["token"].clone();
        assert_eq!(token("one"), token("one"));
        assert_ne!(token("one"), token("two"));
        let told = json!({ "kind": "Secret", "data": "of another shape" });
        assert!(!object_of(&told, Some("ConfigMap")).expect("known").contains("of another shape"));
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
