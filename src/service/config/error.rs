//! What is wrong with a configuration, for the person who wrote it.
//!
//! Answers "which key, on which line, and what would be right?" in one line. It decides nothing.
//! 1. Every variant that concerns a key names it, its line, what is allowed and the default where there is one.

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
        /// What was probably meant.
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
        /// What stands there.
        found: String,
        /// What may stand there.
        allowed: &'static str,
        /// What is taken if nothing stands there.
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
        /// What does not fit, and what would.
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
