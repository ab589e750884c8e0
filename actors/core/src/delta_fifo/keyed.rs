//! The waiting parts by key: what the queue keeps between two barriers under `PerKey`.
//!
//! Answers "which key is next, and which parts of it wait?". The table [`compress`] merges two parts of a key.
//! Invariants:
//! 1. A key has one place, that of its first part. Its parts leave together, oldest first.
//! 2. A bookmark is not kept as a part: only the version that it reaches is kept, one per source.
//!
//! Logarithmic in the number of keys that wait. Read next: `delta_fifo.rs`, which puts barriers between these.

use std::collections::{BTreeMap, VecDeque};

use super::Depth;
use crate::delta::{Compressed, WatchPart, compress};
use crate::meta::{ObjectKey, ResourceVersion, SourceId};

/// A part and its source.
pub(super) type SourcePart<S> = (SourceId, WatchPart<S>);

pub(super) struct PartsByKey<S> {
    order: VecDeque<ObjectKey>,
    parts: BTreeMap<ObjectKey, Vec<SourcePart<S>>>,
    reached: BTreeMap<SourceId, ResourceVersion>,
    depth: Depth,
}

impl<S> PartsByKey<S> {
    pub(super) const fn new() -> Self {
        let depth = Depth { parts: 0, bytes: 0 };
        Self { order: VecDeque::new(), parts: BTreeMap::new(), reached: BTreeMap::new(), depth }
    }

    pub(super) fn push(&mut self, source: &SourceId, part: WatchPart<S>) {
        if let Some(version) = part.reached() {
            reach(&mut self.reached, source, version);
        }
        let Some(key) = part.key() else { return };
        let Some(waiting) = self.parts.get_mut(key) else {
            self.order.push_back(key.clone());
            self.depth.parts += 1;
            self.depth.bytes += part.wire_bytes();
            self.parts.insert(key.clone(), vec![(source.clone(), part)]);
            return;
        };
        let last = waiting.last_mut().filter(|(of, _)| of == source);
        match last.map(|(_, last)| (compress(last, &part), last)) {
            Some((Compressed::Older, _)) => {}
            Some((Compressed::Newer, last)) => {
                self.depth.bytes = self.depth.bytes + part.wire_bytes() - last.wire_bytes();
                *last = part;
            }
            Some((Compressed::Both, _)) | None => {
                self.depth.parts += 1;
                self.depth.bytes += part.wire_bytes();
                waiting.push((source.clone(), part));
            }
        }
    }

    /// All parts of the next keys, up to `most` parts; at least one key, also if it has more parts.
    pub(super) fn pop(&mut self, most: usize) -> Vec<SourcePart<S>> {
        let mut popped = Vec::new();
        while let Some(key) = self.order.front() {
            let count = self.parts.get(key).map_or(0, Vec::len);
            if !popped.is_empty() && popped.len() + count > most {
                break;
            }
            let parts = self.parts.remove(key).unwrap_or_default();
            self.order.pop_front();
            self.depth.parts -= count;
            self.depth.bytes -= parts.iter().map(|(_, part)| part.wire_bytes()).sum::<usize>();
            popped.extend(parts);
        }
        popped
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) const fn depth(&self) -> Depth {
        self.depth
    }

    /// The versions that the sources have reached with all that was pushed.
    pub(super) fn into_reached(self) -> BTreeMap<SourceId, ResourceVersion> {
        self.reached
    }
}

/// Moves a source forward, never back.
pub(super) fn reach(
    reached: &mut BTreeMap<SourceId, ResourceVersion>,
    source: &SourceId,
    version: &ResourceVersion,
) {
    match reached.get_mut(source) {
        Some(known) if *known >= *version => {}
        Some(known) => *known = version.clone(),
        None => drop(reached.insert(source.clone(), version.clone())),
    }
}
