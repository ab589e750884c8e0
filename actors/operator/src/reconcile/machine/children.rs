//! Decides which objects an owner may delete, take over or make.
//!
//! 1. An object is ours if the owner controls it, by uid, and our field manager has applied it, both in the
//!    state that is deleted. What is not known is read, never assumed.
//! 2. A wanted or ending object is left alone. One that another manager has made for the same owner only
//!    loses our fields.
//! 3. Nothing is made for an owner that is gone or, except in a clean-up, being deleted.
//! 4. An existing object is taken only if our manager has applied it or the policy allows it.

use informer_core::meta::Uid;

/// Who applies a state of an object, according to its managed fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "callers make it of what they have seen")]
pub struct Appliers {
    /// Our field manager does.
    pub ours: bool,
    /// Another field manager has set the reference to the same owner.
    pub another: bool,
}

/// What is known of an object that may be a child.
///
/// ```
/// # use informer_operator::reconcile::machine::children::{Appliers, Child, Verdict};
/// # use informer_core::meta::Uid;
///
/// let (owner, other) = (Uid::new("u").expect("a uid"), Uid::new("v").expect("a uid"));
/// let appliers = Some(Appliers { ours: true, another: false });
/// let child = Child { controller: Some("u"), appliers, is_ending: false, is_wanted: false };
/// assert_eq!(child.verdict(&owner), Verdict::Delete);
/// assert_eq!(child.verdict(&other), Verdict::Keep);
/// assert_eq!(Child { appliers: None, ..child }.verdict(&owner), Verdict::Ask);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers make it of what they have seen")]
pub struct Child<'a> {
    /// The uid of the controlling object, from the owner reference with `controller: true`.
    pub controller: Option<&'a str>,
    /// Who applies it; `None` if this view does not show it, as in most caches.
    pub appliers: Option<Appliers>,
    /// Whether it is being deleted.
    pub is_ending: bool,
    /// Whether the owner has requested it in this pass.
    pub is_wanted: bool,
}

/// What becomes of an object that may be a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who matches all has decided about all")]
pub enum Verdict {
    /// It stays as it is: it is not ours, or it is wanted, or it is being deleted already.
    Keep,
    /// This view does not show whose it is: read it from the server.
    Ask,
    /// Another manager has made it for this owner, too: it stays, and our fields are removed.
    LetGo,
    /// It is ours, and nobody wants it.
    Delete,
}

impl Child<'_> {
    /// What becomes of it when a pass for this owner ends.
    pub fn verdict(&self, owner: &Uid) -> Verdict {
        if self.is_ending || self.is_wanted || self.controller.is_none_or(|uid| *owner != uid) {
            return Verdict::Keep;
        }
        match self.appliers {
            None => Verdict::Ask,
            Some(Appliers { ours: false, .. }) => Verdict::Keep,
            Some(Appliers { another: true, .. }) => Verdict::LetGo,
            Some(_) => Verdict::Delete,
        }
    }
}

/// Whether an existing object with the name of a child becomes the child, if no other object controls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who matches all has decided about all")]
pub enum Adoption {
    /// Only if our manager has applied it before.
    OwnOnly,
    /// In any case.
    Any,
}

/// What an existing object means for the child of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who matches all has decided about all")]
pub enum Claim {
    /// It is the owner's own.
    Own,
    /// It may be taken if the owner still exists and wants it.
    AskForOwner,
    /// Another object controls it.
    Controlled,
    /// Somebody else made it, and it is not taken.
    Foreign,
}

impl Child<'_> {
    /// Whether the owner may apply it. Who applies it has to be known: another may have made it for the same
    /// owner.
    pub fn claim(&self, owner: &Uid, adoption: Adoption) -> Claim {
        let is_taken = adoption == Adoption::Any || self.appliers.is_some_and(|appliers| appliers.ours);
        match self.controller {
            Some(uid) if *owner != uid => Claim::Controlled,
            _ if !is_taken => Claim::Foreign,
            Some(_) => Claim::Own,
            None => Claim::AskForOwner,
        }
    }
}

/// What the server has under the name of an owner.
///
/// ```
/// # use informer_operator::reconcile::machine::children::OwnerNow;
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
    /// Whether a child may be made for the owner of this uid, given what the server has now. `for_clean_up`:
    /// the reconciler knows that the owner is being deleted, and makes the child for its clean-up.
    pub fn may_have_children(now: Option<Self>, owner: &Uid, for_clean_up: bool) -> bool {
        now.is_some_and(|now| now.uid.is_some_and(|uid| *owner == uid) && (for_clean_up || !now.is_ending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opr_24_only_an_owner_that_is_there_as_it_was_seen_may_have_a_new_child() {
        let owner = Uid::new("u").expect("a uid");
        for (uid, is_ending, for_clean_up, may) in [
            (Some("u"), false, false, true),
            (Some("u"), true, false, false),
            (Some("u"), true, true, true),
            (Some("v"), false, false, false),
            (None, false, false, false),
        ] {
            let now = OwnerNow { uid, is_ending };
            assert_eq!(OwnerNow::may_have_children(Some(now), &owner, for_clean_up), may, "{now:?}");
        }
        assert!(!OwnerNow::may_have_children(None, &owner, true));
    }

    #[test]
    fn opr_11_only_the_controller_may_delete_and_only_what_nobody_wants() {
        let owner = Uid::new("u").expect("a uid");
        let appliers = Some(Appliers { ours: true, another: false });
        for (controller, is_ending, is_wanted, verdict) in [
            (Some("u"), false, false, Verdict::Delete),
            (Some("u"), true, false, Verdict::Keep),
            (Some("u"), false, true, Verdict::Keep),
            (Some("v"), false, false, Verdict::Keep),
            (None, false, false, Verdict::Keep),
        ] {
            let child = Child { controller, appliers, is_ending, is_wanted };
            assert_eq!(child.verdict(&owner), verdict, "{child:?}");
        }
    }

    #[test]
    fn operator_a1_what_our_manager_has_not_applied_is_not_ours_and_what_is_not_known_is_asked_for() {
        let owner = Uid::new("u").expect("a uid");
        for (appliers, verdict) in [
            (None, Verdict::Ask),
            (Some(Appliers { ours: false, another: false }), Verdict::Keep),
            (Some(Appliers { ours: false, another: true }), Verdict::Keep),
            (Some(Appliers { ours: true, another: true }), Verdict::LetGo),
            (Some(Appliers { ours: true, another: false }), Verdict::Delete),
        ] {
            let child = Child { controller: Some("u"), appliers, is_ending: false, is_wanted: false };
            assert_eq!(child.verdict(&owner), verdict, "{child:?}");
        }
    }

    #[test]
    fn operator_b_an_object_that_is_there_is_taken_only_if_we_made_it_or_the_policy_says_so() {
        let owner = Uid::new("u").expect("a uid");
        let (ours, theirs) = (Appliers { ours: true, another: false }, Appliers::default());
        for (controller, appliers, adoption, claim) in [
            (Some("u"), None, Adoption::OwnOnly, Claim::Foreign),
            (Some("u"), Some(theirs), Adoption::OwnOnly, Claim::Foreign),
            (Some("u"), Some(ours), Adoption::OwnOnly, Claim::Own),
            (Some("u"), Some(theirs), Adoption::Any, Claim::Own),
            (Some("v"), Some(ours), Adoption::Any, Claim::Controlled),
            (None, Some(ours), Adoption::OwnOnly, Claim::AskForOwner),
            (None, Some(theirs), Adoption::OwnOnly, Claim::Foreign),
            (None, None, Adoption::OwnOnly, Claim::Foreign),
            (None, Some(theirs), Adoption::Any, Claim::AskForOwner),
        ] {
            let child = Child { controller, appliers, is_ending: false, is_wanted: true };
            assert_eq!(child.claim(&owner, adoption), claim, "{child:?} {adoption:?}");
        }
    }
}
