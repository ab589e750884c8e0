//! The positions of the fault switches, and what they make of a request.
//!
//! Answers: is this request refused by a switch, and how? Pure; the handle in `faults.rs` moves the switches.
//! 1. `default()` is "no faults": every behaviour is then the faithful one.
//! 2. A counted fault counts only the requests it refuses.
use std::collections::BTreeSet;

use crate::cluster::kind::ResourceId;
use crate::cluster::status::ApiError;

/// A refusal for the next requests.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) left: u32,
    pub(crate) code: u16,
    pub(crate) retry_after: Option<u32>,
    pub(crate) plain: bool,
    /// Only lists and watches are refused (and counted).
    pub(crate) reads_only: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FaultState {
    pub(crate) failure: Option<Failure>,
    pub(crate) denied: BTreeSet<(String, ResourceId)>,
    pub(crate) frozen: BTreeSet<ResourceId>,
    pub(crate) drop_bookmarks: bool,
    pub(crate) refuse_watch_list: bool,
    pub(crate) withhold_end_bookmark: bool,
    pub(crate) hold_list_tails: bool,
    pub(crate) list_rate: Option<u64>,
    pub(crate) plain_errors: bool,
}

/// Why a switch refuses a request.
#[derive(Debug)]
pub(crate) enum Refused {
    /// This answer; true for a plain-text body.
    With(ApiError, bool),
    /// 403: this verb on this resource.
    Denied,
}

impl FaultState {
    /// Asks the switches about a request; counts down where one refuses.
    pub(crate) fn refuse(&mut self, verb: &str, resource: &ResourceId) -> Option<Refused> {
        if self.denied.contains(&(verb.to_owned(), resource.clone())) {
            return Some(Refused::Denied);
        }
        let failure = self.failure.as_mut().filter(|failure| failure.left > 0)?;
        if failure.reads_only && !matches!(verb, "list" | "watch") {
            return None;
        }
        failure.left -= 1;
        let mut error = ApiError::by_code(failure.code);
        if let Some(seconds) = failure.retry_after {
            error = error.with_retry_after(seconds);
        }
        Some(Refused::With(error, failure.plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_fault_counts_only_what_it_refuses() {
        let failure = Failure { left: 2, code: 410, retry_after: None, plain: false, reads_only: true };
        let mut faults = FaultState { failure: Some(failure), ..FaultState::default() };
        let pods = ResourceId::parse("pods");
        assert!(faults.refuse("get", &pods).is_none());
        assert!(faults.refuse("list", &pods).is_some());
        assert!(faults.refuse("watch", &pods).is_some());
        assert!(faults.refuse("list", &pods).is_none());
    }
}
