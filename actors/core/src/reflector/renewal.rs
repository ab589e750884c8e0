//! Renewals: a silent watch is not trusted for ever.
//!
//! Answers "is this silence quiet, or is the line dead?" by opening a second watch at the last version: a relay or
//! load balancer may acknowledge bytes and forward none, so only asking again tells. Invariants:
//! 1. The first stream stays until the head of the second has arrived; then it is dropped. No version passes
//!    between: whatever the first brings in the meantime calls the renewal off.
//! 2. The silence waited for doubles with each renewal up to `renew_at_most`; any object or bookmark sets it back.
//! 3. A renewal that fails is a failure that leaves the first stream open, unless the answer speaks of the version
//!    or of our right to it; the next renewal waits out the backoff, and its head is followed by the rewind question.

use std::mem;

use super::{Effect, ListWatchMachine, Moment, Phase};
use crate::list_watch_error::{ErrorClass, ListWatchError};

impl<S> ListWatchMachine<S> {
    /// Opens the second watch.
    pub(super) fn renew(&mut self, at: Moment) {
        let (resource, version) = (&self.config.resource, self.newest_version());
        self.log
            .debug(format_args!("watches {resource} anew from version {version}: the open watch was silent"));
        let stream = self.connect(version, false, at);
        let Phase::Watching(watching) = &mut self.phase else { return };
        watching.renewal = Some(stream);
    }

    /// The second watch has its head: it takes over.
    pub(super) fn take_over(&mut self, at: Moment) {
        let Phase::Watching(watching) = &mut self.phase else { return };
        let Some(mut renewal) = watching.renewal.take() else { return };
        renewal.head_at = Some(at.now);
        let brought = mem::take(&mut watching.brought);
        let before = mem::replace(&mut watching.stream, renewal);
        self.effects.push_back(Effect::Close(before.id));
        self.counters.renewals += 1;
        if brought || self.has_outlived(&before, at) {
            self.forget_failures();
        }
        self.renew_interval = self.renew_interval.saturating_mul(2).min(self.config.renew_at_most);
        self.head_arrived(at);
    }

    /// The head of the second watch did not come in time.
    pub(super) fn renewal_late(&mut self, at: Moment) {
        let Phase::Watching(watching) = &self.phase else { return };
        let Some(renewal) = &watching.renewal else { return };
        self.effects.push_back(Effect::Close(renewal.id));
        let error = self.late("the answer to a renewal", self.config.answer_deadline);
        self.renewal_failed(Err(error), at);
    }

    /// The second watch ended before its head arrived.
    pub(super) fn renewal_failed(&mut self, result: Result<(), ListWatchError>, at: Moment) {
        let error = match result {
            Ok(()) => self.unexpected("a watch ended before it began"),
            Err(error) => error,
        };
        let Phase::Watching(watching) = &mut self.phase else { return };
        watching.renewal = None;
        if matches!(error.class(), ErrorClass::Relist | ErrorClass::Denied | ErrorClass::Gone) {
            self.close_watch();
            return self.watch_failed(false, error, at);
        }
        self.lessons.unsure = true;
        let until = self.count_failure(error, at);
        let Phase::Watching(watching) = &mut self.phase else { return };
        watching.renew_at = until;
    }
}
