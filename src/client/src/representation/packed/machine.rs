//! Decides which texts are samples for the next dictionary, and when it is trained.
//!
//! 1. Each text so far has the same chance to be a sample. After [`HISTORY`] texts newer ones have a better chance, so that the
//!    samples follow a population that changes.
//! 2. A dictionary is trained after [`FIRST`] texts, and again when the texts of a [`WINDOW`] compress worse, by [`WORSE`], than
//!    those of its first window.
//! 3. Before each training there are as many new texts as there were before, at most [`HISTORY`]. So all trainings cost at most a
//!    constant for each text.

/// Texts before the first training, and the most samples.
pub(super) const FIRST: usize = 1_000;
const WINDOW: u64 = 4_096;
const HISTORY: u64 = 1_000_000;
/// In eighths.
const WORSE: u64 = 10;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Drift {
    seen: u64,
    since_training: u64,
    is_trained: bool,
    /// Bytes per million, in the first window of the newest dictionary.
    first: Option<u64>,
    window: Window,
    is_worse: bool,
    /// State of a linear congruential generator.
    random: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Window {
    texts: u64,
    long: u64,
    packed: u64,
}

impl Drift {
    /// Notes a text of `long` bytes. Returns its place in the samples, if it is one.
    pub(super) fn note(&mut self, long: usize, packed: usize) -> Option<usize> {
        self.seen += 1;
        self.since_training += 1;
        self.window.add(long as u64, packed as u64);
        if self.is_trained && self.window.texts == WINDOW {
            let share = std::mem::take(&mut self.window).share();
            let first = *self.first.get_or_insert(share);
            self.is_worse |= share > first.saturating_mul(WORSE) / 8;
        }
        self.place()
    }

    pub(super) fn is_due(&self) -> bool {
        let is_wanted = self.is_worse || !self.is_trained;
        is_wanted && self.since_training >= self.seen.div_ceil(2).clamp(FIRST as u64, HISTORY)
    }

    /// After a failure, as many texts pass before the next try.
    pub(super) fn trained(&mut self, is_new: bool) {
        self.since_training = 0;
        if is_new {
            *self =
                Self { is_trained: true, is_worse: false, first: None, window: Window::default(), ..*self };
        }
    }

    fn place(&mut self) -> Option<usize> {
        if self.seen <= FIRST as u64 {
            return usize::try_from(self.seen - 1).ok();
        }
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = usize::try_from((self.random >> 33) % self.seen.min(HISTORY)).ok()?;
        (place < FIRST).then_some(place)
    }
}

impl Window {
    fn add(&mut self, long: u64, packed: u64) {
        self.texts += 1;
        self.long = self.long.saturating_add(long);
        self.packed = self.packed.saturating_add(packed);
    }

    fn share(self) -> u64 {
        self.packed.saturating_mul(1_000_000) / self.long.max(1)
    }
}
