//! What the sources of an informer have done together. Removed sources stay in it, so no number goes back.

use informer_core::reflector::SourceCounters;

use crate::pipeline::figures::WatchEnds;
use crate::pipeline::status::{RepairCounters, SourceStatus};

/// The resource of an informer, as Kubernetes names it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "a resource has no further name")]
pub struct ResourceName {
    /// Empty for the core group.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// The plural, such as `pods`.
    pub resource: String,
}

/// What all sources of an informer have done, those that were removed included. Numbers only grow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceTotals {
    /// Lists, watches and failures.
    pub counters: SourceCounters,
    /// How watches have ended.
    pub watch_ends: WatchEnds,
    /// Events of watches: added, modified and deleted objects, not bookmarks.
    pub watch_events: u64,
    /// See [`SourceStatus::wire_bytes`].
    pub wire_bytes: u64,
    /// GETs for undecodable objects.
    pub repairs: RepairCounters,
    /// Restarts of reflectors after panics.
    pub restarts: u64,
}

impl SourceTotals {
    pub(crate) fn add(&mut self, source: &SourceStatus) {
        self.counters.add(&source.counters);
        self.watch_ends.add(source.watch_ends);
        self.watch_events += source.watch_events;
        self.wire_bytes += source.wire_bytes;
        self.repairs.asked += source.repairs.asked;
        self.repairs.repaired += source.repairs.repaired;
        self.repairs.not_repaired += source.repairs.not_repaired;
        self.restarts += source.restarts;
    }
}
