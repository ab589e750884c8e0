//! A watch beside a script that is not recorded.
//!
//! Answers: what did the server send to a watch that is not compared? `session.rs` opens it.

use serde_json::Value;

use super::session::EVENT_LIMIT;
use super::wire::Incoming;

/// A watch that is not compared.
#[derive(Debug)]
pub(crate) struct Unrecorded(pub(super) Incoming);

impl Unrecorded {
    /// Reads until this version has come, or to any end; returns the versions of the objects.
    pub(crate) fn versions_up_to(&mut self, newest: &str) -> Vec<String> {
        let mut versions = Vec::new();
        while versions.last().is_none_or(|version| version != newest) {
            let Ok(Some(line)) = self.0.line(EVENT_LIMIT) else { break };
            // A line that was cut off is not counted.
            let Ok(event) = serde_json::from_slice::<Value>(&line) else { break };
            let version = event.pointer("/object/metadata/resourceVersion").and_then(Value::as_str);
            versions.extend(version.map(str::to_owned));
        }
        versions
    }
}
