//! Numbers of stored things in the order of those things, which the caller compares.
//!
//! A search is O(log n). An insertion moves at most [`MOST`] numbers, and the list of runs when a run is
//! split. No run is empty. A run that shrinks is joined with a neighbour if both together have at most half
//! of [`MOST`].

use std::cmp::Ordering;

const MOST: usize = 512;

#[derive(Debug, Default)]
pub(super) struct SortedIds {
    runs: Vec<Vec<u32>>,
}

/// Valid until the next change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    run: usize,
    at: usize,
}

impl SortedIds {
    pub(super) fn find(&self, order: impl Fn(u32) -> Ordering) -> Result<(Place, u32), Place> {
        // The last run whose first number is not above the searched one.
        let after = self.runs.partition_point(|run| order(run[0]).is_le());
        let run = after.saturating_sub(1);
        let Some(ids) = self.runs.get(run) else { return Err(Place { run: 0, at: 0 }) };
        match ids.binary_search_by(|id| order(*id)) {
            Ok(at) => Ok((Place { run, at }, ids[at])),
            Err(at) => Err(Place { run, at }),
        }
    }

    pub(super) fn insert(&mut self, Place { run, at }: Place, id: u32) {
        let is_last = run + 1 >= self.runs.len();
        match self.runs.get_mut(run) {
            None => self.runs.push(vec![id]),
            Some(ids) if ids.len() < MOST => ids.insert(at, id),
            // Keys that come in order fill whole runs.
            Some(ids) if at == ids.len() && is_last => self.runs.push(vec![id]),
            Some(ids) => {
                let mut upper = ids.split_off(MOST / 2);
                match at.checked_sub(ids.len()) {
                    Some(at) => upper.insert(at, id),
                    None => ids.insert(at, id),
                }
                self.runs.insert(run + 1, upper);
            }
        }
    }

    pub(super) fn remove(&mut self, Place { run, at }: Place) {
        self.runs[run].remove(at);
        if self.runs[run].is_empty() {
            self.runs.remove(run);
        } else if !self.join(run) && run > 0 {
            self.join(run - 1);
        }
        if self.runs.is_empty() {
            self.runs = Vec::new();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flatten().copied()
    }

    fn join(&mut self, run: usize) -> bool {
        let lengths =
            self.runs.get(run).zip(self.runs.get(run + 1)).map(|(one, next)| one.len() + next.len());
        if lengths.is_none_or(|length| length > MOST / 2) {
            return false;
        }
        let next = self.runs.remove(run + 1);
        self.runs[run].extend(next);
        self.runs[run].shrink_to(MOST / 2);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MOST, SortedIds};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn sorted_numbers_are_those_of_a_sorted_set(
            steps in prop::collection::vec((0..3_000_u32, prop::bool::weighted(0.6)), 0..6_000),
            in_order in 0..2_000_u32,
        ) {
            let (mut ids, mut model) = (SortedIds::default(), std::collections::BTreeSet::new());
            let steps = (0..in_order).map(|id| (id, true)).chain(steps);
            for (id, is_added) in steps {
                match (ids.find(|other| other.cmp(&id)), is_added) {
                    (Err(place), true) => ids.insert(place, id),
                    (Ok((place, found)), false) => {
                        prop_assert_eq!(found, id);
                        ids.remove(place);
                    }
                    (found, _) => prop_assert_eq!(found.is_ok(), model.contains(&id)),
                }
                if is_added { model.insert(id) } else { model.remove(&id) };
            }
            prop_assert!(ids.iter().eq(model.iter().copied()));
            prop_assert!(ids.runs.iter().all(|run| (1..=MOST).contains(&run.len())));
            for id in model {
                let (place, _) = ids.find(|other| other.cmp(&id)).expect("it is there");
                ids.remove(place);
            }
            prop_assert_eq!(ids.runs.capacity(), 0, "an empty one holds no memory");
        }
    }
}
