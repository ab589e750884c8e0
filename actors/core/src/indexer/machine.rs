//! The Indexer's state machine: request a batch, apply it, continue the work under way, or wait.
//!
//! ```text
//!            ┌─ Advance ──▶ Advancing ──slice, turn──▶ Idle
//!   Idle ────┼─ Apply ────▶ published: FanningOut ──taken──▶ Idle   Advancing ──published──▶ FanningOut
//!            └─ Ask ──────▶ Asking ──batch, or work──▶ Idle        any ──epoch over──▶ Ended
//! ```
//! Invariants:
//! 1. One request for a batch is open at a time, and none while a batch is held.
//! 2. Every batch is handed out once, in order, when the store has nothing under way but an index. While that is so,
//!    the next batch has been requested.
//! 3. Between two batches there is at most one slice of an index; while a batch is requested, at least one.

/// The Indexer's present step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// No step: the next one is about to begin.
    Idle,
    /// It has requested a batch and waits for it, without other work.
    Asking,
    /// A Replace, the removal of a source, parts by key or a new index is under way, in slices.
    Advancing,
    /// A publish was sent to the Processor, which has not taken it yet.
    FanningOut,
    /// Its epoch is over: it waits to be rebuilt.
    Ended,
}

/// One action for the actor.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the actor must carry out every kind of effect")]
pub enum IndexerEffect<B> {
    /// Ask the queue for a batch; pass the answer to [`IndexerMachine::handle_batch`].
    Ask,
    /// Apply this batch. If that publishes, call [`IndexerMachine::handle_published`]; otherwise the store is
    /// busy with it.
    Apply(B),
    /// Let the store advance by one slice. If that publishes, call [`IndexerMachine::handle_published`];
    /// otherwise call [`IndexerMachine::handle_turn`] after other actors have had a turn.
    Advance,
}

/// What the store has under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the machine must decide for every kind of work")]
pub enum UnderWay {
    /// Nothing.
    Nothing,
    /// An index alone is being built: parts and lists may come in between.
    Index,
    /// A list, the removal of a source or parts by key: what comes later has to wait.
    InOrder,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
enum Intake<B> {
    Empty,
    Asked,
    Held(B),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    Advancing,
    FanningOut,
    Ended,
}

/// The steps of one life of the Indexer; `B` is a batch.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct IndexerMachine<B> {
    work: Work,
    intake: Intake<B>,
}

impl<B> IndexerMachine<B> {
    /// Nothing is under way and nothing was requested.
    pub const fn new() -> Self {
        Self { work: Work::Nothing, intake: Intake::Empty }
    }

    /// The present step.
    pub const fn step(&self) -> Step {
        match (self.work, &self.intake) {
            (Work::Nothing, Intake::Asked) => Step::Asking,
            (Work::Nothing, _) => Step::Idle,
            (Work::Advancing, _) => Step::Advancing,
            (Work::FanningOut, _) => Step::FanningOut,
            (Work::Ended, _) => Step::Ended,
        }
    }

    /// What to do now. Call it until it returns `None` after each call of a `handle_*` method, with what the
    /// store has under way.
    pub fn poll_effect(&mut self, under_way: UnderWay) -> Option<IndexerEffect<B>> {
        if self.work != Work::Nothing {
            return None;
        }
        if under_way == UnderWay::InOrder {
            self.work = Work::Advancing;
            return Some(IndexerEffect::Advance);
        }
        match std::mem::replace(&mut self.intake, Intake::Asked) {
            Intake::Empty => Some(IndexerEffect::Ask),
            Intake::Held(batch) => {
                self.intake = Intake::Empty;
                Some(IndexerEffect::Apply(batch))
            }
            Intake::Asked if under_way == UnderWay::Index => {
                self.work = Work::Advancing;
                Some(IndexerEffect::Advance)
            }
            Intake::Asked => None,
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

    /// The result is published, or there was nothing to publish, and the changes were sent to the Processor.
    pub fn handle_published(&mut self) {
        self.go_on(&[Work::Nothing, Work::Advancing], Work::FanningOut);
    }

    /// The Processor has taken the changes.
    pub fn handle_fanned_out(&mut self) {
        self.go_on(&[Work::FanningOut, Work::Ended], Work::Nothing);
    }

    /// A slice is done, other actors have had a turn, and nothing was published.
    pub fn handle_turn(&mut self) {
        self.go_on(&[Work::Advancing, Work::Ended], Work::Nothing);
    }

    /// The epoch is over: this machine does nothing more, and drops a batch that still comes.
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
