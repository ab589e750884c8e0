//! What can be seen of a source: its state and its counters.
//!
//! Answers "how is this source doing, and how did it get there?" as plain data for status, metrics and tests;
//! nothing is decided from it. Invariants:
//! 1. `Backoff`, `Denied` and `Gone` last until the source brings something again, also while it is being asked.
//! 2. Counters only grow, within the life of one machine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::list_watch_error::ListWatchError;

/// What a source is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SourceState {
    /// Nothing was asked yet: the start is spread over time, or waits for the list budget.
    Starting,
    /// A list, or a watch-list before its end bookmark, is under way; after something was delivered also while it
    /// waits for the list budget.
    Listing {
        /// Objects received in this list or watch-list so far, all pages together, set-aside ones included; an
        /// object that a watch-list sends twice counts twice.
        received: u64,
    },
    /// What is delivered follows the server: a list is delivered, and the watch from its version on is open or is being
    /// opened.
    Streaming,
    /// It failed, and waits or is being asked again.
    Backoff {
        /// Failures since a stream last ended well, this one included.
        attempts: u32,
        /// The newest failure.
        error: ListWatchError,
        /// When it is asked again, since the start of the runtime.
        until: Duration,
    },
    /// The server refuses us; it is asked again every 30 to 60 s.
    Denied {
        /// The refusal.
        error: ListWatchError,
    },
    /// The kind does not exist; it is asked for again every 30 to 60 s.
    Gone {
        /// The answer.
        error: ListWatchError,
    },
    /// Its reflector kept dying and is not restarted any more. The informer runs on with what it has.
    GivenUp {
        /// How it died, and how often it was restarted.
        reason: Arc<str>,
    },
    /// It was told to stop.
    Stopped,
}

impl SourceState {
    /// The failure that it is in, if it is in one.
    pub fn error(&self) -> Option<&ListWatchError> {
        match self {
            Self::Backoff { error, .. } | Self::Denied { error } | Self::Gone { error } => Some(error),
            Self::Starting
            | Self::Listing { .. }
            | Self::Streaming
            | Self::GivenUp { .. }
            | Self::Stopped => None,
        }
    }
}

/// In plain words, with the error and its causes if there is one.
impl fmt::Display for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("nothing was asked yet"),
            Self::Listing { received } => write!(f, "listing, {received} objects received"),
            Self::Streaming => f.write_str("streaming"),
            Self::Backoff { attempts: 1, error, .. } => write!(f, "failed: {}", error.with_causes()),
            Self::Backoff { attempts, error, .. } => {
                write!(f, "failed {attempts} times in a row: {}", error.with_causes())
            }
            Self::Denied { error } | Self::Gone { error } => write!(f, "{}", error.with_causes()),
            Self::GivenUp { reason } => write!(f, "given up: {reason}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// What a source did so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Lists begun; the pages of one list are one.
    pub lists: u64,
    /// Watches opened: watch-lists, watches and renewals.
    pub watches: u64,
    /// Of the watches, those that asked for initial events.
    pub watch_lists: u64,
    /// Lists and watch-lists begun after something had been delivered.
    pub relists: u64,
    /// The relists by what led to them.
    pub relists_by: RelistCounters,
    /// Failures, of any class: each was waited for.
    pub failures: u64,
    /// Of the failures, refusals (401, 403).
    pub denied: u64,
    /// Of the failures, missing kinds (404).
    pub gone: u64,
    /// Of the failures, overloads (429).
    pub overloaded: u64,
    /// Answers that a version is expired or too large; a failure only when repeated.
    pub expired: u64,
    /// Of the failures, watches that ended at once with nothing in them.
    pub short_watches: u64,
    /// Rewinds of the server found.
    pub rewinds: u64,
    /// Second watches that took over from silent ones.
    pub renewals: u64,
    /// Frames and list items without a readable key.
    pub unreadable: u64,
    /// Frames below the version reached; not delivered.
    pub stale: u64,
}

/// Relists by what led to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelistCounters {
    /// The machine began where another had ended.
    pub resumed: u64,
    /// A version was expired or too large.
    pub expired: u64,
    /// A list, a watch-list or a stream failed.
    pub failed: u64,
    /// The kind had been gone, or we had been refused.
    pub refused: u64,
    /// A frame's key was unreadable.
    pub unreadable: u64,
    /// A frame was below the version reached.
    pub stale: u64,
    /// The server had gone back to an older state.
    pub rewind: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inf_57_every_state_of_a_source_is_shown_in_plain_words() {
        let failed = |attempts, error| SourceState::Backoff { attempts, error, until: Duration::ZERO };
        let refused = || std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let down = || ListWatchError::connection("cannot connect to 10.0.0.1:6443", refused());
        let down_text = "connection failed: cannot connect to 10.0.0.1:6443: connection refused";
        let texts = [
            (SourceState::Starting, "nothing was asked yet".to_owned()),
            (SourceState::Listing { received: 3 }, "listing, 3 objects received".to_owned()),
            (SourceState::Streaming, "streaming".to_owned()),
            (failed(1, down()), format!("failed: {down_text}")),
            (failed(4, down()), format!("failed 4 times in a row: {down_text}")),
            (
                SourceState::Denied { error: ListWatchError::Denied("Unauthorized".into()) },
                "denied: Unauthorized".to_owned(),
            ),
            (
                SourceState::Gone { error: ListWatchError::NotFound("404 page not found".into()) },
                "no such resource: 404 page not found".to_owned(),
            ),
            (SourceState::GivenUp { reason: "panicked: x".into() }, "given up: panicked: x".to_owned()),
            (SourceState::Stopped, "stopped".to_owned()),
        ];
        for (state, text) in texts {
            assert_eq!(state.to_string(), text);
        }
    }
}
