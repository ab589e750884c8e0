//! How often the faults that were set have acted.
//!
//! Answers: did the test meet the outage that it plays? A fault that never struck has count 0.
//! 1. Counted are faults that wait for something: refusals, switches, sizes, and the watches that an end, a reset or raw
//!    bytes reached. What always acts at once (compaction, jumps, backups) is not counted.
//! 2. A switch for one resource and one for all count apart; where both are on, the one for the resource counts.
//! 3. `clear` keeps the counts; `clear_strikes` starts again.
use serde::Serialize;

use super::Faults;
use crate::cluster::kind::ResourceId;
use crate::fault_state::{Dial, FaultState, Place, Switch};

/// How often one fault has acted at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Strikes {
    /// The name of the fault, as in JSON; for `deny` with its verb (`deny list`).
    pub fault: String,
    /// The resource it was set for; none for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// How often it has acted: on requests, on watches, or on the events and bookmarks in them.
    pub count: u64,
}

impl Faults {
    /// How often each fault that was set has acted since the start or `clear_strikes`; after `of`, those of one resource.
    ///
    /// ```
    /// # let server = informer_apiserver::ApiServer::builder().start_blocking()?;
    /// server.faults().of("pods").fail_next(1, 503);
    /// // ... run the program under test, which does not list pods ...
    /// let idle = server.faults().strikes().into_iter().find(|fault| fault.count == 0).ok_or("all have struck")?;
    /// assert_eq!((idle.fault.as_str(), idle.resource.as_deref()), ("fail-next", Some("pods")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn strikes(&self) -> Vec<Strikes> {
        let here = |place: &Place| self.place.is_none() || *place == self.place;
        self.world.with(|inner| {
            let noted = inner.faults.strikes.iter().filter(|((_, place), _)| here(place));
            let told = noted.map(|((fault, place), count)| Strikes {
                fault: fault.clone(),
                resource: place.as_ref().map(ToString::to_string),
                count: *count,
            });
            told.collect()
        })
    }

    /// How often the faults have acted in all: the sum of `strikes`.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.strikes().iter().map(|fault| fault.count).sum()
    }

    /// Forgets the counts; a fault that stands is told again when it strikes.
    pub fn clear_strikes(&self) {
        self.world.with(|inner| inner.faults.strikes.clear());
    }
}

impl FaultState {
    /// Notes that a fault was set, and how often it has acted by that.
    pub(crate) fn note(&mut self, fault: &str, place: Place, struck: usize) {
        *self.strikes.entry((fault.to_owned(), place)).or_default() += struck as u64;
    }

    /// Counts what a switch did to this resource.
    pub(crate) fn struck(&mut self, switch: Switch, resource: &ResourceId, times: usize) {
        let own = (switch, Some(resource.clone()));
        let place = if self.on.contains(&own) { own.1 } else { None };
        self.note(switch.name(), place, times);
    }

    /// Counts what a size did to this resource.
    pub(crate) fn struck_by(&mut self, dial: Dial, resource: &ResourceId) {
        let own = (dial, Some(resource.clone()));
        let place = if self.dials.contains_key(&own) { own.1 } else { None };
        self.note(dial.name(), place, 1);
    }
}
