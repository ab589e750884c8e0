//! What expressions see of a schema, and by which names.
//!
//! Answers: does an expression see these values, and how does it name this field?
//! 1. Names that the language cannot read are escaped, or left out.
use crate::cluster::schema::source::{Others, Source};

/// Whether expressions see the values of a schema.
pub(crate) fn is_seen(source: &Source, whole: bool) -> bool {
    match &*source.kind {
        _ if source.int_or_string => true,
        "array" => source.items.as_ref().is_some_and(|of| is_seen(of, of.embedded)),
        "object" => match &source.additional_properties {
            Some(Others::Typed(of)) if !whole => is_seen(of, of.embedded),
            _ => true,
        },
        kind => matches!(kind, "string" | "boolean" | "number" | "integer"),
    }
}

/// Reserved words of the language, which cannot be names.
const WORDS: &str = "true false null in as break const continue else for function if import let loop package namespace return \
    var void while";

/// The name with which an expression accesses a field; none if it cannot.
pub(crate) fn escape(name: &str) -> Option<String> {
    let first = name.chars().next()?;
    let readable = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/');
    if first.is_ascii_digit() || !name.chars().all(readable) {
        return None;
    }
    if WORDS.split(' ').any(|word| word == name) {
        return Some(format!("__{name}__"));
    }
    let parts = name.replace("__", "__underscores__");
    Some(parts.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}
