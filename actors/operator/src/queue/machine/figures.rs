//! What a work queue measures.
//!
//! Depth, adds, retries, `unfinished` and `longest_running` are what client-go's workqueue metrics count. Counters only grow.

use std::time::Duration;

use informer_core::timing::Timing;

use super::{Merge, Priority, QueueMachine};

/// The figures of a queue at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct QueueFigures {
    /// Keys that wait, by priority, the most urgent first.
    pub depth: [usize; 3],
    /// Keys with a delayed add.
    pub delayed: usize,
    /// Those of them that have failed, and have not been worked on since.
    pub retrying: usize,
    /// Keys that are being processed.
    pub processing: usize,
    /// Adds that made a key wait. Several adds before a key is handed out count once.
    pub adds: u64,
    /// Rate-limited adds.
    pub retries: u64,
    /// Adds after the shutdown.
    pub refused: u64,
    /// Keys and delayed adds that were discarded: by a shutdown, or because their object is gone and another
    /// process leads.
    pub discarded: u64,
    /// How long the keys that were handed out have waited.
    pub waited: Timing,
    /// How long the keys that came back were processed.
    pub worked: Timing,
    /// For how long the keys that have not come back have been processed, all together.
    pub unfinished: Duration,
    /// The longest of them.
    pub longest_running: Duration,
}

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
    /// The key that has been processed for the longest time, and for how long.
    pub fn longest_running(&self, now: Duration) -> Option<(K, Duration)> {
        let (since, id) = self.processing.first()?;
        let key = self.slots.get(*id)?.key.clone();
        Some((key, now.saturating_sub(Duration::from_nanos(*since))))
    }

    /// The figures at this time. O(keys that are being processed).
    pub fn figures(&self, now: Duration) -> QueueFigures {
        let running = |since: u64| now.saturating_sub(Duration::from_nanos(since));
        let all = self.processing.iter().map(|(since, _)| running(*since));
        QueueFigures {
            depth: Priority::ALL.map(|priority| self.lines.depth(priority)),
            delayed: self.delays.len(),
            retrying: self.retrying.len(),
            processing: self.processing.len(),
            unfinished: all.fold(Duration::ZERO, Duration::saturating_add),
            longest_running: self.processing.first().map(|(since, _)| running(*since)).unwrap_or_default(),
            ..self.cells
        }
    }
}
