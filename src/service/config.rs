//! What informerd is told to do, as one typed value read from TOML.
//!
//! Answers "what may be configured, and what if it is not?". Which cluster is read is not here: `target.rs`. It
//! starts nothing. Invariants:
//! 1. Each key's default stands once, in `config/rules.rs`; `config/informerd.toml` shows the same ones (tested).
//! 2. Nothing that is not understood is ignored: unknown keys and values are errors that name key, line and what is
//!    allowed.
//!
//! Read next: `config/rules.rs`, every key; `config/reader.rs`, how a file becomes values.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

pub use error::Error;

use crate::core::delta_fifo::Discipline;
use crate::core::listener::Policy;

use reader::Document;

mod error;
mod reader;
mod rules;
#[cfg(test)]
mod tests;

/// Everything that informerd can be told in its file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// What is printed, and how.
    pub output: OutputConfig,
    /// The HTTP probes.
    pub probes: ProbesConfig,
    /// When and how it ends.
    pub run: RunConfig,
    /// What is watched, each kind once.
    pub informers: Vec<InformerConfig>,
    /// The workload on the in-memory server.
    pub demo: DemoConfig,
    /// The file that it was read from; `None` for the defaults.
    pub file: Option<String>,
}

/// What is printed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputConfig {
    /// For people or for scripts.
    pub format: Format,
    /// Whether text is coloured.
    pub colour: Colour,
    /// How often text tells how each informer is doing.
    pub status_every: Duration,
    /// Whether each cached object is printed before the summary. False; set by a flag, not by the file.
    pub list_at_end: bool,
}

/// For whom is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Lines for people.
    Text,
    /// One JSON document a line.
    Json,
}

/// When text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The HTTP probes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbesConfig {
    /// Where they listen, if they do.
    pub listen: Option<SocketAddr>,
}

/// When and how it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunConfig {
    /// After how long it ends by itself, if at all.
    pub limit: Option<Duration>,
    /// How long the end may take.
    pub drain: Duration,
}

/// One kind to be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InformerConfig {
    /// Which kind.
    pub kind: super::kinds::WatchedKind,
    /// In which namespaces; all, if empty.
    pub namespaces: Vec<String>,
    /// Label selector; empty selects everything.
    pub labels: String,
    /// Field selector; empty selects everything.
    pub fields: String,
    /// How often every object is told again, if at all.
    pub resync: Option<Duration>,
    /// What is kept of each object.
    pub representation: Kept,
    /// In which order changes reach the cache.
    pub discipline: Discipline,
    /// What is told when the output is slow.
    pub policy: Policy,
}

/// What is kept of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kept {
    /// A Rust type; for pods.
    Typed,
    /// A tree, for any kind.
    Dynamic,
    /// The metadata alone.
    Metadata,
}

/// The workload on the in-memory server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DemoConfig {
    /// How many pods there are, about.
    pub pods: usize,
    /// How many changes are made each second.
    pub changes_per_second: u32,
    /// Fixes the story.
    pub seed: u64,
}

impl Config {
    /// Reads a file. Blocking.
    ///
    /// # Errors
    /// When it cannot be read, or says something that is not allowed.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Read { file: path.display().to_string(), source })?;
        let file = path.display().to_string();
        let config = Self::parse(&file, &text)?;
        Ok(Self { file: Some(file), ..config })
    }

    /// Reads TOML text; `file` is its name in errors.
    ///
    /// ```
    /// use actix_informer::service::Config;
    ///
    /// let error = Config::parse("my.toml", "[output]\nformat = \"yaml\"").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     r#"my.toml, line 2: output.format is "yaml"; allowed: "text" or "json" (default: "text")"#
    /// );
    /// ```
    ///
    /// # Errors
    /// When it says something that is not allowed, with the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let document = Document::new(file, text);
        rules::read(&document).map(|(config, _absent)| config)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::parse("defaults", "").expect("no text says nothing wrong")
    }
}

impl ProbesConfig {
    fn new(enabled: bool, address: IpAddr, port: u16) -> Self {
        Self { listen: enabled.then(|| SocketAddr::new(address, port)) }
    }
}
