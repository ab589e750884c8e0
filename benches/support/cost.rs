//! Measures the cost of a piece of work.
//!
//! Answers "how is a cost measured where criterion's own loops do not fit?": with criterion's measurement, which is wall
//! time or processor time. Invariant:
//! 1. A benchmark that uses it reads no clock itself.

use criterion::measurement::Measurement;

/// The cost of `work`, measured by `measurement`.
pub(crate) fn spent<M: Measurement>(measurement: &M, work: impl FnOnce()) -> M::Value {
    let start = measurement.start();
    work();
    measurement.end(start)
}
