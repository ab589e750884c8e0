//! JSON values as YAML text, in the style of Go's YAML, which a real server uses.
//!
//! Answers: which text does a client get that asks for `application/yaml`? `scalar.rs` decides how a text is quoted.
//! 1. A mapping is indented by two blanks, a list in a mapping is not indented, keys are sorted (`order.rs`).
//! 2. A line that is longer than 80 characters is broken at its next single blank.
//! 3. The third version of Go's YAML, which OpenAPI messages use for members without a field, indents by four, lists
//!    too, breaks no line and keeps the order of keys.
//! 4. What is written reads back as the value it was written from.
use serde_json::{Number, Value};

use super::order::sorted;
use super::scalar::{Style, is_break, is_multiline, is_printable, style};

/// A line that is longer is broken at the next blank.
const WIDTH: usize = 80;
/// A longer key is announced by a question mark.
const SIMPLE_KEY: usize = 128;

/// The text of a value, with a newline at its end.
pub(crate) fn encode(value: &Value) -> String {
    written(value, Version::Second)
}

/// The same in the style of the third version of Go's YAML.
pub(crate) fn encode_v3(value: &Value) -> String {
    written(value, Version::Third)
}

fn written(value: &Value, version: Version) -> String {
    let mut writer = Writer { out: String::new(), column: 0, whitespace: true, indented: true, version };
    writer.value(value, Place { indent: None, parent: Parent::Root });
    if writer.column > 0 {
        writer.end_line();
    }
    writer.out
}

/// Which version's style it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Second,
    Third,
}

/// The position of a value.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The indentation of what is around it; none at the root.
    indent: Option<usize>,
    parent: Parent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    Root,
    Mapping,
    List,
}

impl Version {
    fn unit(self) -> usize {
        match self {
            Self::Second => 2,
            Self::Third => 4,
        }
    }

    /// How far what stands at this place is indented.
    fn indent(self, place: Place) -> usize {
        let Some(indent) = place.indent else { return 0 };
        match (self, place.parent) {
            (Self::Third, Parent::List) | (Self::Second, _) => indent + 2,
            (Self::Third, _) => (indent / 4 + 1) * 4,
        }
    }

    /// How far the lines of a text at this place are indented.
    fn text_indent(self, place: Place) -> usize {
        if place.indent.is_none() { self.unit() } else { self.indent(place) }
    }
}

#[derive(Debug)]
struct Writer {
    version: Version,
    out: String,
    /// How many characters the line has.
    column: usize,
    /// Whether the last thing written separates already.
    whitespace: bool,
    /// Whether the line contains only indentation and indicators.
    indented: bool,
}

impl Writer {
    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn end_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    /// A line break of the text itself.
    fn put_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
        self.indented = true;
    }

    /// Goes to this column, on a new line unless the line is still empty up to there.
    fn indent(&mut self, indent: usize) {
        if !self.indented || self.column > indent || (self.column == indent && !self.whitespace) {
            self.end_line();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indented = true;
    }

    /// A syntax character. `opens` says whether a line that was empty still counts as empty.
    fn sign(&mut self, sign: &str, spaced: bool, opens: bool) {
        if spaced && !self.whitespace {
            self.put(' ');
        }
        sign.chars().for_each(|c| self.put(c));
        self.whitespace = false;
        self.indented &= opens;
    }

    fn value(&mut self, value: &Value, place: Place) {
        match value {
            Value::Null => self.bare("null"),
            Value::Bool(flag) => self.bare(if *flag { "true" } else { "false" }),
            Value::Number(number) => self.bare(&told(number)),
            Value::String(text) => self.text(text, self.version.text_indent(place), false),
            Value::Array(items) if items.is_empty() => self.sign("[]", true, false),
            Value::Object(members) if members.is_empty() => self.sign("{}", true, false),
            Value::Array(items) => {
                let flat = self.version == Version::Second && place.parent == Parent::Mapping;
                let flat = flat && !self.indented;
                let indent = if flat { place.indent.unwrap_or_default() } else { self.version.indent(place) };
                for item in items {
                    self.indent(indent);
                    self.sign("-", true, true);
                    self.value(item, Place { indent: Some(indent), parent: Parent::List });
                }
            }
            Value::Object(members) => {
                let indent = self.version.indent(place);
                let entries = members.iter().map(|(key, value)| (key.as_str(), value)).collect();
                for (key, value) in if self.version == Version::Second { sorted(entries) } else { entries } {
                    self.indent(indent);
                    self.key(key, indent);
                    self.value(value, Place { indent: Some(indent), parent: Parent::Mapping });
                }
            }
        }
    }

    fn key(&mut self, key: &str, indent: usize) {
        if key.len() <= SIMPLE_KEY && !is_multiline(key) {
            self.text(key, indent + self.version.unit(), true);
            return self.sign(":", false, false);
        }
        self.sign("?", true, true);
        self.text(key, indent + self.version.unit(), false);
        self.indent(indent);
        self.sign(":", true, true);
    }

    fn bare(&mut self, text: &str) {
        self.sign(text, true, false);
    }

    fn text(&mut self, text: &str, indent: usize, key: bool) {
        let chosen = style(text, key, self.version);
        let folds = !key && self.version == Version::Second;
        match chosen {
            Style::Plain => {
                if !self.whitespace {
                    self.put(' ');
                }
                self.flowing(text, indent, Flow { folds, quoted: false });
            }
            Style::Single => {
                self.sign("'", true, false);
                self.flowing(text, indent, Flow { folds, quoted: true });
                self.sign("'", false, false);
            }
            Style::Double => {
                self.sign("\"", true, false);
                self.escaped(text, indent, folds);
                self.sign("\"", false, false);
            }
            Style::Literal => return self.lines(text, indent),
        }
        self.whitespace = false;
        self.indented = false;
    }

    /// A text that is not escaped, bare or between single quotes.
    fn flowing(&mut self, text: &str, indent: usize, flow: Flow) {
        let (mut spaces, mut breaks, mut first) = (false, false, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' {
                let inner = chars.peek().is_some_and(|next| *next != ' ') && !(flow.quoted && first);
                if flow.folds && !spaces && self.column > WIDTH && inner {
                    self.indent(indent);
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                self.put_break(c);
                breaks = true;
            } else {
                if breaks {
                    self.indent(indent);
                }
                if flow.quoted && c == '\'' {
                    self.put(c);
                }
                self.put(c);
                self.indented = false;
                (spaces, breaks) = (false, false);
            }
            first = false;
        }
    }

    /// A text between double quotes.
    fn escaped(&mut self, text: &str, indent: usize, folds: bool) {
        let (mut spaces, mut first) = (false, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                escape(c).chars().for_each(|c| self.put(c));
                spaces = false;
            } else if c == ' ' {
                if folds && !spaces && self.column > WIDTH && !first && chars.peek().is_some() {
                    self.indent(indent);
                    if chars.peek() == Some(&' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
            first = false;
        }
    }

    /// A text of several lines as lines of their own.
    fn lines(&mut self, text: &str, indent: usize) {
        self.sign("|", true, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.sign(if self.version == Version::Second { "2" } else { "4" }, false, false);
        }
        let mut last = text.chars().rev();
        match (last.next().is_some_and(is_break), last.next()) {
            (false, _) => self.sign("-", false, false),
            (true, before) if before.is_none_or(is_break) => self.sign("+", false, false),
            (true, _) => {}
        }
        self.end_line();
        (self.indented, self.whitespace) = (true, true);
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.put_break(c);
                breaks = true;
                continue;
            }
            if breaks {
                self.indent(indent);
            }
            self.put(c);
            self.indented = false;
            breaks = false;
        }
    }
}

/// How a text that is not escaped is written.
#[derive(Debug, Clone, Copy)]
struct Flow {
    folds: bool,
    quoted: bool,
}

fn escape(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(c) {
                code @ ..=0xff => format!("\\x{code:02X}"),
                code @ ..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

/// A number as Go prints it: the shortest that reads back, with an exponent below 1e-4 and from 1e6 on.
fn told(number: &Number) -> String {
    let float = match number.as_f64() {
        Some(float) if number.is_f64() => float,
        _ => return number.to_string(),
    };
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse::<i32>().unwrap_or_default() {
        -4..6 => float.to_string(),
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

#[cfg(test)]
mod tests;
