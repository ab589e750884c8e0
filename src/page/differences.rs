//! What differs between two states of an object.

use serde_json::Value;

use crate::path::{PastBody, PastState};

/// Of one state.
const MOST_DIFFERENCES: usize = 50;
const MOST_CHARS: usize = 120;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// As `spec.containers[web].image`; an element of a list has its `name` or `type`, or its place.
    pub(super) field: String,
    /// `None`: absent.
    pub(super) before: Option<String>,
    /// `None`: gone.
    pub(super) after: Option<String>,
}

/// For each state, its differences from the one before of the same informer, and how many are left out. `None` if there is
/// nothing to compare it with.
pub(super) fn of(states: &[PastState]) -> Vec<Option<(Vec<Difference>, usize)>> {
    let object = |state: &PastState| match &state.body {
        PastBody::Object(text) => serde_json::from_str::<Value>(text).ok(),
        _ => None,
    };
    let compared = |(number, state): (usize, &PastState)| {
        let before = states[..number].iter().rfind(|before| before.informer == state.informer)?;
        let (before, after) = (object(before)?, object(state)?);
        let mut differences = Vec::new();
        let mut found = 0;
        compare("", Some(&before), Some(&after), &mut |difference| {
            found += 1;
            if differences.len() < MOST_DIFFERENCES {
                differences.push(difference());
            }
        });
        let more = found - differences.len();
        Some((differences, more))
    };
    states.iter().enumerate().map(compared).collect()
}

fn compare(
    field: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    tell: &mut dyn FnMut(&dyn Fn() -> Difference),
) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let new = other.keys().filter(|name| !one.contains_key(*name));
            for name in one.keys().chain(new) {
                let field = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                compare(&field, one.get(name), other.get(name), tell);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => match (named(one), named(other)) {
            (Some(one), Some(other)) => {
                let find =
                    |all: &[(&str, &Value)], name: &str| all.iter().position(|(known, _)| *known == name);
                for (name, element) in &one {
                    let after = find(&other, name).map(|at| other[at].1);
                    compare(&format!("{field}[{name}]"), Some(element), after, tell);
                }
                for (name, element) in other.iter().filter(|(name, _)| find(&one, name).is_none()) {
                    compare(&format!("{field}[{name}]"), None, Some(element), tell);
                }
            }
            _ => {
                for at in 0..one.len().max(other.len()) {
                    compare(&format!("{field}[{at}]"), one.get(at), other.get(at), tell);
                }
            }
        },
        _ => tell(&|| Difference {
            field: field.to_owned(),
            before: before.map(shown),
            after: after.map(shown),
        }),
    }
}

/// By name, if the names differ.
fn named(elements: &[Value]) -> Option<Vec<(&str, &Value)>> {
    fn name(element: &Value) -> Option<&str> {
        element.get("name").or_else(|| element.get("type")).and_then(Value::as_str)
    }
    let named: Vec<_> =
        elements.iter().map(|element| Some((name(element)?, element))).collect::<Option<_>>()?;
    let names: std::collections::BTreeSet<_> = named.iter().map(|(name, _)| name).collect();
    (names.len() == named.len()).then_some(named)
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(before: &Value, after: &Value) -> Vec<(String, Option<String>, Option<String>)> {
        let mut all = Vec::new();
        compare("", Some(before), Some(after), &mut |difference| {
            let Difference { field, before, after } = difference();
            all.push((field, before, after));
        });
        all
    }

    fn line(
        field: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) -> (String, Option<String>, Option<String>) {
        (field.to_owned(), before.map(ToOwned::to_owned), after.map(ToOwned::to_owned))
    }

    #[test]
    fn a_difference_is_told_with_its_field_and_both_values() {
        let before = json!({ "spec": { "replicas": 1, "paused": true, "args": ["a", "b"] }, "same": [1, { "x": null }] });
        let after =
            json!({ "spec": { "replicas": 2, "args": ["a"], "size": "L" }, "same": [1, { "x": null }] });
        let mut all = differences(&before, &after);
        all.sort();
        assert_eq!(
            all,
            [
                line("spec.args[1]", Some("b"), None),
                line("spec.paused", Some("true"), None),
                line("spec.replicas", Some("1"), Some("2")),
                line("spec.size", None, Some("L")),
            ]
        );
    }

    #[test]
    fn elements_with_names_are_compared_by_name() {
        let ready = |status: &str| json!({ "type": "Ready", "status": status });
        let before = json!({ "conditions": [ready("False"), { "type": "Old" }] });
        let after = json!({ "conditions": [{ "type": "New" }, ready("True")] });
        assert_eq!(
            differences(&before, &after),
            [
                line("conditions[Ready].status", Some("False"), Some("True")),
                line("conditions[Old]", Some(r#"{"type":"Old"}"#), None),
                line("conditions[New]", None, Some(r#"{"type":"New"}"#)),
            ]
        );
        let twice = json!([{ "name": "a", "x": 1 }, { "name": "a", "x": 2 }]);
        let other = json!([{ "name": "a", "x": 1 }, { "name": "a", "x": 3 }]);
        assert_eq!(differences(&twice, &other), [line("[1].x", Some("2"), Some("3"))], "by place");
    }

    #[test]
    fn a_long_value_is_cut_and_many_differences_are_counted() {
        let long = "ü".repeat(MOST_CHARS + 1);
        let all = differences(&json!({ "a": "" }), &json!({ "a": long }));
        assert_eq!(all[0].2.as_ref().map(|text| text.chars().count()), Some(MOST_CHARS + 1));
        let state = |informer: &str, number: usize| {
            let fields: serde_json::Map<_, _> =
                (0..MOST_DIFFERENCES + 10).map(|field| (field.to_string(), number.into())).collect();
            let version = crate::object::ResourceVersion::from_number(1).expect("not zero");
            let body = PastBody::Object(Value::Object(fields).to_string().into());
            PastState::new(std::time::Duration::ZERO, informer.into(), version, body)
        };
        let compared = of(&[state("pods", 1), state("metadata", 2), state("pods", 2)]);
        assert!(compared[0].is_none() && compared[1].is_none(), "each is the first of its informer");
        let (told, more) = compared[2].as_ref().expect("there is one before of the same informer");
        assert_eq!((told.len(), *more), (MOST_DIFFERENCES, 10));
    }
}
