//! Ranges of sizes and costs: at least this, at most that.
//!
//! Answers: how are two ranges combined? Sums and products stop at the largest number instead of overflowing.
/// From the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Range {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Range {
    /// Nothing is known.
    pub(super) const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    pub(super) const fn new(least: u64, most: u64) -> Self {
        Self { least, most }
    }

    pub(super) const fn exactly(size: u64) -> Self {
        Self { least: size, most: size }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self::new(self.least.saturating_add(other.least), self.most.saturating_add(other.most))
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self::new(self.least.saturating_mul(other.least), self.most.saturating_mul(other.most))
    }

    /// Each bound times a factor, rounded up.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self::new(scale(self.least, factor), scale(self.most, factor))
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self::new(self.least.min(other.least), self.most.max(other.most))
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs are counted in floats, as by a real server; a cast of a float saturates"
)]
pub(super) fn scale(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
