//! Escapes text for a terminal or a log.
//!
//! Names, reasons and messages come from anybody who may create objects or answer requests: a line end would forge a line, an
//! escape sequence control the terminal, a bidi control show another text. Backslashes are not doubled: the result is for people,
//! not for a parser.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every control character escaped, as Rust writes it: `\n`, `\u{1b}`. Borrowed if there is
/// none.
///
/// ```
/// use actix_informer::printable::printable;
///
/// assert_eq!(printable("web-0"), "web-0");
/// assert_eq!(printable("a\n12:00 forged \u{1b}[2J"), r"a\n12:00 forged \u{1b}[2J");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            character if !is_control(character) => escaped.push(character),
            '\n' | '\r' | '\t' => escaped.extend(character.escape_default()),
            character => escaped.extend(character.escape_unicode()),
        }
    }
    Cow::Owned(escaped)
}

/// As [`printable`], for a JSON document: the escapes are those of JSON, so a parser gets the original text.
pub fn printable_json(document: String) -> String {
    if !document.contains(is_control) {
        return document;
    }
    let mut escaped = String::with_capacity(document.len() + 16);
    for character in document.chars() {
        if is_control(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Soft hyphen, zero-width characters, marks, separators, embeddings, isolates, byte order mark, tags.
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\n\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\u{2066}\u{2028}\u{200b}\u{feff}\u{e0041}é z";

    #[test]
    fn control_characters_are_escaped_and_all_others_are_unchanged() {
        let shown = printable(HOSTILE);
        assert!(!shown.contains(is_control), "{shown:?}");
        assert!(
            shown.starts_with(r"a\n\u{1b}[31m\u{9b}2J\u{7f}\u{202e}") && shown.ends_with("é z"),
            "{shown}"
        );
        assert!(matches!(printable("é ünï 日本"), Cow::Borrowed(_)));
    }

    #[test]
    fn escaped_json_is_the_same_document() {
        let document = serde_json::to_string(HOSTILE).unwrap();
        let shown = printable_json(document);
        assert!(!shown.contains(is_control), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), HOSTILE);
    }
}
