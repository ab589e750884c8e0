//! What a controller has asked the server for, and its cache has not shown yet.
//!
//! Answers "may the children of this object be counted now?". A controller that creates three pods and counts its cache at
//! once finds none of them, and creates three more. So it says first what it expects, and counts only when that was
//! observed, or when so much time has passed that an event must have been missed. Invariants:
//! 1. Expectations of a key are satisfied exactly if each creation and each deletion was observed, or if they are older than
//!    the limit, or if there are none.
//! 2. A deletion is known by the uid: one that is observed twice, or that nobody expected, satisfies nothing else.
//! 3. More creations than expected satisfy no later expectation.
//!
//! Cost: O(log n). Memory: only keys of which something is still expected. It is what Kubernetes' own controllers use
//! (`ControllerExpectations`, with the deletions of `UIDTrackingControllerExpectations`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long an expectation holds unless set: 5 minutes, as in Kubernetes' controllers.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(5 * 60);

/// What is expected of one key.
#[derive(Debug, Clone)]
struct Expected {
    creations: u32,
    deletions: BTreeSet<String>,
    since: Duration,
}

/// How far the expectations of a key are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Nothing is expected.
    Satisfied,
    /// So much was not observed yet.
    Waiting {
        /// Creations that are missing.
        creations: u32,
        /// Deletions that are missing.
        deletions: usize,
        /// How much time is left until they are given up.
        left: Duration,
    },
    /// They are older than the limit: what is missing will not be observed.
    Overdue {
        /// Creations that are missing.
        creations: u32,
        /// Deletions that are missing.
        deletions: usize,
    },
}

/// Expectations by key; the module's documentation describes them.
///
/// ```
/// # use informer_core::expectations::Expectations;
/// use std::time::Duration;
/// let at = Duration::from_secs;
/// let mut expectations = Expectations::new(at(300));
/// expectations.expect("web", 2, ["uid-7"], at(0));
/// expectations.created(&"web");
/// expectations.deleted(&"web", "uid-7");
/// assert!(!expectations.is_satisfied(&"web", at(1)));
/// expectations.created(&"web");
/// assert!(expectations.is_satisfied(&"web", at(2)));
/// ```
#[derive(Debug, Clone)]
pub struct Expectations<K> {
    of: BTreeMap<K, Expected>,
    limit: Duration,
}

impl<K: Ord> Expectations<K> {
    /// None, each of which will hold for at most this long.
    pub const fn new(limit: Duration) -> Self {
        Self { of: BTreeMap::new(), limit }
    }

    /// Expects so many creations, and the deletion of the objects with these uids, instead of what was expected before.
    pub fn expect<U: Into<String>>(
        &mut self,
        key: K,
        creations: u32,
        deletions: impl IntoIterator<Item = U>,
        now: Duration,
    ) {
        let deletions: BTreeSet<String> = deletions.into_iter().map(Into::into).collect();
        if creations == 0 && deletions.is_empty() {
            self.of.remove(&key);
        } else {
            self.of.insert(key, Expected { creations, deletions, since: now });
        }
    }

    /// A creation was observed, or will not come because its request failed.
    pub fn created(&mut self, key: &K) {
        self.observe(key, |expected| expected.creations = expected.creations.saturating_sub(1));
    }

    /// The deletion of the object with this uid was observed, or will not come because its request failed.
    pub fn deleted(&mut self, key: &K, uid: &str) {
        self.observe(key, |expected| {
            expected.deletions.remove(uid);
        });
    }

    fn observe(&mut self, key: &K, observe: impl FnOnce(&mut Expected)) {
        let Some(expected) = self.of.get_mut(key) else { return };
        observe(expected);
        if expected.creations == 0 && expected.deletions.is_empty() {
            self.of.remove(key);
        }
    }

    /// Expects nothing of this key any more: it was deleted.
    pub fn forget(&mut self, key: &K) {
        self.of.remove(key);
    }

    /// Whether the children of this key may be counted.
    pub fn is_satisfied(&self, key: &K, now: Duration) -> bool {
        !matches!(self.progress(key, now), Progress::Waiting { .. })
    }

    /// How far the expectations of this key are.
    pub fn progress(&self, key: &K, now: Duration) -> Progress {
        let Some(Expected { creations, deletions, since }) = self.of.get(key) else {
            return Progress::Satisfied;
        };
        let (creations, deletions) = (*creations, deletions.len());
        let left = self.limit.saturating_sub(now.saturating_sub(*since));
        if left.is_zero() {
            Progress::Overdue { creations, deletions }
        } else {
            Progress::Waiting { creations, deletions, left }
        }
    }

    /// Of how many keys something is expected.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

impl<K: Ord> Default for Expectations<K> {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_key_of_which_nothing_is_expected_is_satisfied() {
        let mut expectations = Expectations::default();
        assert!(expectations.is_satisfied(&"web", at(0)));
        expectations.expect("web", 0, [""; 0], at(0));
        assert!(expectations.is_satisfied(&"web", at(0)) && expectations.is_empty());
    }

    #[test]
    fn expectations_that_are_not_met_hold_until_their_limit() {
        let mut expectations = Expectations::new(at(300));
        expectations.expect("web", 1, ["a", "b"], at(10));
        expectations.deleted(&"web", "a");
        let waiting = Progress::Waiting { creations: 1, deletions: 1, left: at(1) };
        assert_eq!(expectations.progress(&"web", at(309)), waiting);
        assert_eq!(expectations.progress(&"web", at(310)), Progress::Overdue { creations: 1, deletions: 1 });
        assert!(expectations.is_satisfied(&"web", at(310)));
        expectations.forget(&"web");
        assert_eq!(expectations.progress(&"web", at(310)), Progress::Satisfied);
    }

    #[test]
    fn what_is_expected_anew_replaces_what_was_expected() {
        let mut expectations = Expectations::new(at(300));
        expectations.expect("web", 5, ["a"], at(0));
        expectations.expect("web", 1, [""; 0], at(200));
        assert!(!expectations.is_satisfied(&"web", at(400)), "the time begins anew");
        expectations.created(&"web");
        assert!(expectations.is_satisfied(&"web", at(400)));
    }

    /// What was expected last of a key, when, and what was observed since then.
    type Modelled = (u32, Vec<u8>, u64, u32, Vec<u8>);

    proptest! {
        #[test]
        fn they_are_satisfied_exactly_if_a_list_of_all_that_was_observed_says_so(
            steps in proptest::collection::vec((0..4_u8, 0..3_u8, 0..4_u8, 0..120_u64), 1..80),
        ) {
            let mut expectations = Expectations::new(at(300));
            let mut model: BTreeMap<u8, Modelled> = BTreeMap::new();
            let mut now = 0;
            for (step, key, number, pause) in steps {
                now += pause;
                match step {
                    0 => {
                        let uids: Vec<u8> = (0..number).collect();
                        let texts = uids.iter().map(u8::to_string);
                        expectations.expect(key, u32::from(number), texts, at(now));
                        model.insert(key, (u32::from(number), uids, now, 0, Vec::new()));
                    }
                    1 => {
                        expectations.created(&key);
                        model.entry(key).and_modify(|(.., created, _)| *created += 1);
                    }
                    2 => {
                        expectations.deleted(&key, &number.to_string());
                        model.entry(key).and_modify(|(.., deleted)| deleted.push(number));
                    }
                    _ => {
                        expectations.forget(&key);
                        model.remove(&key);
                    }
                }
                for key in 0..3 {
                    let is_met = model.get(&key).is_none_or(|(creations, uids, since, created, deleted)| {
                        let is_met = created >= creations && uids.iter().all(|uid| deleted.contains(uid));
                        is_met || now - since >= 300
                    });
                    prop_assert_eq!(expectations.is_satisfied(&key, at(now)), is_met);
                }
            }
        }
    }
}
