//! One attempt: at most the candidate's registration, one fast write, one read, one write.
//!
//! An answer after the term's end begins no term, nor does a renewal. While work of a former term goes on,
//! the lease is read and not taken, and the controller of a coordinated election gets no answer, so that it
//! chooses another candidate.

use std::time::Duration;

use super::effect::{Effect, Leading, LeaseWritten, Moment, Read, WhyNot};
use super::settings::{CandidateRecord, LeaseRecord, Observed};
use super::{ElectionMachine, Term};

/// The controller forgets a registration that was not renewed for 30 minutes.
const REGISTER_EACH: Duration = Duration::from_secs(300);

/// The next `poll_effect` sends `Ask…`; the others wait for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Idle,
    ReadingCandidate,
    AskCandidate(Effect),
    WritingCandidate,
    AskRead,
    Reading,
    AskWrite(Write),
    Writing(Write),
    Withdrawing,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) goal: Goal,
    pub(super) creates: bool,
    /// Written without a read: a conflict is followed by one.
    pub(super) fast: bool,
    pub(super) sent: Duration,
    pub(super) wall: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// The fencing number.
    Acquire(u64),
    Renew(u64),
    Release,
}

impl ElectionMachine {
    /// The answer to [`Effect::Read`].
    pub fn handle_read(&mut self, answer: Read<LeaseRecord>, moment: Moment) {
        if self.step != Step::Reading {
            debug_assert!(false, "no read is under way: {:?}", self.step);
            return;
        }
        self.handle_time(moment.now);
        match answer {
            Read::Failed => self.fail(moment),
            Read::Absent if self.stopping && self.releasing => self.end(true),
            Read::Absent if self.stopping => self.step = Step::Idle,
            Read::Absent => self.found_absent(moment),
            Read::Found(record) => {
                self.may_hold = *record.holder == *self.settings.identity;
                self.observe(record, moment.now);
                if let Some(seen) = self.observed.as_ref().filter(|_| self.may_hold) {
                    self.kept_until = self.kept_until.max(seen.kept_until());
                }
                if self.stopping { self.release_after_read() } else { self.found(moment) }
            }
        }
    }

    /// The answer to [`Effect::Create`] or [`Effect::Update`].
    pub fn handle_written(&mut self, answer: LeaseWritten, moment: Moment) {
        let Step::Writing(write) = self.step else {
            debug_assert!(false, "no write is under way: {:?}", self.step);
            return;
        };
        self.handle_time(moment.now);
        match answer {
            LeaseWritten::Done => self.written(write, moment),
            LeaseWritten::Conflict => {
                self.figures.conflicts += 1;
                if write.fast {
                    self.step = Step::AskRead;
                } else {
                    self.rest(moment);
                }
            }
            LeaseWritten::Failed => {
                if write.goal != Goal::Release {
                    self.may_hold = true;
                    let kept_until = write.sent.saturating_add(self.settings.lease_duration);
                    self.kept_until = self.kept_until.max(kept_until);
                }
                self.fail(moment);
            }
        }
    }

    /// The answer to [`Effect::ReadCandidate`].
    pub fn handle_candidate(&mut self, answer: Read<CandidateRecord>, moment: Moment) {
        let is_old = self.registered.is_none_or(|at| at.saturating_add(REGISTER_EACH) <= moment.now);
        self.may_be_registered |= matches!(answer, Read::Found(_));
        self.step = match answer {
            Read::Absent => Step::AskCandidate(Effect::CreateCandidate(moment.wall)),
            Read::Found(record) => match record.answer(moment.wall) {
                Some(answer) => Step::AskCandidate(Effect::RenewCandidate(answer)),
                None if is_old => Step::AskCandidate(Effect::RenewCandidate(moment.wall)),
                None => Step::AskRead,
            },
            Read::Failed => {
                self.figures.failures += 1;
                Step::AskRead
            }
        };
    }

    /// The answer to [`Effect::CreateCandidate`], [`Effect::RenewCandidate`] or
    /// [`Effect::WithdrawCandidate`]. The attempt goes on with the lease, whatever the answer is.
    pub fn handle_candidate_written(&mut self, answer: LeaseWritten, moment: Moment) {
        let withdraws = self.step == Step::Withdrawing;
        match answer {
            LeaseWritten::Done => {
                self.registered = (!withdraws).then_some(moment.now);
                self.may_be_registered = !withdraws;
            }
            LeaseWritten::Conflict => self.figures.conflicts += 1,
            LeaseWritten::Failed => self.figures.failures += 1,
        }
        self.step = if withdraws { self.first_step_of_release(moment) } else { Step::AskRead };
    }

    pub(super) fn begin_attempt(&mut self, moment: Moment) -> Effect {
        self.next = moment.now.saturating_add(self.settings.retry_period);
        let is_candidate = self.term.is_some() || !self.has_work;
        if self.settings.coordinated && is_candidate {
            self.step = Step::ReadingCandidate;
            return Effect::ReadCandidate;
        }
        // The leader knows the version of the lease.
        let Some(Term { leading: Leading { fence, .. }, .. }) = self.term else {
            self.step = Step::Reading;
            return Effect::Read;
        };
        self.write(Goal::Renew(fence), moment, (false, true))
    }

    pub(super) fn next_request(&mut self, moment: Moment) -> Option<Effect> {
        match std::mem::replace(&mut self.step, Step::Idle) {
            // The term has ended since that read.
            Step::AskCandidate(_) if self.term.is_none() && self.has_work => {
                self.step = Step::Reading;
                Some(Effect::Read)
            }
            Step::AskCandidate(effect) => {
                (self.step, self.may_be_registered) = (Step::WritingCandidate, true);
                Some(effect)
            }
            Step::AskRead => {
                self.step = Step::Reading;
                Some(Effect::Read)
            }
            Step::AskWrite(Write { goal: Goal::Acquire(_), .. }) if self.has_work => {
                self.lose(WhyNot::FormerWork);
                self.rest(moment);
                None
            }
            Step::AskWrite(write) => Some(self.write(write.goal, moment, (write.creates, write.fast))),
            waits => {
                self.step = waits;
                None
            }
        }
    }

    fn write(&mut self, goal: Goal, moment: Moment, how: (bool, bool)) -> Effect {
        let (creates, fast) = how;
        let write = Write { goal, creates, fast, sent: moment.now, wall: moment.wall };
        self.step = Step::Writing(write);
        let record = self.record_of(write);
        if creates { Effect::Create(record) } else { Effect::Update(record) }
    }

    fn record_of(&self, write: Write) -> LeaseRecord {
        let before = self.observed.as_ref().map(|observed| &observed.record);
        let preferred_holder = before.map(|record| record.preferred_holder.clone()).unwrap_or_default();
        let (acquired, renewed) = (Some(write.wall), Some(write.wall));
        let own = LeaseRecord {
            holder: self.settings.identity.clone(),
            duration_seconds: self.settings.lease_seconds(),
            acquired,
            renewed,
            transitions: 0,
            preferred_holder: preferred_holder.clone(),
        };
        match write.goal {
            Goal::Acquire(transitions) => LeaseRecord { transitions, ..own },
            Goal::Renew(transitions) => {
                let acquired = self.term.map(|term| term.acquired).or(acquired);
                LeaseRecord { transitions, acquired, ..own }
            }
            Goal::Release => LeaseRecord {
                holder: "".into(),
                duration_seconds: 1,
                transitions: self.transitions.unwrap_or_default(),
                ..own
            },
        }
    }

    fn found_absent(&mut self, moment: Moment) {
        let held =
            self.observed.as_ref().filter(|it| it.is_held_by_other(&self.settings.identity, moment.now));
        if let Some(held) = held {
            let holder = held.record.holder.clone();
            self.why_not = WhyNot::DeletedWhileHeld(holder);
            return self.rest(moment);
        }
        if self.settings.coordinated || (self.term.is_none() && self.has_work) {
            self.lose(self.unless_kept(WhyNot::NotChosen));
            return self.rest(moment);
        }
        let goal = match self.term {
            Some(term) => Goal::Renew(term.leading.fence),
            None => Goal::Acquire(self.transitions.map_or(0, |before| before.saturating_add(1))),
        };
        self.ask_write(goal, (true, false));
    }

    fn found(&mut self, moment: Moment) {
        let Some(observed) = &self.observed else { return };
        let identity = &self.settings.identity;
        let (record, expired) = (&observed.record, observed.has_expired(moment.now));
        let (holder, is_own) = (record.holder.clone(), *record.holder == **identity);
        let hands_over =
            is_own && !record.preferred_holder.is_empty() && *record.preferred_holder != **identity;
        let preferred = record.preferred_holder.clone();
        let why_not = match (self.settings.coordinated, is_own) {
            (true, true) if hands_over => Some(WhyNot::HandsOver(preferred)),
            (true, true) if !expired || self.term.is_some() => None,
            (true, _) if expired || holder.is_empty() => Some(WhyNot::NotChosen),
            (false, false) if expired || holder.is_empty() => None,
            (_, false) => Some(WhyNot::HeldBy(holder)),
            (_, true) => None,
        };
        let why_not = why_not.map(|why| self.unless_kept(why));
        let is_kept = (self.term.is_none() || !is_own) && self.has_work;
        if let Some(why) = why_not.or_else(|| is_kept.then_some(WhyNot::FormerWork)) {
            self.lose(why);
            return self.rest(moment);
        }
        if !is_own {
            // A term of this candidate would be over, too.
            self.lose(WhyNot::Free);
        }
        let goal = match self.term {
            Some(term) => {
                self.figures.slow_paths += 1;
                Goal::Renew(term.leading.fence)
            }
            None => Goal::Acquire(self.transitions.map_or(0, |before| before.saturating_add(1))),
        };
        self.ask_write(goal, (false, false));
    }

    fn unless_kept(&self, why: WhyNot) -> WhyNot {
        match why {
            WhyNot::NotChosen if self.has_work => WhyNot::FormerWork,
            why => why,
        }
    }

    pub(super) fn ask_write(&mut self, goal: Goal, (creates, fast): (bool, bool)) {
        let write = Write { goal, creates, fast, sent: Duration::ZERO, wall: Duration::ZERO };
        self.step = Step::AskWrite(write);
    }

    fn written(&mut self, write: Write, moment: Moment) {
        let record = self.record_of(write);
        self.transitions = self.transitions.max(Some(record.transitions));
        self.observed = Some(Observed { record, since: moment.now });
        self.may_hold = write.goal != Goal::Release;
        self.kept_until = write.sent.saturating_add(self.settings.lease_duration);
        let until = write.sent.saturating_add(self.settings.renew_deadline);
        let is_late = until <= moment.now;
        match write.goal {
            Goal::Release => return self.end(true),
            Goal::Acquire(fence) if !is_late && !self.stopping => {
                self.figures.terms += 1;
                self.term = Some(Term { leading: Leading { fence, until }, acquired: write.wall });
            }
            Goal::Renew(_) if !is_late && self.term.is_some() => {
                self.figures.renewals += 1;
                if let Some(term) = &mut self.term {
                    term.leading.until = until;
                }
            }
            // The answer came too late.
            _ if self.term.is_none() && !self.stopping => self.why_not = WhyNot::Failed,
            _ => {}
        }
        self.rest(moment);
    }

    pub(super) fn fail(&mut self, moment: Moment) {
        self.figures.failures += 1;
        if self.term.is_none() && !matches!(self.why_not, WhyNot::NotRenewed(_) | WhyNot::ShutDown) {
            self.why_not = WhyNot::Failed;
        }
        self.rest(moment);
    }

    /// The leader waits from the begin of this attempt; others wait from now, for random times.
    fn rest(&mut self, moment: Moment) {
        self.step = Step::Idle;
        let leads = self.term.is_some() || self.stopping;
        let waits = moment.now.saturating_add(self.settings.candidates_wait(moment.chance));
        self.next = if leads { self.next.max(moment.now) } else { waits };
        let is_kept = self.term.is_none() && self.why_not == WhyNot::FormerWork;
        self.kept_since = is_kept.then(|| self.kept_since.unwrap_or(moment.now));
    }
}
