//! Whether an informer has synced: which of its sources have published their first list.
//!
//! Answers "may readers take this store for complete, and if not, who is missing?". Whether one *subscription* has
//! worked through its initial events is `listener.rs`. Invariants:
//! 1. A source counts from the first published snapshot that holds a version of it, not when its list arrives.
//! 2. Latched: what has synced stays synced, through relists, failures and restarts.
//! 3. No sources, nothing missing.
//!
//! Read next: `listener.rs`, [`crate::listener::Ledger::initial_delivered`].

use crate::meta::SourceId;
use crate::snapshot::Snapshot;

/// The sources that have not yet published a first list.
#[derive(Debug, Clone)]
pub struct SyncTracker {
    missing: Vec<SourceId>,
}

impl SyncTracker {
    /// Waits for all of these.
    pub fn new(sources: impl IntoIterator<Item = SourceId>) -> Self {
        let mut missing: Vec<SourceId> = sources.into_iter().collect();
        missing.sort_unstable();
        missing.dedup();
        Self { missing }
    }

    /// Looks at a published snapshot; costs nothing once synced.
    pub fn observe<S>(&mut self, snapshot: &Snapshot<S>) {
        self.missing.retain(|source| snapshot.version(source).is_none());
        if self.missing.is_empty() {
            // Every listener has one of these: a synced one should hold nothing.
            self.missing = Vec::new();
        }
    }

    /// Whether every source has published its first list.
    pub fn is_synced(&self) -> bool {
        self.missing.is_empty()
    }

    /// Those still missing, in order of their names.
    pub fn missing(&self) -> impl Iterator<Item = &SourceId> {
        self.missing.iter()
    }
}

#[cfg(test)]
mod tests;
