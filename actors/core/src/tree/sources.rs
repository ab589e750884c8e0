//! Sets of sources, one bit for each hash of a name (a small Bloom filter in 64 bits).
//!
//! Answers "can this part of the map have an object of that source?", so that a list visits the objects of its own
//! source and not all objects. Invariants:
//! 1. A set contains every source that was added. It may seem to contain another one whose name has the same hash: that
//!    costs a visit and does no harm.
//! 2. The hash depends on the name alone.
//!
//! Read next: `tree.rs`, whose nodes keep such sets.

use crate::meta::SourceId;

/// A set of sources by a hash of their names: it may contain more than was added, and never less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sources(u64);

impl Sources {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self(u64::MAX);

    pub(crate) fn of(source: &SourceId) -> Self {
        // FNV-1a, mixed once more so that names which end alike differ: the same bit in every map and every process.
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = source.as_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
        Self(1 << ((hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58))
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
