//! The log lines of a source: which events, at which level, and in which words. Invariants:
//! 1. A failure is a warning if none of its class (denied, unauthorized, gone, selector, all others) was logged in
//!    the last [`LOG_EVERY`], or if its class is new in an outage that has lasted [`LASTING`]. Others are debug
//!    lines.
//! 2. An outage ends when the source is followed again. That is information if the outage had a warning, else a debug
//!    line.
//! 3. A line has at most [`LONGEST`] characters of an error, which may quote a server, and no line end.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::phase::RelistReason;
use super::{ListWatchMachine, Moment};
use crate::list_watch_error::{ErrorClass, ListWatchError};
use crate::words::{Brief, one_line};

const LOG_EVERY: Duration = Duration::from_secs(600);

const LASTING: Duration = Duration::from_secs(30);

/// For the server's words, of which sources keep about 300 characters, and what to do.
const LONGEST: usize = 900;

const WAITING: usize = 32;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LogLevel {
    /// A detail for finding a fault.
    Debug,
    /// A change of state that is not a failure.
    Info,
    /// Something fails.
    Warn,
}

/// One line for the log, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// How much it matters.
    pub level: LogLevel,
    /// One word to filter by: why the source failed (`denied`, `unauthorized`, `gone`, `selector`, `failed`)
    /// or why it is listed again (`expired`, `rewind`, ...).
    pub reason: Option<&'static str>,
    /// What happened, why, and what follows. It names the resource; the caller adds the informer and the
    /// source.
    pub text: String,
}

#[derive(Debug)]
pub(super) struct SourceLog {
    resource: Arc<str>,
    outage: Option<Outage>,
    warned: BTreeMap<&'static str, Duration>,
    /// Failures since the last warning.
    unlogged: u32,
    waiting: VecDeque<LogLine>,
}

#[derive(Debug)]
struct Outage {
    since: Duration,
    failures: u32,
    warned_at: Option<Duration>,
    warned: Vec<&'static str>,
}

impl SourceLog {
    pub(super) fn new(resource: Arc<str>) -> Self {
        Self { resource, outage: None, warned: BTreeMap::new(), unlogged: 0, waiting: VecDeque::new() }
    }

    pub(super) fn debug(&mut self, words: fmt::Arguments<'_>) {
        self.push(LogLevel::Debug, None, words.to_string());
    }

    pub(super) fn failed(&mut self, error: &ListWatchError, until: Duration, at: Moment) {
        let class = class_word(error);
        let again = Brief(until.saturating_sub(at.now));
        let error = one_line(&error.with_causes().to_string(), LONGEST);
        let outage = self.outage.get_or_insert_with(|| Outage::began(at.now));
        outage.failures = outage.failures.saturating_add(1);
        let lasted = at.now.saturating_sub(outage.since);
        let is_due = match self.warned.get(class) {
            Some(last) if at.now.saturating_sub(*last) < LOG_EVERY => {
                !outage.warned.contains(&class) && lasted >= LASTING
            }
            _ => true,
        };
        let resource = &self.resource;
        let text = match (outage.warned_at, self.unlogged) {
            (Some(_), _) => {
                let (lasted, failures) = (Brief(lasted), outage.failures);
                format!(
                    "cannot list or watch {resource}, for {lasted} now: {error}; {failures} attempts failed, asked again in {again}"
                )
            }
            (None, 0) => format!("cannot list or watch {resource}: {error}; asked again in {again}"),
            (None, before) => {
                let before = match before {
                    1 => String::from("1 failure before this one was"),
                    many => format!("{many} failures before this one were"),
                };
                format!(
                    "cannot list or watch {resource}: {error}; {before} not logged, asked again in {again}"
                )
            }
        };
        if is_due {
            outage.warned_at = Some(at.now);
            if !outage.warned.contains(&class) {
                outage.warned.push(class);
            }
            self.warned.insert(class, at.now);
            self.unlogged = 0;
            self.push(LogLevel::Warn, Some(class), text);
        } else {
            self.unlogged = self.unlogged.saturating_add(1);
            self.push(LogLevel::Debug, Some(class), text);
        }
    }

    pub(super) fn followed(&mut self, at: Moment) {
        let Some(outage) = self.outage.take() else { return };
        let level = if outage.warned_at.is_some() { LogLevel::Info } else { LogLevel::Debug };
        let lasted = Brief(at.now.saturating_sub(outage.since));
        let attempts = match outage.failures {
            1 => String::from("1 failed attempt"),
            many => format!("{many} failed attempts"),
        };
        let text = format!("lists and watches {} again, after {lasted} and {attempts}", self.resource);
        self.push(level, Some("recovered"), text);
    }

    pub(super) fn relists(&mut self, reason: RelistReason) {
        // The failure's line, whose rate is limited, already says this.
        let level = if self.outage.is_some() { LogLevel::Debug } else { LogLevel::Info };
        let (word, why) = reason.words();
        let text = format!("lists {} again: {why}", self.resource);
        self.push(level, Some(word), text);
    }

    fn push(&mut self, level: LogLevel, reason: Option<&'static str>, text: String) {
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(LogLine { level, reason, text });
    }
}

impl Outage {
    fn began(since: Duration) -> Self {
        Self { since, failures: 0, warned_at: None, warned: Vec::new() }
    }
}

impl<S> ListWatchMachine<S> {
    /// The next line for the log. Call it until it returns `None` after each call of a `handle_*` method.
    /// Only the time of the events decides what is a warning, not how often this is called.
    pub fn poll_log(&mut self) -> Option<LogLine> {
        self.log.waiting.pop_front()
    }
}

fn class_word(error: &ListWatchError) -> &'static str {
    match error.class() {
        ErrorClass::Denied => "denied",
        ErrorClass::Unauthorized => "unauthorized",
        ErrorClass::Gone => "gone",
        ErrorClass::SelectorRejected => "selector",
        _ => "failed",
    }
}

impl RelistReason {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Resumed => ("restarted", "its reflector was started again"),
            Self::Expired => ("expired", "the version asked for is not on the server (expired or too large)"),
            Self::Failed => ("failed", "a list or watch before had failed"),
            Self::Refused => ("refused", "it had been refused, or was gone"),
            Self::Unreadable => ("unreadable", "a frame came whose object cannot be named"),
            Self::Stale => ("stale", "a frame came with an older version than the one reached"),
            Self::Rewind => ("rewind", "the server has gone back to an older state"),
            Self::Asked => ("asked", "other namespaces are to be kept"),
        }
    }
}
