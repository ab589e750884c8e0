//! Label selectors in objects: `matchLabels` and `matchExpressions`.
//!
//! Answers: which labels does this selector match, and how is it written as the text of a query? `selector.rs` has the
//! selectors of requests.
//! 1. A missing selector matches nothing; an empty one matches everything.
//! 2. The text lists keys in order, and the values of a set in order, so equal selectors have equal texts.
use serde_json::{Map, Value};

type Labels<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

/// Whether a selector chooses an object with these labels.
pub(crate) fn chooses<'a>(selector: Option<&Value>, labels: &Labels<'a>) -> bool {
    let Some(Value::Object(selector)) = selector else { return false };
    let equal = |(name, value): (&String, &Value)| labels(name) == value.as_str();
    let exact = selector.get("matchLabels").and_then(Value::as_object);
    exact.is_none_or(|exact| exact.iter().all(equal))
        && expressions(selector).all(|expression| holds(expression, labels))
}

fn expressions(selector: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten()
}

fn holds<'a>(expression: &Value, labels: &Labels<'a>) -> bool {
    let has = labels(expression["key"].as_str().unwrap_or_default());
    let values = expression["values"].as_array();
    let listed = has.is_some_and(|has| values.is_some_and(|values| values.iter().any(|value| value == has)));
    match expression["operator"].as_str() {
        Some("In") => listed,
        Some("NotIn") => !listed,
        Some("Exists") => has.is_some(),
        Some("DoesNotExist") => has.is_none(),
        _ => false,
    }
}

/// The text of a selector: `a=b,x in (p,q)`.
pub(crate) fn text(selector: &Value) -> String {
    let Some(selector) = selector.as_object() else { return String::new() };
    let mut parts: Vec<(String, String)> = Vec::new();
    if let Some(exact) = selector.get("matchLabels").and_then(Value::as_object) {
        parts.extend(exact.iter().map(equality));
    }
    for expression in expressions(selector) {
        let key = expression["key"].as_str().unwrap_or_default();
        let listed = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut values: Vec<&str> = listed.collect();
        values.sort_unstable();
        let part = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    joined(parts)
}

/// The text of a plain map of labels.
pub(crate) fn map_text(labels: &Map<String, Value>) -> String {
    joined(labels.iter().map(equality).collect())
}

fn equality((name, value): (&String, &Value)) -> (String, String) {
    (name.clone(), format!("{name}={}", value.as_str().unwrap_or_default()))
}

fn joined(mut parts: Vec<(String, String)>) -> String {
    // Sorted only by key: of two requirements for one key, the exact one stays first.
    parts.sort_by(|(one, _), (other, _)| one.cmp(other));
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_chooses_what_its_text_says() {
        let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
            {"key": "x", "operator": "In", "values": ["q", "p"]}, {"key": "n", "operator": "DoesNotExist"}]});
        assert_eq!(text(&selector), "a=b,!n,x in (p,q)");
        let with = |labels: &'static [(&'static str, &'static str)]| {
            move |name: &str| labels.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
        };
        assert!(chooses(Some(&selector), &with(&[("a", "b"), ("x", "p")])));
        assert!(!chooses(Some(&selector), &with(&[("a", "b"), ("x", "p"), ("n", "")])));
        assert!(!chooses(Some(&selector), &with(&[("a", "b")])));
        assert!(chooses(Some(&json!({})), &with(&[])));
        assert!(!chooses(None, &with(&[])));
    }
}
