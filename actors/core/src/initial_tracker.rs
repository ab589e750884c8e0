//! When has a subscriber handled the last initial event, if it joined before the first list was there?
//!
//! Answers that one question by counting. A backlog hands events out in order of first arrival, so once the informer
//! is synced, whatever is owed at that moment ends with the last initial event. Invariants:
//! 1. Latched: once delivered, always delivered.
//! 2. It never says yes before everything that was owed at the closing has been handled.
//!
//! Used by the Listener together with `listener.rs`, which knows about the replay of a late joiner.

/// Counts deliveries up to the last initial event.
#[derive(Debug, Clone, Default)]
pub struct InitialTracker {
    target: Option<u64>,
    delivered: bool,
}

impl InitialTracker {
    /// Open: more initial events may come.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first list of every source is in the backlog: `owed` events are still to come after `handled` ones.
    /// Only the first call counts.
    pub fn close(&mut self, handled: u64, owed: u64) {
        self.target.get_or_insert(handled + owed);
    }

    /// Whether the last initial event has been handled, given the events handled so far and whether nothing at all
    /// is owed or under way.
    pub fn is_delivered(&mut self, handled: u64, nothing_owed: bool) -> bool {
        let reached = self.target.is_some_and(|target| nothing_owed || handled >= target);
        self.delivered |= reached;
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::InitialTracker;

    #[test]
    fn inf_27_a_subscriber_is_synced_when_what_was_owed_at_the_first_list_is_handled() {
        let mut tracker = InitialTracker::new();
        assert!(!tracker.is_delivered(0, true), "nothing is owed, but the first list has not come");
        tracker.close(0, 3);
        tracker.close(0, 900);
        assert!(!tracker.is_delivered(2, false));
        assert!(tracker.is_delivered(3, false));
        assert!(tracker.is_delivered(0, false), "latched");
    }

    #[test]
    fn events_that_annul_each_other_do_not_keep_a_subscriber_waiting() {
        let mut tracker = InitialTracker::new();
        tracker.close(0, 3);
        assert!(tracker.is_delivered(1, true));
    }
}
