//! What a wait for a condition has seen of its object. Invariants:
//! 1. The condition is called once for each new state: a version, or the object's absence.
//! 2. Another uid under the name means that the object before was deleted: the absence comes first.

use std::convert::Infallible;
use std::fmt;

use crate::meta::Uid;

/// What a condition says: `true` where it holds. A condition that can fail says `Result<bool, E>`; an error
/// ends the wait.
pub trait Verdict {
    /// Why the condition itself failed.
    type Error;

    /// Whether the condition holds.
    ///
    /// # Errors
    /// That of the condition.
    fn holds(self) -> Result<bool, Self::Error>;
}

impl Verdict for bool {
    type Error = Infallible;

    fn holds(self) -> Result<bool, Infallible> {
        Ok(self)
    }
}

impl<E> Verdict for Result<bool, E> {
    type Error = E;

    fn holds(self) -> Self {
        self
    }
}

/// What a wait has seen last of its object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LastSeen {
    /// Nobody has said yet whether the object is there.
    #[default]
    Nothing,
    /// The object was not there.
    Absent,
    /// The object, at this version.
    Present {
        /// Its `metadata.resourceVersion`.
        version: String,
    },
}

impl fmt::Display for LastSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing, no list was complete"),
            Self::Absent => f.write_str("the object was not there"),
            Self::Present { version } => write!(f, "the object at version {version}"),
        }
    }
}

/// For which state a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decided {
    /// For none yet.
    Not,
    /// For an absence before the state that was reported.
    ByAbsence,
    /// For the state that was reported.
    ByState,
}

/// What a wait knows of its object.
///
/// ```
/// # use informer_core::meta::Uid;
/// # use informer_core::until::{Decided, Seen};
///
/// let mut seen = Seen::default();
/// let mut absent = |object: Option<&&str>| object.is_none();
/// assert_eq!(seen.handle_state(Some(&"7"), |_| (Uid::new("a"), "7".to_owned()), &mut absent), Ok(Decided::Not));
/// // Another object has the name: the first one is gone, although nobody saw its absence.
/// assert_eq!(seen.handle_state(Some(&"9"), |_| (Uid::new("b"), "9".to_owned()), &mut absent), Ok(Decided::ByAbsence));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Seen {
    uid: Option<Uid>,
    last: LastSeen,
}

impl Seen {
    /// What was seen last.
    pub fn last(&self) -> &LastSeen {
        &self.last
    }

    /// The object is in this state, or absent. `identity` returns its uid, if it has one, and its version.
    ///
    /// # Errors
    /// That of the condition.
    pub fn handle_state<T, V: Verdict>(
        &mut self,
        state: Option<&T>,
        identity: impl FnOnce(&T) -> (Option<Uid>, String),
        condition: &mut impl FnMut(Option<&T>) -> V,
    ) -> Result<Decided, V::Error> {
        let Some((uid, version)) = state.map(identity) else {
            self.uid = None;
            if std::mem::replace(&mut self.last, LastSeen::Absent) == LastSeen::Absent {
                return Ok(Decided::Not);
            }
            return Ok(if condition(None).holds()? { Decided::ByState } else { Decided::Not });
        };
        let is_another = self.uid.is_some() && self.uid != uid;
        let present = LastSeen::Present { version };
        if !is_another && self.last == present {
            return Ok(Decided::Not);
        }
        self.uid = uid;
        if is_another {
            self.last = LastSeen::Absent;
            if condition(None).holds()? {
                return Ok(Decided::ByAbsence);
            }
        }
        self.last = present;
        Ok(if condition(state).holds()? { Decided::ByState } else { Decided::Not })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object of this uid and version.
    type State = (&'static str, u32);

    fn identity((uid, version): &State) -> (Option<Uid>, String) {
        (Uid::new(uid), version.to_string())
    }

    /// What the condition is asked about by these states: versions, 0 for an absence.
    fn asked(states: &[Option<State>]) -> Vec<u32> {
        let (mut seen, mut asked) = (Seen::default(), Vec::new());
        for state in states {
            let mut condition = |object: Option<&State>| {
                asked.push(object.map_or(0, |(_, version)| *version));
                false
            };
            assert_eq!(seen.handle_state(state.as_ref(), identity, &mut condition), Ok(Decided::Not));
        }
        asked
    }

    #[test]
    fn each_new_state_is_asked_about_once_and_an_absence_that_only_another_uid_shows_too() {
        let (a1, a2, b3) = (Some(("a", 1)), Some(("a", 2)), Some(("b", 3)));
        assert_eq!(asked(&[a1, a1, a2, a2]), [1, 2]);
        assert_eq!(asked(&[None, None, a1, None, None]), [0, 1, 0]);
        assert_eq!(asked(&[a1, b3]), [1, 0, 3]);
        assert_eq!(asked(&[a1, None, b3]), [1, 0, 3], "the absence was seen, and is not asked about twice");
    }

    #[test]
    fn an_error_of_the_condition_is_given_and_what_was_seen_stays_known() {
        let mut seen = Seen::default();
        assert_eq!(seen.last(), &LastSeen::Nothing);
        let mut failing = |_: Option<&u32>| Err::<bool, _>("no");
        let failed = seen.handle_state(Some(&5), |version| (None, version.to_string()), &mut failing);
        assert_eq!(failed, Err("no"));
        assert_eq!(seen.last(), &LastSeen::Present { version: "5".to_owned() });
        assert_eq!(seen.last().to_string(), "the object at version 5");
    }

    #[test]
    fn it_says_whether_the_state_or_the_absence_before_it_met_the_condition() {
        let mut seen = Seen::default();
        let mut present = |object: Option<&State>| object.is_some();
        assert_eq!(seen.handle_state(None, identity, &mut present), Ok(Decided::Not));
        let first = ("a", 1);
        assert_eq!(seen.handle_state(Some(&first), identity, &mut present), Ok(Decided::ByState));
        let mut absent = |object: Option<&State>| object.is_none();
        let another = ("b", 2);
        assert_eq!(seen.handle_state(Some(&another), identity, &mut absent), Ok(Decided::ByAbsence));
        assert_eq!(seen.last(), &LastSeen::Absent);
        assert_eq!(
            seen.handle_state(None, identity, &mut absent),
            Ok(Decided::Not),
            "it was asked about already"
        );
    }
}
