//! The waiting parts by key between two barriers, under `PerKey`. Invariants:
//! 1. A key has the place of its first part. Its parts leave together, oldest first.
//! 2. Of bookmarks only the version is kept, one per source.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Depth;
use crate::delta::{Compressed, WatchPart, compress};
use crate::meta::{ObjectKey, ResourceVersion, SourceId};

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

    /// All parts of the next keys, up to `most` parts; at least one key, however many it has.
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

    pub(super) fn into_reached(self) -> BTreeMap<SourceId, ResourceVersion> {
        self.reached
    }
}

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

// By arrival, the oldest arrival in a batch is exact. Per key it may be too early, never too late.

/// The times at which the parts in a queue were pushed.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// How many parts were pushed in all after a push, and when; oldest first.
    marks: VecDeque<(u64, Duration)>,
    popped: u64,
    waiting: usize,
}

impl Arrivals {
    /// Something was pushed; `waiting` parts are in the queue now.
    pub fn handle_push(&mut self, waiting: usize, now: Duration) {
        let pushed = self.popped.saturating_add(waiting as u64);
        if self.marks.back().is_none_or(|(newest, _)| *newest < pushed) && waiting > self.waiting {
            self.marks.push_back((pushed, now));
        }
        self.waiting = waiting;
    }

    /// Something was popped; `waiting` parts are left in the queue. Returns when the oldest popped part
    /// arrived; `None` if no part was popped.
    pub fn handle_pop(&mut self, waiting: usize) -> Option<Duration> {
        let oldest = self.oldest().filter(|_| waiting < self.waiting);
        self.popped = self.popped.saturating_add(self.waiting.saturating_sub(waiting) as u64);
        self.waiting = waiting;
        while self.marks.front().is_some_and(|(pushed, _)| *pushed <= self.popped) {
            self.marks.pop_front();
        }
        if waiting == 0 {
            self.marks.clear();
        }
        oldest
    }

    /// When the oldest waiting part arrived.
    pub fn oldest(&self) -> Option<Duration> {
        self.marks.front().map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod arrivals_tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_oldest_part_of_a_batch_shows_when_it_arrived() {
        let mut arrivals = Arrivals::default();
        arrivals.handle_push(3, at(1));
        arrivals.handle_push(5, at(2));
        assert_eq!(arrivals.handle_pop(3), Some(at(1)), "two of the first three");
        assert_eq!(arrivals.handle_pop(1), Some(at(1)), "the last of them, and one of the others");
        arrivals.handle_push(2, at(7));
        assert_eq!(arrivals.oldest(), Some(at(2)));
        assert_eq!(arrivals.handle_pop(0), Some(at(2)));
        assert_eq!((arrivals.handle_pop(0), arrivals.oldest()), (None, None));
    }

    proptest! {
        #[test]
        fn in_order_of_arrival_it_is_exact_and_holds_no_more_marks_than_parts(
            steps in prop::collection::vec((any::<bool>(), 1_usize..5), 1..60),
        ) {
            let (mut arrivals, mut queue) = (Arrivals::default(), VecDeque::new());
            for (second, (is_push, parts)) in (0..).zip(steps) {
                if is_push {
                    queue.extend(std::iter::repeat_n(at(second), parts));
                    arrivals.handle_push(queue.len(), at(second));
                } else {
                    let oldest = queue.front().copied();
                    queue.drain(..parts.min(queue.len()));
                    prop_assert_eq!(arrivals.handle_pop(queue.len()), oldest);
                    prop_assert_eq!(arrivals.handle_pop(queue.len()), None, "nothing was popped");
                }
                prop_assert!(arrivals.marks.len() <= queue.len());
                prop_assert_eq!(arrivals.oldest(), queue.front().copied());
            }
        }
    }
}
