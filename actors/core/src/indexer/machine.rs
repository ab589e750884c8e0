//! What the Indexer does next: one step at a time.
//!
//! Answers "ask for a batch, apply the one that came, go on with what is under way, or wait?". `handle_*` tells what
//! happened, [`IndexerMachine::poll_effect`] says what to do now; the actor sends the messages and owns the store. A
//! question to the queue may be open while an index is built or handed on: its answer is held until the step is over.
//!
//! ```text
//!            ┌─ Advance ──▶ Advancing ──slice, turn──▶ Idle
//!   Idle ────┼─ Apply ────▶ published: Telling ──told──▶ Idle      Advancing ──published──▶ Telling
//!            └─ Ask ──────▶ Asking ──batch, or work──▶ Idle        any ──epoch over──▶ Ended
//! ```
//! Invariants:
//! 1. One step at a time: no slice begins and no batch is applied while another step has not ended.
//! 2. One question is open at a time, and none while a batch is held.
//! 3. Every batch is handed out once, in the order in which they came, and only when the store has nothing under way.
//! 4. Whenever nothing is under way, the next batch has been asked for: what comes later is never waited for in vain.

/// What the Indexer is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Nothing: it is about to begin the next step.
    Idle,
    /// It has asked for a batch and waits for it, with nothing else to do.
    Asking,
    /// A Replace, the removal of a source, parts by key or a new index is under way, in slices.
    Advancing,
    /// Something was published, and the Processor has not taken it yet.
    Telling,
    /// Its epoch is over: it waits to be built anew.
    Ended,
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever carries out steps must carry out every kind of them")]
pub enum Effect<B> {
    /// Ask the queue for a batch; the answer is told by [`IndexerMachine::handle_batch`].
    Ask,
    /// Apply this batch. If that publishes, tell it by [`IndexerMachine::handle_published`]; else the store is busy with it.
    Apply(B),
    /// Let the store advance by one slice. If that publishes, tell it by [`IndexerMachine::handle_published`]; else call
    /// [`IndexerMachine::handle_turn`] once others have had their turn.
    Advance,
}

/// How far the next batch is.
#[derive(Debug)]
enum Intake<B> {
    Empty,
    Asked,
    Held(B),
}

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    Advancing,
    Telling,
    Ended,
}

/// The steps of one life of the Indexer; `B` is a batch.
#[derive(Debug)]
pub struct IndexerMachine<B> {
    work: Work,
    intake: Intake<B>,
}

impl<B> IndexerMachine<B> {
    /// Nothing is under way and nothing was asked for.
    pub const fn new() -> Self {
        Self { work: Work::Nothing, intake: Intake::Empty }
    }

    /// What it is at.
    pub const fn step(&self) -> Step {
        match (self.work, &self.intake) {
            (Work::Nothing, Intake::Asked) => Step::Asking,
            (Work::Nothing, _) => Step::Idle,
            (Work::Advancing, _) => Step::Advancing,
            (Work::Telling, _) => Step::Telling,
            (Work::Ended, _) => Step::Ended,
        }
    }

    /// What to do now; to be drained after each call that tells what happened. `is_busy` says whether the store has
    /// something under way.
    pub fn poll_effect(&mut self, is_busy: bool) -> Option<Effect<B>> {
        if self.work != Work::Nothing {
            return None;
        }
        if is_busy {
            self.work = Work::Advancing;
            return Some(Effect::Advance);
        }
        match std::mem::replace(&mut self.intake, Intake::Asked) {
            Intake::Empty => Some(Effect::Ask),
            Intake::Asked => None,
            Intake::Held(batch) => {
                self.intake = Intake::Empty;
                Some(Effect::Apply(batch))
            }
        }
    }

    /// The queue has answered.
    pub fn handle_batch(&mut self, batch: B) {
        if self.work == Work::Ended {
            return;
        }
        debug_assert!(matches!(self.intake, Intake::Asked), "a batch came that was not asked for");
        self.intake = Intake::Held(batch);
    }

    /// What was applied is published, or nothing had to be, and the Processor is being told.
    pub fn handle_published(&mut self) {
        self.go_on(&[Work::Nothing, Work::Advancing], Work::Telling);
    }

    /// The Processor has taken what it was told.
    pub fn handle_told(&mut self) {
        self.go_on(&[Work::Telling, Work::Ended], Work::Nothing);
    }

    /// A slice is done, others have had their turn, and nothing was published.
    pub fn handle_turn(&mut self) {
        self.go_on(&[Work::Advancing, Work::Ended], Work::Nothing);
    }

    /// The epoch is over: nothing more is to be done in this life, and what still comes is dropped.
    pub fn handle_end(&mut self) {
        self.work = Work::Ended;
        self.intake = Intake::Empty;
    }

    fn go_on(&mut self, legal: &[Work], to: Work) {
        debug_assert!(legal.contains(&self.work), "from {:?} to {to:?}", self.work);
        if self.work != Work::Ended {
            self.work = to;
        }
    }
}

impl<B> Default for IndexerMachine<B> {
    fn default() -> Self {
        Self::new()
    }
}
