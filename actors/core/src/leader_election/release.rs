//! The end of a candidate: it gives back what it holds.
//!
//! Answers "what is still to be written, so that another candidate need not wait?". Invariants:
//! 1. Only a lease that this candidate holds, by the last answer or the last read, is written. The term has ended before.
//! 2. A release that fails is tried again until the lease has run out anyway. One that had run out before the end began, by
//!    the time at which it was seen first or written last, is not given back: most others do not wait for it.
//! 3. A registration that the server may have is taken back first, so that nobody chooses this candidate again. If that
//!    fails the lease does not wait for it: it is tried again behind the lease, for at most a lease's duration. What is left
//!    then, or after a crash, nobody renews: the server's controller does not choose it, and deletes it in time.
//!
//! Read next: `attempt.rs`, whose writes it uses.

use super::LeaderElection;
use super::attempt::{Goal, Step};
use super::effect::{Effect, Moment};

impl LeaderElection {
    /// The next request of the end, if one is due.
    pub(super) fn begin_release(&mut self, moment: Moment) -> Option<Effect> {
        if !self.releasing {
            self.withdraw_until = moment.now.saturating_add(self.settings.lease_duration);
            self.may_hold &= self.kept_until > moment.now;
        } else if self.next > moment.now {
            return None;
        }
        self.releasing = true;
        self.next = moment.now.saturating_add(self.settings.retry_period);
        if self.is_to_withdraw(moment) {
            self.step = Step::Withdrawing;
            return Some(Effect::WithdrawCandidate);
        }
        self.step = self.first_step_of_release(moment);
        self.next_request(moment)
    }

    fn is_to_withdraw(&self, moment: Moment) -> bool {
        self.may_be_registered && moment.now < self.withdraw_until
    }

    /// What is asked about the lease.
    pub(super) fn first_step_of_release(&mut self, moment: Moment) -> Step {
        if self.lease_is_done {
            return if self.is_to_withdraw(moment) { Step::Idle } else { Step::Over };
        }
        if !self.may_hold || self.kept_until <= moment.now {
            self.end(!self.may_hold);
            return self.step.clone();
        }
        if !self.is_holder() {
            return Step::AskRead;
        }
        self.ask_write(Goal::Release, (false, true));
        self.step.clone()
    }

    /// The lease was read after the shutdown.
    pub(super) fn release_after_read(&mut self) {
        if !self.releasing {
            self.step = Step::Idle;
        } else if self.is_holder() {
            self.ask_write(Goal::Release, (false, false));
        } else {
            self.end(true);
        }
    }

    /// Nothing is left to do about the lease.
    pub(super) fn end(&mut self, released: bool) {
        (self.lease_is_done, self.released) = (true, released);
        self.step = if self.may_be_registered { Step::Idle } else { Step::Over };
    }
}
