//! What has happened in a world, in order, each line with its simulated time.
//!
//! 1. Bytes of watches are kept as they came, and parsed only when shown.
//! 2. At most [`KEPT`] lines are kept; the fingerprint is that of all lines there ever were.
//! 3. A line holds nothing that differs between two runs of a seed.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

const KEPT: usize = 20_000;

#[derive(Debug, Default)]
pub(super) struct Trace {
    lines: VecDeque<Line>,
    /// With the same keys in each run.
    fingerprint: DefaultHasher,
}

#[derive(Debug, Hash)]
pub(super) struct Line {
    pub(super) at: Duration,
    pub(super) who: Arc<str>,
    pub(super) what: What,
}

#[derive(Debug, Hash)]
pub(super) enum What {
    /// It took effect, or was lost or refused on its way.
    Request { number: u64, sent: Duration, method: String, path: String, outcome: String },
    /// A piece of a watch arrived.
    Watched { number: u64, bytes: Bytes },
    /// In words.
    Happened(String),
}

/// A request of a process or of a user, as the network has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// When it took effect, as simulated time.
    pub at: Duration,
    /// When it left its process.
    pub sent: Duration,
    /// The name of the process that has sent it.
    pub process: Arc<str>,
    /// The HTTP method.
    pub method: String,
    /// The path with its query, percent-encoded.
    pub path: String,
    /// The code of the answer, as `201`, also if it was lost: `201, and the answer is lost`. Else what became of it.
    pub outcome: String,
}

impl Asked {
    pub(super) fn of(line: &Line) -> Option<Self> {
        let What::Request { sent, method, path, outcome, .. } = &line.what else { return None };
        let (method, path, outcome) = (method.clone(), path.clone(), outcome.clone());
        Some(Self { at: line.at, sent: *sent, process: Arc::clone(&line.who), method, path, outcome })
    }
}

impl Trace {
    pub(super) fn push(&mut self, line: Line) {
        line.hash(&mut self.fingerprint);
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Of two runs equal only if all their lines are.
    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint.finish()
    }

    /// Oldest first.
    pub(super) fn last(&self, count: usize) -> impl Iterator<Item = &Line> {
        self.lines.iter().skip(self.lines.len().saturating_sub(count))
    }

    /// Oldest first.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", Clock(self.at), self.who)?;
        match &self.what {
            What::Request { number, method, path, outcome, .. } => {
                write!(f, "#{number} {method} {path} -> {outcome}")
            }
            What::Watched { number, bytes } => write!(f, "#{number} <- {}", events(bytes)),
            What::Happened(text) => f.write_str(text),
        }
    }
}

/// As hours, minutes, seconds and milliseconds.
pub(super) struct Clock(pub(super) Duration);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        write!(f, "{:02}:{:02}:{:02}.{millis:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
    }
}

/// Each event of a watch in a few words.
fn events(bytes: &[u8]) -> String {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let told: Vec<String> = lines.map(|line| serde_json::from_slice(line).map_or_else(cut, told)).collect();
    told.join(", ")
}

fn cut(_unreadable: serde_json::Error) -> String {
    "a part of an event".to_owned()
}

fn told(event: Value) -> String {
    let object = &event["object"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    let (kind, version) = (text(&object["kind"]), text(&meta["resourceVersion"]));
    match (event["type"].as_str(), meta["name"].as_str()) {
        (Some(change), Some(name)) => {
            format!("{change} {kind} {}/{name}@{version}", text(&meta["namespace"]))
        }
        (Some(change), None) => format!("{change} {kind} @{version}{}", text(&object["message"])),
        (None, _) => "not an event".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: u64, what: What) -> Line {
        Line { at: Duration::from_millis(at), who: "a".into(), what }
    }

    #[test]
    fn a_line_shows_time_process_and_what_happened() {
        let event = r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"namespace":"x","name":"y","resourceVersion":"7"}}}"#;
        let bytes = format!("{event}\n{event}\n{{").into();
        let shown = line(3_723_004, What::Watched { number: 5, bytes }).to_string();
        assert_eq!(shown, "01:02:03.004 a #5 <- ADDED Pod x/y@7, ADDED Pod x/y@7, a part of an event");
        let (method, path) = ("GET".to_owned(), "/api".to_owned());
        let (sent, outcome) = (Duration::ZERO, "200".to_owned());
        let request = What::Request { number: 1, sent, method, path, outcome };
        assert_eq!(line(0, request).to_string(), "00:00:00.000 a #1 GET /api -> 200");
    }

    #[test]
    fn fingerprints_differ_with_any_line_also_with_one_that_is_not_kept_any_more() {
        let run = |first: &str| {
            let mut trace = Trace::default();
            trace.push(line(0, What::Happened(first.to_owned())));
            (0..KEPT).for_each(|_| trace.push(line(1, What::Happened("same".to_owned()))));
            (trace.fingerprint(), trace.lines().count())
        };
        assert_eq!(run("one"), run("one"));
        assert_ne!(run("one").0, run("other").0);
        assert_eq!(run("one").1, KEPT);
    }
}
