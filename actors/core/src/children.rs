//! Which objects an owner made and no longer wants.
//!
//! Answers "may this object be deleted for this owner?", and "may something be made for it?" It does not find the objects.
//! Invariants:
//! 1. Only an object whose controller is the owner, by uid, is ever unwanted.
//! 2. An object that is wanted, or that is being deleted already, is left alone.
//! 3. Nothing is made for an owner that is gone, or that is being deleted without the reconciler's knowledge.
//!
//! Read next: `finalizer.rs`, the other end of an owner's life.

use crate::meta::Uid;

/// What is known of an object that may be a child.
///
/// ```
/// # use informer_core::children::Child;
/// # use informer_core::meta::Uid;
///
/// let (owner, other) = (Uid::new("u").expect("a uid"), Uid::new("v").expect("a uid"));
/// let child = Child { controller: Some("u"), is_ending: false, is_wanted: false };
/// assert!(child.is_unwanted_by(&owner) && !child.is_unwanted_by(&other));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers make it of what they have seen")]
pub struct Child<'a> {
    /// The uid of the object that controls it, of the owner reference with `controller: true`.
    pub controller: Option<&'a str>,
    /// Whether it is being deleted.
    pub is_ending: bool,
    /// Whether the owner has asked for it in this pass.
    pub is_wanted: bool,
}

impl Child<'_> {
    /// Whether the owner made it and does not want it.
    pub fn is_unwanted_by(&self, owner: &Uid) -> bool {
        self.controller.is_some_and(|uid| *owner == uid) && !self.is_ending && !self.is_wanted
    }
}

/// What the server has under the name of an owner.
///
/// ```
/// # use informer_core::children::OwnerNow;
/// # use informer_core::meta::Uid;
///
/// let owner = Uid::new("u").expect("a uid");
/// let now = OwnerNow { uid: Some("u"), is_ending: false };
/// assert!(OwnerNow::may_have_children(Some(now), &owner, false));
/// assert!(!OwnerNow::may_have_children(None, &owner, false));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers make it of what they have seen")]
pub struct OwnerNow<'a> {
    /// Its uid.
    pub uid: Option<&'a str>,
    /// Whether it is being deleted.
    pub is_ending: bool,
}

impl OwnerNow<'_> {
    /// Whether a child may be made for the owner of this uid, given what is there now. `was_ending`: the reconciler knows that
    /// it is being deleted, and makes the child for its clean-up.
    pub fn may_have_children(now: Option<Self>, owner: &Uid, was_ending: bool) -> bool {
        now.is_some_and(|now| now.uid.is_some_and(|uid| *owner == uid) && (was_ending || !now.is_ending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opr_24_only_an_owner_that_is_there_as_it_was_seen_may_have_a_new_child() {
        let owner = Uid::new("u").expect("a uid");
        for (uid, is_ending, was_ending, may) in [
            (Some("u"), false, false, true),
            (Some("u"), true, false, false),
            (Some("u"), true, true, true),
            (Some("v"), false, false, false),
            (None, false, false, false),
        ] {
            let now = OwnerNow { uid, is_ending };
            assert_eq!(OwnerNow::may_have_children(Some(now), &owner, was_ending), may, "{now:?}");
        }
        assert!(!OwnerNow::may_have_children(None, &owner, true));
    }

    #[test]
    fn opr_11_only_the_controller_may_delete_and_only_what_nobody_wants() {
        let owner = Uid::new("u").expect("a uid");
        for (controller, is_ending, is_wanted, unwanted) in [
            (Some("u"), false, false, true),
            (Some("u"), true, false, false),
            (Some("u"), false, true, false),
            (Some("v"), false, false, false),
            (None, false, false, false),
        ] {
            let child = Child { controller, is_ending, is_wanted };
            assert_eq!(child.is_unwanted_by(&owner), unwanted, "{child:?}");
        }
    }
}
