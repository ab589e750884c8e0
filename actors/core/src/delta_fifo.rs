//! The queue between reflectors and indexer: parts, lists and resyncs in order of arrival. Invariants:
//! 1. No entry overtakes a Replace, the end of a source or a Resync.
//! 2. Every push is taken. The sender is answered only when there is room, so each source exceeds the bounds by at
//!    most one message.
//! 3. Adjacent resyncs merge: the queue holds at most one more of them than parts.
//! 4. Under `PerKey` a version is handed out only when the queue is empty: then everything up to it was handed out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::delta::{Replacement, WatchPart};
use crate::indexer::Successors;
use crate::meta::{ResourceVersion, SourceId};
use crate::processor::ListenerId;

use keyed::PartsByKey;

pub use keyed::Arrivals;

mod keyed;

/// Vectors with more room are not kept.
const MOST_SPARE: usize = 32;

/// In which order parts leave the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueOrder {
    /// In order of arrival, across all keys: every published snapshot is a state that the server had.
    #[default]
    InOrder,
    /// The order of client-go's DeltaFIFO: keys in order of first arrival, all parts of a key together,
    /// oldest first; of two deletions in a row one is kept. A key that changes often is handled in one batch.
    /// In return a snapshot may hold newer objects than its version says, and its version moves only when the
    /// queue runs empty, or by a Replace. Under a load that never lets the queue run empty, waiting for a
    /// version takes as long as the load.
    PerKey,
}

/// How much a queue takes before its senders wait, and how much it hands out at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Parts (a Replace, the end of a source or a Resync counts as one), at least one: 512, which is two
    /// batches.
    pub parts: usize,
    /// Bytes on the wire, at least one: 4 MiB. Decoded objects take more.
    pub bytes: usize,
    /// Parts in one batch, at least one: 250, which one turn of the indexer handles. Under
    /// [`QueueOrder::PerKey`] a key with more parts than this is still one batch.
    pub batch: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { parts: 512, bytes: 4 << 20, batch: 250 }
    }
}

impl Bounds {
    /// The name of a bound that is zero, if there is one: then no sender would be answered, or nothing handed
    /// out.
    pub const fn zero(&self) -> Option<&'static str> {
        match self {
            Self { parts: 0, .. } => Some("parts"),
            Self { bytes: 0, .. } => Some("bytes"),
            Self { batch: 0, .. } => Some("batch"),
            _ => None,
        }
    }
}

/// How much is waiting. Under [`QueueOrder::PerKey`] bookmarks are kept as one version per source and not
/// counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Parts; a Replace or a Resync counts as one.
    pub parts: usize,
    /// Bytes on the wire.
    pub bytes: usize,
}

/// What the indexer handles next.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the indexer must handle every kind of batch")]
pub enum Batch<S> {
    /// Parts of any sources, in order of arrival.
    Parts(Vec<(SourceId, WatchPart<S>)>),
    /// Parts in the order of their keys, those of one key together: their versions are not in order.
    PartsByKey {
        /// The parts; none if only versions have moved.
        parts: Vec<(SourceId, WatchPart<S>)>,
        /// The versions that the sources have reached with everything handed out so far; empty while more is
        /// waiting.
        reached: Vec<(SourceId, ResourceVersion)>,
    },
    /// The whole list of one source.
    Replace {
        /// The source.
        source: SourceId,
        /// The list.
        replacement: Replacement<S>,
    },
    /// This source is removed. Everything that it put in before has been handed out.
    RemoveSource {
        /// Which one.
        source: SourceId,
        /// The sources that take over from it.
        successors: Successors,
    },
    /// A resync of these subscriptions, at this place in the order.
    Resync {
        /// Which ones, each once, in order of their ids.
        due: Arc<[ListenerId]>,
    },
}

impl<S> Batch<S> {
    /// Names each source whose version the batch may move, some of them several times.
    pub fn for_each_source(&self, mut name: impl FnMut(&SourceId)) {
        match self {
            Self::Parts(parts) => parts.iter().for_each(|(source, _)| name(source)),
            Self::PartsByKey { reached, .. } => reached.iter().for_each(|(source, _)| name(source)),
            Self::Replace { source, .. } | Self::RemoveSource { source, .. } => name(source),
            Self::Resync { .. } => {}
        }
    }
}

/// The queue of one informer.
pub struct DeltaQueue<S> {
    bounds: Bounds,
    queue_order: QueueOrder,
    entries: VecDeque<Entry<S>>,
    depth: Depth,
    spare: Vec<(SourceId, WatchPart<S>)>,
    /// Under `PerKey`: versions of parts handed out, not yet handed out themselves.
    arrived: BTreeMap<SourceId, ResourceVersion>,
}

enum Entry<S> {
    Part(SourceId, WatchPart<S>),
    PartsByKey(PartsByKey<S>),
    Replace { source: SourceId, replacement: Replacement<S> },
    RemoveSource(SourceId, Successors),
    Resync(Arc<[ListenerId]>),
}

impl<S> Entry<S> {
    fn depth(&self) -> Depth {
        match self {
            Self::Part(_, part) => Depth { parts: 1, bytes: part.wire_bytes() },
            Self::PartsByKey(keyed) => keyed.depth(),
            Self::Replace { replacement, .. } => Depth { parts: 1, bytes: replacement.bytes },
            Self::RemoveSource(..) | Self::Resync(_) => Depth { parts: 1, bytes: 0 },
        }
    }
}

impl<S> DeltaQueue<S> {
    /// An empty queue.
    pub fn new(bounds: Bounds, queue_order: QueueOrder) -> Self {
        let (entries, spare, arrived) = (VecDeque::new(), Vec::new(), BTreeMap::new());
        Self { bounds, queue_order, entries, depth: Depth::default(), spare, arrived }
    }

    /// Takes the parts of one source, in their order.
    pub fn push_delta(&mut self, source: SourceId, parts: Vec<WatchPart<S>>) {
        match self.queue_order {
            QueueOrder::InOrder => {
                parts.into_iter().for_each(|part| self.push(Entry::Part(source.clone(), part)));
            }
            QueueOrder::PerKey => self.push_keyed(&source, parts),
        }
    }

    /// Takes the whole state of one source as one entry. O(1).
    pub fn push_replace(&mut self, source: SourceId, replacement: Replacement<S>) {
        self.push(Entry::Replace { source, replacement });
    }

    /// Takes the end of a source, after all that it has put in; `successors` take over from it. Nothing more
    /// may be put in under this name before the end is handed out. O(1).
    pub fn push_remove_source(&mut self, source: SourceId, successors: Successors) {
        self.push(Entry::RemoveSource(source, successors));
    }

    /// Takes a resync, or extends the newest entry if that is a resync.
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

    /// Whether there is room: a sender may be answered.
    pub fn has_room(&self) -> bool {
        self.depth.parts < self.bounds.parts && self.depth.bytes < self.bounds.bytes
    }

    /// Keeps this vector, emptied, for a later batch, so that a lone event needs no new one. A large one is
    /// freed: it costs little beside a large batch, and an idle queue must hold little.
    pub fn reuse(&mut self, mut spare: Vec<(SourceId, WatchPart<S>)>) {
        spare.clear();
        if spare.capacity() <= MOST_SPARE {
            self.spare = spare;
        }
    }

    /// The next batch: parts up to the batch bound, or one Replace, or one Resync; `None` when empty.
    pub fn pop_batch(&mut self) -> Option<Batch<S>> {
        loop {
            match self.pop() {
                None => return self.run_empty(Vec::new()),
                Some(Entry::Replace { source, replacement }) => {
                    // The list's version replaces the source's, forward or back.
                    self.arrived.remove(&source);
                    return Some(Batch::Replace { source, replacement });
                }
                Some(Entry::RemoveSource(source, successors)) => {
                    self.arrived.remove(&source);
                    return Some(Batch::RemoveSource { source, successors });
                }
                Some(Entry::Resync(due)) => return Some(Batch::Resync { due }),
                Some(Entry::Part(source, part)) => {
                    return Some(Batch::Parts(self.run_of_parts((source, part))));
                }
                Some(Entry::PartsByKey(keyed)) => match self.whole_keys(keyed) {
                    parts if self.entries.is_empty() => return self.run_empty(parts),
                    // Only bookmarks before a barrier: no batch.
                    parts if parts.is_empty() => {}
                    parts => return Some(Batch::PartsByKey { parts, reached: Vec::new() }),
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
        if !matches!(self.entries.back(), Some(Entry::PartsByKey(_))) {
            self.entries.push_back(Entry::PartsByKey(PartsByKey::new()));
        }
        let Some(Entry::PartsByKey(keyed)) = self.entries.back_mut() else { return };
        let before = keyed.depth();
        parts.into_iter().for_each(|part| keyed.push(source, part));
        let now = keyed.depth();
        self.depth.parts = self.depth.parts + now.parts - before.parts;
        self.depth.bytes = self.depth.bytes + now.bytes - before.bytes;
    }

    fn whole_keys(&mut self, mut keyed: PartsByKey<S>) -> Vec<(SourceId, WatchPart<S>)> {
        let parts = keyed.pop(self.bounds.batch);
        if keyed.is_empty() {
            for (source, version) in keyed.into_reached() {
                keyed::reach(&mut self.arrived, &source, &version);
            }
        } else {
            let depth = keyed.depth();
            self.depth.parts += depth.parts;
            self.depth.bytes += depth.bytes;
            self.entries.push_front(Entry::PartsByKey(keyed));
        }
        parts
    }

    fn run_empty(&mut self, parts: Vec<(SourceId, WatchPart<S>)>) -> Option<Batch<S>> {
        let reached: Vec<_> = std::mem::take(&mut self.arrived).into_iter().collect();
        let is_nothing = parts.is_empty() && reached.is_empty();
        (!is_nothing).then_some(Batch::PartsByKey { parts, reached })
    }

    fn run_of_parts(&mut self, first: (SourceId, WatchPart<S>)) -> Vec<(SourceId, WatchPart<S>)> {
        let mut run = std::mem::take(&mut self.spare);
        run.reserve((self.depth.parts + 1).min(self.bounds.batch));
        run.push(first);
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

crate::debug_as!([S] DeltaQueue<S>, self, bounds = self.bounds, depth = self.depth());

#[cfg(test)]
mod tests;
