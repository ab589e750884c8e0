//! How a watch outside of informers continues after its connection ends.
//!
//! 1. No version of an initial object is kept: the objects do not come in the order of their versions.
//! 2. A watch that ended in order is opened again at once only if it brought something new or lasted long
//!    enough: a server that ends each watch at once must not cause a tight loop.

use std::time::Duration;

use informer_core::backoff::{Backoff, BackoffPolicy};
use informer_core::list_watch_error::ErrorClass;
use informer_core::meta::ResourceVersion;

/// A watch that ends sooner and brought nothing has failed.
const LEAST_WATCH: Duration = Duration::from_secs(10);

/// The same for shorter requests, so that a pause follows.
const LEAST_ASKED: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterEnd {
    /// At [`WatchResume::version`].
    OpenAfter(Duration),
    /// The server no longer has the version.
    ListAgain,
}

#[derive(Debug, Clone)]
pub(crate) struct WatchResume {
    version: String,
    /// Until the server says that the initial objects are complete.
    wants_initial: bool,
    /// This connection has brought a newer version.
    has_progressed: bool,
    backoff: Backoff,
}

impl WatchResume {
    pub(crate) fn new(version: impl Into<String>, wants_initial: bool) -> Self {
        let backoff = Backoff::new(BackoffPolicy::default());
        Self { version: version.into(), wants_initial, has_progressed: false, backoff }
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn wants_initial(&self) -> bool {
        self.wants_initial
    }

    /// Whether an event of this version was not delivered before. Initial objects are always new (rule 1). A
    /// version that is no number is new if it differs: only the server can compare it.
    pub(crate) fn is_new(&self, version: &str) -> bool {
        if self.wants_initial {
            return true;
        }
        match (version.parse::<ResourceVersion>(), self.version.parse::<ResourceVersion>()) {
            (Ok(version), Ok(last)) => version > last,
            _ => version.is_empty() || version != self.version,
        }
    }

    pub(crate) fn handle_version(&mut self, version: &str) {
        if !self.wants_initial && !version.is_empty() && self.is_new(version) {
            version.clone_into(&mut self.version);
            self.progressed();
        }
    }

    /// A bookmark without a version ends nothing: the next connection could not continue from it.
    pub(crate) fn handle_initial_end(&mut self, version: &str) {
        if version.is_empty() {
            return;
        }
        self.wants_initial = false;
        self.handle_version(version);
        self.progressed();
    }

    fn progressed(&mut self) {
        self.has_progressed = true;
        self.backoff.reset();
    }

    /// `asked`: the duration in the request.
    pub(crate) fn handle_end(&mut self, lasted: Duration, asked: Duration, chance: f64) -> AfterEnd {
        let has_progressed = std::mem::take(&mut self.has_progressed);
        let least = self.backoff.last_wait().unwrap_or_default().max(LEAST_WATCH).min(asked.max(LEAST_ASKED));
        if has_progressed || lasted >= least {
            self.backoff.reset();
            return AfterEnd::OpenAfter(Duration::ZERO);
        }
        AfterEnd::OpenAfter(self.backoff.next_wait(chance))
    }

    pub(crate) fn handle_failure(&mut self, class: ErrorClass, chance: f64) -> AfterEnd {
        self.has_progressed = false;
        match class {
            ErrorClass::Relist => AfterEnd::ListAgain,
            ErrorClass::RetryAfter(wait) => {
                self.backoff.count_told(wait);
                AfterEnd::OpenAfter(wait)
            }
            _ => AfterEnd::OpenAfter(self.backoff.next_wait(chance)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(300);

    fn open_after(milliseconds: u64) -> AfterEnd {
        AfterEnd::OpenAfter(Duration::from_millis(milliseconds))
    }

    #[test]
    fn waits_grow_from_failure_to_failure_until_something_new_comes() {
        let mut watch = WatchResume::new("10", false);
        for expected in [800, 1_600, 3_200] {
            assert_eq!(watch.handle_failure(ErrorClass::Retry, 0.0), open_after(expected));
        }
        watch.handle_version("10");
        assert_eq!(watch.handle_failure(ErrorClass::Denied, 0.0), open_after(6_400));
        watch.handle_version("11");
        assert_eq!(watch.handle_failure(ErrorClass::Gone, 0.0), open_after(800));
        assert_eq!(watch.version(), "11");
    }

    #[test]
    fn a_wait_that_the_server_names_is_kept() {
        let mut watch = WatchResume::new("10", false);
        let seven = Duration::from_secs(7);
        assert_eq!(watch.handle_failure(ErrorClass::RetryAfter(seven), 0.9), AfterEnd::OpenAfter(seven));
    }

    #[test]
    fn a_watch_that_brought_something_or_lasted_is_opened_at_once_and_a_short_empty_one_waits() {
        let mut watch = WatchResume::new("10", false);
        assert_eq!(watch.handle_end(SHORT, LONG, 0.0), open_after(800));
        assert_eq!(watch.handle_end(SHORT, LONG, 0.0), open_after(1_600));
        watch.handle_version("11");
        assert_eq!(watch.handle_end(SHORT, LONG, 0.0), open_after(0));
        assert_eq!(
            watch.handle_end(SHORT, LONG, 0.0),
            open_after(800),
            "the next one must bring something too"
        );
        assert_eq!(watch.handle_end(LEAST_WATCH, LONG, 0.0), open_after(0));
    }

    #[test]
    fn a_quiet_watch_that_lasted_as_long_as_it_asked_for_has_not_failed() {
        let mut watch = WatchResume::new("10", false);
        let five = Duration::from_secs(5);
        assert_eq!(watch.handle_end(five, five, 0.0), open_after(0));
        for _ in 0..8 {
            watch.handle_failure(ErrorClass::Retry, 0.0);
        }
        assert_eq!(watch.handle_end(five, five, 0.0), open_after(0), "also after failures");
        assert_eq!(watch.handle_end(Duration::ZERO, Duration::ZERO, 0.0), open_after(800));
    }

    #[test]
    fn dyn_12_nothing_at_or_below_the_last_version_is_new_and_the_version_never_goes_back() {
        let mut watch = WatchResume::new("10", false);
        for (version, is_new) in [("9", false), ("10", false), ("11", true), ("100", true), ("odd", true)] {
            assert_eq!(watch.is_new(version), is_new, "{version}");
        }
        watch.handle_version("100");
        watch.handle_version("99");
        watch.handle_version("");
        assert_eq!(watch.version(), "100");
        assert!(
            WatchResume::new("10", true).is_new("9"),
            "initial objects have the versions of their last writes"
        );
    }

    #[test]
    fn no_version_of_an_initial_object_is_kept() {
        let mut watch = WatchResume::new("", true);
        watch.handle_version("90");
        assert_eq!((watch.version(), watch.wants_initial()), ("", true));
        watch.handle_failure(ErrorClass::Retry, 0.0);
        assert!(watch.wants_initial(), "they are asked for again from the first");
        watch.handle_initial_end("");
        assert!(watch.wants_initial(), "an end without a version is none");
        watch.handle_initial_end("95");
        assert_eq!((watch.version(), watch.wants_initial()), ("95", false));
    }
}
