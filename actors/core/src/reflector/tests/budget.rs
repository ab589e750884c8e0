//! The list budget: how long a permit is needed, and how long a list may bring nothing new.

use super::script::{check, check_resumed, lists, watch_lists};
use super::watches::check_watching;
use crate::reflector::ReflectorConfig;

fn pages_of_four() -> ReflectorConfig {
    ReflectorConfig { page_size: Some(4), ..lists() }
}

#[test]
fn ref_55_the_permit_is_needed_until_the_list_is_whole_or_has_failed() {
    check_resumed(
        &pages_of_four(),
        r#"
        permit free
        budget taken
        start
        permit needed
        state Starting
        pass 600
        budget free
        > LIST version="10" limit=4
        permit needed
        list a@1 end=10 next=C1
        > LIST token=C1 limit=4
        permit needed
        list-fails 410
        > LIST version=""
        permit needed
        list-fails 500
        > WAIT 0.8..1.6
        permit free
        wait
        > LIST version="10" limit=4
        list a@1 end=12
        > REPLACE version=12 Relist a@1
        > WATCH version="12" stream=0
        permit free
        "#,
    );
}

#[test]
fn ref_55_a_relist_that_waits_for_the_budget_is_not_a_failure_and_asks_nothing_meanwhile() {
    check_watching(
        r#"
        budget taken
        breaks 410
        state Listing 0
        pass 3600
        count failures=0 relists=0
        budget free
        > LIST version="10"
        count failures=0 relists=1
        "#,
    );
}

#[test]
fn ref_56_a_list_that_brings_no_new_object_for_90_s_has_failed() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        pass 89
        list a@1
        pass 60
        list nothing
        pass 29
        list nothing
        state Listing 1
        pass 1
        > CLOSE list
        > WAIT 0.8..1.6
        state Backoff 1
        error timed out: pods: the next object of a list did not come within 90s
        permit free
        wait
        > LIST version="0" limit=500
        pass 90
        > CLOSE list
        > WAIT 1.6..3.2
        "#,
    );
}

#[test]
fn ref_56_parts_without_objects_do_not_extend_the_deadline_of_a_list() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list a@1
        busy 90
        list nothing
        > CLOSE list
        > WAIT 0.8..1.6
        "#,
    );
}

#[test]
fn ref_56_each_page_and_each_object_that_cannot_be_read_gives_a_list_its_90_s_anew() {
    check(
        &pages_of_four(),
        r#"
        start
        > LIST version="0" limit=4
        pass 80
        list !a@1
        pass 80
        list ?
        pass 80
        list end=10 next=C1
        > LIST token=C1 limit=4
        pass 80
        list b@1
        state Listing 2
        pass 80
        list end=10
        > REPLACE version=10 InitialList b@1 !a@1
        > WATCH version="10" stream=0
        "#,
    );
}

#[test]
fn wl_14_the_time_spent_waiting_for_the_list_budget_does_not_count() {
    check(
        &watch_lists(),
        r#"
        budget taken
        start
        permit needed
        state Starting
        pass 600
        count failures=0 watches=0
        budget free
        > WATCH version="" initial-events stream=0
        state Listing 0
        pass 60
        permit needed
        frames a@1 *3end
        > REPLACE version=3 InitialList a@1
        permit free
        "#,
    );
}

#[test]
fn ref_58_a_flood_of_live_changes_does_not_put_the_deadline_of_initial_events_off() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        frames a@1
        busy 89
        frames a@2
        busy 1
        frames a@3
        > CLOSE stream=0
        > WAIT 0.8..1.6
        error the next initial event did not come within 90s
        "#,
    );
}

#[test]
fn wl_14_live_changes_behind_initial_events_that_never_end_put_nothing_off() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        frames a@1 b@2
        pass 60
        frames a@3 -b@4 b@5 *6
        pass 29.9
        frames a@7
        pass 0.1
        > CLOSE stream=0
        > WAIT 0.8..1.6
        error timed out
        wait
        > LIST version="0" limit=500
        list a@7 b@5 end=7
        > REPLACE version=7 InitialList a@7 b@5
        > WATCH version="7" stream=1
        "#,
    );
}
