//! The warnings of a server: what a `Warning` header says.
//!
//! Answers "which warnings are in this header?" (RFC 7234, section 5.5, as Kubernetes uses it). Invariants:
//! 1. Only warnings with the code 299 are given: others are of proxies and say nothing of the request.
//! 2. What cannot be read ends the header: warnings before it are given.
//! 3. A text is at most 1,024 characters long and holds no control characters.
//!
//! Read next: `layers/warn.rs`.

use std::fmt;
use std::sync::Arc;

use informer_core::words::shortened;

const MISCELLANEOUS_PERSISTENT: &str = "299";
const MAX_CHARS: usize = 1024;

/// A warning that a server has sent with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What the server says.
    pub text: String,
    /// The path of the request.
    pub path: String,
}

/// A function that takes warnings.
pub(crate) type WarningHandler = Arc<dyn Fn(&Warning) + Send + Sync>;

/// What becomes of warnings.
#[derive(Clone)]
pub(crate) enum OnWarning {
    /// Each text is logged once.
    LogNew,
    Call(WarningHandler),
    /// Each text once.
    CallNew(WarningHandler),
}

impl fmt::Debug for OnWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LogNew => "LogNew",
            Self::Call(_) => "Call",
            Self::CallNew(_) => "CallNew",
        })
    }
}

/// The texts of the warnings with code 299 in one header: `299 - "text"`, several separated by commas.
pub(crate) fn texts(header: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), header.trim_start());
    while let Some((warning, after)) = one(rest) {
        found.extend(warning);
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    found
}

/// The first warning of this text, if its code is 299, and what follows it.
fn one(text: &str) -> Option<(Option<String>, &str)> {
    let (code, rest) = text.split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let (words, mut rest) = quoted(rest)?;
    // A date in quotes may follow.
    if let Some((_date, after)) = rest.strip_prefix(' ').and_then(quoted) {
        rest = after;
    }
    Some(((code == MISCELLANEOUS_PERSISTENT).then(|| shortened(&words, MAX_CHARS)), rest))
}

/// The text in quotes at the beginning, without backslashes, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut characters = text.strip_prefix('"')?.char_indices();
    let mut words = String::new();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((words, &text[at + 2..])),
            '\\' => words.push(characters.next()?.1),
            character if character.is_control() => words.push(' '),
            character => words.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_13_only_warnings_with_code_299_are_read_and_all_of_a_header() {
        for (header, expected) in [
            (r#"299 - "a is deprecated""#, vec!["a is deprecated"]),
            (r#"199 - "a proxy's""#, vec![]),
            (r#"299 - "one", 199 - "two", 299 host:80 "three""#, vec!["one", "three"]),
            (r#"299 - "with \"quotes\", \\ and, commas""#, vec![r#"with "quotes", \ and, commas"#]),
            (r#"299 - "dated" "Sat, 25 Aug 2012 23:34:45 GMT", 299 - "next""#, vec!["dated", "next"]),
            (r#"299 - "good", 299 - "never ends"#, vec!["good"]),
            (r#"299 - """#, vec![""]),
            ("299 - unquoted", vec![]),
            ("299", vec![]),
            ("", vec![]),
            ("299 - \"a\u{7f}b\"", vec!["a b"]),
        ] {
            assert_eq!(texts(header), expected, "{header}");
        }
    }
}
