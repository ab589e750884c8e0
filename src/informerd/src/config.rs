//! The configuration of informerd, one typed value read from TOML. `config/rules.rs` has the defaults; a test checks that
//! `config/informerd.toml` shows them.

use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

pub use reader::Error;

use actix_informer::informer::QueueOrder;
use actix_informer::source::BackoffPolicy;
use actix_informer::source::ReflectorConfig;
use actix_informer::subscription::Policy;

use reader::Document;

mod reader;
mod rules;
#[cfg(test)]
mod tests;

/// The settings of informerd's configuration file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// What is printed, and how.
    pub output: OutputConfig,
    /// The HTTP probes.
    pub probes: ProbesConfig,
    /// When and how it ends.
    pub run: RunConfig,
    /// The watched kinds; each kind once.
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
    /// The interval of the status lines of each informer, in text.
    pub status_every: Duration,
    /// Whether each cached object is printed before the summary. False; set by a flag, not by the file.
    pub list_at_end: bool,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "informerd", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Format {
    /// Lines for people.
    Text,
    /// One JSON document per line.
    Json,
}

/// When text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "informerd", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Whether what is written to this stream is coloured.
    pub fn is_on(self, stream: &impl IsTerminal) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

/// The HTTP probes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbesConfig {
    /// The address on which they listen; `None` if they are disabled.
    pub listen: Option<SocketAddr>,
    /// How long a kind may have failed, after its first list, until the service counts as not ready; `None`:
    /// for ever.
    pub unready_when_stale_for: Option<Duration>,
}

/// When and how it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunConfig {
    /// The time after which it ends by itself, if any.
    pub limit: Option<Duration>,
    /// The longest time that the end may take.
    pub drain: Duration,
}

/// One watched kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InformerConfig {
    /// Which kind.
    pub kind: super::kinds::WatchedKind,
    /// The namespaces; all, if empty.
    pub namespaces: Vec<String>,
    /// Label selector; empty selects everything.
    pub labels: String,
    /// Field selector; empty selects everything.
    pub fields: String,
    /// The interval at which every object is delivered again, if at all.
    pub resync: Option<Duration>,
    /// How soon a missing kind or refused credentials are tried again.
    pub early: EarlyRetries,
    /// What is kept of each object.
    pub representation: Kept,
    /// In which order changes reach the cache.
    pub queue_order: QueueOrder,
    /// What is delivered while the output is slow.
    pub policy: Policy,
}

/// How soon a kind that is missing (404) or refuses us (401, 403) is requested again at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EarlyRetries {
    /// The first wait is from this to twice this; each further one is twice as long.
    pub first: Duration,
    /// No early wait is longer than twice this.
    pub longest: Duration,
    /// How long there are early waits; afterwards each is from 30 to 60 s. Zero: never.
    pub within: Duration,
}

impl EarlyRetries {
    pub(super) fn apply(self, settings: &mut ReflectorConfig) {
        settings.early_backoff = BackoffPolicy { base: self.first, cap: self.longest };
        settings.early_for = self.within;
    }
}

/// What the file says about what is kept of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kept {
    /// A Rust type; for pods.
    Typed,
    /// A JSON tree, for any kind.
    Dynamic,
    /// Only the metadata.
    Metadata,
    /// What is best for the kind: see [`InformerConfig::kept`].
    Auto,
}

/// The workload on the in-memory server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DemoConfig {
    /// The approximate number of pods.
    pub pods: usize,
    /// The number of changes per second.
    pub changes_per_second: u32,
    /// The seed of the random changes: equal seeds give equal changes.
    pub seed: u64,
}

impl Config {
    /// Reads a file. Blocking.
    ///
    /// # Errors
    /// When it cannot be read, or has a key or value that is not allowed.
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
    /// use informerd::Config;
    ///
    /// let error = Config::parse("my.toml", "[output]\nformat = \"yaml\"").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     r#"my.toml, line 2: output.format is "yaml"; allowed: "text" or "json" (default: "text")"#
    /// );
    /// ```
    ///
    /// # Errors
    /// When it has a key or value that is not allowed; the error names the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let document = Document::new(file, text);
        rules::read(&document).map(|(config, _absent)| config)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::parse("defaults", "").expect("an empty text is a valid configuration")
    }
}

impl InformerConfig {
    /// What is kept of each object: if the file leaves it open, typed for Pod, metadata for Secret, so that
    /// its values are never sent, and dynamic for other kinds.
    pub fn kept(&self) -> Kept {
        match self.representation {
            Kept::Auto if self.kind.has_type() => Kept::Typed,
            Kept::Auto if self.kind.holds_secrets() => Kept::Metadata,
            Kept::Auto => Kept::Dynamic,
            chosen => chosen,
        }
    }
}

impl ProbesConfig {
    fn new(enabled: bool, address: IpAddr, port: u16, unready_when_stale_for: Option<Duration>) -> Self {
        Self { listen: enabled.then(|| SocketAddr::new(address, port)), unready_when_stale_for }
    }
}
