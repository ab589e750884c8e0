//! Waiting in real time: the one place in this crate that reads a clock and sleeps.
//!
//! Question: has this taken too long? It waits for other processes, so a simulated clock cannot help; nothing outside
//! test support may do this.
//! 1. A wait ends when its condition holds or its limit has passed, and checks at least once.
//!
//! Read next: `process.rs`.
#![expect(
    clippy::disallowed_methods,
    reason = "processes of the operating system run on its clock, not on ours"
)]

use std::{
    env, thread,
    time::{Duration, Instant},
};

use crate::StartError;

/// More than a loaded machine needs.
const DEFAULT_LIMIT: Duration = Duration::from_secs(120);

/// How long starting and stopping one process may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) start: Duration,
    pub(crate) stop: Duration,
}

impl Limits {
    /// Reads the variables that other Kubernetes test environments use too; two minutes each if unset.
    pub(crate) fn from_environment() -> Result<Self, StartError> {
        Ok(Self {
            start: limit("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT")?,
            stop: limit("KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT")?,
        })
    }
}

/// Calls `attempt` until it returns a value or `limit` has passed.
pub(crate) fn until<T>(limit: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        if let Some(value) = attempt() {
            return Some(value);
        }
        if started.elapsed() >= limit {
            return None;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn limit(variable: &'static str) -> Result<Duration, StartError> {
    let Ok(text) = env::var(variable) else { return Ok(DEFAULT_LIMIT) };
    parse(&text).ok_or(StartError::Variable { variable, text })
}

/// A duration in Go's spelling (`20s`, `1m30s`, `500ms`), as in these variables; a bare number is seconds.
fn parse(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total += Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(milliseconds)?);
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_in_the_spelling_of_go() {
        let table = [
            ("20s", Some(20_000)),
            ("1m30s", Some(90_000)),
            ("500ms", Some(500)),
            ("7", Some(7_000)),
            ("", None),
            ("soon", None),
            ("5 s", None),
        ];
        for (text, milliseconds) in table {
            assert_eq!(parse(text), milliseconds.map(Duration::from_millis), "{text:?}");
        }
    }
}
