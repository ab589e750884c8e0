//! What the queue knows of each key, in slots with a number.
//!
//! All else in the queue names a key by its slot number, so that the queue holds each key once. A block of
//! free slots holds no memory. Times are `u64` nanoseconds since the start of the runtime: 584 years, in half
//! the memory of a `Duration`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::QueueMachine;

pub(super) const NONE: u32 = u32::MAX;

/// A number inside a block fits into a byte.
const BLOCK: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct Slot<K, P> {
    pub(super) key: K,
    pub(super) state: State,
    pub(super) delay: Option<Delay>,
    /// Handed out next, or stays known.
    pub(super) note: P,
    /// Of the delayed add.
    pub(super) delayed_note: P,
}

impl<K, P: Default> Slot<K, P> {
    pub(super) fn new(key: K) -> Self {
        Self { key, state: State::Idle, delay: None, note: P::default(), delayed_note: P::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Waiting(Waiting),
    Processing(Processing),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) since: u64,
    pub(super) before: u32,
    pub(super) behind: u32,
    pub(super) lane: u32,
    pub(super) priority: Priority,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Processing {
    pub(super) since: u64,
    /// The first add during the work; meaningless without `again`.
    pub(super) again_since: u64,
    pub(super) again: Option<Priority>,
    pub(super) priority: Priority,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delay {
    pub(super) due: u64,
    pub(super) priority: Priority,
    /// Only a failure has caused it.
    pub(super) is_retry: bool,
}

#[derive(Debug)]
pub(super) struct Slots<K, P> {
    blocks: Vec<Block<K, P>>,
    with_room: BTreeSet<usize>,
    len: usize,
}

#[derive(Debug)]
struct Block<K, P> {
    slots: Vec<Option<Slot<K, P>>>,
    free: Vec<u8>,
}

/// Saturates: such a time is never reached.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl<K, P> Default for Slots<K, P> {
    fn default() -> Self {
        Self { blocks: Vec::new(), with_room: BTreeSet::new(), len: 0 }
    }
}

impl<K, P> Slots<K, P> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, id: u32) -> Option<&Slot<K, P>> {
        let (block, at) = split(id);
        self.blocks.get(block)?.slots.get(at)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Slot<K, P>> {
        let (block, at) = split(id);
        self.blocks.get_mut(block)?.slots.get_mut(at)?.as_mut()
    }

    pub(super) fn insert(&mut self, slot: Slot<K, P>) -> u32 {
        let block = self.with_room.first().copied().unwrap_or_else(|| {
            self.with_room.insert(self.blocks.len());
            self.blocks.push(Block { slots: Vec::new(), free: Vec::new() });
            self.blocks.len() - 1
        });
        let Block { slots, free } = &mut self.blocks[block];
        let at = if let Some(at) = free.pop() {
            slots[usize::from(at)] = Some(slot);
            usize::from(at)
        } else {
            slots.push(Some(slot));
            slots.len() - 1
        };
        if slots.len() == BLOCK && free.is_empty() {
            self.with_room.remove(&block);
        }
        self.len += 1;
        u32::try_from(block * BLOCK + at).expect("a queue has less than four thousand million keys")
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Slot<K, P>> {
        let (block, at) = split(id);
        let Block { slots, free } = self.blocks.get_mut(block)?;
        let slot = slots.get_mut(at)?.take()?;
        free.push(u8::try_from(at).expect("a block has 256 slots"));
        if free.len() == slots.len() {
            (*slots, *free) = (Vec::new(), Vec::new());
        }
        self.len -= 1;
        self.with_room.insert(block);
        if self.len == 0 {
            *self = Self::default();
        }
        Some(slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Slot<K, P>)> {
        let blocks = (0..).step_by(BLOCK).zip(&self.blocks);
        blocks.flat_map(|(first, block)| {
            (first..).zip(&block.slots).filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
        })
    }
}

fn split(id: u32) -> (usize, usize) {
    let id = id as usize;
    (id / BLOCK, id % BLOCK)
}

// The note of an add merges with earlier ones under the queue's lock, so it is neither lost nor handed out
// twice. The note of a retry goes with it when the key is in order first. The number of notes with memory of
// their own is bounded: further ones are cut down to fit into a slot.

/// What is kept beside a key. The default says nothing. None of it runs code of a user: it happens while the
/// queue is locked.
pub trait Merge: Default + Clone {
    /// What is kept of all keys of a queue together, such as what bounds their notes.
    type Tally: Default + Clone + Send;

    /// Takes in what came later.
    fn merge(&mut self, later: Self);

    /// Whether it has memory of its own, outside of the slot.
    fn is_large(&self) -> bool {
        false
    }

    /// Frees that memory.
    fn cut(&mut self) {}

    /// Takes out what is handed out with the key. The rest is known of the key.
    fn hand_out(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Whether what is known of the key stays when nothing else is.
    fn stays(&self) -> bool {
        false
    }
}

impl Merge for () {
    type Tally = ();

    fn merge(&mut self, (): Self) {}
}

impl<K: Ord + Clone, P: Merge> QueueMachine<K, P> {
    pub(crate) fn noted(&mut self, key: &K) -> (Option<&mut P>, &mut P::Tally) {
        let slot = self.find(key).and_then(|id| self.slots.get_mut(id));
        (slot.map(|slot| &mut slot.note), &mut self.tally)
    }

    pub(crate) fn free(&mut self, key: &K) {
        if let Ok((place, id)) = self.search(key) {
            self.free_if_idle(place, id);
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budget {
    pub(super) large: usize,
    pub(super) most: usize,
}

impl Budget {
    pub(super) fn merge<P: Merge>(&mut self, note: &mut P, mut later: P) {
        let was_large = note.is_large();
        if !was_large && later.is_large() && self.large >= self.most {
            later.cut();
        }
        note.merge(later);
        self.large += usize::from(!was_large && note.is_large());
    }

    pub(super) fn take<P: Merge>(&mut self, note: &mut P) -> P {
        self.large -= usize::from(note.is_large());
        note.hand_out()
    }
}

/// How urgent a key is. A key of a lower class waits while keys of higher classes do, but not for ever: while
/// a key of a class waits, at least one of nine keys that are handed out is of that class.
///
/// Ordered: `Low < Normal < High`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an array is kept by it, and who shows the classes shows them all"
)]
pub enum Priority {
    /// Work that can wait: the first list of an informer, and its resyncs.
    Low,
    /// Everything else.
    #[default]
    Normal,
    /// Work that a person or another system waits for.
    High,
}

impl Priority {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Delay, Slot, Slots};
    use informer_core::meta::ObjectKey;

    fn slot(key: u32) -> Slot<u32, ()> {
        Slot::new(key)
    }

    #[test]
    fn a_slot_takes_at_most_48_bytes_beside_its_key() {
        assert!(size_of::<Option<Slot<ObjectKey, ()>>>() <= size_of::<ObjectKey>() + 48);
        assert_eq!(size_of::<Option<Delay>>(), 16);
    }

    #[test]
    fn freed_slots_are_used_again_and_empty_blocks_hold_no_memory() {
        let mut slots = Slots::default();
        let ids: Vec<u32> = (0..1_000).map(|key| slots.insert(slot(key))).collect();
        assert!(ids.iter().all(|id| slots.get(*id).is_some_and(|slot| slot.key == *id)));
        for id in &ids[..BLOCK] {
            assert!(slots.remove(*id).is_some() && slots.remove(*id).is_none());
        }
        assert_eq!((slots.blocks[0].slots.capacity(), slots.len()), (0, 1_000 - BLOCK));
        assert!(slots.insert(slot(7)) < 256, "the first free number is used first");
        for id in ids {
            slots.remove(id);
        }
        assert_eq!((slots.len(), slots.blocks.capacity()), (0, 0));
    }
}
