//! How an informer, its sources and its runtime are doing.
//!
//! Answers "what does a dashboard show?" with names from `informer_actors` and `informer_core`; adds nothing. Read
//! next: `informer.rs`, which gives it.

pub use informer_actors::status::{
    DataCounters, InformerReport, InformerStatus, QueueReport, QueueStatus, RepairCounters, RuntimeReport,
    SourceStatus, Stale, TIMING_BOUNDS, Timing, WatchEnds,
};
pub use informer_core::indexer::Reason;
pub use informer_core::reflector::{RelistCounters, SourceCounters, SourceState};
