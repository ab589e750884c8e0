//! The state of an informer, its sources and its runtime.

pub use informer_actors::status::{
    DataCounters, FieldBytes, InformerMemory, InformerReport, InformerStatus, LastRestart, MemoryReport,
    QueueStatus, RepairCounters, ResourceName, SavedStatus, SourceStatus, SourceTotals, Stale, TIMING_BOUNDS,
    Timing, WatchEnds,
};
pub use informer_core::indexer::Reason;
pub use informer_core::reflector::{RelistCounters, SourceCounters, SourceState};
pub use informer_operator::queue::QueueReport;
pub use informer_operator::report::{Reporting, RuntimeReport};
