//! Renewals: after a silence, a second watch at the last version replaces the first. A relay or load balancer may
//! acknowledge bytes and forward none, so a silent connection may be dead. Invariants:
//! 1. The first stream stays open until the head of the second arrives. No version is lost: a frame of the first
//!    cancels the renewal.
//! 2. The silence before a renewal doubles with each one, up to `renew_at_most`. An object or bookmark resets it.
//! 3. A renewal that fails is a failure. It closes the first stream only if the version is expired, the watch is
//!    denied (403) or the kind is missing; not for a 401: the credentials may be renewed in time.

use std::mem;

use super::{Effect, ListWatchMachine, Moment, Phase};
use crate::list_watch_error::{ErrorClass, ListWatchError};

impl<S> ListWatchMachine<S> {
    pub(super) fn renew(&mut self, at: Moment) {
        let (resource, version) = (&self.config.resource, self.newest_version());
        self.log
            .debug(format_args!("watches {resource} anew from version {version}: the open watch was silent"));
        let stream = self.connect(version, false, at);
        let Phase::Watching(watching) = &mut self.phase else { return };
        watching.renewal = Some(stream);
    }

    pub(super) fn take_over(&mut self, at: Moment) {
        let Phase::Watching(watching) = &mut self.phase else { return };
        let Some(mut renewal) = watching.renewal.take() else { return };
        renewal.head_at = Some(at.now);
        let had_frames = mem::take(&mut watching.had_frames);
        let before = mem::replace(&mut watching.stream, renewal);
        self.effects.push_back(Effect::Close(before.id));
        self.counters.renewals += 1;
        if had_frames || self.has_outlived(&before, at) {
            self.forget_failures();
        }
        self.renew_interval = self.renew_interval.saturating_mul(2).min(self.config.renew_at_most);
        self.head_arrived(at);
    }

    pub(super) fn renewal_timed_out(&mut self, at: Moment) {
        let Phase::Watching(watching) = &self.phase else { return };
        let Some(renewal) = &watching.renewal else { return };
        self.effects.push_back(Effect::Close(renewal.id));
        let error = self.timed_out("the answer to a renewal", self.config.answer_deadline);
        self.renewal_failed(Err(error), at);
    }

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
        self.hints.version_unproven = true;
        let until = self.count_failure(error, at);
        let Phase::Watching(watching) = &mut self.phase else { return };
        watching.renew_at = until;
    }
}
