//! Decides what is to be done about one operator's finalizer on one object.
//!
//! 1. Clean-up is only for an object with the finalizer that is being deleted, or has left what the operator
//!    follows.
//! 2. Finalizers of others are never touched.
//! 3. A list that may be cut does not count as empty: a change tests it, and an ending object is read before
//!    it is left alone.

/// What one observation of an object says of its finalizers.
///
/// ```
/// # use informer_operator::reconcile::machine::finalizer::{Observed, Refusal, Step};
///
/// let foreign = vec!["example.org/other".to_owned()];
/// let tested =
///     Observed { uid: "u", version: "7", finalizers: &foreign, is_ending: false, has_left: false, may_be_cut: false };
/// assert_eq!(tested.step("example.org/mine"), Step::Add);
/// let newest = Observed { version: "9", is_ending: true, ..tested };
/// assert_eq!(tested.refused(Some(&newest)), Refusal::Conflict); // somebody was faster: decide anew
/// assert_eq!(newest.step("example.org/mine"), Step::Leave);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers make it of what they have seen")]
pub struct Observed<'a> {
    /// Its uid: an object that is made again under the same name has another one.
    pub uid: &'a str,
    /// Its resource version.
    pub version: &'a str,
    /// Its finalizers, in their order.
    pub finalizers: &'a [String],
    /// Whether it is being deleted: then no finalizer can be added.
    pub is_ending: bool,
    /// Whether the operator does not follow it any more: its selectors do not match the object.
    pub has_left: bool,
    /// Whether it was seen in a cache, whose informer may cut the list: then an empty list is not proof.
    pub may_be_cut: bool,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who matches all has decided about all")]
pub enum Step {
    /// Add the finalizer, and look at the object again. The change must fail if [`Observed::is_unknown`] and
    /// the server's list is not empty.
    Add,
    /// Read the object from the server: nothing is to be done for it as it looks, but its list may have been
    /// cut.
    Read,
    /// Reconcile the object.
    Apply,
    /// Clean up what belongs to the object; then remove the finalizer.
    CleanUp,
    /// Do nothing: the object is being deleted or has left, and this operator has nothing left to do for it.
    Leave,
}

/// What a refused change of the list means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who matches all has decided about all")]
pub enum Refusal {
    /// The object is gone, or its name belongs to another object: there is nothing left to change.
    Gone,
    /// Another writer was faster, or the list was cut: decide again on the newest state.
    Conflict,
    /// The object is unchanged: the refusal has another reason.
    Other,
}

impl Observed<'_> {
    /// What this operator does with the object.
    pub fn step(&self, name: &str) -> Step {
        match (self.is_ending || self.has_left, self.position(name).is_some()) {
            (false, false) => Step::Add,
            (false, true) => Step::Apply,
            (true, true) => Step::CleanUp,
            (true, false) if self.is_unknown() => Step::Read,
            (true, false) => Step::Leave,
        }
    }

    /// Whether the list may be longer than it looks. An informer cuts the whole list or nothing.
    pub fn is_unknown(&self) -> bool {
        self.may_be_cut && self.finalizers.is_empty()
    }

    /// Where the finalizer is in the list.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.finalizers.iter().position(|found| found == name)
    }

    /// A change for this state was refused; `newest` is what the server has, `None` if nothing.
    pub fn refused(&self, newest: Option<&Observed<'_>>) -> Refusal {
        match newest {
            None => Refusal::Gone,
            Some(newest) if newest.uid != self.uid => Refusal::Gone,
            Some(newest) if newest.version != self.version || self.is_unknown() => Refusal::Conflict,
            Some(_) => Refusal::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opr_01_the_finalizer_is_added_first_and_work_is_cleaned_up_only_while_it_is_there() {
        let (mine, foreign) = ("a/mine".to_owned(), "a/other".to_owned());
        let with = [foreign.clone(), mine.clone()];
        let without = [foreign];
        for (finalizers, is_ending, step, position) in [
            (&without[..], false, Step::Add, None),
            (&with[..], false, Step::Apply, Some(1)),
            (&with[..], true, Step::CleanUp, Some(1)),
            (&without[..], true, Step::Leave, None),
            (&[][..], false, Step::Add, None),
            (&[][..], true, Step::Leave, None),
        ] {
            for may_be_cut in [false, true] {
                let has_left = false;
                let observed =
                    Observed { uid: "u", version: "1", finalizers, is_ending, has_left, may_be_cut };
                let is_unknown = may_be_cut && finalizers.is_empty();
                let step = if is_unknown && is_ending { Step::Read } else { step };
                assert_eq!(
                    (observed.step(&mine), observed.position(&mine)),
                    (step, position),
                    "{observed:?}"
                );
                assert_eq!(observed.is_unknown(), is_unknown, "{observed:?}");
                let left = Observed { has_left: true, ..observed };
                let ending = Observed { is_ending: true, ..observed };
                assert_eq!(
                    left.step(&mine),
                    ending.step(&mine),
                    "an object that has left is as one that ends"
                );
            }
        }
    }

    #[test]
    fn a_refused_change_is_tried_again_only_if_the_object_has_changed_and_is_still_the_same_one() {
        let (is_ending, has_left, may_be_cut) = (false, false, false);
        let tested = Observed { uid: "u", version: "1", finalizers: &[], is_ending, has_left, may_be_cut };
        let changed = Observed { version: "2", ..tested };
        let another = Observed { uid: "v", ..changed };
        assert_eq!(tested.refused(Some(&changed)), Refusal::Conflict);
        assert_eq!(tested.refused(Some(&another)), Refusal::Gone);
        assert_eq!(tested.refused(None), Refusal::Gone);
        assert_eq!(tested.refused(Some(&tested)), Refusal::Other);
        let unknown = Observed { may_be_cut: true, ..tested };
        assert_eq!(unknown.refused(Some(&tested)), Refusal::Conflict, "its list was perhaps cut");
    }
}
