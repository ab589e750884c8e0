//! The part of an object that a set of managed fields names.
//!
//! Answers "which values has this manager set?" for the form `fieldsV1` of `metadata.managedFields`: `f:name` is a field,
//! `k:{..}` the element of a list with these keys, `v:..` an element of a set, `i:n` the element at a place, `.` the thing
//! itself. Invariants:
//! 1. Two objects have the same projection exactly if each named field has the same value in both.
//! 2. What cannot be read (a step that is not known) is projected as the whole value: a difference is never hidden.
//!
//! Read next: `memory.rs`.

use serde_json::{Map, Value};

/// The values of these fields; fields that are not there are `null`.
pub(super) fn projected(object: &Value, fields: &Value) -> Value {
    let Some(steps) = fields.as_object().filter(|steps| steps.keys().any(|step| step != ".")) else {
        return object.clone();
    };
    let mut part = Map::new();
    for (step, below) in steps.iter().filter(|(step, _)| *step != ".") {
        part.insert(step.clone(), reached(object, step).map_or(Value::Null, |found| projected(found, below)));
    }
    Value::Object(part)
}

/// What one step leads to.
fn reached<'a>(object: &'a Value, step: &str) -> Option<&'a Value> {
    let (kind, rest) = step.split_once(':').unwrap_or((step, ""));
    match kind {
        "f" => object.get(rest),
        "i" => object.get(rest.parse::<usize>().ok()?),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
            let has = |element: &&Value| keys.iter().all(|(name, value)| element.get(name) == Some(value));
            object.as_array()?.iter().find(has)
        }
        "v" => {
            let wanted: Value = serde_json::from_str(rest).ok()?;
            object.as_array()?.iter().find(|element| **element == wanted)
        }
        _ => Some(object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment() -> Value {
        json!({
            "metadata": {"labels": {"app": "web", "foreign": "x"}, "finalizers": ["a", "b"]},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [
                {"name": "side", "image": "s"}, {"name": "main", "image": "m", "imagePullPolicy": "Always"},
            ]}}},
            "status": {"readyReplicas": 1},
        })
    }

    fn fields() -> Value {
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {"v:\"b\"": {}}},
            "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"main\"}": {".": {}, "f:name": {}, "f:image": {}},
            }}}},
        })
    }

    fn changed(change: impl FnOnce(&mut Value)) -> bool {
        let mut object = deployment();
        change(&mut object);
        projected(&object, &fields()) != projected(&deployment(), &fields())
    }

    #[test]
    fn opr_13_each_value_of_the_manager_counts_and_no_other_one() {
        let containers = "/spec/template/spec/containers";
        assert!(changed(|o| o["spec"]["replicas"] = 3.into()));
        assert!(changed(|o| o["metadata"]["labels"]["app"] = "other".into()));
        assert!(changed(|o| drop(o["metadata"]["labels"].as_object_mut().unwrap().remove("app"))));
        assert!(changed(|o| o.pointer_mut(containers).unwrap()[1]["image"] = "n".into()));
        assert!(changed(|o| drop(o.pointer_mut(containers).unwrap().as_array_mut().unwrap().pop())));
        assert!(changed(|o| o["metadata"]["finalizers"] = json!(["a"])));

        assert!(!changed(|o| o["status"]["readyReplicas"] = 2.into()));
        assert!(!changed(|o| o["metadata"]["labels"]["foreign"] = "y".into()));
        assert!(!changed(|o| o.pointer_mut(containers).unwrap()[1]["imagePullPolicy"] = "Never".into()));
        assert!(!changed(|o| o.pointer_mut(containers).unwrap().as_array_mut().unwrap().swap(0, 1)));
    }

    #[test]
    fn a_field_without_fields_of_its_own_and_a_step_that_is_not_known_count_as_a_whole() {
        let (one, two) = (json!({"a": {"b": 1}}), json!({"a": {"b": 2}}));
        for fields in [json!({"f:a": {}}), json!({"f:a": {".": {}}}), json!({"x:?": {}}), json!({})] {
            assert_ne!(projected(&one, &fields), projected(&two, &fields), "{fields}");
        }
    }
}
