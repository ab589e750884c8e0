//! Paths of the table of defaults: members, and `*` for every element of a list or member of a map.
//!
//! Answers: where does this path lead in this object, and is there a value already?
//! 1. Only the last member is ever created: a path through a missing member leads nowhere.
//! 2. `?name` before a member means: only if the object there has that member.
use serde_json::Value;

/// Writes the JSON text `text` at each place of `path` that has no value.
pub(super) fn put_missing(value: &mut Value, path: &str, text: &str) {
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    put(value, &steps, text);
}

fn put(value: &mut Value, steps: &[&str], text: &str) {
    let Some((step, rest)) = steps.split_first() else { return };
    if *step == "*" {
        match value {
            Value::Array(list) => list.iter_mut().for_each(|element| put(element, rest, text)),
            Value::Object(map) => map.values_mut().for_each(|element| put(element, rest, text)),
            _ => {}
        }
        return;
    }
    let Some(map) = value.as_object_mut() else { return };
    if let Some(needed) = step.strip_prefix('?') {
        if map.contains_key(needed) {
            put(value, rest, text);
        }
        return;
    }
    if !rest.is_empty() {
        if let Some(inner) = map.get_mut(*step) {
            put(inner, rest, text);
        }
        return;
    }
    if !map.contains_key(*step) {
        let default = serde_json::from_str(text).expect("the defaults of the table are JSON");
        map.insert((*step).to_owned(), default);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_default_is_written_into_a_missing_member() {
        let mut value = json!({"list": [{"a": 1}, {}], "map": {"x": {}}});
        for path in ["/list/*/a", "/map/*/b", "/none/c", "/top", "/?list/with", "/?none/without"] {
            put_missing(&mut value, path, "7");
        }
        assert_eq!(value, json!({"list": [{"a": 1}, {"a": 7}], "map": {"x": {"b": 7}}, "top": 7, "with": 7}));
    }
}
