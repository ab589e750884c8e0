//! The arrival times of the parts in the queue.
//!
//! Answers "when did the oldest part of this batch arrive?", so that delivery latency is known without a time in each
//! part. Invariants:
//! 1. There are at most as many marks as waiting parts.
//! 2. In order of arrival the answer is exact. Per key, where parts overtake each other and deletions merge, it is the
//!    arrival of the oldest part that may be in the batch: it is never too late.
//!
//! Read next: `delta_fifo.rs`, the queue.

use std::collections::VecDeque;
use std::time::Duration;

/// The times at which the parts in a queue were pushed.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// How many parts had been pushed in all after a push, and when that was; oldest first.
    marks: VecDeque<(u64, Duration)>,
    popped: u64,
    waiting: usize,
}

impl Arrivals {
    /// Something was pushed; `waiting` parts are in the queue now.
    pub fn handle_push(&mut self, waiting: usize, now: Duration) {
        let pushed = self.popped.saturating_add(waiting as u64);
        if self.marks.back().is_none_or(|(newest, _)| *newest < pushed) && waiting > self.waiting {
            self.marks.push_back((pushed, now));
        }
        self.waiting = waiting;
    }

    /// Something was popped; `waiting` parts are left in the queue. Gives when the oldest popped part arrived; `None`
    /// if no part was popped.
    pub fn handle_pop(&mut self, waiting: usize) -> Option<Duration> {
        let oldest = self.oldest().filter(|_| waiting < self.waiting);
        self.popped = self.popped.saturating_add(self.waiting.saturating_sub(waiting) as u64);
        self.waiting = waiting;
        while self.marks.front().is_some_and(|(pushed, _)| *pushed <= self.popped) {
            self.marks.pop_front();
        }
        if waiting == 0 {
            self.marks.clear();
        }
        oldest
    }

    /// When the oldest waiting part arrived.
    pub fn oldest(&self) -> Option<Duration> {
        self.marks.front().map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_oldest_part_of_a_batch_shows_when_it_arrived() {
        let mut arrivals = Arrivals::default();
        arrivals.handle_push(3, at(1));
        arrivals.handle_push(5, at(2));
        assert_eq!(arrivals.handle_pop(3), Some(at(1)), "two of the first three");
        assert_eq!(arrivals.handle_pop(1), Some(at(1)), "the last of them, and one of the others");
        arrivals.handle_push(2, at(7));
        assert_eq!(arrivals.oldest(), Some(at(2)));
        assert_eq!(arrivals.handle_pop(0), Some(at(2)));
        assert_eq!((arrivals.handle_pop(0), arrivals.oldest()), (None, None));
    }

    proptest! {
        #[test]
        fn in_order_of_arrival_it_is_exact_and_holds_no_more_marks_than_parts(
            steps in prop::collection::vec((any::<bool>(), 1_usize..5), 1..60),
        ) {
            let (mut arrivals, mut queue) = (Arrivals::default(), VecDeque::new());
            for (second, (is_push, parts)) in (0..).zip(steps) {
                if is_push {
                    queue.extend(std::iter::repeat_n(at(second), parts));
                    arrivals.handle_push(queue.len(), at(second));
                } else {
                    let oldest = queue.front().copied();
                    queue.drain(..parts.min(queue.len()));
                    prop_assert_eq!(arrivals.handle_pop(queue.len()), oldest);
                }
                prop_assert!(arrivals.marks.len() <= queue.len());
                prop_assert_eq!(arrivals.oldest(), queue.front().copied());
            }
        }
    }
}
