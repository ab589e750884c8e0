//! The newest changes of one informer that leave marks: where each has been, and when.
//!
//! 1. A change has one entry, found by its version: a mark costs no search among texts. Most changes pass a hop in
//!    the order of their entries: the next one is tried first.
//! 2. The oldest entry goes for a new one, with its marks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Hop, MOST_MARKS, Mark, Passage, SLOW, SLOW_EVERY};
use crate::meta::{ObjectKey, ResourceVersion};

/// Entries of an informer: a power of two.
pub(super) const MOST_CHANGES: usize = 1_024;

const HOPS: [Hop; 6] = [Hop::Read, Hop::Scanned, Hop::Decoded, Hop::Queued, Hop::Published, Hop::Distributed];

/// The time of a mark, and its number among all marks.
type Stamp = (Duration, u64);

#[derive(Debug)]
struct Entry {
    key: ObjectKey,
    version: ResourceVersion,
    source: Option<Arc<str>>,
    /// When it left its first mark.
    first: Duration,
    stamps: [Option<Stamp>; HOPS.len()],
    /// The entry before of the same slot of [`Changes::newest`].
    before: u64,
}

#[derive(Debug)]
struct Delivery {
    /// The number of its entry.
    entry: u64,
    subscription: Arc<str>,
    is_live: bool,
    delivered: Stamp,
    handled: Option<Stamp>,
}

/// The newest things of a sequence, at most `MOST`, a power of two. The first one ever has the number 1.
#[derive(Debug)]
struct Ring<T, const MOST: usize> {
    kept: Vec<T>,
    newest: u64,
}

#[derive(Debug, Default)]
pub(super) struct Changes {
    entries: Ring<Entry, MOST_CHANGES>,
    /// The number of the newest entry, by a hash of its version; empty before the first entry.
    newest: Vec<u64>,
    /// For each hop, the entry expected next.
    expected: [u64; HOPS.len() + 1],
    deliveries: Ring<Delivery, MOST_MARKS>,
    /// Numbers of deliveries that are not handled, by subscription.
    unhandled: BTreeMap<Arc<str>, Vec<u64>>,
    /// When a slow path was told last.
    slow_since: Option<Duration>,
    pub(super) is_cut: bool,
}

/// Versions of one kind are sparse: their lowest bits alone would share few slots.
fn slot(version: &ResourceVersion) -> usize {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let hash = version.low_bits().wrapping_mul(GOLDEN);
    usize::try_from(hash >> (u64::BITS - MOST_CHANGES.ilog2())).unwrap_or_default()
}

fn stamp(noted: &mut u64, at: Duration) -> Stamp {
    *noted += 1;
    (at, *noted)
}

impl Changes {
    pub(super) fn pass<'a>(
        &mut self,
        noted: &mut u64,
        step: Passage<'_>,
        at: Duration,
        changes: impl Iterator<Item = (&'a ObjectKey, &'a ResourceVersion, bool)>,
    ) {
        match step {
            Passage::Arrived { source, read, scanned } => {
                let [read, scanned] = [read, scanned].map(|before| before.map(|before| before.min(at)));
                for (key, version, _) in changes {
                    let first = read.or(scanned).unwrap_or(at);
                    let stamps = [read, scanned, Some(at)].map(|at| Some(stamp(noted, at?)));
                    let number = self.push((key, version), first);
                    if let Some(entry) = self.entries.get_mut(number) {
                        entry.source = Some(Arc::clone(source.shared()));
                        entry.stamps[..stamps.len()].copy_from_slice(&stamps);
                    }
                }
            }
            Passage::Passed(hop) => {
                changes.for_each(|(key, version, _)| self.note(noted, (key, version), hop, at));
            }
            Passage::Delivered(subscription) => {
                let mut unhandled = self.unhandled.remove(subscription).unwrap_or_default();
                for (key, version, is_live) in changes {
                    let number = self.deliver(noted, (key, version), (subscription, at, is_live));
                    if unhandled.len() < MOST_MARKS {
                        unhandled.push(number);
                    }
                }
                self.unhandled.insert(Arc::clone(subscription), unhandled);
            }
        }
    }

    fn note(&mut self, noted: &mut u64, of: (&ObjectKey, &ResourceVersion), hop: Hop, at: Duration) {
        let known = self.find(of, hop).and_then(|number| Some((number, self.entries.get(number)?)));
        let number = match known {
            Some((number, entry)) if entry.stamps.get(hop as usize).is_some_and(Option::is_none) => number,
            // A change that passes once more, after a restart, has a second entry.
            Some((_, entry)) => self.push(of, entry.first),
            None => self.push(of, at),
        };
        let entry = self.entries.get_mut(number);
        if let Some(kept) = entry.and_then(|entry| entry.stamps.get_mut(hop as usize)) {
            *kept = Some(stamp(noted, at));
        }
    }

    fn deliver(
        &mut self,
        noted: &mut u64,
        of: (&ObjectKey, &ResourceVersion),
        (subscription, at, is_live): (&Arc<str>, Duration, bool),
    ) -> u64 {
        let entry = self.find(of, Hop::Delivered).unwrap_or_else(|| self.push(of, at));
        let (subscription, delivered) = (Arc::clone(subscription), stamp(noted, at));
        let delivery = Delivery { entry, subscription, is_live, delivered, handled: None };
        self.is_cut |= self.deliveries.push(delivery);
        self.deliveries.newest
    }

    /// The marks of the slowest change, if it is time to tell of it.
    pub(super) fn handled(
        &mut self,
        noted: &mut u64,
        at: Duration,
        informer: &Arc<str>,
        subscription: &Arc<str>,
    ) -> Option<Vec<(u64, Mark)>> {
        let mut numbers = std::mem::take(self.unhandled.get_mut(subscription)?);
        let mut slowest: Option<(Duration, u64)> = None;
        for number in numbers.drain(..) {
            let Some(delivery) = self.deliveries.get_mut(number) else { continue };
            delivery.handled = Some(stamp(noted, at));
            let entry = if delivery.is_live { self.entries.get(delivery.entry) } else { None };
            // What is not live was published long ago: a resync, or the first events of a late subscriber.
            let took = entry.map_or(Duration::ZERO, |entry| at.saturating_sub(entry.first));
            if took > SLOW && slowest.is_none_or(|(longest, _)| took > longest) {
                slowest = Some((took, number));
            }
        }
        // Its memory is used again.
        self.unhandled.insert(Arc::clone(subscription), numbers);
        let (_, slowest) = slowest?;
        if self.slow_since.is_some_and(|last| at.saturating_sub(last) < SLOW_EVERY) {
            return None;
        }
        self.slow_since = Some(at);
        let delivery = self.deliveries.get(slowest)?;
        let entry = self.entries.get(delivery.entry)?;
        Some(entry.marks(informer).chain(delivery.marks(informer, entry)).collect())
    }

    pub(super) fn forget_subscription(&mut self, subscription: &Arc<str>) {
        self.unhandled.remove(subscription);
    }

    pub(super) fn marks(
        &self,
        informer: &Arc<str>,
        is_of: impl Fn(&ObjectKey) -> bool,
        marks: &mut Vec<(u64, Mark)>,
    ) {
        for entry in self.entries.kept.iter().filter(|entry| is_of(&entry.key)) {
            marks.extend(entry.marks(informer));
        }
        for delivery in &self.deliveries.kept {
            let entry = self.entries.get(delivery.entry).filter(|entry| is_of(&entry.key));
            marks.extend(entry.into_iter().flat_map(|entry| delivery.marks(informer, entry)));
        }
    }

    /// The newest entry of this change. Several clusters may use one version.
    fn find(&mut self, of: (&ObjectKey, &ResourceVersion), hop: Hop) -> Option<u64> {
        let expected = self.expected.get_mut(hop as usize)?;
        let is_it = |entry: &Entry| entry.version == *of.1 && entry.key == *of.0;
        if !self.entries.get(*expected).is_some_and(is_it) {
            let mut number = *self.newest.get(slot(of.1))?;
            while !is_it(self.entries.get(number)?) {
                number = self.entries.get(number)?.before;
            }
            *expected = number;
        }
        *expected += 1;
        Some(*expected - 1)
    }

    fn push(&mut self, (key, version): (&ObjectKey, &ResourceVersion), first: Duration) -> u64 {
        if self.newest.is_empty() {
            self.newest.resize(MOST_CHANGES, 0);
        }
        let number = self.entries.newest + 1;
        let newest = self.newest.get_mut(slot(version));
        let before = newest.map_or(0, |newest| std::mem::replace(newest, number));
        let (key, version) = (key.clone(), version.clone());
        let entry = Entry { key, version, source: None, first, stamps: [None; HOPS.len()], before };
        self.is_cut |= self.entries.push(entry);
        number
    }
}

impl<T, const MOST: usize> Ring<T, MOST> {
    fn place(&self, number: u64) -> Option<usize> {
        let is_kept = number > self.newest.saturating_sub(MOST as u64) && number <= self.newest;
        is_kept.then(|| (number as usize).wrapping_sub(1) & (MOST - 1))
    }

    fn get(&self, number: u64) -> Option<&T> {
        self.kept.get(self.place(number)?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number)?;
        self.kept.get_mut(place)
    }

    /// Returns whether the oldest one has gone for it.
    fn push(&mut self, thing: T) -> bool {
        self.newest += 1;
        let place = self.place(self.newest).and_then(|place| self.kept.get_mut(place));
        let Some(oldest) = place else {
            self.kept.push(thing);
            return false;
        };
        *oldest = thing;
        true
    }
}

impl<T, const MOST: usize> Default for Ring<T, MOST> {
    fn default() -> Self {
        const { assert!(MOST.is_power_of_two(), "numbers are mapped to places by their lowest bits") };
        Self { kept: Vec::new(), newest: 0 }
    }
}

impl Entry {
    fn mark(&self, hop: Hop, (at, number): Stamp, informer: &Arc<str>) -> (u64, Mark) {
        let mark = Mark::new(hop, Arc::clone(informer), self.key.clone()).at(at);
        (number, mark.version(Some(self.version.clone())))
    }

    fn marks(&self, informer: &Arc<str>) -> impl Iterator<Item = (u64, Mark)> {
        HOPS.into_iter().zip(self.stamps).filter_map(|(hop, stamp)| {
            let (number, mark) = self.mark(hop, stamp?, informer);
            let source = self.source.clone().filter(|_| hop <= Hop::Decoded);
            Some((number, Mark { by: source, ..mark }))
        })
    }
}

impl Delivery {
    fn marks(&self, informer: &Arc<str>, entry: &Entry) -> impl Iterator<Item = (u64, Mark)> {
        let hops = [(Hop::Delivered, Some(self.delivered)), (Hop::Handled, self.handled)];
        hops.into_iter().filter_map(|(hop, stamp)| {
            let (number, mark) = entry.mark(hop, stamp?, informer);
            let by = Some(Arc::clone(&self.subscription));
            Some((number, Mark { by, is_live: self.is_live, ..mark }))
        })
    }
}
