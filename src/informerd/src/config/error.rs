//! The errors of a configuration, for the person who wrote it.
//!
//! Answers "which key, on which line, and what is allowed?" in one line. Invariant:
//! 1. Every variant about a key names the key, its line, what is allowed, and the default if there is one.

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

fn hint(name: &Option<String>) -> String {
    name.as_ref().map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
}

/// The candidate that `word` was probably meant to be.
pub(super) fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let close = |candidate: &&str| strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (close(&candidate), candidate))
        .filter(|(closeness, _)| *closeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}
