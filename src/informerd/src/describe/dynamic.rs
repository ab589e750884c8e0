//! Describes objects of any kind: the fields that differ, down to one level below the top. Values of objects and lists are not
//! shown, nor any hidden value (a Secret).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::DynamicObject;
use kube_core::metadata::PartialObjectMeta;
use serde_json::{Map, Value};

use super::{Describe, Values, arrow, metadata_changes, short};

impl Describe for DynamicObject {
    fn outline(&self) -> String {
        let phase = self.data.pointer("/status/phase").and_then(Value::as_str);
        let ready = self.data.pointer("/status/readyReplicas").and_then(Value::as_u64);
        let wanted = self.data.pointer("/spec/replicas").and_then(Value::as_u64);
        let replicas = wanted.map(|wanted| format!("{}/{wanted} replicas ready", ready.unwrap_or(0)));
        let generation = self.metadata.generation.map(|number| format!("generation {number}"));
        let known = [phase.map(short), replicas, generation];
        known.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn changes(&self, old: &Self, values: Values) -> Vec<String> {
        let mut changes = with_generation(&old.metadata, &self.metadata, values);
        let empty = Map::new();
        let (before, now) = (old.data.as_object().unwrap_or(&empty), self.data.as_object().unwrap_or(&empty));
        changes.extend(field_changes("", (before, now), values));
        if changes.is_empty() {
            changes.push("only the resource version changed".to_owned());
        }
        changes
    }
}

impl<K> Describe for PartialObjectMeta<K> {
    fn outline(&self) -> String {
        self.metadata.generation.map(|number| format!("generation {number}")).unwrap_or_default()
    }

    fn changes(&self, old: &Self, values: Values) -> Vec<String> {
        let mut changes = with_generation(&old.metadata, &self.metadata, values);
        if changes.is_empty() {
            changes.push("fields outside the metadata changed".to_owned());
        }
        changes
    }
}

fn with_generation(old: &ObjectMeta, new: &ObjectMeta, values: Values) -> Vec<String> {
    let text = |meta: &ObjectMeta| meta.generation.map(|number| number.to_string());
    let generation = arrow("generation", text(old).as_deref(), text(new).as_deref());
    generation.into_iter().chain(metadata_changes(old, new, values)).collect()
}

type Members = Map<String, Value>;

fn field_changes(path: &str, (old, new): (&Members, &Members), values: Values) -> Vec<String> {
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    let keys = new.keys().chain(removed).filter(|key| old.get(*key) != new.get(*key));
    keys.flat_map(|key| {
        let (before, now) = (old.get(key), new.get(key));
        match (before, now) {
            (Some(Value::Object(before)), Some(Value::Object(now))) if path.is_empty() => {
                field_changes(&format!("{key}."), (before, now), values)
            }
            _ => vec![one_change(&format!("{path}{key}"), (before, now), values)],
        }
    })
    .collect()
}

fn one_change(path: &str, (old, new): (Option<&Value>, Option<&Value>), values: Values) -> String {
    let is_deep = |value: &Option<&Value>| value.is_some_and(|value| value.is_object() || value.is_array());
    if values == Values::Hidden || is_deep(&old) || is_deep(&new) {
        return match (old, new) {
            (None, _) => format!("{path} added"),
            (_, None) => format!("{path} removed"),
            _ => format!("{path} changed"),
        };
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (old, new) = (old.map(text), new.map(text));
    arrow(path, old.as_deref(), new.as_deref()).unwrap_or_else(|| format!("{path} changed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn changed_fields_are_named_and_simple_values_are_shown() {
        let old = object(json!({"metadata": {"name": "a", "generation": 1},
            "spec": {"replicas": 1, "template": {"x": 1}}, "status": {"readyReplicas": 1}}));
        let new = object(json!({"metadata": {"name": "a", "generation": 2},
            "spec": {"replicas": 3, "template": {"x": 2}}, "status": {"readyReplicas": 1}}));
        assert_eq!(
            new.changes(&old, Values::Shown),
            ["generation 1 -> 2", "spec.replicas 1 -> 3", "spec.template changed"]
        );
        assert_eq!(new.outline(), "1/3 replicas ready, generation 2");
    }

    #[test]
    fn no_value_of_a_secret_is_shown_in_whatever_field_it_is() {
        let secret = |value: &str| {
            object(
                json!({"kind": "Secret", "apiVersion": "v1", "type": value, "immutable": value == "hunter2",
                "metadata": {"name": "a", "annotations": {"a": value}},
                "data": {"k": value, value: "x"}, "stringData": {"k": value}, value: value}),
            )
        };
        let text = secret("hunter2").changes(&secret("before"), Values::Hidden).join("; ");
        assert!(text.contains("data.k changed") && text.contains("annotation a changed"), "{text}");
        // Names of keys are shown, values are not.
        let names = ["data.hunter2 added", "data.before removed", "hunter2 added", "before removed"];
        let rest = names.iter().fold(text.clone(), |text, name| text.replace(name, ""));
        assert!(!rest.contains("hunter2") && !rest.contains("before") && !rest.contains("true"), "{text}");
    }
}
