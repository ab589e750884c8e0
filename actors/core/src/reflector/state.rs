//! The state and the counters of a source. Invariants:
//! 1. `Backoff`, `Denied`, `Gone` and `SelectorRejected` last until the source delivers again, also while it is being
//!    asked.
//! 2. Counters only grow, within the life of one machine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::list_watch_error::ListWatchError;

/// What a source is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SourceState {
    /// Its informer is declared and was not started: nothing is requested before that.
    Declared,
    /// No request was sent yet: the start is spread over time, or waits for the list budget.
    Starting,
    /// A list, or a watch-list before its end bookmark, is under way. A relist is also in this state while it
    /// waits for the list budget.
    Listing {
        /// Objects received in this list or watch-list so far, all pages together, including those that could
        /// not be decoded. An object that a watch-list sends twice counts twice.
        received: u64,
    },
    /// A list is delivered, and the watch from its version is open or is being opened.
    Streaming,
    /// The last request failed; the source waits, or is being asked again.
    Backoff {
        /// Failures since a stream last ended without one, this one included.
        attempts: u32,
        /// The newest failure.
        error: ListWatchError,
        /// When the source is asked again, since the start of the runtime.
        until: Duration,
    },
    /// The server refuses us: it does not accept the credentials (401), or we may not do this (403). It is
    /// asked again after 1 s, then after longer and longer waits up to 30 s, and after ten minutes every 30
    /// to 60 s.
    Denied {
        /// Failures since a stream last ended without one, this one included.
        attempts: u32,
        /// The refusal.
        error: ListWatchError,
        /// When the source is asked again, since the start of the runtime.
        until: Duration,
    },
    /// The kind does not exist on the server. The server is asked again after 1 s, then after longer and
    /// longer waits up to 30 s, and after ten minutes every 30 to 60 s.
    Gone {
        /// Failures since a stream last ended without one, this one included.
        attempts: u32,
        /// The answer.
        error: ListWatchError,
        /// When the source is asked again, since the start of the runtime.
        until: Duration,
    },
    /// The server rejects the label or field selector, which the error quotes. It is asked again every 30 to
    /// 60 s: the server may learn it, for example by a new version of a CRD with `selectableFields`.
    SelectorRejected {
        /// Failures since a stream last ended without one, this one included.
        attempts: u32,
        /// The selector and the answer.
        error: ListWatchError,
        /// When the source is asked again, since the start of the runtime.
        until: Duration,
    },
    /// Its reflector failed too often and is not restarted any more. The informer goes on with the objects it
    /// has.
    GivenUp {
        /// How the reflector ended, and how often it was restarted.
        reason: Arc<str>,
    },
    /// The source was stopped.
    Stopped,
}

impl SourceState {
    /// The failure, if this is the state of a failure.
    pub fn error(&self) -> Option<&ListWatchError> {
        self.failure().map(|failure| failure.error)
    }

    /// When the source is asked again, since the start of the runtime, if this is the state of a failure. In
    /// the past while it is being asked.
    pub fn next_try(&self) -> Option<Duration> {
        self.failure().map(|failure| failure.until)
    }

    /// How often the source has failed in a row; 0 unless this is the state of a failure.
    pub fn attempts(&self) -> u32 {
        self.failure().map_or(0, |failure| failure.attempts)
    }

    fn failure(&self) -> Option<Failure<'_>> {
        match self {
            Self::Backoff { attempts, error, until }
            | Self::Denied { attempts, error, until }
            | Self::Gone { attempts, error, until }
            | Self::SelectorRejected { attempts, error, until } => {
                Some(Failure { attempts: *attempts, error, until: *until })
            }
            Self::Declared
            | Self::Starting
            | Self::Listing { .. }
            | Self::Streaming
            | Self::GivenUp { .. }
            | Self::Stopped => None,
        }
    }
}

struct Failure<'a> {
    attempts: u32,
    error: &'a ListWatchError,
    until: Duration,
}

/// An informer does not know how it was made, so each way to start is named.
const DECLARED: &str = "declared, not started (`begin`, its factory's `start` or an operator starts it)";

/// The state as a sentence, with the error and its causes if there is one.
impl fmt::Display for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declared => f.write_str(DECLARED),
            Self::Starting => f.write_str("no request was sent yet"),
            Self::Listing { received } => write!(f, "listing, {received} objects received"),
            Self::Streaming => f.write_str("streaming"),
            Self::Backoff { attempts: 1, error, .. } => write!(f, "failed: {}", error.with_causes()),
            Self::Backoff { attempts, error, .. } => {
                write!(f, "failed {attempts} times in a row: {}", error.with_causes())
            }
            Self::Denied { attempts, error, .. }
            | Self::Gone { attempts, error, .. }
            | Self::SelectorRejected { attempts, error, .. } => {
                write!(f, "{}", error.with_causes())?;
                if *attempts > 1 { write!(f, " ({attempts} times in a row)") } else { Ok(()) }
            }
            Self::GivenUp { reason } => write!(f, "given up: {reason}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// What a source did so far, as counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Lists begun; all pages of a list count as one.
    pub lists: u64,
    /// Watches opened: watch-lists, watches and renewals.
    pub watches: u64,
    /// Of the watches, those that asked for initial events.
    pub watch_lists: u64,
    /// Lists and watch-lists begun after something had been delivered.
    pub relists: u64,
    /// The relists by their reason.
    pub relists_by: RelistCounters,
    /// Failures of any class. Each was followed by a wait.
    pub failures: u64,
    /// Of the failures, refusals (401, 403).
    pub denied: u64,
    /// Of the failures, missing kinds (404).
    pub gone: u64,
    /// Of the failures, selectors that the server rejects (400, 422).
    pub rejected_selectors: u64,
    /// Of the failures, overloads (429).
    pub overloaded: u64,
    /// Answers that a version is expired or too large. They are failures only when repeated.
    pub expired: u64,
    /// Of the failures, watches that ended soon and without a frame.
    pub short_watches: u64,
    /// Rewinds of the server that were detected.
    pub rewinds: u64,
    /// Second watches that replaced silent ones.
    pub renewals: u64,
    /// Frames and list items without a readable key.
    pub unreadable: u64,
    /// Frames below the version reached; not delivered.
    pub stale: u64,
}

impl SourceCounters {
    /// Adds what others have counted.
    pub fn add(&mut self, other: &Self) {
        self.lists += other.lists;
        self.watches += other.watches;
        self.watch_lists += other.watch_lists;
        self.relists += other.relists;
        self.relists_by.add(&other.relists_by);
        self.failures += other.failures;
        self.denied += other.denied;
        self.gone += other.gone;
        self.rejected_selectors += other.rejected_selectors;
        self.overloaded += other.overloaded;
        self.expired += other.expired;
        self.short_watches += other.short_watches;
        self.rewinds += other.rewinds;
        self.renewals += other.renewals;
        self.unreadable += other.unreadable;
        self.stale += other.stale;
    }
}

/// Relists by their reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelistCounters {
    /// The reflector was restarted and resumed from the version it had reached.
    pub resumed: u64,
    /// A version was expired or too large.
    pub expired: u64,
    /// A list, a watch-list or a stream failed.
    pub failed: u64,
    /// The kind had been gone, we had been refused, or the selector had been rejected.
    pub refused: u64,
    /// A frame's key was unreadable.
    pub unreadable: u64,
    /// A frame was below the version reached.
    pub stale: u64,
    /// The server had gone back to an older state.
    pub rewind: u64,
    /// Other namespaces were to be kept of a cluster-wide source.
    pub asked: u64,
}

impl RelistCounters {
    /// Every reason with its count, those that never happened included.
    pub fn by_reason(&self) -> [(&'static str, u64); 8] {
        [
            ("resumed", self.resumed),
            ("expired", self.expired),
            ("failed", self.failed),
            ("refused", self.refused),
            ("unreadable", self.unreadable),
            ("stale", self.stale),
            ("rewind", self.rewind),
            ("asked", self.asked),
        ]
    }

    /// Adds what others have counted.
    pub fn add(&mut self, other: &Self) {
        self.resumed += other.resumed;
        self.expired += other.expired;
        self.failed += other.failed;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.stale += other.stale;
        self.rewind += other.rewind;
        self.asked += other.asked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_several_sources_are_added_each_to_its_own() {
        let relists_by = RelistCounters {
            resumed: 1,
            expired: 2,
            failed: 3,
            refused: 4,
            unreadable: 5,
            stale: 6,
            rewind: 7,
            asked: 8,
        };
        let one = SourceCounters {
            lists: 9,
            watches: 10,
            watch_lists: 11,
            relists: 12,
            relists_by,
            failures: 13,
            denied: 14,
            gone: 15,
            rejected_selectors: 16,
            overloaded: 17,
            expired: 18,
            short_watches: 19,
            rewinds: 20,
            renewals: 21,
            unreadable: 22,
            stale: 23,
        };
        let numbers = |counters: &SourceCounters| -> Vec<u64> {
            let text = format!("{counters:?}");
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
        };
        let mut all = one.clone();
        all.add(&one);
        all.add(&one);
        let tripled: Vec<u64> = numbers(&one).iter().map(|number| number * 3).collect();
        assert_eq!((numbers(&all), tripled.len()), (tripled, 23));
    }

    #[test]
    fn inf_57_every_state_of_a_source_is_shown_in_plain_words() {
        let failed = |attempts, error| SourceState::Backoff { attempts, error, until: Duration::ZERO };
        let refused = || std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let down = || ListWatchError::connection("cannot connect to 10.0.0.1:6443", refused());
        let rejected = || ListWatchError::SelectorRejected {
            selectors: "fields=spec.x=1".into(),
            message: "field label not supported".into(),
        };
        let down_text = "connection failed: cannot connect to 10.0.0.1:6443: connection refused";
        let texts = [
            (SourceState::Declared, DECLARED.to_owned()),
            (SourceState::Starting, "no request was sent yet".to_owned()),
            (SourceState::Listing { received: 3 }, "listing, 3 objects received".to_owned()),
            (SourceState::Streaming, "streaming".to_owned()),
            (failed(1, down()), format!("failed: {down_text}")),
            (failed(4, down()), format!("failed 4 times in a row: {down_text}")),
            (
                SourceState::Denied {
                    attempts: 1,
                    error: ListWatchError::Denied("no rule".into()),
                    until: Duration::ZERO,
                },
                "denied: no rule".to_owned(),
            ),
            (
                SourceState::Gone {
                    attempts: 3,
                    error: ListWatchError::NotFound("404 page not found".into()),
                    until: Duration::ZERO,
                },
                "no such resource: 404 page not found (3 times in a row)".to_owned(),
            ),
            (
                SourceState::SelectorRejected { attempts: 1, error: rejected(), until: Duration::ZERO },
                "selector rejected: fields=spec.x=1: field label not supported".to_owned(),
            ),
            (SourceState::GivenUp { reason: "panicked: x".into() }, "given up: panicked: x".to_owned()),
            (SourceState::Stopped, "stopped".to_owned()),
        ];
        for (state, text) in texts {
            assert_eq!(state.to_string(), text);
        }
    }
}
