//! What a piece of work costs.
//!
//! Answers "how are figures taken where criterion's own loops do not fit?": by the measurement that they are given in,
//! wall time or processor time. Invariants:
//! 1. No bench reads a clock itself.

use criterion::measurement::Measurement;

/// What `work` costs by `measurement`.
pub(crate) fn spent<M: Measurement>(measurement: &M, work: impl FnOnce()) -> M::Value {
    let start = measurement.start();
    work();
    measurement.end(start)
}
