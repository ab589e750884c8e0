//! Errors of children, and why a server refused an apply.

use crate::reconcile::kubernetes::owner::OwnerError;
use informer_client::Error;
use informer_client::object::BodyError;

/// Why a child is not as it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// The owner cannot own it, or another object does.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// It has no name: an apply needs one.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// It cannot be written as JSON.
    #[error("{child} is no JSON: {source}")]
    Encode {
        /// Kind and key of the child.
        child: String,
        /// Why.
        source: serde_json::Error,
    },
    /// An object of its name exists that this field manager has not applied: nobody controls it, or another
    /// manager has made it for the same owner. It stays as it is. See
    /// [`ChildPolicy::adopt`](super::ChildPolicy::adopt).
    #[error(
        "{child} is there already, and field manager {manager:?} has not made it: it is not taken for a child of {owner}; \
         rename or delete it, or apply it with a policy that adopts it"
    )]
    NotOurs {
        /// Kind and key of the child.
        child: String,
        /// The field manager of the [`Children`](super::Children).
        manager: String,
        /// Kind and key of the owner.
        owner: String,
    },
    /// The apply failed. With [`Error::is_conflict`] another manager has one of its fields, see
    /// [`Children::without_force`](super::Children::without_force).
    #[error("{child} was not applied: {source}")]
    Apply {
        /// Kind and key of the child.
        child: String,
        /// Why.
        source: Box<Error>,
    },
    /// The object of its name could not be read, so it is not known whose it is.
    #[error("{child} was not applied: whose the object of its name is was not read: {source}")]
    Read {
        /// Kind and key of the child.
        child: String,
        /// Why.
        source: Box<Error>,
    },
    /// The cache shows the owner, but on the server the owner is gone, replaced by another object of its
    /// name, or being deleted. The child is not made. The cache will see this, too.
    #[error("{owner} is gone or is being deleted, which the cache does not show yet: nothing is made for it")]
    OwnerIsGone {
        /// Kind and key of the owner.
        owner: String,
    },
    /// The cache does not follow the owner's source at present, and the server has another state of the
    /// owner. Which children it wants now is not known, so none is deleted.
    #[error(
        "{owner} has changed, which the cache does not show yet: none of its children is deleted for an old state of it"
    )]
    OwnerHasChanged {
        /// Kind and key of the owner.
        owner: String,
    },
    /// The child outlives its owner ([`ChildPolicy::keep`](super::ChildPolicy::keep)), and belongs to another
    /// owner. That owner still exists, or is of another kind and was not read. Two owners would overwrite the
    /// child in turns.
    #[error(
        "{child} is kept for another owner, {keeper}, and not for {owner}: give each owner a child of another name, or remove \
         the annotation actix-informer/kept-for from it"
    )]
    KeptForAnother {
        /// Kind and key of the child.
        child: String,
        /// Kind, key and uid of the owner that it is kept for, as its annotation says.
        keeper: String,
        /// Kind and key of the owner of this pass.
        owner: String,
    },
    /// The owner is being deleted, and the pass is not marked as its clean-up.
    #[error(
        "{owner} is being deleted: {child} is not made for it; leave the reconcile before the pass, or begin the pass with \
         `for_clean_up`"
    )]
    OwnerIsEnding {
        /// Kind and key of the owner.
        owner: String,
        /// Kind and key of the child.
        child: String,
    },
    /// The child may be made only if the owner still exists, and the server did not return the owner.
    #[error("it is not known whether {owner} is still there: {source}")]
    AskForOwner {
        /// Kind and key of the owner.
        owner: String,
        /// Why.
        source: Box<Error>,
    },
    /// A pass of this reconcile that did not want the child was pruned before. Two such passes would delete
    /// each other's children in turns.
    #[error(
        "{child} is wanted after a pass of this reconcile of {owner} was pruned without it: apply all in one pass, or give \
         each part `Children` with a name of its own"
    )]
    SecondPass {
        /// Kind and key of the child.
        child: String,
        /// Kind and key of the owner.
        owner: String,
    },
    /// The child must be made again, but the former object is still being deleted. Its end leads to the next
    /// reconcile.
    #[error("{child} is made anew when the object before it is gone, which is still being deleted")]
    StillEnding {
        /// Kind and key of the child.
        child: String,
    },
    /// The children of a kind could not be listed, so nothing is known of them.
    #[error("the children of kind {kind} of {owner} cannot be listed: {source}")]
    List {
        /// The kind.
        kind: String,
        /// Kind and key of the owner.
        owner: String,
        /// Why.
        source: Box<Error>,
    },
    /// An unwanted child was not deleted.
    #[error("{child}, which is no longer wanted, was not deleted: {source}")]
    Delete {
        /// Kind and key of the child.
        child: String,
        /// Why.
        source: Box<Error>,
    },
}

/// Because of the version, or of the uid, which cannot be changed.
pub(super) fn is_lost_race(error: &Error) -> bool {
    error.is_conflict() || (error.is_invalid() && causes(error).any(|(field, _)| field == "metadata.uid"))
}

/// Whether another manager has a field.
pub(super) fn is_of_managers(error: &Error) -> bool {
    let details = error.refused().and_then(|refused| refused.details.as_ref());
    details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "FieldManagerConflict"))
}

/// Judged by the server's wording.
pub(super) fn is_immutable(error: &Error) -> bool {
    const WORDS: [&str; 4] = ["immutable", "may not be changed", "cannot change", "updates to "];
    let says_so = |(field, message): (&str, &str)| {
        field != "metadata.uid" && WORDS.iter().any(|words| message.contains(words))
    };
    error.is_invalid() && causes(error).next().is_some() && causes(error).all(says_so)
}

fn causes(error: &Error) -> impl Iterator<Item = (&str, &str)> {
    let details = error.refused().and_then(|refused| refused.details.as_ref());
    details.into_iter().flat_map(|details| &details.causes).map(|cause| (&*cause.field, &*cause.message))
}
