//! Which objects an owner made and no longer wants.
//!
//! Answers "may this object be deleted for this owner?" It does not find the objects. Invariants:
//! 1. Only an object whose controller is the owner, by uid, is ever unwanted.
//! 2. An object that is wanted, or that is being deleted already, is left alone.
//!
//! Read next: `finalizer.rs`, the other end of an owner's life.

use crate::meta::Uid;

/// What is known of an object that may be a child.
///
/// ```
/// use informer_core::children::Child;
/// use informer_core::meta::Uid;
///
/// let (owner, other) = (Uid::new("u").expect("a uid"), Uid::new("v").expect("a uid"));
/// let child = Child { controller: Some(owner.as_str()), is_ending: false, is_wanted: false };
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
        self.controller == Some(owner.as_str()) && !self.is_ending && !self.is_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
