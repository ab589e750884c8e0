//! How TOML text becomes values: every key has a rule, and every error has a line.
//!
//! Answers "what stands at this key, and may it?". Which keys there are is `rules.rs`. Invariants:
//! 1. A default is TOML text, read by the same function as a file's value: it cannot disagree with what is allowed.
//! 2. A key that no rule asked for is refused when its table is finished.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Error, suggestion};

/// One key: what may stand there, and what is taken if nothing does.
pub(super) struct Rule<T> {
    pub(super) key: &'static str,
    pub(super) allowed: &'static str,
    /// As TOML text.
    pub(super) default: &'static str,
    pub(super) read: fn(&DeValue<'_>) -> Option<T>,
}

/// A text with its name.
#[derive(Debug)]
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
}

/// One table of the text, and which of its keys were asked for.
pub(super) struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    table: DeTable<'d>,
    asked: Vec<&'static str>,
    absent: Vec<String>,
    span: Range<usize>,
}

impl<'a> Document<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text }
    }

    /// The whole text as a table.
    pub(super) fn root(&'a self) -> Result<Section<'a>, Error> {
        let parsed = DeTable::parse(self.text).map_err(|error| Error::Syntax {
            file: self.file.to_owned(),
            line: self.line(error.span().unwrap_or_default().start),
            message: error.message().to_owned(),
        })?;
        Ok(Section::new(self, String::new(), 0..0, parsed.into_inner()))
    }

    fn line(&self, offset: usize) -> usize {
        self.text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
    }

    fn excerpt(&self, span: Range<usize>) -> String {
        let text = self.text.get(span).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl<'d> Section<'d> {
    fn new(document: &'d Document<'d>, path: String, span: Range<usize>, table: DeTable<'d>) -> Self {
        Self { document, path, table, asked: Vec::new(), absent: Vec::new(), span }
    }

    /// The value at a key, or its default.
    pub(super) fn read<T>(&mut self, rule: &Rule<T>) -> Result<T, Error> {
        self.ask(rule.key);
        let Some(value) = self.table.get(rule.key) else {
            self.absent.push(self.full(rule.key));
            let default = DeValue::parse(rule.default).expect("a default is TOML");
            return Ok((rule.read)(default.get_ref()).expect("a default is allowed"));
        };
        (rule.read)(value.get_ref()).ok_or_else(|| Error::Value {
            file: self.document.file.to_owned(),
            line: self.document.line(value.span().start),
            key: self.full(rule.key),
            found: self.document.excerpt(value.span()),
            allowed: rule.allowed,
            default: rule.default,
        })
    }

    /// The table at a key; empty if there is none.
    pub(super) fn table(&mut self, key: &'static str) -> Result<Self, Error> {
        self.ask(key);
        let path = self.full(key);
        match self.table.remove(key) {
            None => Ok(Self::new(self.document, path, 0..0, DeTable::default())),
            Some(value) => self.section(path, value),
        }
    }

    /// The tables of an array of tables; `None` if the key is not there.
    pub(super) fn tables(&mut self, key: &'static str) -> Result<Option<Vec<Self>>, Error> {
        self.ask(key);
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        let (path, span) = (self.full(key), value.span());
        match value.into_inner() {
            DeValue::Array(items) => items
                .into_iter()
                .map(|item| self.section(path.clone(), item))
                .collect::<Result<_, _>>()
                .map(Some),
            _ => Err(self.wrong_shape(path, span, "tables that begin with [[informer]]")),
        }
    }

    fn section(&self, path: String, value: Spanned<DeValue<'d>>) -> Result<Self, Error> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Self::new(self.document, path, span, table)),
            _ => Err(self.wrong_shape(path, span, "a table")),
        }
    }

    /// Refuses what nobody asked for. Gives the keys that were asked for and are not there.
    pub(super) fn finish(self) -> Result<Vec<String>, Error> {
        let stray = self.table.keys().find(|key| !self.asked.contains(&key.get_ref().as_ref()));
        let Some(stray) = stray else { return Ok(self.absent) };
        let word = stray.get_ref().as_ref();
        Err(Error::UnknownKey {
            file: self.document.file.to_owned(),
            line: self.document.line(stray.span().start),
            key: self.full(word),
            nearest: suggestion(word, self.asked.iter().copied()),
            allowed: self.asked.join(", "),
        })
    }

    /// Something about `key` that does not fit the rest.
    pub(super) fn contradiction(&self, key: &str, message: impl Into<String>) -> Error {
        let span = self.table.get(key).map_or_else(|| self.span.clone(), Spanned::span);
        Error::Contradiction {
            file: self.document.file.to_owned(),
            line: self.document.line(span.start),
            key: self.full(key),
            message: message.into(),
        }
    }

    fn wrong_shape(&self, key: String, span: Range<usize>, allowed: &'static str) -> Error {
        Error::Value {
            file: self.document.file.to_owned(),
            line: self.document.line(span.start),
            key,
            found: self.document.excerpt(span),
            allowed,
            default: "none",
        }
    }

    fn ask(&mut self, key: &'static str) {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}
