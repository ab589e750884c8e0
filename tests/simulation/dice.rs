//! A stream of choices from a seed.
//!
//! Answers "what is drawn next?": the same for the same seed, from no clock and no map.

use std::time::Duration;

use informer_actors::testing::RandomNumbers;

pub(crate) struct Dice(RandomNumbers);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(RandomNumbers::new(seed, 1))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((self.0.draw() * bound as f64) as usize).min(bound - 1)
    }

    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    pub(crate) fn milliseconds(&mut self, from: &[u64]) -> Duration {
        Duration::from_millis(self.pick(from))
    }
}
