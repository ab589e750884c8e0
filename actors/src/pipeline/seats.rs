//! The seats of an informer's subscriptions: whom its end and its reports are about.
//!
//! Answers "who still listens, who has not handled everything, and for whom does somebody still act?". Its lock guards a
//! list and is held for no more than a copy of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pipeline::seat::{EndReason, Seat};

/// The seats of an informer's subscriptions, for reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seats(Arc<Mutex<Vec<Seat>>>);

impl Seats {
    pub(crate) fn add(&self, seat: Seat) {
        let mut seats = self.seats();
        // Those that have left go whenever there is no room: in all a constant number of looks a seat.
        if seats.len() == seats.capacity() {
            seats.retain(|seat| !seat.has_left());
        }
        seats.push(seat);
    }

    fn live(&self) -> Vec<Seat> {
        self.seats().iter().filter(|seat| !seat.has_ended()).cloned().collect()
    }

    pub(crate) fn end_all(&self, reason: &EndReason) {
        self.live().iter().for_each(|seat| seat.end_with(reason.clone()));
    }

    /// Those who have not handled everything that they are owed.
    pub(crate) fn owing(&self) -> Vec<Seat> {
        let mut live = self.live();
        live.retain(Seat::is_owing);
        live
    }

    /// All for whom somebody acts, also after their end.
    pub(crate) fn present(&self) -> Vec<Seat> {
        self.seats().iter().filter(|seat| !seat.has_left()).cloned().collect()
    }

    fn seats(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
