//! One candidate of a leader election: which request is next, and whether this process may lead.
//!
//! 1. A term lasts from a successful write until `renew_deadline` after that write was *sent*. Others wait
//!    for the longer `lease_duration` from when they have *seen* it. So no two lead, as long as nobody else
//!    deletes or changes the lease, and their clocks count suspensions and differ in speed by less than the
//!    two durations do.
//! 2. Each term has a greater fencing number than those before, unless somebody deletes the lease: then a
//!    candidate goes on from the greatest number that it has seen.
//! 3. A lease deleted while another one held it is created again only when that one must have ended its work.
//! 4. No term begins while work of a former term of this candidate goes on: others may have led in between.
//!
//! ```text
//!  poll_effect ──▶ [ReadCandidate ──▶ Create/RenewCandidate] ──▶ Read ──▶ Create / Update ──▶ term until …
//!                                          leader: ─────────────────────▶ Update ─ conflict ─▶ Read ──▶ Update
//!  handle_shutdown ──▶ [WithdrawCandidate] ──▶ Update with no holder ──▶ over
//! ```

use std::time::Duration;

use attempt::{Goal, Step};
use settings::Observed;

pub use effect::{Effect, ElectionFigures, Leading, LeaseWritten, Moment, Read, WhyNot};
pub use settings::{CandidateRecord, JITTER, LeaseRecord, Settings, SettingsError};

mod attempt;
mod effect;
mod settings;

#[cfg(test)]
mod tests;

/// One candidate. It knows what the server has answered, and nothing of other candidates.
///
/// ```
/// # use informer_operator::election::machine::{Effect, ElectionMachine, Moment, Read, Settings, LeaseWritten};
/// use std::time::Duration;
/// let at = |seconds| Moment { now: Duration::from_secs(seconds), wall: Duration::ZERO, chance: 0.5 };
/// let mut candidate = ElectionMachine::new(Settings::new("me"));
/// assert_eq!(candidate.poll_effect(at(0)), Some(Effect::Read));
/// candidate.handle_read(Read::Absent, at(0));
/// let Some(Effect::Create(record)) = candidate.poll_effect(at(1)) else { panic!() };
/// assert_eq!((&*record.holder, record.transitions), ("me", 0));
/// candidate.handle_written(LeaseWritten::Done, at(2));
/// let leading = candidate.leading(at(2).now).expect("it leads");
/// assert_eq!(leading.until, Duration::from_secs(11)); // ten seconds after the write was sent
/// assert_eq!(candidate.leading(leading.until), None);
/// ```
#[derive(Debug)]
pub struct ElectionMachine {
    settings: Settings,
    observed: Option<Observed>,
    /// The greatest one seen or written.
    transitions: Option<u64>,
    term: Option<Term>,
    why_not: WhyNot,
    step: Step,
    waits: bool,
    /// Work of any term goes on.
    has_work: bool,
    /// Since when only former work keeps it from leading.
    kept_since: Option<Duration>,
    next: Duration,
    /// A write without a known answer may have taken the lease.
    may_hold: bool,
    /// Until when its lease keeps others away.
    kept_until: Duration,
    registered: Option<Duration>,
    may_be_registered: bool,
    stopping: bool,
    releasing: bool,
    /// Until when the end tries to delete the registration.
    withdraw_until: Duration,
    lease_is_done: bool,
    released: bool,
    figures: ElectionFigures,
}

#[derive(Debug, Clone, Copy)]
struct Term {
    leading: Leading,
    /// By the time of day.
    acquired: Duration,
}

impl ElectionMachine {
    /// A candidate that has sent no request yet. The settings must have been checked.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            observed: None,
            transitions: None,
            term: None,
            why_not: WhyNot::NotTried,
            step: Step::Idle,
            waits: false,
            has_work: false,
            kept_since: None,
            next: Duration::ZERO,
            may_hold: false,
            kept_until: Duration::ZERO,
            registered: None,
            may_be_registered: false,
            stopping: false,
            releasing: false,
            withdraw_until: Duration::ZERO,
            lease_is_done: false,
            released: false,
            figures: ElectionFigures::default(),
        }
    }

    /// The same, which takes part only from [`Self::handle_begin`] on: before, it sends no request and holds
    /// nothing.
    #[must_use]
    pub fn declared(mut self) -> Self {
        (self.waits, self.why_not) = (true, WhyNot::NotBegun);
        self
    }

    /// A declared candidate takes part from here on. Changes nothing for one that does already.
    pub fn handle_begin(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.why_not = WhyNot::NotTried;
        }
    }

    /// Ends a term that was not renewed in time.
    pub fn handle_time(&mut self, now: Duration) {
        if self.term.is_some_and(|term| term.leading.until <= now) {
            self.lose(WhyNot::NotRenewed(self.settings.renew_deadline));
        }
    }

    /// Whether work goes on that was begun in a term. If that term has ended, no other one begins until the
    /// work has ended, too: the lease is read, so that it is known who leads, and is not taken. Call it
    /// before each [`Self::poll_effect`].
    pub fn handle_work(&mut self, goes_on: bool) {
        self.has_work = goes_on;
    }

    /// The next request, if one is due and none is under way. Ends a term that was not renewed in time.
    pub fn poll_effect(&mut self, moment: Moment) -> Option<Effect> {
        self.handle_time(moment.now);
        match self.step {
            Step::AskCandidate(_) | Step::AskRead | Step::AskWrite(_) if self.stopping && !self.releasing => {
                self.begin_release(moment)
            }
            Step::Idle if self.stopping => self.begin_release(moment),
            Step::Idle if !self.waits && self.next <= moment.now => Some(self.begin_attempt(moment)),
            _ => self.next_request(moment),
        }
    }

    /// Before the first effect: an election of this process with the same identity has ended without a
    /// shutdown. What it has written last is not known: a shutdown looks for it.
    pub fn handle_predecessor(&mut self, now: Duration) {
        (self.may_hold, self.may_be_registered) = (true, self.settings.coordinated);
        self.kept_until = now.saturating_add(self.settings.lease_duration);
    }

    /// The end of the process or of its part in the election: the term ends now, and the lease is given back
    /// by the next effects. [`Self::is_over`] says when that is done.
    pub fn handle_shutdown(&mut self) {
        (self.stopping, self.waits) = (true, false);
        self.term = None;
        self.why_not = WhyNot::ShutDown;
        self.next = Duration::ZERO;
    }

    /// When [`Self::poll_effect`] is to be called again if nothing else happens before; `None` if only an
    /// answer, or nothing, can follow.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let end = self.term.map(|term| term.leading.until);
        let next = (!self.waits && self.step == Step::Idle).then_some(self.next);
        end.into_iter().chain(next).min()
    }

    /// The term, if it lasts at this time.
    pub fn leading(&self, now: Duration) -> Option<Leading> {
        self.term.map(|term| term.leading).filter(|leading| now < leading.until)
    }

    /// Why it does not lead, if it does not.
    pub fn why_not(&self) -> &WhyNot {
        &self.why_not
    }

    /// Since when only work of a former term keeps it from leading, as far as it was seen.
    pub fn kept_since(&self) -> Option<Duration> {
        self.kept_since
    }

    /// Who holds the lease, as far as it was seen; empty if nobody does.
    pub fn holder(&self) -> &str {
        self.observed.as_ref().map_or("", |observed| &observed.record.holder)
    }

    fn is_holder(&self) -> bool {
        self.holder() == &*self.settings.identity
    }

    /// Whether a shutdown has done what it could.
    pub fn is_over(&self) -> bool {
        matches!(self.step, Step::Over)
    }

    /// Whether the shutdown has given the lease back, or found that there is none to give back.
    pub fn is_released(&self) -> bool {
        self.released
    }

    /// What has been counted.
    pub fn figures(&self) -> ElectionFigures {
        self.figures
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn lose(&mut self, why: WhyNot) {
        if self.term.take().is_some() {
            self.figures.lost += 1;
        }
        self.why_not = why;
    }

    fn observe(&mut self, record: LeaseRecord, now: Duration) {
        self.transitions = self.transitions.max(Some(record.transitions));
        if self.observed.as_ref().is_none_or(|observed| observed.record != record) {
            self.observed = Some(Observed { record, since: now });
        }
    }
}

/// For how long work of a former term may keep a candidate from leading that could lead, before a liveness
/// probe fails.
pub const LONGEST_WORK: Duration = Duration::from_secs(600);

/// Whether a candidate that has shown this term last is healthy. It is not if the lease of the term ran out
/// more than `tolerance` ago and the candidate has still not ended it, because then nothing carries out its
/// decisions. A term that was ended in time is no reason, whether the server answers or not: a restart of the
/// process would not help.
///
/// ```
/// # use informer_operator::election::machine::{Leading, Settings, is_healthy};
/// use std::time::Duration;
/// let (settings, second) = (Settings::new("me"), Duration::from_secs(1));
/// let shown = Leading { fence: 0, until: 10 * second }; // its lease lasts five seconds longer
/// assert!(is_healthy(&settings, Some(shown), 20 * second, 35 * second));
/// assert!(!is_healthy(&settings, Some(shown), 20 * second, 36 * second));
/// assert!(is_healthy(&settings, None, 20 * second, 36 * second)); // the term was ended
/// ```
pub fn is_healthy(settings: &Settings, shown: Option<Leading>, tolerance: Duration, now: Duration) -> bool {
    let until_lease_ends = settings.lease_duration.saturating_sub(settings.renew_deadline);
    let longest = until_lease_ends.saturating_add(tolerance);
    shown.is_none_or(|term| now.saturating_sub(term.until) <= longest)
}

// The end of a candidate. Only a lease that this candidate holds, by the last answer or read, is written, and
// only after the term. A release that fails is tried again until the lease has run out. A lease that had run
// out before is not given back, since most others do not wait for it.
//
// A registration is deleted first, so that nobody chooses this candidate again. If that fails, the lease goes
// first, and the deletion is tried again for at most a lease's duration: the server deletes what nobody
// renews.

impl ElectionMachine {
    fn begin_release(&mut self, moment: Moment) -> Option<Effect> {
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

    fn first_step_of_release(&mut self, moment: Moment) -> Step {
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

    fn release_after_read(&mut self) {
        if !self.releasing {
            self.step = Step::Idle;
        } else if self.is_holder() {
            self.ask_write(Goal::Release, (false, false));
        } else {
            self.end(true);
        }
    }

    fn end(&mut self, released: bool) {
        (self.lease_is_done, self.released) = (true, released);
        self.step = if self.may_be_registered { Step::Idle } else { Step::Over };
    }
}
