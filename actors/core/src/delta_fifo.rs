//! What waits between a reflector and the indexer: parts, whole lists and resyncs, in the order they came.
//!
//! Answers "what does the indexer get next, and is there room for more?"; it never looks at the store. Invariants:
//! 1. A Replace, the end of a source or a Resync is one entry of its own and a barrier: none is ever split, and nothing overtakes it.
//!    Between barriers parts leave by the [`Discipline`]: in order of arrival, or key by key.
//! 2. A push is always taken, so one entry larger than the bound is never refused for ever; the pusher is answered
//!    only when there is room, so the bounds are exceeded by at most one message per source.
//! 3. Resyncs next to each other are one: a queue that is not drained holds at most one more of them than parts.
//! 4. Under `PerKey` a version is handed out only when nothing waits any more, so that whoever stamps a state with
//!    it has applied everything up to it.
//!
//! Pushing costs per part, popping per batch. Read next: `delta_fifo/keyed.rs`; `indexer.rs`, which applies the batches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::delta::{Replacement, WatchPart};
use crate::meta::{ResourceVersion, SourceId};
use crate::processor::ListenerId;

use keyed::Keyed;

pub mod arrivals;
mod keyed;

/// In which order parts leave the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Discipline {
    /// As they came, across all keys: every published snapshot is a state that the server had.
    #[default]
    InOrder,
    /// The classic DeltaFIFO: keys in order of first arrival, all parts of a key together, oldest first, and of two
    /// deletions in a row one. A key that changes often is handled in one go; in return a snapshot may hold newer
    /// objects than its version says, and its version moves only when the queue runs empty, or by a Replace: under
    /// a load that never lets it run empty, waiting for a version takes as long as the load lasts.
    PerKey,
}

/// How much a queue takes before its pushers wait, and how much it hands out at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Parts (a Replace, the end of a source or a Resync counts as one), at least one: 4,096.
    pub parts: usize,
    /// Bytes as they came from the wire, at least one: 32 MiB.
    pub bytes: usize,
    /// Parts in one batch, at least one: 250, what one turn of the indexer may handle. Under
    /// [`Discipline::PerKey`] a key with more parts than this is one batch all the same.
    pub batch: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { parts: 4_096, bytes: 32 << 20, batch: 250 }
    }
}

impl Bounds {
    /// The name of a bound that is zero, if one is: no pusher would ever be answered, or nothing handed out.
    pub const fn zero(&self) -> Option<&'static str> {
        match self {
            Self { parts: 0, .. } => Some("parts"),
            Self { bytes: 0, .. } => Some("bytes"),
            Self { batch: 0, .. } => Some("batch"),
            _ => None,
        }
    }
}

/// How much is waiting. Bookmarks under [`Discipline::PerKey`] are kept as one version a source and not counted.
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
    /// Parts in the order of their keys, those of one key together: their versions are not in order.
    Keyed {
        /// The parts; none if only versions have moved.
        parts: Vec<(SourceId, WatchPart<S>)>,
        /// What the sources have reached with everything handed out so far; empty while more is waiting.
        reached: Vec<(SourceId, ResourceVersion)>,
    },
    /// The whole state of one source.
    Replace {
        /// Whose state.
        source: SourceId,
        /// The state.
        replacement: Replacement<S>,
    },
    /// This source is to be forgotten: everything that it put in before has been handed out.
    RemoveSource {
        /// Which one.
        source: SourceId,
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
    discipline: Discipline,
    entries: VecDeque<Entry<S>>,
    depth: Depth,
    /// Under `PerKey`: the versions of all that was handed out and not yet said to be reached.
    arrived: BTreeMap<SourceId, ResourceVersion>,
}

enum Entry<S> {
    Part(SourceId, WatchPart<S>),
    Keyed(Keyed<S>),
    Replace { source: SourceId, replacement: Replacement<S> },
    RemoveSource(SourceId),
    Resync(Arc<[ListenerId]>),
}

impl<S> Entry<S> {
    fn depth(&self) -> Depth {
        match self {
            Self::Part(_, part) => Depth { parts: 1, bytes: part.wire_bytes() },
            Self::Keyed(keyed) => keyed.depth(),
            Self::Replace { replacement, .. } => Depth { parts: 1, bytes: replacement.bytes },
            Self::RemoveSource(_) | Self::Resync(_) => Depth { parts: 1, bytes: 0 },
        }
    }
}

impl<S> DeltaQueue<S> {
    /// An empty queue.
    pub fn new(bounds: Bounds, discipline: Discipline) -> Self {
        let (entries, arrived) = (VecDeque::new(), BTreeMap::new());
        Self { bounds, discipline, entries, depth: Depth::default(), arrived }
    }

    /// Takes the parts of one source, in their order.
    pub fn push_delta(&mut self, source: SourceId, parts: Vec<WatchPart<S>>) {
        match self.discipline {
            Discipline::InOrder => {
                parts.into_iter().for_each(|part| self.push(Entry::Part(source.clone(), part)));
            }
            Discipline::PerKey => self.push_keyed(&source, parts),
        }
    }

    /// Takes the whole state of one source as one entry. O(1).
    pub fn push_replace(&mut self, source: SourceId, replacement: Replacement<S>) {
        self.push(Entry::Replace { source, replacement });
    }

    /// Takes the end of a source, behind all that it has put in; its pusher puts in nothing more under this name before
    /// the end is handed out. O(1).
    pub fn push_remove_source(&mut self, source: SourceId) {
        self.push(Entry::RemoveSource(source));
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
            self.depth.parts -= 1;
        }
        self.push(Entry::Resync(united.into_iter().collect()));
    }

    /// Whether a pusher may be answered, that is asked for more.
    pub fn has_room(&self) -> bool {
        self.depth.parts < self.bounds.parts && self.depth.bytes < self.bounds.bytes
    }

    /// The next batch: parts up to the batch bound, or one Replace, or one Resync; `None` when empty.
    pub fn pop_batch(&mut self) -> Option<Batch<S>> {
        loop {
            match self.pop() {
                None => return self.run_empty(Vec::new()),
                Some(Entry::Replace { source, replacement }) => {
                    // Its own version is the source's now, forward or back.
                    self.arrived.remove(&source);
                    return Some(Batch::Replace { source, replacement });
                }
                Some(Entry::RemoveSource(source)) => {
                    self.arrived.remove(&source);
                    return Some(Batch::RemoveSource { source });
                }
                Some(Entry::Resync(due)) => return Some(Batch::Resync { due }),
                Some(Entry::Part(source, part)) => {
                    return Some(Batch::Parts(self.run_of_parts((source, part))));
                }
                Some(Entry::Keyed(keyed)) => match self.whole_keys(keyed) {
                    parts if self.entries.is_empty() => return self.run_empty(parts),
                    // Nothing but bookmarks before a barrier.
                    parts if parts.is_empty() => {}
                    parts => return Some(Batch::Keyed { parts, reached: Vec::new() }),
                },
            }
        }
    }

    /// How much is waiting.
    pub const fn depth(&self) -> Depth {
        self.depth
    }

    fn push_keyed(&mut self, source: &SourceId, parts: Vec<WatchPart<S>>) {
        if parts.is_empty() {
            return;
        }
        if !matches!(self.entries.back(), Some(Entry::Keyed(_))) {
            self.entries.push_back(Entry::Keyed(Keyed::new()));
        }
        let Some(Entry::Keyed(keyed)) = self.entries.back_mut() else { return };
        let before = keyed.depth();
        parts.into_iter().for_each(|part| keyed.push(source, part));
        let now = keyed.depth();
        self.depth.parts = self.depth.parts + now.parts - before.parts;
        self.depth.bytes = self.depth.bytes + now.bytes - before.bytes;
    }

    /// The next keys of the popped entry; what is left of it goes back to the front.
    fn whole_keys(&mut self, mut keyed: Keyed<S>) -> Vec<(SourceId, WatchPart<S>)> {
        let parts = keyed.pop(self.bounds.batch);
        if keyed.is_empty() {
            for (source, version) in keyed.into_reached() {
                keyed::reach(&mut self.arrived, &source, &version);
            }
        } else {
            let depth = keyed.depth();
            self.depth.parts += depth.parts;
            self.depth.bytes += depth.bytes;
            self.entries.push_front(Entry::Keyed(keyed));
        }
        parts
    }

    /// The last parts that waited, with the versions that are reached by them.
    fn run_empty(&mut self, parts: Vec<(SourceId, WatchPart<S>)>) -> Option<Batch<S>> {
        let reached: Vec<_> = std::mem::take(&mut self.arrived).into_iter().collect();
        let is_nothing = parts.is_empty() && reached.is_empty();
        (!is_nothing).then_some(Batch::Keyed { parts, reached })
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
        let depth = entry.depth();
        self.depth.parts += depth.parts;
        self.depth.bytes += depth.bytes;
        self.entries.push_back(entry);
    }

    fn pop(&mut self) -> Option<Entry<S>> {
        let entry = self.entries.pop_front()?;
        let depth = entry.depth();
        self.depth.parts -= depth.parts;
        self.depth.bytes -= depth.bytes;
        Some(entry)
    }
}

impl<S> fmt::Debug for DeltaQueue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaQueue").field("bounds", &self.bounds).field("depth", &self.depth()).finish()
    }
}

#[cfg(test)]
mod tests;
