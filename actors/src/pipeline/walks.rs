//! How many sources were looked at by walks over all of them.
//!
//! Answers "does an event cost more with more sources?" for a test, by a count and not by a time. Invariants:
//! 1. What walks over all sources notes each one. Nothing is counted but in unit tests.
//!
//! Read next: `sources.rs` and `source_cells.rs`, which walk; `informer/tests.rs`, which counts.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
}

/// A walk looks at one more source.
#[inline]
pub(super) fn note() {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + 1);
}

/// How many were looked at on this thread since the last call.
#[cfg(test)]
pub(crate) fn take() -> usize {
    LOOKED_AT.take()
}
