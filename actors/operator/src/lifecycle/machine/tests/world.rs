//! Plays the parts of an operator, carries out what is decided, and checks each action against the promises.
//!
//! Answers "may this happen now?" from what it has seen itself, not from the lifecycle's own state.

use std::time::Duration;

use crate::lifecycle::machine::{
    Action, DrainLimits, GRACE, Life, Lifecycle, PartEnded, PartId, PartState, Phase, Stage,
};
use informer_core::reflector::Moment;
use informer_core::restart::{Exit, RestartPolicy};

/// What the world has seen of one part.
#[derive(Debug, Clone, Default)]
struct Seen {
    alive: Option<Life>,
    was_started: bool,
    was_ready: bool,
    holds: bool,
    is_done: bool,
    closes: bool,
    was_told_to_end: bool,
    is_abandoned: bool,
    /// When it was told to drain, and when it was dropped, in its present life.
    drain: Option<Duration>,
    dropped: Option<Duration>,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) lifecycle: Lifecycle,
    pub(super) now: Duration,
    pub(super) log: Vec<String>,
    phases: Vec<Phase>,
    seen: Vec<Seen>,
    leads: bool,
    is_another_term: bool,
    stopped_at: Option<Duration>,
}

impl World {
    pub(super) fn new(phases: &[Phase]) -> Self {
        Self::with(phases, Lifecycle::PATIENT)
    }

    /// With parts that hold something while they do not run: those whose bit is set.
    pub(super) fn holding(phases: &[Phase], bits: u16) -> Self {
        Self::new(phases).and_holding(bits)
    }

    pub(super) fn and_holding(mut self, bits: u16) -> Self {
        for part in (0..self.phases.len()).filter(|part| bits & (1 << part) != 0) {
            self.lifecycle = self.lifecycle.holding(PartId(part));
            self.seen[part].holds = true;
        }
        self
    }

    pub(super) fn with(phases: &[Phase], policy: RestartPolicy) -> Self {
        let mut world = Self {
            lifecycle: Lifecycle::new(phases, DrainLimits::default(), policy),
            now: Duration::ZERO,
            log: Vec::new(),
            phases: phases.to_vec(),
            seen: vec![Seen::default(); phases.len()],
            leads: false,
            is_another_term: false,
            stopped_at: None,
        };
        world.drive();
        world
    }

    /// What was done since this was called last.
    pub(super) fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    pub(super) fn states(&self) -> Vec<PartState> {
        self.lifecycle.states().collect()
    }

    pub(super) fn is_alive(&self, part: usize) -> bool {
        self.seen[part].alive.is_some()
    }

    pub(super) fn is_dropped(&self, part: usize) -> bool {
        self.seen[part].dropped.is_some()
    }

    pub(super) fn ready(&mut self, part: usize) {
        if let Some(life) = self.seen[part].alive {
            self.lifecycle.handle_ready(life, self.now);
            let seen = &mut self.seen[part];
            seen.was_ready |= seen.drain.is_none() && seen.dropped.is_none();
        }
        self.drive();
    }

    /// The lease is lost and had again before anybody looks.
    pub(super) fn lead_in_another_term(&mut self) {
        let election = self.phases.iter().position(|phase| *phase == Phase::Election);
        if let Some(life) = election.and_then(|part| self.seen[part].alive).filter(|_| self.leads) {
            self.lifecycle.handle_leading(life, false);
            self.lifecycle.handle_leading(life, true);
            self.is_another_term = true;
        }
        self.drive();
        self.is_another_term = false;
    }

    pub(super) fn lead(&mut self, leads: bool) {
        let election = self.phases.iter().position(|phase| *phase == Phase::Election);
        if let Some(life) = election.and_then(|part| self.seen[part].alive) {
            self.lifecycle.handle_leading(life, leads);
            self.leads = leads;
        }
        self.drive();
    }

    pub(super) fn fail(&mut self, part: usize) -> Option<PartEnded> {
        self.end(part, &Exit::Failed("on purpose".into()))
    }

    /// It has ended without a failure: by itself, by its drain or because it was dropped.
    pub(super) fn finish(&mut self, part: usize) {
        self.end(part, &Exit::Finished);
    }

    fn end(&mut self, part: usize, exit: &Exit) -> Option<PartEnded> {
        let seen = &mut self.seen[part];
        let life = seen.alive.take()?;
        let is_done = *exit == Exit::Finished && seen.drain.is_none() && seen.dropped.is_none();
        seen.was_ready |= is_done && self.stopped_at.is_none();
        seen.is_done |= is_done;
        (seen.drain, seen.dropped) = (None, None);
        self.leads &= self.phases[part] != Phase::Election;
        let at = Moment { now: self.now, chance: 0.0 };
        let ended = self.lifecycle.handle_ended(life, exit, at);
        self.drive();
        ended
    }

    pub(super) fn stop(&mut self) {
        self.lifecycle.stop(self.now);
        self.stopped_at.get_or_insert(self.now);
        self.drive();
    }

    /// Time passes, with a look whenever one is due.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.lifecycle.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let before = self.lifecycle.next_due();
            self.drive();
            assert_ne!(self.lifecycle.next_due(), before, "a look that is due changes something");
        }
        self.now = end;
        self.drive();
    }

    fn drive(&mut self) {
        while let Some(action) = self.lifecycle.next(self.now) {
            match action {
                Action::Start(life) => self.start(life),
                Action::Drain(life) => self.drain(life),
                Action::Close(life) => self.close(life),
                Action::End(life) => self.drop_part(life),
            }
        }
        let has_lease = self.leads || !self.phases.contains(&Phase::Election);
        for (seen, phase) in self.seen.iter().zip(&self.phases) {
            let is_at_work = seen.alive.is_some() && seen.dropped.is_none();
            let may_work = has_lease || seen.closes || *phase != Phase::LeaderWork;
            assert!(may_work || !is_at_work, "work without the lease");
        }
        self.note_abandoned();
        let keeps_lease = self.keeps_lease();
        let is_left = |seen: &Seen| seen.holds && !seen.is_done && !seen.was_told_to_end && !keeps_lease;
        let is_over = self.lifecycle.stage() == Stage::Stopped;
        assert!(!is_over || !self.seen.iter().any(is_left), "what a part holds is left");
    }

    /// Work of the leader of which something is left, and for which nobody waits any more.
    fn note_abandoned(&mut self) {
        let states: Vec<_> = self.lifecycle.states().collect();
        for ((seen, phase), state) in self.seen.iter_mut().zip(&self.phases).zip(states) {
            let is_over = matches!(state, PartState::Stopped { .. });
            seen.is_abandoned |= *phase == Phase::LeaderWork && seen.alive.is_some() && is_over;
        }
    }

    fn keeps_lease(&self) -> bool {
        self.seen.iter().any(|seen| seen.is_abandoned)
    }

    fn start(&mut self, life: Life) {
        let PartId(part) = life.part;
        assert!(self.seen[part].alive.is_none(), "part {part} has two lives");
        assert_eq!(self.stopped_at, None, "part {part} starts after the stop");
        let phase = self.phases[part];
        for (other, seen) in self.phases.iter().zip(&self.seen) {
            assert!(seen.was_started || *other >= phase, "part {part} starts before one of the {other}");
            let is_filled = seen.was_ready || *other != Phase::Caches || phase <= Phase::Caches;
            assert!(is_filled, "part {part} starts before the caches are filled");
        }
        self.seen[part] = Seen { alive: Some(life), was_started: true, ..self.seen[part].clone() };
        self.log.push(format!("start {part}"));
    }

    fn close(&mut self, life: Life) {
        let PartId(part) = life.part;
        assert!(self.seen[part].alive.is_none() && self.seen[part].holds, "part {part} has nothing to close");
        (self.seen[part].alive, self.seen[part].closes) = (Some(life), true);
        self.drain(life);
        let last = self.log.last_mut().expect("it was noted");
        *last = format!("close {part}");
    }

    fn drain(&mut self, life: Life) {
        let PartId(part) = life.part;
        assert_eq!(self.seen[part].alive, Some(life), "part {part} is told to drain and does not run");
        assert!(self.stopped_at.is_some() && self.seen[part].drain.is_none());
        self.note_abandoned();
        let gives_back = self.phases[part] == Phase::Election;
        assert!(
            !gives_back || !self.keeps_lease(),
            "the lease is given back while the leader's work goes on"
        );
        for (other, seen) in self.phases.iter().zip(&self.seen) {
            let is_abandoned = seen.dropped.is_some_and(|at| at + GRACE <= self.now);
            let is_over = *other <= self.phases[part] || seen.alive.is_none() || is_abandoned;
            assert!(is_over, "part {part} drains while one of the {other} runs");
        }
        (self.seen[part].drain, self.seen[part].was_told_to_end) = (Some(self.now), true);
        self.log.push(format!("drain {part}"));
    }

    fn drop_part(&mut self, life: Life) {
        let PartId(part) = life.part;
        self.note_abandoned();
        let keeps_lease = self.phases[part] == Phase::Election && self.keeps_lease();
        let (seen, phase) = (&mut self.seen[part], self.phases[part]);
        assert!(seen.alive == Some(life) && seen.dropped.is_none(), "part {part} is dropped twice");
        let is_late = seen.drain.is_some_and(|at| at + DrainLimits::default().of(phase) <= self.now);
        let has_lost = phase == Phase::LeaderWork && (!self.leads || self.is_another_term);
        assert!(is_late || has_lost || keeps_lease, "part {part} is dropped without need");
        (seen.dropped, seen.was_told_to_end) = (Some(self.now), true);
        self.log.push(format!("end {part}"));
    }
}
