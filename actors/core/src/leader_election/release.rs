//! The end of a candidate: it gives back what it holds.
//!
//! Answers "what is still to be written, so that another candidate need not wait?". Invariants:
//! 1. Only a lease that this candidate holds, by the last answer or the last read, is written. The term has ended before.
//! 2. A release that fails is tried again until the lease has run out anyway.
//!
//! Read next: `attempt.rs`, whose writes it uses.

use super::LeaderElection;
use super::attempt::{Goal, Step};
use super::effect::{Effect, Moment};

impl LeaderElection {
    /// The next request of the end, if one is due.
    pub(super) fn begin_release(&mut self, moment: Moment) -> Option<Effect> {
        if self.releasing && self.next > moment.now {
            return None;
        }
        self.releasing = true;
        self.next = moment.now.saturating_add(self.settings.retry_period);
        if self.settings.coordinated && self.registered.take().is_some() {
            self.step = Step::Withdrawing;
            return Some(Effect::WithdrawCandidate);
        }
        self.step = self.first_step_of_release(moment);
        self.next_request(moment)
    }

    /// What is asked about the lease.
    pub(super) fn first_step_of_release(&mut self, moment: Moment) -> Step {
        if !self.may_hold || self.kept_until <= moment.now {
            self.end(!self.may_hold);
            return Step::Over;
        }
        if self.own_since().is_none() {
            return Step::AskRead;
        }
        self.ask_write(Goal::Release, (false, true));
        self.step.clone()
    }

    /// The lease was read after the shutdown.
    pub(super) fn release_after_read(&mut self) {
        if !self.releasing {
            self.step = Step::Idle;
        } else if self.own_since().is_some() {
            self.ask_write(Goal::Release, (false, false));
        } else {
            self.end(true);
        }
    }

    /// Nothing is left to do.
    pub(super) fn end(&mut self, released: bool) {
        self.step = Step::Over;
        self.released = released;
    }
}
