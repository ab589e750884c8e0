//! Lists: versions, pages and what makes a list start over.

use super::script::{check, check_resumed, lists};
use crate::reflector::ReflectorConfig;

fn pages_of_four() -> ReflectorConfig {
    ReflectorConfig { page_size: Some(4), ..lists() }
}

#[test]
fn ref_01_first_list_asks_for_version_zero_and_the_watch_for_the_lists_version() {
    check(
        &lists(),
        r#"
        state Starting
        start
        > LIST version="0" limit=500
        state Listing 0
        list a@3 b@4
        state Listing 2
        list end=10
        > REPLACE version=10 InitialList a@3 b@4
        > WATCH version="10" stream=0
        state Streaming
        head
        state Streaming
        count lists=1 watches=1 relists=0 failures=0
        "#,
    );
}

#[test]
fn ref_02_a_relist_asks_for_the_newest_version_delivered() {
    check_resumed(
        &lists(),
        r#"
        start
        > LIST version="10"
        list end=12
        > REPLACE version=12 Relist
        > WATCH version="12" stream=0
        count relists=1 resumed=1
        "#,
    );
}

// REF-03: given published version 10 and a server answering a list at 10 with 410 Expired or with 504 and
// cause ResourceVersionTooLarge, when relisting, then the very next request, with no wait, carries ""; the
// sequence is "0","10","".
// - a after 410 Expired or a version that is too large the very next request, with no wait, carries ""
// - b 504 with cause ResourceVersionTooLarge is such an answer: `refusals_of_the_server_arrive_typed`
// - c the sequence is "0","10","":
//   `ref_03_lists_ask_for_0_then_for_the_published_version_and_then_for_the_latest`
// - d "" is asked for only right after the refusal:
//   `ref_03_the_latest_version_is_asked_for_only_right_after_the_refusal`
#[test]
fn ref_03_an_expired_list_is_asked_again_at_once_at_the_latest_version() {
    for refusal in ["410", "too-large"] {
        check_resumed(
            &lists(),
            &r#"
            start
            > LIST version="10"
            list-fails REFUSAL
            > LIST version="" limit=500
            list a@12 end=12
            > REPLACE version=12 Relist a@12
            > WATCH version="12" stream=0
            head
            count failures=0 expired=1
            "#
            .replace("REFUSAL", refusal),
        );
    }
}

#[test]
fn ref_03_lists_ask_for_0_then_for_the_published_version_and_then_for_the_latest() {
    for refusal in ["410", "too-large"] {
        check(
            &lists(),
            &r#"
            start
            > LIST version="0" limit=500
            list end=10
            > REPLACE version=10 InitialList
            > WATCH version="10" stream=0
            head
            breaks 410
            > LIST version="10"
            list-fails REFUSAL
            > LIST version="" limit=500
            count failures=0
            "#
            .replace("REFUSAL", refusal),
        );
    }
}

#[test]
fn ref_03_the_very_first_list_is_asked_again_once_and_then_it_is_a_failure() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list-fails 410
        > LIST version="" limit=500
        list-fails 410
        > WAIT 0.8..1.6
        state Backoff 1
        wait
        > LIST version="0" limit=500
        "#,
    );
}

#[test]
fn ref_03_the_latest_version_is_asked_for_only_right_after_the_refusal() {
    check_resumed(
        &lists(),
        r#"
        start
        > LIST version="10"
        list-fails 410
        > LIST version="" limit=500
        list-fails 500
        > WAIT 0.8..1.6
        wait
        > LIST version="10"
        "#,
    );
}

#[test]
fn ref_04_an_expired_page_throws_the_list_away_and_asks_for_all_in_one() {
    check_resumed(
        &pages_of_four(),
        r#"
        start
        > LIST version="10" limit=4
        list a@1 b@2 c@3 d@4 end=10 next=C1
        > LIST token=C1 limit=4
        list-fails 410
        > LIST version=""
        list a@1 b@12 end=12
        > REPLACE version=12 Relist a@1 b@12
        > WATCH version="12" stream=0
        count failures=0
        "#,
    );
}

#[test]
fn ref_04_an_unlimited_list_that_pages_and_expires_all_the_same_is_a_failure() {
    check_resumed(
        &lists(),
        r#"
        start
        > LIST version="10"
        list a@1 end=10 next=C1
        > LIST token=C1
        list-fails 410
        > WAIT 0.8..1.6
        "#,
    );
}

#[test]
fn a_list_that_must_come_in_pages_does_so_from_the_first_one_on_and_after_an_expired_page() {
    let in_pages = ReflectorConfig { in_pages: true, ..lists() };
    check(
        &in_pages,
        r#"
        start
        > LIST version="" limit=500
        list a@1 end=10 next=C1
        > LIST token=C1 limit=500
        list-fails 410
        > WAIT 0.8..1.6
        wait
        > LIST version="" limit=500
        list a@1 b@2 end=11
        > REPLACE version=11 InitialList a@1 b@2
        > WATCH version="11" stream=0
        head
        breaks 410
        > LIST version="11" limit=500
        "#,
    );
}

// REF-06: given page size 4 and published version 10, when relisting 10 pods, then three requests with limit
// 4 are made, the first with version "10", the others with tokens C1, C2 and no version, and all 10 are
// published at once.
// - a three requests with limit 4, the first with version "10", the others with tokens and no version
// - b all 10 are published at once
#[test]
fn ref_06_pages_are_delivered_together_and_only_the_first_names_a_version() {
    check_resumed(
        &pages_of_four(),
        r#"
        start
        > LIST version="10" limit=4
        list a@1 b@1 c@1 d@1 end=10 next=C1
        > LIST token=C1 limit=4
        list e@1 f@1 g@1 h@1 end=10 next=C2
        > LIST token=C2 limit=4
        state Listing 8
        list i@1 !j@2 end=10
        > REPLACE version=10 Relist a@1 b@1 c@1 d@1 e@1 f@1 g@1 h@1 i@1 !j@2
        > WATCH version="10" stream=0
        count lists=1
        "#,
    );
}

#[test]
fn pages_that_disagree_are_watched_from_the_lowest_of_their_versions() {
    check_resumed(
        &pages_of_four(),
        r#"
        start
        > LIST version="10" limit=4
        list a@1 end=12 next=C1
        > LIST token=C1 limit=4
        list b@1 end=11 next=C2
        > LIST token=C2 limit=4
        list c@1 end=13
        > REPLACE version=11 Relist a@1 b@1 c@1
        > WATCH version="11" stream=0
        "#,
    );
}

// REF-07: given published version 10 and no page size, when relisting, then one request carries "10" and no
// limit (a limit would ask for exactly version 10).
#[test]
fn ref_07_a_relist_without_page_size_has_no_limit() {
    check_resumed(&lists(), "start\n > LIST version=\"10\"");
}

#[test]
fn ref_07_a_relist_has_a_limit_if_the_server_pages_lists_at_version_zero() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list a@1 end=10 next=C1
        > LIST token=C1 limit=500
        list b@1 end=10
        > REPLACE version=10 InitialList a@1 b@1
        > WATCH version="10" stream=0
        breaks 410
        > LIST version="10" limit=500
        "#,
    );
}

#[test]
fn ref_21_an_answer_that_is_not_a_list_is_a_typed_failure() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list-fails protocol
        > WAIT 0.8..1.6
        state Backoff 1
        error unexpected answer: protocol
        count failures=1
        "#,
    );
}

#[test]
fn ref_29_each_failed_list_is_counted_by_its_class() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list-fails 500
        > WAIT 0.8..1.6
        error 500
        count failures=1 overloaded=0 denied=0 gone=0
        wait
        > LIST version="0" limit=500
        state Backoff 1
        list-fails 429
        > WAIT 1.6..3.2
        state Backoff 2
        error overloaded
        count failures=2 overloaded=1
        wait
        > LIST version="0" limit=500
        list-fails 403
        > WAIT 1..2
        state Denied
        error denied
        count failures=3 overloaded=1 denied=1
        wait
        > LIST version="0" limit=500
        list-fails 404
        > WAIT 1..2
        state Gone
        error no such resource
        count failures=4 overloaded=1 denied=1 gone=1
        "#,
    );
}

#[test]
fn a_list_is_whole_only_at_the_end_of_its_last_page() {
    for broken in ["list-ends", "list-fails cut", "list a@1\n list-ends"] {
        let script = "start\n > LIST version=\"0\" limit=500\n BROKEN\n > WAIT 0.8..1.6\n count failures=1";
        check(&lists(), &script.replace("BROKEN", broken));
    }
}

#[test]
fn a_list_whose_page_names_itself_as_the_next_is_a_failure() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list a@1 end=10 next=C1
        > LIST token=C1 limit=500
        list a@1 end=10 next=C1
        > WAIT 0.8..1.6
        error names itself as the next page
        "#,
    );
}

#[test]
fn ref_44_list_items_without_a_key_are_counted_and_the_others_delivered() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list a@1 ? b@2 ? end=10
        > REPLACE version=10 InitialList a@1 b@2
        > WATCH version="10" stream=0
        count unreadable=2 failures=0
        "#,
    );
}
