//! A position in JSON bytes that moves over strings and values. It does not check the values that it skips.
//!
//! It never panics: an invalid or incomplete document ends with `None`. A scan is linear in the bytes that it passes.

use std::borrow::Cow;

use super::value_scanner::ValueScanner;

#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at = self.bytes.len().min(self.at + bytes);
    }

    /// Skips white space; stays at the returned byte.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    pub(crate) fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Between the quotes, with escapes as they are.
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        (self.peek()? == b'"').then_some(())?;
        let quoted = self.value()?;
        Some(&quoted[1..quoted.len() - 1])
    }

    /// `None` if the value is not a string, or not UTF-8.
    pub(crate) fn text(&mut self) -> Option<Cow<'a, str>> {
        self.string().and_then(Self::unescape)
    }

    pub(crate) fn value(&mut self) -> Option<&'a [u8]> {
        if matches!(self.peek()?, b',' | b':' | b'}' | b']') {
            return None;
        }
        let rest = &self.bytes[self.at..];
        let length = ValueScanner::default().advance(rest)?;
        self.at += length;
        Some(&rest[..length])
    }

    /// `visit` gets each key with the cursor at its value, must move past the value, and returns `false` to stop. `None` if the
    /// object is invalid or incomplete.
    pub(crate) fn members(&mut self, mut visit: impl FnMut(&[u8], &mut Self) -> Option<bool>) -> Option<()> {
        let mut key = self.first_key();
        while let Some(name) = key {
            if !visit(name, self)? {
                return Some(());
            }
            key = self.next_key();
        }
        self.eat(b'}')
    }

    pub(crate) fn first_key(&mut self) -> Option<&'a [u8]> {
        self.eat(b'{')?;
        self.key()
    }

    /// Moves from a value past the next key; `None` after the last member.
    pub(crate) fn next_key(&mut self) -> Option<&'a [u8]> {
        self.eat(b',')?;
        self.key()
    }

    pub(crate) fn key(&mut self) -> Option<&'a [u8]> {
        let key = self.string()?;
        self.eat(b':')?;
        Some(key)
    }

    /// Borrowed if the string has no escapes.
    pub(crate) fn unescape(raw: &'a [u8]) -> Option<Cow<'a, str>> {
        if memchr::memchr(b'\\', raw).is_none() {
            return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
        }
        let mut quoted = Vec::with_capacity(raw.len() + 2);
        quoted.push(b'"');
        quoted.extend_from_slice(raw);
        quoted.push(b'"');
        serde_json::from_slice(&quoted).ok().map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(json: &str) -> Option<usize> {
        let mut cursor = Cursor::new(json.as_bytes());
        cursor.value().map(|_| cursor.at)
    }

    #[test]
    fn a_value_ends_exactly_where_it_is_cut_from_what_follows() {
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
        for broken in ["]", r#""abc\"#, "12"] {
            assert_eq!(skipped(broken), None, "{broken}");
        }
    }

    #[test]
    fn text_resolves_escapes() {
        assert_eq!(Cursor::new(br#""a\u0062\n""#).text().as_deref(), Some("ab\n"));
        assert_eq!(Cursor::new(b"12").text(), None);
        assert_eq!(Cursor::new(b"\"\xff\"").text(), None);
    }
}
