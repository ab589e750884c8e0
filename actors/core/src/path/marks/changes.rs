//! The newest changes of one informer that leave marks: where each has been, and when.
//!
//! 1. A change has one entry, found by its version: a mark costs no search among texts.
//! 2. The oldest entry goes for a new one, with its marks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{Hop, MOST_MARKS, Mark, Passage, SLOW, SLOW_EVERY};
use crate::meta::{ObjectKey, ResourceVersion};

/// Entries of an informer: a power of two.
pub(super) const MOST_CHANGES: usize = 1_024;

/// The hops of an informer, from [`Hop::Read`] to [`Hop::Distributed`].
const HOPS: [Hop; 6] = [Hop::Read, Hop::Scanned, Hop::Decoded, Hop::Queued, Hop::Published, Hop::Distributed];

/// The time of a mark, and its number among all marks.
type Stamp = (Duration, u64);

/// One change.
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

/// That a change is with a subscriber.
#[derive(Debug)]
struct Delivery {
    /// The number of its entry.
    entry: u64,
    subscription: Arc<str>,
    is_live: bool,
    delivered: Stamp,
    handled: Option<Stamp>,
}

/// The newest changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    entries: VecDeque<Entry>,
    /// How many entries have gone. The first entry ever has the number 1.
    gone: u64,
    /// The number of the newest entry, by a hash of its version; empty before the first entry.
    newest: Vec<u64>,
    deliveries: VecDeque<Delivery>,
    deliveries_gone: u64,
    /// Numbers of deliveries that are not handled, by subscription.
    unhandled: BTreeMap<Arc<str>, Vec<u64>>,
    /// When a slow path was told last.
    slow_since: Option<Duration>,
    /// Whether marks have gone.
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
                    if let Some(entry) = self.entry_mut(number) {
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
        let known = self.find(of).and_then(|number| Some((number, self.entry(number)?)));
        let number = match known {
            Some((number, entry)) if entry.stamps.get(hop as usize).is_some_and(Option::is_none) => number,
            // A change that passes once more, after a restart, has a second entry.
            Some((_, entry)) => self.push(of, entry.first),
            None => self.push(of, at),
        };
        if let Some(kept) = self.entry_mut(number).and_then(|entry| entry.stamps.get_mut(hop as usize)) {
            *kept = Some(stamp(noted, at));
        }
    }

    fn deliver(
        &mut self,
        noted: &mut u64,
        of: (&ObjectKey, &ResourceVersion),
        (subscription, at, is_live): (&Arc<str>, Duration, bool),
    ) -> u64 {
        let entry = self.find(of).unwrap_or_else(|| self.push(of, at));
        if self.deliveries.len() >= MOST_MARKS {
            self.deliveries.pop_front();
            self.deliveries_gone += 1;
            self.is_cut = true;
        }
        let (subscription, delivered) = (Arc::clone(subscription), stamp(noted, at));
        self.deliveries.push_back(Delivery { entry, subscription, is_live, delivered, handled: None });
        self.deliveries_gone + self.deliveries.len() as u64
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
            let place = place_of(number, self.deliveries_gone);
            let Some(delivery) = place.and_then(|place| self.deliveries.get_mut(place)) else { continue };
            delivery.handled = Some(stamp(noted, at));
            let place = place_of(delivery.entry, self.gone).filter(|_| delivery.is_live);
            let entry = place.and_then(|place| self.entries.get(place));
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
        let delivery = self.deliveries.get(place_of(slowest, self.deliveries_gone)?)?;
        let entry = self.entry(delivery.entry)?;
        Some(entry.marks(informer).chain(delivery.marks(informer, entry)).collect())
    }

    pub(super) fn forget_subscription(&mut self, subscription: &Arc<str>) {
        self.unhandled.remove(subscription);
    }

    /// The marks of these keys, with their numbers.
    pub(super) fn marks(
        &self,
        informer: &Arc<str>,
        is_of: impl Fn(&ObjectKey) -> bool,
        marks: &mut Vec<(u64, Mark)>,
    ) {
        for entry in self.entries.iter().filter(|entry| is_of(&entry.key)) {
            marks.extend(entry.marks(informer));
        }
        for delivery in &self.deliveries {
            let entry = self.entry(delivery.entry).filter(|entry| is_of(&entry.key));
            marks.extend(entry.into_iter().flat_map(|entry| delivery.marks(informer, entry)));
        }
    }

    fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(place_of(number, self.gone)?)
    }

    fn entry_mut(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.get_mut(place_of(number, self.gone)?)
    }

    /// The number of the newest entry of this change. Several clusters may use one version.
    fn find(&self, (key, version): (&ObjectKey, &ResourceVersion)) -> Option<u64> {
        let mut number = *self.newest.get(slot(version))?;
        loop {
            let entry = self.entry(number)?;
            if entry.version == *version && entry.key == *key {
                return Some(number);
            }
            number = entry.before;
        }
    }

    fn push(&mut self, (key, version): (&ObjectKey, &ResourceVersion), first: Duration) -> u64 {
        if self.newest.is_empty() {
            self.newest.resize(MOST_CHANGES, 0);
        }
        if self.entries.len() >= MOST_CHANGES {
            self.entries.pop_front();
            self.gone += 1;
            self.is_cut = true;
        }
        let number = self.gone + self.entries.len() as u64 + 1;
        let newest = self.newest.get_mut(slot(version));
        let before = newest.map_or(0, |newest| std::mem::replace(newest, number));
        let (key, version) = (key.clone(), version.clone());
        let entry = Entry { key, version, source: None, first, stamps: [None; HOPS.len()], before };
        self.entries.push_back(entry);
        number
    }
}

/// Where the one with this number is, after so many have gone. `None` for one that has gone.
fn place_of(number: u64, gone: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(gone + 1)?).ok()
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
