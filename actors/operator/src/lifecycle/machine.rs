//! Decides in which order the parts of an operator start and stop, and what a failure or a lost lease does.
//!
//! 1. Parts start in the order of their phases, those after the caches when each cache has been ready once.
//! 2. They stop in reverse: a phase drains when nothing of the later ones runs, or the rest was abandoned.
//! 3. The leader's work runs only while this process leads. A lost lease ends only this work, at once. It
//!    starts again with the next lease when nothing of its former life is left.
//! 4. A failed part starts again after a growing wait; no other part changes.
//! 5. A part has one life at a time; events of a former life change nothing.
//! 6. A stop always ends: each phase takes at most its limit and [`GRACE`].
//! 7. What a part holds while it does not run is ended in the turn of its phase.

use std::sync::Arc;
use std::time::Duration;

pub use state::{DrainLimits, PartEnded, PartState, Phase, Stage};

use informer_core::backoff::BackoffPolicy;
use informer_core::reflector::Moment;
use informer_core::restart::{Exit, OnFailure, RestartPolicy, RestartVerdict};
use state::{Part, Run};

mod state;

/// How long the end of a dropped part is awaited. What still runs then is abandoned.
pub const GRACE: Duration = Duration::from_secs(1);

/// The number of a part, in the order of the starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartId(pub usize);

/// One life of a part: each start begins another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Which part.
    pub part: PartId,
    /// The number of its start.
    pub number: u64,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Start it.
    Start(Life),
    /// Tell it to end what it has begun, and to begin nothing.
    Drain(Life),
    /// Drop it.
    End(Life),
    /// It does not run but holds something: start it, and tell it at once to end.
    Close(Life),
}

/// The lifecycle of an operator; the module's documentation describes it. Times count from the start of the
/// runtime.
///
/// ```
/// # use informer_operator::lifecycle::machine::{Action, DrainLimits, Lifecycle, PartState, Phase};
/// use std::time::Duration;
/// let now = Duration::ZERO;
/// let phases = [Phase::Caches, Phase::Work];
/// let mut lifecycle = Lifecycle::new(&phases, DrainLimits::default(), Lifecycle::PATIENT);
/// let Some(Action::Start(cache)) = lifecycle.next(now) else { panic!("the cache starts") };
/// assert_eq!(lifecycle.next(now), None, "the work waits for the cache");
/// lifecycle.handle_ready(cache, now);
/// assert!(matches!(lifecycle.next(now), Some(Action::Start(work)) if work.part > cache.part));
/// ```
#[derive(Debug, Clone)]
pub struct Lifecycle {
    parts: Vec<Part>,
    limits: DrainLimits,
    stage: Stage,
    stopping_since: Duration,
    leads: bool,
    /// Since the last look at the leader's work: what runs of it belongs to an earlier term.
    was_lost: bool,
}

impl Lifecycle {
    /// A part that fails is started again for as long as the operator runs, after waits from 0.8 to 60 s.
    pub const PATIENT: RestartPolicy = RestartPolicy {
        limit: u32::MAX,
        window: Duration::from_secs(600),
        backoff: BackoffPolicy { base: Duration::from_millis(800), cap: Duration::from_secs(30) },
    };

    /// Parts of these phases, which must be in order. Nothing has started.
    pub fn new(phases: &[Phase], limits: DrainLimits, policy: RestartPolicy) -> Self {
        debug_assert!(phases.is_sorted(), "parts are in the order of their phases");
        let parts = phases.iter().map(|phase| Part::new(*phase, policy)).collect();
        let stage = Stage::Running;
        Self { parts, limits, stage, stopping_since: Duration::ZERO, leads: false, was_lost: false }
    }

    /// Marks a part that holds something while it does not run.
    #[must_use]
    pub fn holding(mut self, part: PartId) -> Self {
        if let Some(part) = self.parts.get_mut(part.0) {
            part.holds = true;
        }
        self
    }

    /// This life of a part can do its work: others may rely on it.
    pub fn handle_ready(&mut self, life: Life, now: Duration) {
        if let Some(part) = self.living(life)
            && let Run::Runs { ready: ready @ false, .. } = &mut part.run
        {
            (*ready, part.since, part.was_ready) = (true, now, true);
        }
    }

    /// The election says whether this process leads.
    pub fn handle_leading(&mut self, life: Life, leads: bool) {
        let is_election = self.part(life.part).is_some_and(|part| part.phase == Phase::Election);
        if is_election && self.living(life).is_some() {
            self.was_lost |= self.leads && !leads;
            self.leads = leads;
        }
    }

    /// Nothing of this life is left. Returns what follows, for the log.
    pub fn handle_ended(&mut self, life: Life, exit: &Exit, at: Moment) -> Option<PartEnded> {
        let is_running = self.stage == Stage::Running;
        let part = self.living(life)?;
        let ended = match part.run {
            Run::Runs { .. } if is_running => part.fail(exit, at),
            Run::Ending { lease_lost: true, .. } => {
                let clean = !part.was_given_up;
                part.run = if is_running { Run::Off } else { Run::Stopped { clean } };
                PartEnded::LeaseLost
            }
            // It ends what it holds when its phase stops.
            Run::Runs { .. } if part.holds && *exit != Exit::Finished => {
                (part.run, part.was_given_up) = (Run::Off, true);
                part.note(exit);
                PartEnded::Drained
            }
            Run::Draining { .. } | Run::Runs { .. } => {
                let clean = matches!(exit, Exit::Finished | Exit::Asked) && !part.was_given_up;
                part.run = Run::Stopped { clean };
                part.note(exit);
                PartEnded::Drained
            }
            _ => {
                part.run = Run::Stopped { clean: false };
                PartEnded::TimeOver
            }
        };
        part.since = at.now;
        if part.phase == Phase::Election {
            self.was_lost |= self.leads;
            self.leads = false;
        }
        Some(ended)
    }

    /// Ends everything in reverse order. Further calls change nothing.
    pub fn stop(&mut self, now: Duration) {
        if self.stage == Stage::Running {
            self.stage = Stage::Stopping(Phase::LeaderWork);
            self.stopping_since = now;
        }
    }

    /// Nothing runs any more, and nothing starts: the runtime has ended.
    pub fn abandon(&mut self, now: Duration) {
        for part in self.parts.iter_mut().filter(|part| part.run.life().is_some()) {
            (part.run, part.since) = (Run::Stopped { clean: false }, now);
        }
        self.stage = Stage::Stopped;
    }

    /// What has to be done next; what is returned counts as done. `None` until the next event, or until
    /// [`Self::next_due`].
    pub fn next(&mut self, now: Duration) -> Option<Action> {
        self.end_work_without_lease(now).or_else(|| match self.stage {
            Stage::Running => self.start_next(now),
            Stage::Stopping(_) => self.stop_next(now),
            Stage::Stopped => None,
        })
    }

    /// When [`Self::next`] may return something without a new event.
    pub fn next_due(&self) -> Option<Duration> {
        let due = |part: &Part| match (self.stage, part.run) {
            (Stage::Running, Run::Backoff { until }) if self.may_start(part.phase) => Some(until),
            (Stage::Stopping(phase), _) if phase != part.phase => None,
            (Stage::Stopping(_), Run::Draining { until, .. }) => Some(until),
            (Stage::Stopping(_), Run::Ending { since, .. }) => Some(self.given_up_at(since)),
            _ => None,
        };
        self.parts.iter().filter_map(due).min()
    }

    /// What it is doing as a whole.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether this process leads: always, without an election.
    pub fn leads(&self) -> bool {
        self.leads || !self.has_election()
    }

    /// Whether something of the leader's work runs, or may run.
    pub fn has_leaders_work(&self) -> bool {
        self.parts.iter().any(Part::works)
    }

    /// Whether it takes part in an election.
    pub fn has_election(&self) -> bool {
        self.parts.iter().any(|part| part.phase == Phase::Election)
    }

    /// What each part is doing, in the order in which they start.
    pub fn states(&self) -> impl Iterator<Item = PartState> {
        self.parts.iter().map(|part| part.state(self.may_start(part.phase), self.leads()))
    }

    /// Since when a part is in its state, how often it was started again, and its newest failure.
    pub fn history(&self, part: PartId) -> Option<(Duration, u32, Option<Arc<str>>)> {
        self.part(part).map(|part| (part.since, part.history.restarts(), part.last_error.clone()))
    }

    /// How much time a part has left for its drain; its whole limit before the drain.
    pub fn time_left(&self, part: PartId, now: Duration) -> Duration {
        self.part(part).map_or(Duration::ZERO, |part| match part.run {
            Run::Draining { until, .. } => until.saturating_sub(now),
            Run::Ending { .. } => Duration::ZERO,
            _ => self.limits.of(part.phase),
        })
    }

    /// The lives that have not ended.
    pub fn lives(&self) -> impl Iterator<Item = Life> {
        let life = |(at, part): (usize, &Part)| Some(Life { part: PartId(at), number: part.run.life()? });
        self.parts.iter().enumerate().filter_map(life)
    }

    fn part(&self, part: PartId) -> Option<&Part> {
        self.parts.get(part.0)
    }

    /// `None` for a former life.
    fn living(&mut self, life: Life) -> Option<&mut Part> {
        self.parts.get_mut(life.part.0).filter(|part| part.run.life() == Some(life.number))
    }

    fn may_start(&self, phase: Phase) -> bool {
        let is_filled = |part: &Part| part.phase != Phase::Caches || part.was_ready;
        let is_behind_caches = phase > Phase::Caches;
        (!is_behind_caches || self.parts.iter().all(is_filled))
            && (phase != Phase::LeaderWork || self.leads())
    }

    fn end_work_without_lease(&mut self, now: Duration) -> Option<Action> {
        if self.leads() && !self.was_lost {
            return None;
        }
        let work = self.parts.iter_mut().enumerate().filter(|(_, part)| part.phase == Phase::LeaderWork);
        let works = |part: &Part| matches!(part.run, Run::Runs { .. } | Run::Draining { .. }) && !part.closes;
        let Some((id, part)) = work.into_iter().find(|(_, part)| works(part)) else {
            self.was_lost = false;
            return None;
        };
        let number = part.run.life()?;
        (part.run, part.since) = (Run::Ending { life: number, since: now, lease_lost: true }, now);
        Some(Action::End(Life { part: PartId(id), number }))
    }

    fn start_next(&mut self, now: Duration) -> Option<Action> {
        let is_due = |part: &Part| match part.run {
            Run::Off => true,
            Run::Backoff { until } => until <= now,
            _ => false,
        };
        let at = self.parts.iter().position(|part| is_due(part) && self.may_start(part.phase))?;
        let part = self.parts.get_mut(at)?;
        part.lives += 1;
        (part.run, part.since) = (Run::Runs { life: part.lives, ready: false }, now);
        Some(Action::Start(Life { part: PartId(at), number: part.lives }))
    }

    fn stop_next(&mut self, now: Duration) -> Option<Action> {
        while let Stage::Stopping(phase) = self.stage {
            let limit = self.limits.of(phase);
            // Leader's work may still run: the lease runs out instead.
            let keeps_lease = phase == Phase::Election && self.parts.iter().any(Part::works_on);
            for at in 0..self.parts.len() {
                let given_up_at = match self.parts.get(at).map(|part| part.run) {
                    Some(Run::Ending { since, .. }) => self.given_up_at(since),
                    _ => Duration::MAX,
                };
                let Some(part) = self.parts.get_mut(at).filter(|part| part.phase == phase) else { continue };
                let id = PartId(at);
                let action = if keeps_lease { part.drop_lease(id, now) } else { None };
                if let Some(action) = action.or_else(|| part.stop(id, (now, limit), given_up_at)) {
                    return Some(action);
                }
            }
            if self.parts.iter().any(|part| part.phase == phase && part.run.life().is_some()) {
                return None;
            }
            self.stage = phase.before().map_or(Stage::Stopped, Stage::Stopping);
            self.stopping_since = now;
        }
        None
    }

    fn given_up_at(&self, since: Duration) -> Duration {
        since.max(self.stopping_since).saturating_add(GRACE)
    }
}

impl Part {
    fn fail(&mut self, exit: &Exit, at: Moment) -> PartEnded {
        self.note(exit);
        match self.history.decide(OnFailure::RestartAlone, exit, at) {
            RestartVerdict::Restart { after } | RestartVerdict::RestartGroup { after } => {
                self.run = Run::Backoff { until: at.now.saturating_add(after) };
                PartEnded::Restarts { after }
            }
            RestartVerdict::GiveUp { reason } => {
                (self.run, self.was_given_up) = (Run::GivenUp, true);
                PartEnded::GivenUp { reason }
            }
            RestartVerdict::Done => {
                (self.run, self.was_ready) = (Run::Done, true);
                PartEnded::Done
            }
        }
    }

    /// Its lease must not be released.
    fn drop_lease(&mut self, id: PartId, now: Duration) -> Option<Action> {
        match self.run {
            Run::Runs { life, .. } => {
                (self.run, self.since) = (Run::Ending { life, since: now, lease_lost: false }, now);
                Some(Action::End(Life { part: id, number: life }))
            }
            Run::Off | Run::Backoff { .. } | Run::GivenUp => {
                (self.run, self.since) = (Run::Stopped { clean: false }, now);
                None
            }
            _ => None,
        }
    }

    fn stop(
        &mut self,
        id: PartId,
        (now, limit): (Duration, Duration),
        given_up_at: Duration,
    ) -> Option<Action> {
        let draining = |life| Run::Draining { life, until: now.saturating_add(limit) };
        match self.run {
            Run::Off | Run::Backoff { .. } | Run::GivenUp if self.holds => {
                (self.lives, self.closes) = (self.lives + 1, true);
                (self.run, self.since) = (draining(self.lives), now);
                Some(Action::Close(Life { part: id, number: self.lives }))
            }
            Run::Off | Run::Backoff { .. } => {
                (self.run, self.since) = (Run::Stopped { clean: true }, now);
                None
            }
            Run::Runs { life, .. } => {
                (self.run, self.since) = (draining(life), now);
                Some(Action::Drain(Life { part: id, number: life }))
            }
            Run::Draining { life, until } if until <= now => {
                (self.run, self.since) = (Run::Ending { life, since: now, lease_lost: false }, now);
                Some(Action::End(Life { part: id, number: life }))
            }
            Run::Ending { .. } if given_up_at <= now => {
                (self.run, self.since, self.is_abandoned) = (Run::Stopped { clean: false }, now, true);
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
