//! Watch-lists: the net result of their initial events, and what follows when they do not end.

use super::script::{check, check_resumed, lists, watch_lists};

// WL-01: given a fresh reflector with watch-list on, when it starts, then one watch with
// sendInitialEvents=true, resourceVersionMatch=NotOlderThan, bookmarks allowed and version "" is opened and
// no LIST is made; a relist asks the same with the published version.
// - a one watch with sendInitialEvents=true, resourceVersionMatch=NotOlderThan, bookmarks allowed and version
//   ""
// - b no LIST is made
// - c a relist asks the same with the published version:
//   `wl_01_a_relist_asks_for_initial_events_not_older_than_what_was_delivered`
#[test]
fn wl_01_a_fresh_reflector_asks_for_initial_events_at_the_latest_version_and_makes_no_list() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        state Listing 0
        count lists=0 watches=1 watch_lists=1
        "#,
    );
}

#[test]
fn wl_01_a_relist_asks_for_initial_events_not_older_than_what_was_delivered() {
    check_resumed(&watch_lists(), "start\n > WATCH version=\"10\" initial-events stream=0\n count relists=1");
}

#[test]
fn wl_02_the_end_bookmark_delivers_the_whole_and_the_stream_goes_on() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        head
        frames b@2 a@1
        state Listing 2
        frames *3end c@4
        > REPLACE version=3 InitialList a@1 b@2
        > DELTA c@4
        state Streaming
        newest 4
        frames *5
        > DELTA *5
        count watches=1 lists=0 relists=0
        "#,
    );
}

#[test]
fn wl_03_without_the_end_bookmark_nothing_is_delivered() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        head
        frames a@1 *2 b@3
        state Listing 2
        pass 89
        frames *4
        state Listing 2
        "#,
    );
}

// WL-05: given watch-list switched off, when starting and relisting, then LIST + WATCH are used and no
// request carries sendInitialEvents.
// - a LIST + WATCH are used, starting and relisting
// - b no request carries sendInitialEvents
#[test]
fn wl_05_switched_off_no_request_asks_for_initial_events() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list end=3
        > REPLACE version=3 InitialList
        > WATCH version="3" stream=0
        head
        breaks 410
        > LIST version="3"
        count watch_lists=0
        "#,
    );
}

// WL-06: given a `ListWatch` that answers watch-list as unsupported (a custom source, a test double), when
// starting, then LIST + WATCH follow at once, no failure is counted, and it is not asked again until the
// reflector restarts.
// - a LIST + WATCH follow at once and no failure is counted
// - b it is not asked again until the reflector restarts
// WL-07: given watch-list answered 400 or 422 Invalid, when starting, then LIST + WATCH follow at once, no
// failure is counted, and it is not asked again until the reflector restarts.
// - a 400 and 422 to a watch-list say that it is unsupported:
//   `refused_watches_are_typed_and_only_a_watch_list_is_unsupported`
// - b LIST + WATCH follow at once and no failure is counted
// - c it is not asked again until the reflector restarts
#[test]
fn wl_06_wl_07_a_source_without_watch_lists_is_listed_at_once_and_not_asked_again() {
    for refusal in ["unsupported", "400", "422"] {
        check(
            &watch_lists(),
            &r#"
            start
            > WATCH version="" initial-events stream=0
            breaks REFUSAL
            > LIST version="0" limit=500
            list a@1 end=3
            > REPLACE version=3 InitialList a@1
            > WATCH version="3" stream=1
            head
            count failures=0
            breaks 410
            > LIST version="3"
            count watch_lists=1
            "#
            .replace("REFUSAL", refusal),
        );
    }
}

// WL-08: given a watch-list that fails in any other way (refused, 500, cut, deadline), when handled, then it
// is one failure with one backoff wait and the next attempt is LIST + WATCH: one request per attempt; the
// relist after that tries watch-list again. 403 and 404 are INF-33 and REF-35.
// - a refused, 500, cut or after a deadline it is one failure with one backoff wait, and the next attempt is
//   LIST + WATCH
// - b lists go on until one succeeds: `wl_08_lists_go_on_until_one_succeeds`
// - c the relist after that tries watch-list again
#[test]
fn wl_08_any_other_failure_is_one_wait_and_then_a_list_and_the_relist_after_asks_again() {
    for failure in ["ends", "breaks cut", "breaks refused", "breaks 500", "breaks timeout", "breaks own"] {
        check(
            &watch_lists(),
            &r#"
            start
            > WATCH version="" initial-events stream=0
            FAILURE
            > WAIT 0.8..1.6
            state Backoff 1
            wait
            > LIST version="0" limit=500
            list a@1 end=3
            > REPLACE version=3 InitialList a@1
            > WATCH version="3" stream=1
            count failures=1
            breaks 410
            > WATCH version="3" initial-events stream=2
            "#
            .replace("FAILURE", failure),
        );
    }
}

#[test]
fn wl_08_lists_go_on_until_one_succeeds() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        breaks 500
        > WAIT 0.8..1.6
        wait
        > LIST version="0" limit=500
        list-fails 500
        > WAIT 1.6..3.2
        wait
        > LIST version="0" limit=500
        "#,
    );
}

// WL-09: given two 429 answers then success, when starting, then three watch-list requests are made, each
// after its wait as in REF-11 and REF-12, and no LIST.
#[test]
fn wl_09_an_overloaded_server_is_asked_for_the_watch_list_again() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        breaks 429:7
        > WAIT 7..8
        wait
        > WATCH version="" initial-events stream=1
        breaks 429
        > WAIT 0.8..1.6
        wait
        > WATCH version="" initial-events stream=2
        frames a@1 *3end
        > REPLACE version=3 InitialList a@1
        count lists=0 watch_lists=3 overloaded=2
        "#,
    );
}

// WL-10: given Added x, Modified x, Added y, Deleted y before the bookmark, when it arrives, then only the
// net result is published and delivered: one Added for x in its last state, nothing for y.
// - a only the net result is published
// - b and delivered, as Added: `rf_18_the_changes_of_a_first_list_have_its_cause_and_are_one_publish`
#[test]
fn wl_10_only_the_net_result_of_the_initial_events_is_delivered() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        frames x@1 x@2 y@3 -y@4 !z@5 z@6 !w@7 !-w@8 v@9 !v@10
        state Listing 8
        frames *11end
        > REPLACE version=11 InitialList x@2 z@6 !v@10
        "#,
    );
}

// WL-12: given the stream ended after sync at version 3, when reconnecting, then a plain watch from 3 is
// opened, without initial events and without LIST.
#[test]
fn wl_12_a_stream_that_ends_after_its_sync_goes_on_as_a_plain_watch() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        frames a@1 *3end
        > REPLACE version=3 InitialList a@1
        pass 1
        ends
        > WATCH version="3" stream=1
        count lists=0 watch_lists=1 failures=0
        "#,
    );
}

// WL-14: given an annotated bookmark that does not come, when 90 s have passed since the last object that was
// new, then the stream is cut and it is a failure as in WL-08; while new objects come nothing is cut, and
// changes of those that have come put nothing off.
// - a 90 s after the last new object the stream is cut
// - b it is a failure as in WL-08
// - c while new objects come nothing is cut
// - d changes of those that have come put nothing off:
//   `wl_14_live_changes_behind_initial_events_that_never_end_put_nothing_off`
#[test]
fn wl_14_initial_events_that_stop_coming_are_cut_90_seconds_after_the_last() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        head
        pass 80
        frames a@1
        pass 89.9
        pass 0.1
        > CLOSE stream=0
        > WAIT 0.8..1.6
        state Backoff 1
        error timed out
        wait
        > LIST version="0" limit=500
        count failures=1
        "#,
    );
}

#[test]
fn wl_18_a_proxy_that_cuts_every_watch_list_does_not_keep_the_informer_from_its_list() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        frames a@1
        pass 2
        breaks cut
        > WAIT 0.8..1.6
        wait
        > LIST version="0" limit=500
        list a@1 end=3
        > REPLACE version=3 InitialList a@1
        > WATCH version="3" stream=1
        count failures=1
        "#,
    );
}

// WL-18: given a proxy that cuts every watch-list 2 s in, before the end bookmark, when it repeats, then the
// cut is a failure, the waits grow, and the informer syncs by the LIST that comes next.
// - a each cut is a failure, and the waits grow
// - b the informer syncs by the LIST that comes next
#[test]
fn wl_18_when_every_watch_list_is_cut_the_waits_grow_and_each_relist_is_the_list_that_comes_next() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        pass 2
        breaks cut
        > WAIT 0.8..1.6
        wait
        > LIST version="0" limit=500
        list end=3
        > REPLACE version=3 InitialList
        > WATCH version="3" stream=1
        breaks 410
        > WATCH version="3" initial-events stream=2
        pass 2
        breaks cut
        > WAIT 1.6..3.2
        wait
        > LIST version="3"
        list end=4
        > REPLACE version=4 Relist
        > WATCH version="4" stream=3
        count failures=2
        "#,
    );
}

// WL-22: given a relist by watch-list at published version 10 answered by an ERROR frame Expired or too
// large, when handled, then the next request, with no wait, carries "".
#[test]
fn wl_22_an_expired_relist_by_watch_list_is_asked_again_at_once_at_the_latest_version() {
    for refusal in ["410", "too-large"] {
        check_resumed(
            &watch_lists(),
            &r#"
            start
            > WATCH version="10" initial-events stream=0
            head
            breaks REFUSAL
            > WATCH version="" initial-events stream=1
            frames a@12 *12end
            > REPLACE version=12 Relist a@12
            count failures=0 expired=1 lists=0
            "#
            .replace("REFUSAL", refusal),
        );
    }
}

#[test]
fn wl_22_a_watch_list_that_expires_at_the_latest_version_too_has_failed() {
    check_resumed(
        &watch_lists(),
        r#"
        start
        > WATCH version="10" initial-events stream=0
        breaks 410
        > WATCH version="" initial-events stream=1
        breaks 410
        > WAIT 0.8..1.6
        wait
        > LIST version="10"
        "#,
    );
}

#[test]
fn inf_33_ref_35_a_refused_watch_list_is_asked_again_as_such() {
    for (answer, state, first, second) in [
        ("403", "Denied", "1..2", "2..4"),
        ("401", "Denied", "1..2", "2..4"),
        ("404", "Gone", "1..2", "2..4"),
    ] {
        check(
            &watch_lists(),
            &r#"
            start
            > WATCH version="" initial-events stream=0
            breaks ANSWER
            > WAIT FIRST
            state STATE
            wait
            > WATCH version="" initial-events stream=1
            state STATE
            breaks ANSWER
            > WAIT SECOND
            wait
            > WATCH version="" initial-events stream=2
            head
            state Listing 0
            frames *3end
            > REPLACE version=3 InitialList
            state Streaming
            "#
            .replace("ANSWER", answer)
            .replace("STATE", state)
            .replace("FIRST", first)
            .replace("SECOND", second),
        );
    }
}

#[test]
fn ref_44_initial_events_with_an_unreadable_key_are_listed_instead_at_once() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        frames a@1
        breaks unreadable
        > LIST version="0" limit=500
        list a@1 ? end=3
        > REPLACE version=3 InitialList a@1
        > WATCH version="3" stream=1
        count unreadable=2 failures=0
        "#,
    );
}
