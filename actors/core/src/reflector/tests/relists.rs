//! Relists without a wait: which events of a live stream lead to a list, and why there is no loop.

use super::script::{check, watch_lists};
use super::watches::check_watching;

// REF-38: given a watch ended by 410, as HTTP status or as ERROR frame with reason Expired or Gone, when
// handled, then the store goes on serving and a relist at the published version follows at once; a second 410
// with no object or bookmark frame between is a failure and waits a backoff step.
// - a 410 as HTTP status, or as ERROR frame with reason Expired or Gone, is such an end:
//   `refused_watches_are_typed_and_only_a_watch_list_is_unsupported`
// - b the store goes on serving: `ref_38_the_store_is_served_while_it_relists`
// - c a relist at the published version follows at once
// - d a second 410 with no object or bookmark frame between is a failure and waits a backoff step
#[test]
fn ref_38_a_watch_ended_by_410_relists_at_once_and_the_second_without_a_frame_waits() {
    check_watching(
        r#"
        breaks 410
        > LIST version="10"
        list end=12
        > REPLACE version=12 Relist
        > WATCH version="12" stream=1
        count failures=0 expired=1
        breaks 410
        > WAIT 0.8..1.6
        state Backoff 1
        wait
        > LIST version="12"
        list end=13
        > REPLACE version=13 Relist
        > WATCH version="13" stream=2
        head
        pass 1
        frames *14
        > DELTA *14
        breaks 410
        > LIST version="14"
        count failures=1 expired=3 relists=3
        "#,
    );
}

#[test]
fn ref_38_initial_events_between_two_expiries_do_not_count_as_a_frame() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        frames a@1 *3end
        > REPLACE version=3 InitialList a@1
        breaks 410
        > WATCH version="3" initial-events stream=1
        frames a@1 *4end
        > REPLACE version=4 Relist a@1
        breaks 410
        > WAIT 0.8..1.6
        "#,
    );
}

// REF-40: given a live stream (initial events over) that brings a frame with a version below the source's,
// when received, then it is not applied, it is counted, and the source relists; an equal version is judged by
// uid and version alone.
// - a it is not applied, it is counted, and the source relists
// - b an equal version is a good frame:
//   `ref_40_again_before_a_good_frame_it_waits_and_an_equal_version_is_a_good_frame`
// - c and is judged by uid and version alone:
//   `ref_40_a_part_at_the_version_reached_is_judged_by_uid_and_version_alone`
#[test]
fn ref_40_a_frame_below_the_version_reached_is_counted_and_relists() {
    check_watching(
        r#"
        frames a@15 b@14 c@16
        > DELTA a@15
        > CLOSE stream=0
        > LIST version="15"
        newest 15
        count stale=1 relists=1 failures=0
        list end=16
        > REPLACE version=16 Relist
        > WATCH version="16" stream=1
        head
        frames b@17
        > DELTA b@17
        newest 17
        "#,
    );
}

#[test]
fn ref_40_again_before_a_good_frame_it_waits_and_an_equal_version_is_a_good_frame() {
    check_watching(
        r#"
        pass 1
        frames b@9
        > CLOSE stream=0
        > LIST version="10"
        list end=10
        > REPLACE version=10 Relist
        > WATCH version="10" stream=1
        head
        frames b@9
        > CLOSE stream=1
        > WAIT 0.8..1.6
        wait
        > LIST version="10"
        list end=10
        > REPLACE version=10 Relist
        > WATCH version="10" stream=2
        head
        pass 1
        frames a@10
        > DELTA a@10
        frames b@9
        > CLOSE stream=2
        > LIST version="10"
        count stale=3 failures=1
        "#,
    );
}

#[test]
fn ref_44_an_unreadable_frame_relists_once_and_not_in_a_loop() {
    check_watching(
        r#"
        frames a@11
        > DELTA a@11
        breaks unreadable
        > LIST version="11"
        list a@11 ? end=12
        > REPLACE version=12 Relist a@11
        > WATCH version="12" stream=1
        head
        count unreadable=2 relists=1
        breaks unreadable
        > WAIT 0.8..1.6
        wait
        > LIST version="12"
        "#,
    );
}

// REF-57: given relists that need no wait, when one follows another, then they begin at least 1 s apart, also
// when the one before was put off or waited for the list budget; rewinds excepted.
// - a at least 1 s apart
// - b when one was put off: `ref_57_a_relist_that_was_put_off_counts_when_the_next_one_is_spaced`
// - c when one waited for the budget:
//   `ref_57_a_relist_that_waited_for_the_list_budget_counts_from_when_it_began`
#[test]
fn ref_57_a_relist_after_a_good_frame_begins_at_once_but_not_twice_within_a_second() {
    check_watching(
        r#"
        frames *11
        > DELTA *11
        breaks 410
        > LIST version="11"
        list end=11
        > REPLACE version=11 Relist
        > WATCH version="11" stream=1
        head
        frames *12
        > DELTA *12
        breaks 410
        > WAIT 1
        wait
        > LIST version="12"
        "#,
    );
}

#[test]
fn ref_57_a_relist_that_was_put_off_counts_when_the_next_one_is_spaced() {
    check_watching(
        r#"
        frames *11
        > DELTA *11
        breaks 410
        > LIST version="11"
        list end=11
        > REPLACE version=11 Relist
        > WATCH version="11" stream=1
        head
        frames *12
        > DELTA *12
        pass 0.1
        breaks 410
        > WAIT 0.9
        wait
        > LIST version="12"
        list end=12
        > REPLACE version=12 Relist
        > WATCH version="12" stream=2
        head
        frames *13
        > DELTA *13
        pass 0.05
        breaks 410
        > WAIT 0.95
        "#,
    );
}

#[test]
fn ref_57_a_relist_that_waited_for_the_list_budget_counts_from_when_it_began() {
    check_watching(
        r#"
        frames *11
        > DELTA *11
        budget taken
        breaks 410
        pass 5
        budget free
        > LIST version="11"
        list end=11
        > REPLACE version=11 Relist
        > WATCH version="11" stream=1
        head
        frames *12
        > DELTA *12
        breaks 410
        > WAIT 1
        "#,
    );
}
