//! Label and field selectors: reading them from a query, and asking whether an object matches.
//!
//! Answers: does this object belong to what the client asked for? It knows nothing of lists or watches.
//! 1. An unknown field label is refused when the selector is read, never ignored.
//! 2. Matching reads only what `Object` has extracted; it never decodes JSON.
//!
//! Next: `watch.rs` applies a selector to the state before and after a change.
use super::kind::Kind;
use super::object::Object;
use super::status::ApiError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

impl Requirement {
    fn matches(&self, object: &Object) -> bool {
        match self {
            Self::In(label, values) => object.label(label).is_some_and(|has| values.iter().any(|v| v == has)),
            Self::NotIn(label, values) => {
                object.label(label).is_none_or(|has| values.iter().all(|v| v != has))
            }
            Self::Exists(label) => object.label(label).is_some(),
            Self::Missing(label) => object.label(label).is_none(),
        }
    }
}

/// Which value of an object a field requirement looks at.
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

impl Selector {
    /// Reads `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    /// 400 if a selector cannot be read or names a field this kind does not offer.
    pub(crate) fn parse(labels: &str, fields: &str, kind: &Kind) -> Result<Self, ApiError> {
        let labels = split_outside_parentheses(labels).map(parse_requirement).collect::<Result<_, _>>()?;
        let fields = fields.split(',').filter(|part| !part.trim().is_empty());
        let fields = fields.map(|part| parse_field(part, kind)).collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
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

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let parts = text.split(move |letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

fn unreadable(part: &str) -> ApiError {
    ApiError::bad_request(format!("unable to parse requirement: {part:?}"))
}

fn parse_requirement(part: &str) -> Result<Requirement, ApiError> {
    if let Some(label) = part.strip_prefix('!') {
        return Ok(Requirement::Missing(checked_label(label.trim(), part)?));
    }
    if let Some((label, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(checked_label(label, part)?, vec![checked_value(value, part)?]));
    }
    if let Some((label, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::In(checked_label(label, part)?, vec![checked_value(value, part)?]));
    }
    let Some((head, values)) = part.strip_suffix(')').and_then(|open| open.split_once('(')) else {
        return Ok(Requirement::Exists(checked_label(part, part)?));
    };
    let values = values
        .split(',')
        .map(|value| checked_value(value, part))
        .collect::<Result<Vec<String>, ApiError>>()?;
    match head.trim().rsplit_once(char::is_whitespace) {
        Some((label, "in")) => Ok(Requirement::In(checked_label(label, part)?, values)),
        Some((label, "notin")) => Ok(Requirement::NotIn(checked_label(label, part)?, values)),
        _ => Err(unreadable(part)),
    }
}

fn checked_label(label: &str, part: &str) -> Result<String, ApiError> {
    let label = label.trim();
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    if label.is_empty() || !label.bytes().all(fine) { Err(unreadable(part)) } else { Ok(label.to_owned()) }
}

fn checked_value(value: &str, part: &str) -> Result<String, ApiError> {
    let value = value.trim();
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if value.len() > 63 || !value.bytes().all(fine) { Err(unreadable(part)) } else { Ok(value.to_owned()) }
}

/// Kinds without fields of their own say so in other words.
fn unknown_field(label: &str, kind: &Kind) -> ApiError {
    let message = if kind.fields.is_empty() && !kind.custom && kind.namespace_field {
        format!("{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {label}")
    };
    ApiError::bad_request(message)
}

fn parse_field(part: &str, kind: &Kind) -> Result<(Field, bool, String), ApiError> {
    let (label, equal, value) = if let Some((label, value)) = part.split_once("!=") {
        (label, false, value)
    } else if let Some((label, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (label, true, value)
    } else {
        let message = format!("invalid selector: '{part}'; can't understand '{part}'");
        return Err(ApiError::bad_request(message));
    };
    let label = label.trim();
    let listed = || kind.fields.iter().position(|(offered, _)| offered == label).map(Field::Listed);
    let field = match label {
        "metadata.name" => Some(Field::Name),
        "metadata.namespace" if kind.namespace_field => Some(Field::Namespace),
        _ => listed(),
    };
    let field = field.ok_or_else(|| unknown_field(label, kind))?;
    Ok((field, equal, value.trim().to_owned()))
}
