//! The positions of the fault switches, and their effect on a request.
//!
//! Answers: does a switch hold here, and is this request refused by one? Pure; `faults.rs` sets the switches.
//! 1. `default()` is "no faults": the server then behaves correctly.
//! 2. A switch holds for a resource if it is on for that resource or everywhere.
//! 3. A counted fault counts only the requests it refuses; one for a resource is used before one for all.
//! 4. The code that applies a switch or size counts it (`count_switch`, `count_setting` in `faults.rs`).
use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::ResourceId;
use crate::cluster::status::ApiError;
use crate::cluster::store::Frozen;

/// Where a fault holds: at one resource, or everywhere.
pub(crate) type Place = Option<ResourceId>;

/// A fault that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Switch {
    /// Nothing is sent into watches.
    FreezeWatches,
    /// No request is answered and nothing is sent into watches.
    FreezeServer,
    DropBookmarks,
    RefuseWatchList,
    WithholdEndBookmark,
    /// Watches end at once, with nothing in them.
    ShortWatches,
    DuplicateEvents,
    ReorderEvents,
    HoldListTails,
    PlainTextErrors,
}

impl Switch {
    /// The name of the fault.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FreezeWatches => "freeze-watches",
            Self::FreezeServer => "freeze-server",
            Self::DropBookmarks => "drop-bookmarks",
            Self::RefuseWatchList => "refuse-watch-list",
            Self::WithholdEndBookmark => "withhold-end-bookmark",
            Self::ShortWatches => "short-watches",
            Self::DuplicateEvents => "duplicate-events",
            Self::ReorderEvents => "reorder-events",
            Self::HoldListTails => "hold-list-tails",
            Self::PlainTextErrors => "plain-text-errors",
        }
    }
}

/// A fault with a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dial {
    /// Lists go out at this many bytes per second.
    ListRate,
    /// Lists of more bytes are refused.
    ListLimit,
    /// Lists are made longer by this many blanks.
    ListPadding,
    /// Requests wait this many milliseconds before they are handled.
    Latency,
}

impl Dial {
    /// The name of the fault.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ListRate => "slow-lists",
            Self::ListLimit => "limit-lists",
            Self::ListPadding => "pad-lists",
            Self::Latency => "delay-requests",
        }
    }
}

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

impl Failure {
    /// The name of the fault.
    pub(crate) fn name(&self) -> &'static str {
        match (self.retry_after, self.reads_only) {
            (Some(_), _) => "too-many-requests-next",
            (None, true) => "gone-next",
            (None, false) => "fail-next",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct FaultState {
    pub(crate) failures: BTreeMap<Place, Failure>,
    pub(crate) denied: BTreeSet<(String, ResourceId)>,
    pub(crate) on: BTreeSet<(Switch, Place)>,
    pub(crate) dials: BTreeMap<(Dial, Place), u64>,
    /// Resources that a definition is said to add later.
    pub(crate) expected: BTreeSet<ResourceId>,
    /// How often each fault that was set has taken effect, by its name and place.
    pub(crate) counts: BTreeMap<(String, Place), u64>,
    /// Definitions removed by a switch, to be restored by it, by name.
    pub(crate) withdrawn: BTreeMap<String, serde_json::Value>,
    /// The state kept by `keep_backup`.
    pub(crate) backup: Option<Frozen>,
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
    /// Whether a switch is on for this resource.
    pub(crate) fn holds(&self, switch: Switch, resource: &ResourceId) -> bool {
        // Usually no switch is on: then the search is not needed.
        !self.on.is_empty()
            && (self.on.contains(&(switch, None)) || self.on.contains(&(switch, Some(resource.clone()))))
    }

    /// Whether a switch is on everywhere.
    pub(crate) fn holds_everywhere(&self, switch: Switch) -> bool {
        self.on.contains(&(switch, None))
    }

    /// Whether this resource was announced, or its definition was removed, or a fault was set for it.
    pub(crate) fn has_met(&self, resource: &ResourceId) -> bool {
        self.expected.contains(resource)
            || self.withdrawn.contains_key(&resource.to_string())
            || self.denied.iter().any(|(_, denied)| denied == resource)
            || self.counts.keys().any(|(_, place)| place.as_ref() == Some(resource))
            || self.on.iter().any(|(_, place)| place.as_ref() == Some(resource))
            || self.dials.keys().any(|(_, place)| place.as_ref() == Some(resource))
            || self.failures.keys().any(|place| place.as_ref() == Some(resource))
    }

    pub(crate) fn turn(&mut self, switch: Switch, place: Place, on: bool) {
        if on {
            self.note(switch.name(), place.clone(), 0);
            self.on.insert((switch, place));
        } else {
            self.on.remove(&(switch, place));
        }
    }

    /// The size set for this resource, else the one set for all; none if neither is.
    pub(crate) fn size(&self, dial: Dial, resource: &ResourceId) -> Option<u64> {
        if self.dials.is_empty() {
            return None;
        }
        let own = self.dials.get(&(dial, Some(resource.clone())));
        own.or_else(|| self.dials.get(&(dial, None))).copied()
    }

    pub(crate) fn set_size(&mut self, dial: Dial, place: Place, size: Option<u64>) {
        match size {
            Some(size) => {
                self.note(dial.name(), place.clone(), 0);
                self.dials.insert((dial, place), size);
            }
            None => {
                self.dials.remove(&(dial, place));
            }
        }
    }

    /// Refuses the next requests; none if none are left.
    pub(crate) fn fail(&mut self, place: Place, failure: Failure) {
        if failure.left > 0 {
            self.note(failure.name(), place.clone(), 0);
        }
        self.failures.insert(place, failure);
    }

    pub(crate) fn deny(&mut self, verb: String, resource: ResourceId) {
        self.note(&format!("deny {verb}"), Some(resource.clone()), 0);
        self.denied.insert((verb, resource));
    }

    /// Checks the switches for a request; counts down if one refuses.
    pub(crate) fn refuse(&mut self, verb: &str, resource: &ResourceId) -> Option<Refused> {
        if !self.denied.is_empty() && self.denied.contains(&(verb.to_owned(), resource.clone())) {
            self.note(&format!("deny {verb}"), Some(resource.clone()), 1);
            return Some(Refused::Denied);
        }
        if self.failures.is_empty() {
            return None;
        }
        let place = [Some(resource.clone()), None];
        let place = place.into_iter().find(|place| {
            self.failures.get(place).is_some_and(|failure| {
                failure.left > 0 && (!failure.reads_only || matches!(verb, "list" | "watch"))
            })
        })?;
        let failure = self.failures.get_mut(&place)?;
        failure.left -= 1;
        let mut error = ApiError::by_code(failure.code);
        if let Some(seconds) = failure.retry_after {
            error = error.with_retry_after(seconds);
        }
        let (refused, name) = (Refused::With(error, failure.plain), failure.name());
        if failure.left == 0 {
            self.failures.remove(&place);
        }
        self.note(name, place, 1);
        Some(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(left: u32, code: u16, reads_only: bool) -> Failure {
        Failure { left, code, retry_after: None, plain: false, reads_only }
    }

    #[test]
    fn a_counted_fault_counts_only_what_it_refuses() {
        let mut faults = FaultState::default();
        faults.failures.insert(None, failing(2, 410, true));
        let pods = ResourceId::parse("pods");
        assert!(faults.refuse("get", &pods).is_none());
        assert!(faults.refuse("list", &pods).is_some());
        assert!(faults.refuse("watch", &pods).is_some());
        assert!(faults.refuse("list", &pods).is_none());
    }

    #[test]
    fn a_fault_of_one_resource_is_used_before_one_of_all_and_does_not_affect_others() {
        let (pods, nodes) = (ResourceId::parse("pods"), ResourceId::parse("nodes"));
        let mut faults = FaultState::default();
        faults.failures.insert(None, failing(9, 503, false));
        faults.failures.insert(Some(pods.clone()), failing(1, 500, false));
        let codes: Vec<u16> = [&nodes, &pods, &pods]
            .into_iter()
            .map(|resource| match faults.refuse("get", resource) {
                Some(Refused::With(error, _)) => error.code(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(codes, [503, 500, 503]);
        faults.turn(Switch::DropBookmarks, Some(pods.clone()), true);
        assert!(faults.holds(Switch::DropBookmarks, &pods) && !faults.holds(Switch::DropBookmarks, &nodes));
        faults.set_size(Dial::Latency, None, Some(5));
        faults.set_size(Dial::Latency, Some(pods.clone()), Some(7));
        assert_eq!(
            (faults.size(Dial::Latency, &pods), faults.size(Dial::Latency, &nodes)),
            (Some(7), Some(5))
        );
    }
}
