//! The numbers of a reflector that a user can set. Contract tests hold every default.

use std::sync::Arc;
use std::time::Duration;

use crate::backoff::{BackoffPolicy, LEAST_WAIT};

/// The smallest watch timeout that is requested, whatever the configuration says: below it, watches of one
/// cluster would end so often that reconnecting becomes the load.
pub const LEAST_WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// The shortest deadline and the shortest silence before a renewal, whatever the configuration says: with
/// zero, no request would ever be in time.
pub const LEAST_DEADLINE: Duration = Duration::from_secs(1);

/// How one source is listed and watched.
///
/// Every duration is valid. `Duration::MAX` means never: such a deadline does not expire, such a wait does
/// not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReflectorConfig {
    /// Names the resource in error texts, such as `pods` or `widgets.example.org`.
    pub resource: Arc<str>,
    /// Objects per page of a list. `None`: `default_page_size` where a page costs nothing extra (version `""`
    /// or `"0"`), and no limit at a live version, which the server's cache answers whole.
    pub page_size: Option<u32>,
    /// The page size at `""` and `"0"` when `page_size` is unset. 500.
    pub default_page_size: u32,
    /// Whether every list comes in pages, also the first one, which is then asked at the newest version: a server answers
    /// `"0"` from its watch cache, whole. For a reader that is slower than a server waits. False.
    pub in_pages: bool,
    /// Whether to request initial events on a watch (watch-list) first, and to list only where that is
    /// refused. True.
    pub watch_list: bool,
    /// Each watch asks the server to end it after a random time between this and twice this, so that watches
    /// which began together do not end together. Less than [`LEAST_WATCH_TIMEOUT`] is taken as that. 300 s.
    pub min_watch_timeout: Duration,
    /// The waits after failures.
    pub backoff: BackoffPolicy,
    /// A watch-list fails if, before its end bookmark, it brings no new object for this long. Changes of
    /// objects that it has already brought do not extend this deadline. Less than a second is taken as a
    /// second. 90 s.
    pub initial_events_deadline: Duration,
    /// A list fails if it brings neither an object nor the end of a page for this long. 90 s.
    pub list_deadline: Duration,
    /// A watch without a frame that ends sooner than this (and than the last wait) is a failure. 10 s.
    pub short_watch: Duration,
    /// The least time between two connects after watches that ended without a failure; such a watch is
    /// otherwise opened again without a wait. Less than a millisecond is taken as a millisecond. 1 s.
    pub reconnect_interval: Duration,
    /// A watch that was silent for this long is renewed. Less than a second is taken as a second. 30 s.
    pub renew_after: Duration,
    /// Renewals that find nothing new double the silence before the next one, up to this. Less than a second
    /// is taken as a second. 90 s.
    pub renew_at_most: Duration,
    /// The limit for the response head of a watch, and for the answer to a rewind question; later means
    /// failed. Less than a second is taken as a second. 30 s.
    pub answer_deadline: Duration,
    /// A source that rejects the selector is asked again after a wait between this and twice this. So is a
    /// kind that has been missing (404), or one that has refused us (401, 403), for longer than `early_for`.
    /// Less than a millisecond is taken as a millisecond. 30 s.
    pub refused_wait: Duration,
    /// The waits while a kind is missing (404) or refuses us (401, 403), for the first `early_for`: 1 to 2 s,
    /// then twice as long each time, up to 15 to 30 s. None is longer than twice `refused_wait`.
    pub early_backoff: BackoffPolicy,
    /// How long a kind that is missing or refuses us is requested again soon: an operator is often installed
    /// before its CRD or its role binding, and a new token may arrive a moment later. Zero: never. 600 s.
    pub early_for: Duration,
    /// Whether its lists take a permit of the list budget. True. False for a source that costs no memory to
    /// list, and may have to wait for another source that needs a permit.
    pub list_permit: bool,
    /// The name that the rewind question asks for: a valid name that no object has.
    pub absent_name: Arc<str>,
}

impl ReflectorConfig {
    /// The defaults, for the resource of this name.
    pub fn new(resource: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), ..Self::default() }
    }

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
            in_pages: false,
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
            early_backoff: BackoffPolicy { base: Duration::from_secs(1), cap: Duration::from_secs(15) },
            early_for: Duration::from_secs(600),
            list_permit: true,
            absent_name: "informer-asks-only-for-the-version".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_are_too_short_are_raised_and_longer_ones_are_as_they_were() {
        let with = |each: Duration| ReflectorConfig {
            initial_events_deadline: each,
            answer_deadline: each,
            renew_after: each,
            renew_at_most: each,
            reconnect_interval: each,
            refused_wait: each,
            ..ReflectorConfig::default()
        };
        let durations = |config: ReflectorConfig| {
            let deadlines = [config.initial_events_deadline, config.answer_deadline, config.renew_after];
            (deadlines, config.renew_at_most, [config.reconnect_interval, config.refused_wait])
        };
        let least = ([LEAST_DEADLINE; 3], LEAST_DEADLINE, [LEAST_WAIT; 2]);
        assert_eq!(durations(with(Duration::ZERO).raised()), least);
        assert_eq!(durations(with(Duration::MAX).raised()), durations(with(Duration::MAX)));
    }
}
