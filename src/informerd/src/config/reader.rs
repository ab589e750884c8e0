//! Reads values from TOML text. A default is read like a value of the file: it is always allowed. The end of a table refuses keys
//! without a rule. Every error is one line: key, line, what is allowed, default.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        /// Its name.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML.
    #[error("{file}, line {line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A key that does not exist.
    #[error("{file}, line {line}: unknown key {key}{}; allowed here: {allowed}", hint(.nearest))]
    UnknownKey {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key with its table.
        key: String,
        /// The key that was probably meant.
        nearest: Option<String>,
        /// The keys that exist there.
        allowed: String,
    },
    /// A value that is not allowed.
    #[error("{file}, line {line}: {key} is {found}; allowed: {allowed} (default: {default})")]
    Value {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key with its table.
        key: String,
        /// The value in the file.
        found: String,
        /// The allowed values.
        allowed: &'static str,
        /// The value that is used if the key is missing.
        default: &'static str,
    },
    /// Values that contradict each other.
    #[error("{file}, line {line}: {key}: {message}")]
    Contradiction {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key with its table.
        key: String,
        /// What contradicts, and what is allowed.
        message: String,
    },
}

pub(super) struct Rule<T> {
    pub(super) key: &'static str,
    pub(super) allowed: &'static str,
    /// As TOML text.
    pub(super) default: &'static str,
    pub(super) read: fn(&DeValue<'_>) -> Option<T>,
}

impl<T> Rule<T> {
    pub(super) const fn new(
        key: &'static str,
        allowed: &'static str,
        default: &'static str,
        read: fn(&DeValue<'_>) -> Option<T>,
    ) -> Self {
        Self { key, allowed, default, read }
    }
}

#[derive(Debug)]
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
}

pub(super) struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    table: DeTable<'d>,
    known_keys: Vec<&'static str>,
    absent: Vec<String>,
    span: Range<usize>,
}

impl<'a> Document<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text }
    }

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
        Self { document, path, table, known_keys: Vec::new(), absent: Vec::new(), span }
    }

    pub(super) fn read<T>(&mut self, rule: &Rule<T>) -> Result<T, Error> {
        self.add_known(rule.key);
        let Some(value) = self.table.get(rule.key) else {
            self.absent.push(self.full_key(rule.key));
            let default = DeValue::parse(rule.default).expect("a default is TOML");
            return Ok((rule.read)(default.get_ref()).expect("a default is an allowed value"));
        };
        (rule.read)(value.get_ref()).ok_or_else(|| Error::Value {
            file: self.document.file.to_owned(),
            line: self.document.line(value.span().start),
            key: self.full_key(rule.key),
            found: self.document.excerpt(value.span()),
            allowed: rule.allowed,
            default: rule.default,
        })
    }

    /// Empty if absent.
    pub(super) fn table(&mut self, key: &'static str) -> Result<Self, Error> {
        self.add_known(key);
        let path = self.full_key(key);
        match self.table.remove(key) {
            None => Ok(Self::new(self.document, path, 0..0, DeTable::default())),
            Some(value) => self.section(path, value),
        }
    }

    pub(super) fn tables(&mut self, key: &'static str) -> Result<Option<Vec<Self>>, Error> {
        self.add_known(key);
        let Some(value) = self.table.remove(key) else { return Ok(None) };
        let (path, span) = (self.full_key(key), value.span());
        match value.into_inner() {
            DeValue::Array(items) => items
                .into_iter()
                .map(|item| self.section(path.clone(), item))
                .collect::<Result<_, _>>()
                .map(Some),
            _ => Err(self.wrong_type(path, span, "tables that begin with [[informer]]")),
        }
    }

    fn section(&self, path: String, value: Spanned<DeValue<'d>>) -> Result<Self, Error> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Self::new(self.document, path, span, table)),
            _ => Err(self.wrong_type(path, span, "a table")),
        }
    }

    /// Refuses keys that no rule has read. Returns the read keys that are absent.
    pub(super) fn finish(self) -> Result<Vec<String>, Error> {
        let unknown = self.table.keys().find(|key| !self.known_keys.contains(&key.get_ref().as_ref()));
        let Some(unknown) = unknown else { return Ok(self.absent) };
        let key = unknown.get_ref().as_ref();
        Err(Error::UnknownKey {
            file: self.document.file.to_owned(),
            line: self.document.line(unknown.span().start),
            key: self.full_key(key),
            nearest: suggestion(key, self.known_keys.iter().copied()),
            allowed: self.known_keys.join(", "),
        })
    }

    pub(super) fn contradiction(&self, key: &str, message: impl Into<String>) -> Error {
        let span = self.table.get(key).map_or_else(|| self.span.clone(), Spanned::span);
        Error::Contradiction {
            file: self.document.file.to_owned(),
            line: self.document.line(span.start),
            key: self.full_key(key),
            message: message.into(),
        }
    }

    fn wrong_type(&self, key: String, span: Range<usize>, allowed: &'static str) -> Error {
        Error::Value {
            file: self.document.file.to_owned(),
            line: self.document.line(span.start),
            key,
            found: self.document.excerpt(span),
            allowed,
            default: "none",
        }
    }

    fn add_known(&mut self, key: &'static str) {
        if !self.known_keys.contains(&key) {
            self.known_keys.push(key);
        }
    }

    fn full_key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

fn hint(name: &Option<String>) -> String {
    name.as_ref().map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
}

fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let close = |candidate: &&str| strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (close(&candidate), candidate))
        .filter(|(closeness, _)| *closeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}
