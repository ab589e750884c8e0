//! A position in JSON bytes that moves over strings and values.
//!
//! Answers "where does the next string or value end?" for scanners that need a few fields of a large document and must
//! not parse the rest. It does not check the values that it skips: it only looks for their end by counting brackets.
//! The caller that keeps a value parses it. Invariants:
//! 1. It never reads past the slice and never panics: a document that is cut off or invalid ends with `None`.
//! 2. Every step moves forward, so the cost of a scan is linear in the bytes up to its end.
//!
//! Read next: `meta_scan.rs`, which finds an object's name with it.

use std::borrow::Cow;

use memchr::memchr2;

/// A position in a JSON document.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next byte that is not white space, without moving past it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Moves past `byte` if it comes next.
    pub(crate) fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Reads a string and returns the bytes between its quotes, with escapes as they are.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        self.eat(b'"')?;
        let start = self.at;
        let end = start + string_end(&self.bytes[start..])?;
        self.at = end + 1;
        Some(&self.bytes[start..end])
    }

    /// Reads a string and resolves its escapes; `None` if the value is not a string, or not UTF-8.
    pub(crate) fn text(&mut self) -> Option<Cow<'a, str>> {
        self.string().and_then(unescape)
    }

    /// Moves past one value of any kind.
    pub(crate) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' | b'[' => self.skip_container(),
            b',' | b':' | b'}' | b']' => None,
            _ => {
                let rest = &self.bytes[self.at..];
                self.at += rest.iter().position(|byte| ends_scalar(*byte)).unwrap_or(rest.len());
                Some(())
            }
        }
    }

    fn skip_container(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => self.at += string_end(&self.bytes[self.at..])? + 1,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Visits the members of an object. `visit` gets each key with the cursor at its value and must move past the value;
    /// it returns `false` to stop early. `None` if the object is invalid or cut off.
    pub(crate) fn members(&mut self, mut visit: impl FnMut(&[u8], &mut Self) -> Option<bool>) -> Option<()> {
        self.eat(b'{')?;
        if self.eat(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.string()?;
            self.eat(b':')?;
            if !visit(key, self)? {
                return Some(());
            }
            if self.eat(b',').is_none() {
                return self.eat(b'}');
            }
        }
    }
}

/// Whether this byte ends a number, `true`, `false` or `null`.
pub(crate) fn ends_scalar(byte: u8) -> bool {
    matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\r' | b'\n')
}

/// The position of the closing quote in `bytes`, which begin inside a string.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Resolves the escapes of a string; borrowed if it has none.
fn unescape(raw: &[u8]) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', raw).is_none() {
        return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
    }
    let mut quoted = Vec::with_capacity(raw.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(raw);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(json: &str) -> Option<usize> {
        let mut cursor = Cursor::new(json.as_bytes());
        cursor.skip().map(|()| cursor.at)
    }

    #[test]
    fn skipping_ends_exactly_behind_the_value() {
        for value in
            [r#""a\"b\\""#, "12.5e3", "null", "[]", "{}", r#"{"a":[1,{"b":"]}"}],"c":"\\"}"#, "  [1 , 2]"]
        {
            assert_eq!(skipped(&format!("{value},rest")), Some(value.len()), "{value}");
        }
    }

    #[test]
    fn a_value_that_is_cut_off_or_invalid_gives_none_and_never_panics() {
        let whole = r#"{"a":[1,{"b":"]}\u00e9"}],"c":"\\"}"#;
        for end in 0..whole.len() {
            assert_eq!(skipped(&whole[..end]), None, "{}", &whole[..end]);
        }
        assert_eq!(skipped("]"), None);
        assert_eq!(skipped(r#""abc\"#), None);
    }

    #[test]
    fn text_resolves_escapes() {
        assert_eq!(Cursor::new(br#""a\u0062\n""#).text().as_deref(), Some("ab\n"));
        assert_eq!(Cursor::new(b"12").text(), None);
        assert_eq!(Cursor::new(b"\"\xff\"").text(), None);
    }
}
