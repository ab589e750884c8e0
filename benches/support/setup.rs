//! What every bench has in common: the allocator and the time it takes.
//!
//! Answers "under which conditions are the figures taken?". The library sets no allocator; the benches set the one
//! that `informerd` sets, so that they measure what runs in production.

use std::time::Duration;

use criterion::Criterion;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Ten samples in two seconds: enough for a median that repeats within a few per cent, and short.
pub(crate) fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args()
}
