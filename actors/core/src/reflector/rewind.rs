//! Rewinds: a server restored from a backup, and how it is noticed.
//!
//! Answers "does this server still know the versions we have?" with one cheap question after a reconnect: a list of
//! a name that does not exist, version unset. A restored server answers a watch from its future with 200 and
//! silence, for ever, so nothing else tells. Invariants:
//! 1. The question follows the head of a watch whenever anything failed, or a stream ended sooner than it had asked
//!    for, since the last list or answer. Frames are held until it is answered.
//! 2. An answer below the newest version delivered is a rewind: the source is listed at `""`, nothing skipped, and
//!    that Replace has cause `Rewind`. So is a list or watch-list that comes out older than what was delivered.
//! 3. A question that fails is a watch that failed.
//!
//! Not seen: a server that, by the time it is asked, has already gone past our version again.

use std::mem;

use super::retry::{Next, RelistReason};
use super::{Effect, ListWatchMachine, Moment, Phase};
use crate::list_watch_error::{ErrorClass, ListWatchError};
use crate::meta::ResourceVersion;
use crate::request::{AskedVersion, ListRequest};

impl<S> ListWatchMachine<S> {
    /// Asks, and holds the stream until the answer.
    pub(super) fn ask_version(&mut self, at: Moment) {
        let Phase::Watching(watching) = &mut self.phase else { return };
        watching.question_until = Some(at.now.saturating_add(self.config.answer_deadline));
        self.effects.push_back(Effect::AskVersion(ListRequest {
            version: AskedVersion::Latest,
            limit: None,
            token: None,
            name: Some(self.config.absent_name.to_string()),
        }));
    }

    pub(super) fn version_told(&mut self, answer: Result<ResourceVersion, ListWatchError>, at: Moment) {
        let Phase::Watching(watching) = &mut self.phase else { return };
        if watching.question_until.take().is_none() {
            return;
        }
        let held = mem::take(&mut watching.held);
        match answer {
            Ok(version) if self.newest.as_ref().is_some_and(|newest| version < *newest) => {
                self.close_watch();
                self.rewind(at);
            }
            Ok(_) => {
                self.believe(at);
                if !held.is_empty() {
                    self.absorb(held, at);
                }
            }
            Err(error) => self.question_failed(error, at),
        }
    }

    pub(super) fn question_failed(&mut self, error: ListWatchError, at: Moment) {
        self.close_watch();
        self.lessons.reason = RelistReason::Refused;
        let next = if error.class() == ErrorClass::Gone { Next::Listing } else { Next::Watch };
        self.fail(error, next, at);
    }

    /// The server has gone back: everything we have is of another history.
    pub(super) fn rewind(&mut self, at: Moment) {
        self.counters.rewinds += 1;
        self.lessons.rewinding = true;
        let error = self.unexpected("the server's version went back again before a frame came");
        self.relist_unless_repeated(RelistReason::Rewind, error, at);
    }

    /// Whether objects that are published already must be decoded all the same. That ends with the second list
    /// after a rewind: until the first is published, equal versions may still name the old history's objects.
    pub(super) fn skips_nothing(&self) -> bool {
        self.lessons.rewinding || self.lessons.settling
    }
}
