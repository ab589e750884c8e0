//! Every number of a reflector, with its default and its reason.
//!
//! Answers "how long, how many, how often?" for `ListWatchMachine`; decides nothing. Invariants:
//! 1. Every default is the design's; changing one is a change of behaviour that the contract tests show.
//! 2. Durations are plain values here; no number of the protocol stands anywhere else.

use std::sync::Arc;
use std::time::Duration;

use crate::backoff::{BackoffPolicy, LEAST_WAIT};

/// The smallest watch timeout that is asked for, whatever the configuration says: below it, watches of one cluster
/// would end so often that reconnecting becomes the load.
pub const LEAST_WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// The shortest deadline and the shortest silence before a renewal, whatever the configuration says: with zero, no
/// request would ever be in time.
pub const LEAST_DEADLINE: Duration = Duration::from_secs(1);

/// How one source is listed and watched.
///
/// Every duration is taken. `Duration::MAX` means never: such a deadline does not come, such a wait does not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReflectorConfig {
    /// Names the resource in error texts, such as `pods` or `widgets.example.org`.
    pub resource: Arc<str>,
    /// Objects per page of a list. `None`: `default_page_size` where a page costs nothing extra (version `""` or
    /// `"0"`), and no limit at a live version, which the server's cache answers whole.
    pub page_size: Option<u32>,
    /// The page size at `""` and `"0"` when `page_size` is unset. 500.
    pub default_page_size: u32,
    /// Whether initial events are asked for on the watch first, and lists only where that is refused. True.
    pub watch_list: bool,
    /// m: a watch asks the server to end it after m to 2m, drawn anew each time, so that watches which began
    /// together do not end together. Less than [`LEAST_WATCH_TIMEOUT`] is taken as that. 300 s.
    pub min_watch_timeout: Duration,
    /// The waits after failures.
    pub backoff: BackoffPolicy,
    /// A watch-list that brings no object it had not brought for so long, before its end bookmark, has failed: changes
    /// of objects it has brought already put nothing off. Less than a second is taken as a second. 90 s.
    pub initial_events_deadline: Duration,
    /// A list that brings no object and no end of a page for so long has failed. 90 s.
    pub list_deadline: Duration,
    /// A watch without a frame that ends sooner than this (and than the last wait) is a failure. 10 s.
    pub short_watch: Duration,
    /// Watches that end without failing are opened again at once, but no two within this time. Less than a millisecond
    /// is taken as a millisecond. 1 s.
    pub reconnect_interval: Duration,
    /// A watch that was silent for so long is renewed. Less than a second is taken as a second. 30 s.
    pub renew_after: Duration,
    /// Renewals that find nothing new double the silence they wait for, up to this. Less than a second is taken as a
    /// second. 90 s.
    pub renew_at_most: Duration,
    /// A watch whose response head, or a rewind question whose answer, takes longer than this has failed. Less than a
    /// second is taken as a second. 30 s.
    pub answer_deadline: Duration,
    /// A source that refuses us, or does not exist, is asked again after once to twice this. Less than a millisecond is
    /// taken as a millisecond. 30 s.
    pub refused_wait: Duration,
    /// The name that the rewind question asks for: a valid one that nothing has.
    pub absent_name: Arc<str>,
}

impl ReflectorConfig {
    /// The defaults, for the resource of this name.
    pub fn new(resource: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), ..Self::default() }
    }

    /// The same, with every duration that is too short raised to its least.
    pub(super) fn raised(self) -> Self {
        Self {
            initial_events_deadline: self.initial_events_deadline.max(LEAST_DEADLINE),
            answer_deadline: self.answer_deadline.max(LEAST_DEADLINE),
            renew_after: self.renew_after.max(LEAST_DEADLINE),
            renew_at_most: self.renew_at_most.max(LEAST_DEADLINE),
            reconnect_interval: self.reconnect_interval.max(LEAST_WAIT),
            refused_wait: self.refused_wait.max(LEAST_WAIT),
            ..self
        }
    }
}

impl Default for ReflectorConfig {
    fn default() -> Self {
        Self {
            resource: "objects".into(),
            page_size: None,
            default_page_size: 500,
            watch_list: true,
            min_watch_timeout: LEAST_WATCH_TIMEOUT,
            backoff: BackoffPolicy::default(),
            initial_events_deadline: Duration::from_secs(90),
            list_deadline: Duration::from_secs(90),
            short_watch: Duration::from_secs(10),
            reconnect_interval: Duration::from_secs(1),
            renew_after: Duration::from_secs(30),
            renew_at_most: Duration::from_secs(90),
            answer_deadline: Duration::from_secs(30),
            refused_wait: Duration::from_secs(30),
            absent_name: "informer-asks-only-for-the-version".into(),
        }
    }
}
