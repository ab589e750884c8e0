//! How often the faults that were set have taken effect.
//!
//! Answers: did the outage of the test happen? A fault that never took effect has count 0.
//! 1. It counts faults that wait for something: refusals, switches, sizes, and the watches that an end, a reset or raw
//!    bytes reached. Faults that always act at once (compaction, jumps, backups) are not counted.
//! 2. A switch for one resource and one for all are counted separately; where both are on, the one for the resource
//!    counts.
//! 3. `clear` keeps the counts; `clear_counts` starts again.
use super::Faults;
use crate::cluster::resource::ResourceId;
use crate::fault_state::{Dial, FaultState, Place, Switch};

/// How often one fault has taken effect at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCount {
    /// The name of the fault, as in the README; for `deny` with its verb (`deny list`).
    pub fault: String,
    /// The resource it was set for; none for all.
    pub resource: Option<String>,
    /// How often it has taken effect: on requests, on watches, or on the events and bookmarks in them.
    pub count: u64,
}

impl Faults {
    /// How often each fault that was set has taken effect since the start or `clear_counts`; after `of`,
    /// those of one resource.
    ///
    /// ```
    /// # let server = informer_apiserver::ApiServer::builder().start_blocking()?;
    /// server.faults().of("pods").fail_next(1, 503);
    /// // ... run the program under test, which does not list pods ...
    /// let idle = server.faults().counts().into_iter().find(|fault| fault.count == 0).ok_or("all took effect")?;
    /// assert_eq!((idle.fault.as_str(), idle.resource.as_deref()), ("fail-next", Some("pods")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Vec<FaultCount> {
        let here = |place: &Place| self.place.is_none() || *place == self.place;
        self.world.with(|inner| {
            let noted = inner.faults.counts.iter().filter(|((_, place), _)| here(place));
            let told = noted.map(|((fault, place), count)| FaultCount {
                fault: fault.clone(),
                resource: place.as_ref().map(ToString::to_string),
                count: *count,
            });
            told.collect()
        })
    }

    /// How often the faults have taken effect in total: the sum of `counts`.
    #[must_use]
    pub fn total_count(&self) -> u64 {
        self.counts().iter().map(|fault| fault.count).sum()
    }

    /// Resets the counts; a standing fault is listed again when it takes effect.
    pub fn clear_counts(&self) {
        self.world.with(|inner| inner.faults.counts.clear());
    }
}

impl FaultState {
    /// Records that a fault was set, and how often it took effect at once.
    pub(crate) fn note(&mut self, fault: &str, place: Place, times: usize) {
        *self.counts.entry((fault.to_owned(), place)).or_default() += times as u64;
    }

    /// Counts the effects of a switch on this resource.
    pub(crate) fn count_switch(&mut self, switch: Switch, resource: &ResourceId, times: usize) {
        let own = (switch, Some(resource.clone()));
        let place = if self.on.contains(&own) { own.1 } else { None };
        self.note(switch.name(), place, times);
    }

    /// Counts the effects of a size on this resource.
    pub(crate) fn count_setting(&mut self, dial: Dial, resource: &ResourceId) {
        let own = (dial, Some(resource.clone()));
        let place = if self.dials.contains_key(&own) { own.1 } else { None };
        self.note(dial.name(), place, 1);
    }
}
