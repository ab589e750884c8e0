//! The actor of an election: it sends the requests of the machine, and writes the results into the cell.
//!
//! At most one request is under way, for at most half the renew deadline. Its time is read before it is sent.
//! A death ends the term; the next actor begins without one, with a new lock, and during a shutdown gives
//! back what its predecessor may have left.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::election::machine::{
    CandidateRecord, Effect, ElectionMachine, LeaseRecord, LeaseWritten, Moment, Read, WhyNot,
};
use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, Supervised, WrapFuture,
};
use informer_core::words::{QUOTED, one_line};

use super::cell::{Cell, News};
use super::term::{LeaseAnswer, LeaseLock, LockError, MakeLock};
use informer_actors::inner::{Alarm, Child, Faults, Site, sleep, within};

const TELL_EACH: Duration = Duration::from_secs(600);

/// Causes of failure.
const READ: usize = 0;
const WRITE: usize = 1;
const REGISTRATION: usize = 2;

#[derive(Clone)]
pub(super) struct ElectionSpec {
    pub(super) cell: Arc<Cell>,
    pub(super) lock: MakeLock,
    pub(super) faults: Faults,
}

pub(super) struct ElectionActor {
    spec: ElectionSpec,
    machine: ElectionMachine,
    lock: Option<Box<dyn LeaseLock>>,
    alarm: Alarm,
    /// Former work keeps it from leading: logged once between two terms.
    is_kept: bool,
    /// By cause: a read that succeeds does not clear a failed write.
    errors: [Option<Arc<str>>; 3],
    /// When it was logged last, and whether its end was.
    told: [Option<(Duration, bool)>; 3],
    failing_since: Option<Duration>,
}

impl Actor for ElectionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.faults.fail_point(Site::ElectionStarted);
        if self.spec.cell.begin_life() && self.spec.cell.has_begun() {
            self.machine.handle_predecessor(self.spec.cell.now());
        }
        if self.spec.cell.has_begun() {
            self.machine.handle_begin();
        }
        if self.spec.cell.is_ending() {
            self.machine.handle_shutdown();
        }
        self.lock = Some((self.spec.lock)());
        self.drive(ctx);
    }
}

impl Supervised for ElectionActor {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl Child for ElectionActor {
    type Spec = ElectionSpec;

    fn build(spec: &ElectionSpec) -> Self {
        let machine = ElectionMachine::new(spec.cell.settings.clone()).declared();
        Self {
            spec: spec.clone(),
            machine,
            lock: None,
            alarm: Alarm::default(),
            is_kept: false,
            errors: [None, None, None],
            told: [None; 3],
            failing_since: None,
        }
    }
}

impl Handler<Begin> for ElectionActor {
    type Result = ();

    fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
        self.machine.handle_begin();
        self.drive(ctx);
    }
}

impl Handler<ShutDown> for ElectionActor {
    type Result = ();

    fn handle(&mut self, _: ShutDown, ctx: &mut Context<Self>) {
        self.machine.handle_shutdown();
        self.drive(ctx);
    }
}

impl ElectionActor {
    fn moment(&self) -> Moment {
        let cell = &self.spec.cell;
        let wall = cell.clock().wall_time().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // A lease holds microseconds: what is written must equal what is read back.
        let wall = Duration::from_micros(u64::try_from(wall.as_micros()).unwrap_or(u64::MAX));
        Moment { now: cell.now(), wall, chance: cell.chance() }
    }

    fn drive(&mut self, ctx: &mut Context<Self>) {
        let moment = self.moment();
        // First an ended term is shown: after that none of its work can begin.
        self.machine.handle_time(moment.now);
        self.publish(moment.now);
        self.machine.handle_work(self.spec.cell.has_work());
        if let Some(effect) = self.machine.poll_effect(moment) {
            self.send(effect, ctx);
        }
        self.publish(moment.now);
        if self.machine.is_released() {
            self.spec.cell.set_released();
        }
        if self.machine.is_over() {
            ctx.stop();
            return;
        }
        self.set_alarm(ctx);
    }

    fn send(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.spec.faults.fail_point(Site::ElectionAsks);
        let Some(lock) = &self.lock else { return };
        let limit = self.machine.settings().request_timeout();
        let request = within(limit, lock.send(effect.clone()));
        let answered = request.into_actor(self).map(move |answer, actor: &mut Self, ctx| {
            let late = || Err(LockError::Failed(format!("no answer within {limit:?}").into()));
            actor.take_in(&effect, answer.unwrap_or_else(late));
            actor.drive(ctx);
        });
        ctx.spawn(answered);
    }

    fn take_in(&mut self, effect: &Effect, answer: Result<LeaseAnswer, LockError>) {
        self.spec.faults.fail_point(Site::ElectionAnswered);
        let moment = self.moment();
        let of = match effect {
            Effect::Read => READ,
            Effect::Create(_) | Effect::Update(_) => WRITE,
            _ => REGISTRATION,
        };
        let error = match &answer {
            Err(LockError::Failed(why)) => Some(one_line(why, QUOTED).into()),
            _ => None,
        };
        let is_done = answer.is_ok();
        let written = match &answer {
            Ok(_) => LeaseWritten::Done,
            Err(LockError::Conflict) => LeaseWritten::Conflict,
            Err(LockError::Failed(_)) => LeaseWritten::Failed,
        };
        // After a conflict only the next read shows whether this process may write.
        if of != WRITE || written != LeaseWritten::Conflict {
            self.note(of, error);
        }
        match effect {
            Effect::Read => self.machine.handle_read(lease_of(answer), moment),
            Effect::ReadCandidate => self.machine.handle_candidate(candidate_of(answer), moment),
            Effect::Create(_) | Effect::Update(_) => self.machine.handle_written(written, moment),
            Effect::CreateCandidate(_) | Effect::RenewCandidate(_) | Effect::WithdrawCandidate => {
                self.machine.handle_candidate_written(written, moment);
            }
        }
        // After a read of a free lease, only a write shows whether this process may take it.
        let is_others = of == READ && waits_for_others(self.machine.why_not());
        if is_done && (is_others || of == WRITE) {
            self.note(WRITE, None);
            self.spec.cell.set_answered();
        }
    }

    /// Logs each cause once in [`TELL_EACH`], and its end.
    fn note(&mut self, of: usize, error: Option<Arc<str>>) {
        let (lease, now) = (&self.spec.cell.lease, self.spec.cell.now());
        let is_told = self.told[of].is_some_and(|(at, _)| now < at.saturating_add(TELL_EACH));
        match (&self.errors[of], &error) {
            (_, Some(error)) if !is_told => {
                self.told[of] = Some((now, false));
                tracing::warn!(target: "actix_informer::leader_election", %lease, "leader election {lease}: a request failed, and is tried again: {error}");
            }
            (Some(_), None) => {
                if let Some((_, has_ended @ false)) = &mut self.told[of] {
                    *has_ended = true;
                    tracing::info!(target: "actix_informer::leader_election", %lease, "leader election {lease}: the request succeeds again");
                }
            }
            _ => {}
        }
        self.errors[of] = error;
        self.failing_since = match self.errors.iter().any(Option::is_some) {
            true => self.failing_since.or(Some(now)),
            false => None,
        };
    }

    fn publish(&mut self, now: Duration) {
        let (cell, machine) = (&self.spec.cell, &self.machine);
        let (began, has_ended) = cell.publish(News {
            leading: machine.leading(now),
            holder: machine.holder().into(),
            why_not: machine.why_not().clone(),
            kept_since: machine.kept_since(),
            figures: machine.figures(),
            last_error: self.errors.iter().flatten().next().cloned(),
            write_error: self.errors[WRITE].clone(),
            failing_since: self.failing_since,
        });
        let (lease, identity, why) = (&cell.lease, &cell.settings.identity, machine.why_not());
        if has_ended {
            tracing::warn!(target: "actix_informer::leader_election", %lease, %identity, "leader election {lease}: this process leads no more: {why}");
        }
        if *why == WhyNot::FormerWork && !self.is_kept {
            self.is_kept = true;
            tracing::warn!(target: "actix_informer::leader_election", %lease, %identity, "leader election {lease}: this process could lead, and waits: {why}");
        }
        if let Some(fence) = began {
            tracing::info!(target: "actix_informer::leader_election", %lease, %identity, fence, "leader election {lease}: this process leads, with the fencing number {fence}");
            self.is_kept = false;
        }
    }

    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let (due, now) = (self.machine.poll_timeout(), self.spec.cell.now());
        // After a suspension the timer is late. Until then nothing begins, because each begin reads the
        // clock.
        let wait = |due: Duration| sleep(due.saturating_sub(now));
        self.alarm.set(due, wait, ctx, |actor, ctx| {
            actor.alarm.rang();
            actor.drive(ctx);
        });
    }
}

fn waits_for_others(why: &WhyNot) -> bool {
    !matches!(
        why,
        WhyNot::NotBegun | WhyNot::NotTried | WhyNot::Failed | WhyNot::Free | WhyNot::NotRenewed(_)
    )
}

fn lease_of(answer: Result<LeaseAnswer, LockError>) -> Read<LeaseRecord> {
    match answer {
        Ok(LeaseAnswer::Lease(lease)) => lease.map_or(Read::Absent, Read::Found),
        _ => Read::Failed,
    }
}

fn candidate_of(answer: Result<LeaseAnswer, LockError>) -> Read<CandidateRecord> {
    match answer {
        Ok(LeaseAnswer::Candidate(candidate)) => candidate.map_or(Read::Absent, Read::Found),
        _ => Read::Failed,
    }
}

#[derive(Debug)]
pub(super) struct Begin;

impl Message for Begin {
    type Result = ();
}

#[derive(Debug)]
pub(super) struct ShutDown;

impl Message for ShutDown {
    type Result = ();
}
