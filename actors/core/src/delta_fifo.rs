//! What waits between a reflector and the indexer: parts, whole lists and resyncs, in the order they came.
//!
//! Answers "what does the indexer get next, and is there room for more?"; it never looks at the store and reorders
//! nothing (the discipline `InOrder`). Invariants:
//! 1. What is popped is what was pushed, in that order, each once: a batch is a run of parts, and a Replace or a
//!    Resync is one entry of its own, so none is ever split or overtaken.
//! 2. A push is always taken, so one entry larger than the bound is never refused for ever; the pusher is answered
//!    only when there is room, so the bounds are exceeded by at most one message per source.
//! 3. Resyncs next to each other are one: a queue that is not drained holds at most one more of them than parts.
//!
//! Pushing costs per part, popping per batch. Read next: `indexer.rs`, which applies the batches.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::delta::{Replacement, WatchPart};
use crate::meta::SourceId;
use crate::processor::ListenerId;

/// How much a queue takes before its pushers wait, and how much it hands out at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Parts (a Replace or a Resync counts as one): 4,096.
    pub parts: usize,
    /// Bytes as they came from the wire: 32 MiB.
    pub bytes: usize,
    /// Parts in one batch, at least one: 250, what one turn of the indexer may handle.
    pub batch: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { parts: 4_096, bytes: 32 << 20, batch: 250 }
    }
}

/// How much is waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Parts; a Replace or a Resync counts as one.
    pub parts: usize,
    /// Bytes as they came from the wire.
    pub bytes: usize,
}

/// What the indexer handles next.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever handles batches must handle every kind of them")]
pub enum Batch<S> {
    /// Parts of any sources, in order of arrival.
    Parts(Vec<(SourceId, WatchPart<S>)>),
    /// The whole state of one source.
    Replace {
        /// Whose state.
        source: SourceId,
        /// The state.
        replacement: Replacement<S>,
    },
    /// Subscriptions that are to be told everything again, at this place in the order.
    Resync {
        /// Which ones, each once, in order of their ids.
        due: Arc<[ListenerId]>,
    },
}

/// The queue of one informer.
pub struct DeltaQueue<S> {
    bounds: Bounds,
    entries: VecDeque<Entry<S>>,
    bytes: usize,
}

enum Entry<S> {
    Part(SourceId, WatchPart<S>),
    Replace { source: SourceId, replacement: Replacement<S>, bytes: usize },
    Resync(Arc<[ListenerId]>),
}

impl<S> Entry<S> {
    fn bytes(&self) -> usize {
        match self {
            Self::Part(_, part) => part.wire_bytes(),
            Self::Replace { bytes, .. } => *bytes,
            Self::Resync(_) => 0,
        }
    }
}

impl<S> DeltaQueue<S> {
    /// An empty queue.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, entries: VecDeque::new(), bytes: 0 }
    }

    /// Takes the parts of one source, in their order.
    pub fn push_delta(&mut self, source: SourceId, parts: Vec<WatchPart<S>>) {
        for part in parts {
            self.push(Entry::Part(source.clone(), part));
        }
    }

    /// Takes the whole state of one source as one entry; costs one look at each object's size.
    pub fn push_replace(&mut self, source: SourceId, replacement: Replacement<S>) {
        let bytes = replacement_bytes(&replacement);
        self.push(Entry::Replace { source, replacement, bytes });
    }

    /// Takes a resync; one that is still the newest entry is extended instead.
    pub fn push_resync(&mut self, due: Arc<[ListenerId]>) {
        let queued = match self.entries.back() {
            Some(Entry::Resync(queued)) => Arc::clone(queued),
            _ => Arc::from([]),
        };
        let united: BTreeSet<ListenerId> = queued.iter().chain(due.iter()).copied().collect();
        if united.is_empty() {
            return;
        }
        if !queued.is_empty() {
            self.entries.pop_back();
        }
        self.push(Entry::Resync(united.into_iter().collect()));
    }

    /// Whether a pusher may be answered, that is asked for more.
    pub fn has_room(&self) -> bool {
        self.entries.len() < self.bounds.parts && self.bytes < self.bounds.bytes
    }

    /// The next batch: a run of parts up to the batch bound, or one Replace, or one Resync; `None` when empty.
    pub fn pop_batch(&mut self) -> Option<Batch<S>> {
        match self.pop()? {
            Entry::Replace { source, replacement, .. } => Some(Batch::Replace { source, replacement }),
            Entry::Resync(due) => Some(Batch::Resync { due }),
            Entry::Part(source, part) => Some(Batch::Parts(self.run_of_parts((source, part)))),
        }
    }

    /// How much is waiting.
    pub fn depth(&self) -> Depth {
        Depth { parts: self.entries.len(), bytes: self.bytes }
    }

    fn run_of_parts(&mut self, first: (SourceId, WatchPart<S>)) -> Vec<(SourceId, WatchPart<S>)> {
        let mut run = vec![first];
        while run.len() < self.bounds.batch && matches!(self.entries.front(), Some(Entry::Part(..))) {
            if let Some(Entry::Part(source, part)) = self.pop() {
                run.push((source, part));
            }
        }
        run
    }

    fn push(&mut self, entry: Entry<S>) {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    fn pop(&mut self) -> Option<Entry<S>> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.bytes();
        Some(entry)
    }
}

impl<S> fmt::Debug for DeltaQueue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaQueue").field("bounds", &self.bounds).field("depth", &self.depth()).finish()
    }
}

/// An object that could not be decoded counts like any part without object.
fn replacement_bytes<S>(replacement: &Replacement<S>) -> usize {
    let objects: usize = replacement.objects.iter().map(|object| object.wire_bytes() as usize).sum();
    objects + replacement.set_aside.len() * 64
}

#[cfg(test)]
mod tests;
