//! Rewinds: how the machine detects a server that was restored from a backup. Such a server answers a watch from a
//! future version with 200 and stays silent for ever. So after a reconnect the machine asks the rewind question: a
//! cheap list of a name that does not exist, version unset. Invariants:
//! 1. The question follows the head of a watch if, since the last list or answer, anything failed or a stream ended
//!    sooner than requested. Frames wait for the answer. If the question fails, the watch has failed.
//! 2. An answer below the newest version delivered is a rewind. So is a list older than what was delivered, by this
//!    source or by one from which it takes over, which may never notice the rewind. The list is dropped.
//!
//! Not detected: a server that has already passed our version again when asked.

use std::mem;

use super::phase::{Next, RelistReason};
use super::{Effect, ListWatchMachine, Moment, Phase};
use crate::list_watch_error::{ErrorClass, ListWatchError};
use crate::meta::ResourceVersion;
use crate::request::{AskedVersion, ListRequest};

impl<S> ListWatchMachine<S> {
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

    /// The answer to `AskVersion`: the version of the answering list. Ignored when no question is open.
    pub fn handle_version(&mut self, answer: Result<ResourceVersion, ListWatchError>, at: Moment) {
        let Phase::Watching(watching) = &mut self.phase else { return };
        if watching.question_until.take().is_none() {
            return;
        }
        let held = mem::take(&mut watching.held);
        match answer {
            Ok(version) if self.newest.as_ref().is_some_and(|newest| version < *newest) => {
                self.close_watch();
                self.rewind(version, at);
            }
            Ok(_) => {
                self.confirm_stream(at);
                if !held.is_empty() {
                    self.absorb(held, at);
                }
            }
            Err(error) => self.question_failed(error, at),
        }
    }

    pub(super) fn question_failed(&mut self, error: ListWatchError, at: Moment) {
        self.close_watch();
        self.hints.relist_reason = RelistReason::Refused;
        let next = if error.class() == ErrorClass::Gone { Next::Listing } else { Next::Watch };
        self.fail(error, next, at);
    }

    /// Whether the server has issued a newer one, also to a source from which this one takes over.
    pub fn is_below(&self, version: &ResourceVersion) -> bool {
        [&self.newest, &self.floor].into_iter().flatten().any(|known| version < known)
    }

    pub(super) fn rewind(&mut self, to: ResourceVersion, at: Moment) {
        self.counters.rewinds += 1;
        self.hints.rewinding = Some(to);
        let error = self.unexpected("the server's version went back a second time before any frame came");
        self.relist_unless_repeated(RelistReason::Rewind, error, at);
    }

    /// The version that showed that the server went back, if that is why the next list is requested.
    pub const fn rewinding_to(&self) -> Option<&ResourceVersion> {
        self.hints.rewinding.as_ref()
    }

    /// Whether published objects must be decoded again: until the second list after a rewind. Until the first is
    /// published, an equal version may name an object of the old history.
    pub(super) fn decodes_everything(&self) -> bool {
        self.hints.rewinding.is_some() || self.hints.after_rewind
    }
}
