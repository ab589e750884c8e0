//! The manager of a write: for which manager does this request set fields?
//!
//! Answers with the parameter `fieldManager`, or with the first part of the User-Agent. The core decides who owns what
//! then.
//! 1. A manager named by parameter has at most 128 bytes, all printable; 422 otherwise.
//! 2. One taken from the User-Agent is cut to that form.
use super::ask::Ask;
use crate::cluster::options::{Query, value};
use crate::cluster::status::{ApiError, Cause, Named};

const LONGEST: usize = 128;

/// The manager of a request; empty if it does not name one.
pub(crate) fn of(query: &Query, user_agent: Option<&str>) -> String {
    let named = value(query, "fieldManager");
    if !named.is_empty() {
        return named.to_owned();
    }
    let mut manager = String::new();
    let program = user_agent.unwrap_or_default().split('/').next().unwrap_or_default();
    for letter in program.chars().filter(|letter| !letter.is_control()) {
        if manager.len() + letter.len_utf8() > LONGEST {
            break;
        }
        manager.push(letter);
    }
    manager
}

/// Checks the manager a request names; `options` is the kind of its options.
///
/// # Errors
/// 422 if it is too long or not printable.
pub(crate) fn check(ask: &Ask, options: &'static str) -> Result<(), ApiError> {
    let manager = value(&ask.query, "fieldManager");
    if manager.len() > LONGEST {
        let message = format!("Too long: may not be more than {LONGEST} bytes");
        let cause = Cause { reason: "FieldValueTooLong", message, field: "fieldManager".into() };
        return Err(refuse(options, cause));
    }
    match manager.char_indices().find(|(_, letter)| letter.is_control()) {
        None => Ok(()),
        Some((at, letter)) => {
            let why = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
            let message = format!("Invalid value: {}: {why}", go_quoted(manager));
            let cause = Cause { reason: "FieldValueInvalid", message, field: "fieldManager".into() };
            Err(refuse(options, cause))
        }
    }
}

/// A text in quotes as Go prints it.
fn go_quoted(text: &str) -> String {
    let letter = |letter: char| match letter {
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\n' | '\r' | '\t' | '"' | '\\' => letter.escape_default().to_string(),
        letter if letter.is_ascii_control() => format!("\\x{:02x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

/// 422 about the options of a request.
pub(crate) fn refuse(options: &'static str, cause: Cause) -> ApiError {
    ApiError::invalid(Named { group: "meta.k8s.io", kind: options, name: "" }, &[cause])
}
