//! Why a server has refused an apply.
//!
//! Answers "was it the state, another manager, or a field that cannot be changed?" as far as the server's answer says it. Read
//! next: `apply.rs`, what follows.

use crate::client::Error;

/// Whether the server refuses it because of the state that it names: its version, or its uid, which cannot be changed.
pub(super) fn is_lost_race(error: &Error) -> bool {
    error.is_conflict() || (error.is_invalid() && causes(error).any(|(field, _)| field == "metadata.uid"))
}

/// Whether another manager has a field, which is not taken without force.
pub(super) fn is_of_managers(error: &Error) -> bool {
    let details = error.refused().and_then(|refused| refused.details.as_ref());
    details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "FieldManagerConflict"))
}

/// Whether all that is wrong is that fields cannot be changed, as far as the server's words say it.
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
