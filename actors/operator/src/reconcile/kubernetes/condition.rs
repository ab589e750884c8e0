//! Conditions of a status, with the rules of apimachinery's `meta.SetStatusCondition`.
//!
//! 1. `lastTransitionTime` changes only when the condition's status changes.
//! 2. A type is in the list once, and keeps its place.
//! 3. A condition of an older generation never replaces a newer one.

use std::time::SystemTime;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API knows these three")]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known whether it holds.
    Unknown,
}

impl ConditionStatus {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A condition of this type, status and reason; set the other fields as
/// `Condition { message, ..condition(..) }`. A server demands a reason of one word in CamelCase.
///
/// ```
/// use actix_informer::reconcile::{Condition, ConditionStatus, condition};
///
/// let ready = Condition { message: "3 of 3 replicas".to_owned(), ..condition("Ready", true, "AllAvailable") };
/// assert_eq!((ready.type_.as_str(), ready.status.as_str()), ("Ready", "True"));
/// assert_eq!(condition("Ready", ConditionStatus::Unknown, "NotSeen").status, "Unknown");
/// ```
pub fn condition(
    type_: impl Into<String>,
    status: impl Into<ConditionStatus>,
    reason: impl Into<String>,
) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into().as_str().to_owned(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Puts a condition into a list, and returns whether the list has changed.
///
/// Sets its `lastTransitionTime`: to `now`, in whole seconds, if the status of the condition differs from the
/// one in the list, otherwise to the former time. `now` is
/// [`Runtime::wall_time`](informer_actors::runtime::Runtime::wall_time), so that tests on simulated time
/// repeat exactly. A condition of an older generation than the one in the list changes nothing.
///
/// ```
/// use actix_informer::reconcile::{Condition, condition, is_condition_true, set_condition};
/// use std::time::{Duration, SystemTime};
///
/// let (noon, one) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + Duration::from_secs(3_600));
/// let mut conditions: Vec<Condition> = Vec::new(); // those of the object's status
/// assert!(set_condition(&mut conditions, condition("Ready", false, "Starting"), noon));
/// assert!(!set_condition(&mut conditions, condition("Ready", false, "Starting"), one), "nothing new");
///
/// let message = "the image cannot be pulled".to_owned();
/// assert!(set_condition(&mut conditions, Condition { message, ..condition("Ready", false, "NoImage") }, one));
/// assert_eq!(conditions[0].last_transition_time.0.as_second(), 0, "it has been false since noon");
///
/// assert!(set_condition(&mut conditions, condition("Ready", true, "AllAvailable"), one));
/// assert_eq!(conditions[0].last_transition_time.0.as_second(), 3_600);
/// assert!(is_condition_true(&conditions, "Ready"));
/// ```
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition, now: SystemTime) -> bool {
    let known = conditions.iter_mut().find(|known| known.type_ == new.type_);
    if let Some(known) = &known {
        if new.observed_generation.is_some() && new.observed_generation < known.observed_generation {
            return false;
        }
        new.observed_generation = new.observed_generation.or(known.observed_generation);
    }
    let is_same_status = known.as_ref().is_some_and(|known| known.status == new.status);
    new.last_transition_time = match &known {
        Some(known) if is_same_status => known.last_transition_time.clone(),
        _ => Time(in_seconds(now)),
    };
    match known {
        Some(known) if *known == new => false,
        Some(known) => {
            *known = new;
            true
        }
        None => {
            conditions.push(new);
            true
        }
    }
}

/// Whether the list has a condition of this type with status `True`.
///
/// ```
/// use actix_informer::reconcile::{condition, is_condition_true};
///
/// let conditions = [condition("Ready", true, "AllAvailable"), condition("Stalled", false, "Moving")];
/// assert!(is_condition_true(&conditions, "Ready") && !is_condition_true(&conditions, "Stalled"));
/// assert!(!is_condition_true(&conditions, "Unheard"));
/// ```
pub fn is_condition_true(conditions: &[Condition], type_: &str) -> bool {
    conditions.iter().any(|known| known.type_ == type_ && known.status == "True")
}

/// The API has whole seconds. A time before year -9999 or after year 9999 becomes 1970.
fn in_seconds(time: SystemTime) -> Timestamp {
    let seconds = Timestamp::try_from(time).map(Timestamp::as_second);
    seconds.and_then(Timestamp::from_second).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    // OPR-16: given a condition that was set for a generation, when one of an older generation is set, then
    // nothing changes.
    #[test]
    fn opr_16_a_generation_that_was_observed_is_never_replaced_by_an_older_one() {
        let of = |generation, holds| Condition {
            observed_generation: generation,
            ..condition("Ready", holds, "Seen")
        };
        let mut conditions = Vec::new();
        assert!(set_condition(&mut conditions, of(Some(3), true), at(1)));
        assert!(!set_condition(&mut conditions, of(Some(2), false), at(2)), "an older state of the object");
        assert!(set_condition(&mut conditions, of(Some(4), true), at(3)));
        assert_eq!(conditions[0].observed_generation, Some(4));
        assert_eq!(conditions[0].last_transition_time.0.as_second(), 1, "it has been true since then");
        assert!(!set_condition(&mut conditions, of(None, true), at(4)), "who observes nothing says nothing");
    }

    // OPR-15: given conditions, when one is set, then `lastTransitionTime` changes only with its status, its
    // type is there once, and it is said whether anything has changed.
    // - a as a list that remembers each change of status:
    //   `opr_15_the_time_of_a_condition_is_that_of_its_last_change_of_status`
    // - b times have whole seconds
    #[test]
    fn opr_15_a_time_has_whole_seconds_and_one_that_the_api_cannot_write_is_1970() {
        let mut conditions = Vec::new();
        set_condition(&mut conditions, condition("A", true, "R"), at(7) + Duration::from_millis(999));
        set_condition(&mut conditions, condition("B", true, "R"), at(u64::MAX / 4));
        let seconds: Vec<_> =
            conditions.iter().map(|known| known.last_transition_time.0.as_second()).collect();
        assert_eq!(seconds, [7, 0]);
    }

    proptest! {
        /// The list is compared with one that remembers, for each type, its last status and since when it has it.
        #[test]
        fn opr_15_the_time_of_a_condition_is_that_of_its_last_change_of_status(
            steps in prop::collection::vec((0..3_usize, any::<bool>(), 0..3_u8), 0..40)
        ) {
            let mut conditions = Vec::new();
            let mut model: Vec<(usize, bool, u8, i64)> = Vec::new();
            for (time, (type_, holds, reason)) in (1_u8..).zip(steps) {
                let new = condition(type_.to_string(), holds, reason.to_string());
                let changed = set_condition(&mut conditions, new, at(time.into()));
                let before = model.clone();
                match model.iter_mut().find(|known| known.0 == type_) {
                    Some(known) => {
                        let since = if known.1 == holds { known.3 } else { time.into() };
                        *known = (type_, holds, reason, since);
                    }
                    None => model.push((type_, holds, reason, time.into())),
                }
                prop_assert_eq!(changed, before != model);
                let found: Vec<_> = conditions.iter().map(|known: &Condition| (
                    known.type_.parse().unwrap(), known.status == "True", known.reason.parse().unwrap(),
                    known.last_transition_time.0.as_second(),
                )).collect();
                prop_assert_eq!(&found, &model);
            }
        }
    }
}
