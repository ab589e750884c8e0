//! Which resource a name is taken for, and when the server is asked again what it means.
//!
//! Answers "does what was found still hold?" for a source that follows a kind by name. It sends nothing and reads no
//! clock. Invariants:
//! 1. The name is looked up before the first request, and again after each answer that the resource is missing. So a
//!    kind that is defined later, or comes back with another version or scope, is found; who asks when is decided by the
//!    reflector's waits.
//! 2. After the resource has changed no watch goes on: the next answer that counts is a list.
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

/// A name and the resource that it means, as far as that is known.
#[derive(Debug)]
pub(super) struct FollowedName<T> {
    found: Option<T>,
    look_up: LookUp,
    /// It means another resource than the one that was listed last.
    is_unlisted: bool,
}

impl<T: PartialEq> FollowedName<T> {
    pub(super) fn new() -> Self {
        Self { found: None, look_up: LookUp::Known, is_unlisted: false }
    }

    pub(super) fn look_up(&self) -> LookUp {
        self.look_up
    }

    /// The name means this; true if it meant something else before.
    pub(super) fn handle_found(&mut self, found: T) -> bool {
        let is_other = self.found.as_ref().is_some_and(|before| *before != found);
        (self.found, self.look_up) = (Some(found), LookUp::No);
        self.is_unlisted |= is_other;
        is_other
    }

    /// A request is about to be sent. Whether it must not be, as a list has to come first; a watch of changes is asked for
    /// only after a whole list.
    pub(super) fn must_list_before(&mut self, asking: Asking) -> bool {
        self.is_unlisted &= asking == Asking::Changes;
        self.is_unlisted
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
        assert!(name.look_up() == LookUp::No && !name.must_list_before(Asking::Changes));
    }

    #[test]
    fn fac_13_after_another_resource_was_found_a_list_comes_before_the_next_watch() {
        let mut name = FollowedName::new();
        name.handle_found("v1");
        for asking in [Asking::Objects, Asking::Changes, Asking::Objects] {
            assert!(!name.must_list_before(asking));
        }
        for other in ["v2", "v1"] {
            name.handle_failed(ErrorClass::Gone);
            assert!(name.handle_found(other));
            assert!(name.must_list_before(Asking::Changes) && name.must_list_before(Asking::Changes));
            for asking in
                [Asking::Objects, Asking::Objects, Asking::Changes, Asking::Changes, Asking::Objects]
            {
                assert!(!name.must_list_before(asking), "{asking:?}");
            }
        }
    }
}
