//! What an error means for who tries again: watches, and waits for a condition.
//!
//! Answers "of which class is this error, and does trying again help?" with the classes that informers use. Invariants:
//! 1. A request that could not be made is final: it would be the same the next time.
//! 2. What a server or a connection does is final only where waiting changes nothing: the server refuses the request
//!    itself, the caller's rights or the kind.
//!
//! Read next: `../error/status.rs`, which classifies answers.

use informer_core::list_watch_error::{ErrorClass, ListWatchError};

use crate::client::error::{Error, status};

/// The class of a failed request.
pub(super) fn class_of(error: &Error) -> ErrorClass {
    match error {
        Error::Refused(refused) => match status::into_error(refused.status().clone(), false) {
            // A replica of the server that lags behind: it will catch up.
            ListWatchError::TooLargeVersion(_) => ErrorClass::Retry,
            error => error.class(),
        },
        _ => ErrorClass::Retry,
    }
}

/// Whether trying again cannot help.
pub(super) fn is_final(error: &Error) -> bool {
    match error {
        Error::Refused(refused) => {
            let is_of_the_request =
                (400..500).contains(&refused.code) && !matches!(refused.code, 408 | 409 | 410 | 429);
            is_of_the_request || matches!(class_of(error), ErrorClass::Denied | ErrorClass::Gone)
        }
        Error::Transport(_) | Error::Plugin { .. } | Error::Oidc(_) | Error::File { .. } => false,
        _ => true,
    }
}
