//! How few cursors there are, however many lists come while a recipient is told the first one.

use super::super::CURSORS;
use super::super::invariants::Replay;
use super::{drain, joined, list, rewound, snapshot};
use crate::delta::{Cause, Change};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::object;

/// A slow recipient of these many keys, while that many lists come; gives the most cursors there were, walked and not.
fn most_cursors(
    keys: u64,
    lists: u64,
    next: impl Fn(&Snapshot<String>, u64) -> Snapshot<String>,
) -> (usize, usize) {
    let objects: Vec<_> = (0..keys).map(|n| object(&format!("ns-{}/pod-{n:05}", n % 9), n + 1)).collect();
    let (mut backlog, mut state) = (joined(snapshot(&objects)), snapshot(&objects));
    let (mut replay, mut most, mut walked) = (Replay::default(), 0, 0);
    let mut apply = |delivered: Vec<Change<String>>| {
        delivered.iter().for_each(|change| replay.apply(change).expect("it fits"));
        delivered.len()
    };
    for number in 0..lists {
        assert!(apply(backlog.take(20)) > 0, "the end is never delivered");
        state = next(&state, number);
        list(&mut backlog, &state, Cause::Relist);
        most = most.max(backlog.stats().cursors);
        while backlog.must_walk() {
            backlog.walk();
        }
        walked = walked.max(backlog.stats().cursors);
    }
    apply(drain(&mut backlog, 64));
    assert_eq!(replay.equals(&state), Ok(()));
    (most, walked)
}

#[test]
fn lis_33_lists_that_change_little_add_no_cursor_beyond_the_bound() {
    let (most, walked) = most_cursors(4_000, 60, |state, number| {
        let mut frame = state.frame().clone();
        for n in 0..20 {
            let at = (number * 67 + n * 199) % 4_000;
            frame.insert(object(&format!("ns-{}/pod-{at:05}", at % 9), 10_000 + number * 20 + n));
        }
        Snapshot::publish(frame)
    });
    assert!(most <= CURSORS && walked <= CURSORS, "{most}, {walked}");
}

// LIS-33: given a recipient that is slow to be told a first list, when list after list comes meanwhile, then
// what it holds for them stays at four cursors: further ones are walked 250 keys a turn, and what it is told
// replays to what is there.
// - a lists that change little add none beyond the bound:
//   `lis_33_lists_that_change_little_add_no_cursor_beyond_the_bound`
// - b lists that change everything add one for each gap, until they are walked
#[test]
fn lis_33_lists_that_change_everything_add_a_cursor_for_each_gap_until_they_are_walked() {
    let (most, walked) = most_cursors(2_000, 30, |state, _| {
        let objects: Vec<_> = state.iter().cloned().collect();
        rewound(state, &objects)
    });
    assert!(most <= 2 * CURSORS + 1 && walked <= CURSORS, "{most}, {walked}");
}
