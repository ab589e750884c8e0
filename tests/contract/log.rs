//! The log of a scenario: every line that is written on this thread while it runs.
//!
//! Answers "what does an operator read in the log, and which fields does a line carry?" for simulated scenarios, which
//! run on one thread, and, for errors only, for scenarios on real threads. A test picks its lines by message or level.
//! Invariants:
//! 1. Lines are in the order in which they were written. Simulated tests that run at the same time do not see each
//!    other's lines. Tests on threads do: they look for a name of their own.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// One line of the log.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) target: String,
    pub(crate) message: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl Line {
    /// The value of a field, as it is written in the log.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.as_str())
    }
}

/// The lines so far. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Line>>>);

impl Log {
    /// The lines so far.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines of this level, and of more important ones.
    pub(crate) fn from(&self, level: Level) -> Vec<Line> {
        self.lines().into_iter().filter(|line| line.level <= level).collect()
    }

    /// The same as texts: `WARN it failed`.
    pub(crate) fn texts(&self, level: Level) -> Vec<String> {
        self.from(level).iter().map(|line| format!("{} {}", line.level, line.message)).collect()
    }

    /// Removes the lines so far.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The lines whose message contains these words.
    pub(crate) fn with(&self, words: &str) -> Vec<Line> {
        self.lines().into_iter().filter(|line| line.message.contains(words)).collect()
    }
}

/// Runs a scenario and records what is logged on this thread meanwhile.
pub(crate) fn recorded<T>(scenario: impl FnOnce(Log) -> T) -> T {
    // tracing remembers for each line of code whether anybody records it. A line that another test reaches first, while
    // this recorder is being registered, would be remembered as recorded by nobody: one recorder stays registered.
    static REGISTERED: OnceLock<Dispatch> = OnceLock::new();
    REGISTERED.get_or_init(|| Dispatch::new(Recorder(Log::default(), Level::TRACE)));
    let log = Log::default();
    tracing::subscriber::with_default(Recorder(log.clone(), Level::TRACE), || {
        tracing::callsite::rebuild_interest_cache();
        scenario(log)
    })
}

/// The errors of all threads that do not record a log of their own, from the first call on.
pub(crate) fn everywhere() -> Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Log::default();
        let recorder = Recorder(log.clone(), Level::ERROR);
        tracing::subscriber::set_global_default(recorder).expect("the only one of this process");
        log
    });
    log.clone()
}

/// Records lines of this level and more severe ones.
struct Recorder(Log, Level);

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.1
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let metadata = span.metadata();
        let message = format!("span {}", metadata.name());
        let mut line = Line { message, ..Line::of(metadata) };
        span.record(&mut line);
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::of(event.metadata());
        event.record(&mut line);
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _written = write!(text, "{value:?}");
        self.take(field, text);
    }
}

impl Line {
    fn of(metadata: &Metadata<'_>) -> Self {
        let target = metadata.target().to_owned();
        Self { level: *metadata.level(), target, message: String::new(), fields: Vec::new() }
    }

    fn take(&mut self, field: &Field, value: String) {
        if field.name() == "message" {
            self.message = value;
        } else {
            self.fields.push((field.name(), value));
        }
    }
}
