//! Label and field selectors, of queries and in objects (`matchLabels` and `matchExpressions`): reads them, and checks
//! whether an object matches.
//!
//! Answers: does this object match this selector, and how is one in an object written as the text of a query? It does not
//! know lists or watches.
//! 1. An unknown field label is refused when the selector is read, never ignored.
//! 2. Matching a query reads only what `Object` has extracted; it never decodes JSON.
//! 3. In an object, a missing selector matches nothing; an empty one matches everything.
//! 4. The text lists keys in order, and the values of a set in order, so equal selectors have equal texts.
//!
//! Next: `watch.rs` applies a selector to the state before and after a change.

use serde_json::{Map, Value};

use super::kind::Kind;
use super::label_query::{self, Operator, Requirement, whole_number};
use super::object::Object;
use super::status::ApiError;

impl Requirement {
    fn matches(&self, object: &Object) -> bool {
        let has = object.label(&self.key);
        let compares = |with: fn(&i64, &i64) -> bool| {
            let wanted = self.values.first().and_then(|value| whole_number(value));
            has.and_then(whole_number).zip(wanted).is_some_and(|(has, wanted)| with(&has, &wanted))
        };
        match self.operator {
            Operator::In => has.is_some_and(|has| self.values.contains(has)),
            Operator::NotIn => has.is_none_or(|has| !self.values.contains(has)),
            Operator::Exists => has.is_some(),
            Operator::Missing => has.is_none(),
            Operator::Above => compares(i64::gt),
            Operator::Below => compares(i64::lt),
        }
    }
}

/// The value of an object that a field requirement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    Listed(usize),
}

/// Both selectors of a request; empty matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(Field, bool, String)>,
}

/// Both selectors of a query, parsed but not yet checked against a kind.
#[derive(Debug)]
pub(crate) struct SelectorText {
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
}

impl SelectorText {
    /// Reads `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    /// 400 if a selector cannot be read.
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, ApiError> {
        let labels = label_query::parse(labels).map_err(ApiError::bad_request)?;
        let mut terms = terms(fields);
        // The first one is checked first.
        terms.sort_unstable();
        let terms = terms.into_iter().filter(|term| !term.is_empty());
        let read = terms.map(|term| field_term(fields, term)).collect::<Result<Vec<_>, _>>();
        let mut fields = read.map_err(ApiError::bad_request)?;
        // An empty requirement has no effect.
        fields.retain(|(label, _, value)| !(label.is_empty() && value.is_empty()));
        Ok(Self { labels, fields })
    }

    /// Finds the fields in this kind.
    ///
    /// # Errors
    /// 400 for a field that this kind does not offer.
    pub(crate) fn of_kind(self, kind: &Kind) -> Result<Selector, ApiError> {
        let fields = self.fields.into_iter().map(|(label, equal, value)| {
            let field = field_named(&label, kind).ok_or_else(|| unknown_field(&label, kind))?;
            Ok((field, equal, value))
        });
        Ok(Selector { labels: self.labels, fields: fields.collect::<Result<_, ApiError>>()? })
    }
}

impl Selector {
    /// The same for one object by its name.
    ///
    /// # Errors 400 if it has field requirements, but not for this name.
    pub(crate) fn of_name(mut self, name: &str) -> Result<Self, ApiError> {
        if self.fields.is_empty() {
            self.fields.push((Field::Name, true, name.to_owned()));
        }
        match self.name() {
            Some(asked) if asked == name => Ok(self),
            _ => Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name")),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(object))
            && self.fields.iter().all(|(field, equal, value)| (field_of(*field, object) == value) == *equal)
    }

    /// The one name this selector asks for, if it asks for one.
    pub(crate) fn name(&self) -> Option<&str> {
        let named = |(field, equal, _): &&(Field, bool, String)| *equal && *field == Field::Name;
        self.fields.iter().find(named).map(|(_, _, value)| value.as_str())
    }
}

fn field_of(field: Field, object: &Object) -> &str {
    match field {
        Field::Name => &object.name,
        Field::Namespace => &object.namespace,
        Field::Listed(at) => object.fields.get(at).map_or("", |value| value),
    }
}

/// Kinds without fields of their own have another error text.
fn unknown_field(label: &str, kind: &Kind) -> ApiError {
    let message = if kind.fields.is_empty() && !kind.custom && kind.namespace_field {
        format!("{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {label}")
    };
    ApiError::bad_request(message)
}

fn field_named(label: &str, kind: &Kind) -> Option<Field> {
    match label {
        "metadata.name" => Some(Field::Name),
        "metadata.namespace" if kind.namespace_field => Some(Field::Namespace),
        _ => kind.fields.iter().position(|(offered, _)| offered == label).map(Field::Listed),
    }
}

/// The terms between commas; a comma after a backslash is part of a value.
fn terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    let between = |letter: char| {
        let ends = letter == ',' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    };
    text.split(between).collect()
}

fn field_term(selector: &str, term: &str) -> Result<(String, bool, String), String> {
    let operator = term.char_indices().find_map(|(at, _)| {
        let found = ["!=", "==", "="].into_iter().find(|operator| term[at..].starts_with(operator))?;
        Some((at, found))
    });
    let Some((at, operator)) = operator else {
        return Err(format!("invalid selector: '{selector}'; can't understand '{term}'"));
    };
    let value = unescaped(&term[at + operator.len()..])?;
    Ok((term[..at].to_owned(), operator != "!=", value))
}

/// A value without its backslashes.
fn unescaped(text: &str) -> Result<String, String> {
    let mut value = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                let code = u32::from(letter);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            other => value.push(other),
        }
    }
    Ok(value)
}

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
pub(crate) fn label_text(selector: &Value) -> String {
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
    use super::*;
    use serde_json::json;

    #[test]
    fn api_31_field_terms_may_carry_escaped_values() {
        let read = |text: &str| SelectorText::parse("", text).map(|read| read.fields);
        let term = |label: &str, equal, value: &str| (label.to_owned(), equal, value.to_owned());
        assert_eq!(read(r"b==c\,d,,a!=e\=").unwrap(), [term("a", false, "e="), term("b", true, "c,d")]);
        assert_eq!(read("a").unwrap_err().message(), "invalid selector: 'a'; can't understand 'a'");
        assert_eq!(
            read("a=b=c").unwrap_err().message(),
            "invalid field selector: unescaped character in value: 61"
        );
        assert_eq!(
            read(r"a=b\c").unwrap_err().message(),
            r"invalid field selector: invalid escape sequence: \c"
        );
    }

    #[test]
    fn a_selector_chooses_what_its_text_says() {
        let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
            {"key": "x", "operator": "In", "values": ["q", "p"]}, {"key": "n", "operator": "DoesNotExist"}]});
        assert_eq!(label_text(&selector), "a=b,!n,x in (p,q)");
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
