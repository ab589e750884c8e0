//! The requests and answers of a run, step by step, unchanged.
//!
//! Answers: what is kept of an answer? The code, the headers that clients read, the body; of a stream its events. It
//! compares nothing: `normal.rs` removes what may differ between two correct servers.
//! 1. A step's label is the same on both servers: versions and tokens that a script put into a path are masked.
use std::collections::BTreeMap;
use std::io;

use regex_lite::Regex;
use serde_json::{Map, Value, json};

use super::language;
use super::session::Answer;
use super::wire::Head;

/// The headers that clients read.
const HEADERS: [&str; 12] = [
    "allow",
    "cache-control",
    "content-encoding",
    "content-type",
    "etag",
    "location",
    "retry-after",
    "upgrade",
    "vary",
    "warning",
    "www-authenticate",
    "x-content-type-options",
];

/// One request and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) label: String,
    pub(crate) content: Value,
}

/// All steps of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript {
    pub(crate) steps: Vec<Step>,
}

impl Transcript {
    /// The next step's label: its number, the method and the end of the path.
    pub(crate) fn label(&self, method: &str, path: &str) -> String {
        let path = path.trim_start_matches("/api/v1/").trim_start_matches("/apis/");
        let path = path.trim_start_matches("namespaces/{ns}/");
        let mask = |pattern: &str, with: &str, text: &str| {
            Regex::new(pattern).expect("a pattern of ours").replace_all(text, with).into_owned()
        };
        let path = mask("continue=[^&]*", "continue=...", path);
        let path = mask("[0-9]{3,}", "N", &path);
        let path: String = path.chars().take(70).collect();
        format!("{} {method} {}", self.steps.len() + 1, path.replace('|', "%7C"))
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Adds an event to the stream that a step opened.
    pub(crate) fn event(&mut self, step: usize, event: Value) {
        let events = self.steps.get_mut(step).and_then(|step| step.content.get_mut("events"));
        if let Some(events) = events.and_then(Value::as_array_mut) {
            events.push(event);
        }
    }
}

impl Step {
    pub(crate) fn answered(label: String, answer: &Answer) -> Self {
        let body = language::value(&answer.head, &answer.body);
        let content = json!({"code": answer.head.code, "headers": headers(&answer.head), "body": body});
        Self { label, content }
    }

    pub(crate) fn streaming(label: String, head: &Head) -> Self {
        let content = json!({"code": head.code, "headers": headers(head), "events": []});
        Self { label, content }
    }

    pub(crate) fn noted(label: String, value: Value) -> Self {
        Self { label, content: json!({"note": value}) }
    }

    pub(crate) fn broken(label: String, error: &io::Error) -> Self {
        Self { label, content: json!({"broken": error.kind().to_string()}) }
    }
}

fn headers(head: &Head) -> Value {
    let mut kept: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in head.headers.iter().filter(|(name, _)| HEADERS.contains(&name.as_str())) {
        kept.entry(name).or_default().push(value);
    }
    let value = |values: Vec<&str>| if values.len() == 1 { json!(values[0]) } else { json!(values) };
    kept.into_iter().map(|(name, values)| (name.to_owned(), value(values))).collect::<Map<_, _>>().into()
}
