//! Text as a terminal or a log may be shown it.
//!
//! Answers "what does this text look like when it commands nothing?" Names, reasons and messages come from whoever may
//! create objects or answer requests; a line end in them would forge a line, an escape sequence would command the
//! terminal, and a bidi control would show another text than there is. Invariants:
//! 1. What comes out holds no control character, no line separator and no control of the writing direction.
//! 2. Everything else comes out as it is. Backslashes are not doubled: this is for eyes, not for parsing back.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every control character escaped, as Rust writes it: `\n`, `\u{1b}`. Borrowed if there is none.
///
/// ```
/// use actix_informer::service::printable;
///
/// assert_eq!(printable("web-0"), "web-0");
/// assert_eq!(printable("a\n12:00 forged \u{1b}[2J"), r"a\n12:00 forged \u{1b}[2J");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            letter if !is_command(letter) => shown.push(letter),
            '\n' | '\r' | '\t' => shown.extend(letter.escape_default()),
            letter => shown.extend(letter.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// The same for a JSON document: the escapes are JSON's, so that a reader gets the very text.
pub(super) fn printable_json(document: String) -> String {
    if !document.contains(is_command) {
        return document;
    }
    let mut shown = String::with_capacity(document.len() + 16);
    for letter in document.chars() {
        if is_command(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Whether a terminal or a reader of lines does something else with it than show it.
fn is_command(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            // Soft hyphen, zero-width characters, marks, separators, embeddings, isolates, byte order mark, tags.
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\n\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\u{2066}\u{2028}\u{200b}\u{feff}\u{e0041}é z";

    #[test]
    fn nothing_that_commands_a_terminal_comes_out_and_everything_else_does() {
        let shown = printable(HOSTILE);
        assert!(!shown.contains(is_command), "{shown:?}");
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
        assert!(!shown.contains(is_command), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), HOSTILE);
    }
}
