//! Which resource a name is taken for, and when the server is asked again what it means.
//!
//! Answers "does what was found still hold?" for a source that follows a kind by name. It sends nothing and reads no
//! clock. Invariants:
//! 1. The name is looked up before the first request, and again after each answer that the resource is missing. So a
//!    kind that is defined later, or comes back with another version or scope, is found; who asks when is decided by the
//!    reflector's waits.
//! 2. After the resource has changed nothing of what was read before is taken for known, and no watch goes on: the next
//!    answer that counts is a list.
//!
//! Read next: `named.rs`, which asks.

use informer_core::list_watch_error::ErrorClass;

/// How a name is to be looked up before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookUp {
    /// What was found is used.
    No,
    /// What discovery knows suffices.
    Known,
    /// The server is asked again: what is known has led to a resource that is missing.
    Anew,
}

/// What the request is that is about to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// A list, a page of one, or a watch that begins with all objects.
    Objects,
    /// A watch of changes after what was listed.
    Changes,
}

/// What a request may build upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuildOn {
    /// Objects that are known in their version need not be read again.
    Known,
    /// Every object is read.
    Nothing,
    /// It must not be sent: a list has to come first.
    ListFirst,
}

/// A name and the resource that it means, as far as that is known.
#[derive(Debug)]
pub(super) struct FollowedName<T> {
    found: Option<T>,
    look_up: LookUp,
    change: Change,
}

/// Whether the name means another resource than the one that was listed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    No,
    /// It does, and nothing was asked of the new one.
    Unlisted,
    /// It does, and the new one is being listed.
    Listing,
}

impl<T: PartialEq> FollowedName<T> {
    pub(super) fn new() -> Self {
        Self { found: None, look_up: LookUp::Known, change: Change::No }
    }

    pub(super) fn look_up(&self) -> LookUp {
        self.look_up
    }

    /// The name means this; true if it meant something else before.
    pub(super) fn handle_found(&mut self, found: T) -> bool {
        let is_other = self.found.as_ref().is_some_and(|before| *before != found);
        (self.found, self.look_up) = (Some(found), LookUp::No);
        if is_other {
            self.change = Change::Unlisted;
        }
        is_other
    }

    /// What a request may build upon that is sent now. A watch of changes is asked for only after a whole list.
    pub(super) fn handle_request(&mut self, asking: Asking) -> BuildOn {
        let (build_on, change) = match (asking, self.change) {
            (Asking::Objects, Change::Unlisted | Change::Listing) => (BuildOn::Nothing, Change::Listing),
            (Asking::Changes, Change::Unlisted) => (BuildOn::ListFirst, Change::Unlisted),
            (Asking::Changes, Change::Listing) | (_, Change::No) => (BuildOn::Known, Change::No),
        };
        self.change = change;
        build_on
    }

    /// A request, or a look-up, has failed so.
    pub(super) fn handle_failed(&mut self, class: ErrorClass) {
        if class == ErrorClass::Gone {
            self.look_up = LookUp::Anew;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fac_13_a_name_is_looked_up_first_and_after_each_answer_that_its_resource_is_missing() {
        let mut name = FollowedName::new();
        assert_eq!(name.look_up(), LookUp::Known);
        name.handle_failed(ErrorClass::Retry);
        assert_eq!(name.look_up(), LookUp::Known, "the look-up failed");
        assert!(!name.handle_found("v1"));
        for class in [ErrorClass::Retry, ErrorClass::Relist, ErrorClass::Denied, ErrorClass::Unsupported] {
            name.handle_failed(class);
            assert_eq!(name.look_up(), LookUp::No, "{class:?}");
        }
        name.handle_failed(ErrorClass::Gone);
        assert_eq!(name.look_up(), LookUp::Anew);
        assert!(!name.handle_found("v1"), "the same again");
        assert_eq!((name.look_up(), name.handle_request(Asking::Changes)), (LookUp::No, BuildOn::Known));
    }

    #[test]
    fn fac_13_after_another_resource_was_found_a_list_that_knows_nothing_comes_before_the_next_watch() {
        let mut name = FollowedName::new();
        name.handle_found("v1");
        for asking in [Asking::Objects, Asking::Changes, Asking::Objects] {
            assert_eq!(name.handle_request(asking), BuildOn::Known);
        }
        for other in ["v2", "v1"] {
            name.handle_failed(ErrorClass::Gone);
            assert!(name.handle_found(other));
            assert_eq!(name.handle_request(Asking::Changes), BuildOn::ListFirst);
            assert_eq!(name.handle_request(Asking::Changes), BuildOn::ListFirst);
            for page in 1..4 {
                assert_eq!(name.handle_request(Asking::Objects), BuildOn::Nothing, "page {page}");
            }
            for _ in 0..2 {
                assert_eq!(name.handle_request(Asking::Changes), BuildOn::Known);
            }
            assert_eq!(name.handle_request(Asking::Objects), BuildOn::Known);
        }
    }
}
