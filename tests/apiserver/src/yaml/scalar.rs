//! The style of one text in YAML: bare, in quotes of either sort, or as lines of its own.
//!
//! Answers: in which style does Go's YAML write this text? It follows from the characters, and from whether it is a key.
//! 1. A bare text reads back as that text; a text that cannot be bare is put in single quotes, and one that cannot be
//!    in single quotes is escaped.
use super::plain;
use super::write::Version;

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// What the characters of a text forbid.
#[derive(Debug, Default)]
struct Found {
    /// It would be read as the syntax of a block.
    indicators: bool,
    /// A character that must be escaped.
    special: bool,
    breaks: bool,
    /// A blank or a break at either end.
    edged: bool,
    ends_with_space: bool,
    space_after_break: bool,
    space_before_break: bool,
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// Whether a text has line breaks.
pub(super) fn is_multiline(text: &str) -> bool {
    text.chars().any(is_break)
}

fn look(text: &str) -> Found {
    let mut found =
        Found { indicators: text.starts_with("---") || text.starts_with("..."), ..Found::default() };
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let open_end = chars.peek().is_none_or(|next| is_blank(*next));
        let after_blank = before.is_none_or(|before| is_blank(before) || is_break(before) || before == '\0');
        found.indicators |= match (c, before) {
            (
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`',
                None,
            ) => true,
            ('?' | ':' | '-', None) | (':', Some(_)) => open_end,
            ('#', Some(_)) => after_blank,
            _ => false,
        };
        found.special |= !is_printable(c);
        let edge = before.is_none() || chars.peek().is_none();
        if c == ' ' {
            found.edged |= edge;
            found.ends_with_space |= chars.peek().is_none();
            found.space_after_break |= before.is_some_and(is_break);
        } else if is_break(c) {
            found.edged |= edge;
            found.breaks = true;
            found.space_before_break |= before == Some(' ');
        }
        before = Some(c);
    }
    found
}

/// The style of a text that is a key or a value.
pub(super) fn style(text: &str, key: bool, version: Version) -> Style {
    let found = look(text);
    let escaped = found.special || found.space_before_break;
    if text.contains('\n') {
        let literal = !(escaped || found.ends_with_space || key);
        return if literal { Style::Literal } else { Style::Double };
    }
    if !plain::is_text(text, version) || (key && found.breaks) {
        return Style::Double;
    }
    let bare = !(escaped || found.indicators || found.breaks || found.edged || found.space_after_break);
    match (bare, escaped || found.space_after_break) {
        (true, _) => Style::Plain,
        (false, false) => Style::Single,
        (false, true) => Style::Double,
    }
}
