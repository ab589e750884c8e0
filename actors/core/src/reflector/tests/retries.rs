//! Waits: after which failure, how long, and what is asked next.

use super::script::{check, check_resumed, lists};
use super::watches::check_watching;

// REF-10: given a watch connect refused 8 times, when run on simulated time, then the waits lie in [d, 2d]
// for d = 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30 s, the state is Backoff with attempts 1 to 8, and the LIST
// count stays 1.
// - a the waits lie in [d, 2d]
// - b the state is Backoff with attempts 1 to 8
// - c the LIST count stays 1
#[test]
fn ref_10_refused_watches_wait_longer_and_longer_and_nothing_is_listed() {
    let waits =
        ["0.8..1.6", "1.6..3.2", "3.2..6.4", "6.4..12.8", "12.8..25.6", "25.6..51.2", "30..60", "30..60"];
    let mut script = String::from(
        r#"
        start
        > LIST version="0" limit=500
        list end=10
        > REPLACE version=10 InitialList
        > WATCH version="10" stream=0
        "#,
    );
    for (index, wait) in waits.iter().enumerate() {
        let next = index + 1;
        script += &format!(
            r#"
            breaks refused
            > WAIT {wait}
            state Backoff {next}
            wait
            > WATCH version="10" stream={next}
            state Backoff {next}
            "#
        );
    }
    script += "count lists=1 watches=9 failures=8\n head\n > ASK\n version 10\n state Streaming";
    check(&lists(), &script);
}

// REF-11: given watch connect answered 429 with Retry-After 7 and then a stream with an ERROR frame 429 of
// retryAfterSeconds 3, when run, then the next connects come 7 s and 3 s later (never earlier, at most 1 s
// later) and the LIST count stays 1.
// - a the next connects come 7 s and 3 s later, never earlier and at most 1 s later
// - b Retry-After is read from the answer: `refusals_are_typed_whether_or_not_they_are_a_status`
// - c retryAfterSeconds is read from the ERROR frame:
//   `an_error_line_is_typed_as_the_http_answer_would_be_and_a_table_is_refused`
// - d the LIST count stays 1
#[test]
fn ref_11_the_wait_that_the_server_names_is_kept_and_nothing_is_listed() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list end=10
        > REPLACE version=10 InitialList
        > WATCH version="10" stream=0
        breaks 429:7
        > WAIT 7..8
        state Backoff 1
        wait
        > WATCH version="10" stream=1
        head
        > ASK
        version 10
        breaks 429:3
        > WAIT 3..4
        state Backoff 2
        wait
        > WATCH version="10" stream=2
        count lists=1 overloaded=2 failures=2
        "#,
    );
}

#[test]
fn ref_11_a_named_wait_of_zero_is_still_a_wait() {
    check_watching("breaks 429:0\n > WAIT 0.5..1");
}

// REF-12: given four 429 in a row without Retry-After on watch connect, one of them with a plain-text body,
// when run, then each waits one backoff step, the last error is typed overloaded, LIST count stays 1 and
// WATCH count is 5.
// - a each waits one backoff step
// - b the last error is typed overloaded, also that of a plain-text body
// - c the LIST count stays 1 and the WATCH count is 5
#[test]
fn ref_12_overloads_without_a_named_wait_take_one_step_each_and_nothing_is_listed() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list end=10
        > REPLACE version=10 InitialList
        > WATCH version="10" stream=0
        breaks 429
        > WAIT 0.8..1.6
        wait
        > WATCH version="10" stream=1
        breaks 429
        > WAIT 1.6..3.2
        wait
        > WATCH version="10" stream=2
        breaks 429
        > WAIT 3.2..6.4
        wait
        > WATCH version="10" stream=3
        breaks 429
        > WAIT 6.4..12.8
        error overloaded
        wait
        > WATCH version="10" stream=4
        count lists=1 watches=5 overloaded=4
        "#,
    );
}

// REF-33: given a server down for 10 min, when attempts are recorded on simulated time, then from the seventh
// failure on two are never less than 30 s apart, with no reset while failing.
// - a from the seventh failure on two attempts are never less than 30 s apart
// - b nothing resets that while failing
#[test]
fn ref_33_from_the_seventh_failure_on_attempts_are_half_a_minute_apart_for_ever() {
    let mut script = String::from("start\n > LIST version=\"0\" limit=500\n");
    let waits = ["0.8..1.6", "1.6..3.2", "3.2..6.4", "6.4..12.8", "12.8..25.6", "25.6..51.2"];
    for failure in 0..40 {
        let wait = waits.get(failure).copied().unwrap_or("30..60");
        script += &format!("list-fails refused\n > WAIT {wait}\n wait\n > LIST version=\"0\" limit=500\n");
    }
    check(&lists(), &script);
}

#[test]
fn inf_33_a_refused_list_or_watch_is_asked_again_soon_and_recovers() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list-fails 403
        > WAIT 1..2
        state Denied
        error denied
        wait
        > LIST version="0" limit=500
        state Denied
        list-fails 403
        > WAIT 2..4
        wait
        > LIST version="0" limit=500
        list a@1
        state Listing 1
        list end=10
        > REPLACE version=10 InitialList a@1
        > WATCH version="10" stream=0
        breaks 403
        > WAIT 4..8
        state Denied
        wait
        > WATCH version="10" stream=1
        head
        > ASK
        version 10
        state Streaming
        count denied=3 failures=3 lists=3
        "#,
    );
}

#[test]
fn refusals_do_not_lengthen_the_waits_of_later_failures() {
    for (refusal, wait) in [("403", "1..2"), ("404", "1..2"), ("401", "1..2"), ("selector", "30..60")] {
        check(
            &lists(),
            &format!(
                r#"
                start
                > LIST version="0" limit=500
                list-fails {refusal}
                > WAIT {wait}
                wait
                > LIST version="0" limit=500
                list-fails 500
                > WAIT 0.8..1.6
                state Backoff 2
                "#
            ),
        );
    }
}

#[test]
fn a_watch_that_the_server_fails_to_open_is_opened_again_and_one_it_rejects_is_listed() {
    for (answer, next) in [
        ("500", r#"WATCH version="10" stream=1"#),
        ("503", r#"WATCH version="10" stream=1"#),
        ("timeout", r#"WATCH version="10" stream=1"#),
        ("own", r#"WATCH version="10" stream=1"#),
        ("400", r#"LIST version="10""#),
        ("protocol", r#"LIST version="10""#),
    ] {
        check_resumed(
            &lists(),
            &format!(
                r#"
                start
                > LIST version="10"
                list end=10
                > REPLACE version=10 Relist
                > WATCH version="10" stream=0
                breaks {answer}
                > WAIT 0.8..1.6
                wait
                > {next}
                "#
            ),
        );
    }
}

// REF-27: given list, watch and stream errors in all combinations, when they end, then the snapshot equals
// the server's content, and each LIST had asked for the version published at that moment ("" only right after
// Expired, too large or a rewind).
// - a the snapshot equals the server's content:
//   `every_random_run_ends_with_a_true_cache_and_subscribers_that_received_only_the_truth`
// - b each LIST had asked for the version published at that moment
// - c "" only right after Expired, too large or a rewind:
//   `whatever_a_source_answers_the_promises_hold_and_a_healthy_one_leads_to_streaming`
#[test]
fn ref_27_whatever_fails_lists_ask_for_the_newest_version_delivered() {
    check_watching(
        r#"
        frames a@11
        > DELTA a@11
        breaks 500
        > WAIT 0.8..1.6
        wait
        > LIST version="11"
        list-fails 500
        > WAIT 1.6..3.2
        wait
        > LIST version="11"
        list-fails too-large
        > LIST version="" limit=500
        list a@12
        list-fails cut
        > WAIT 3.2..6.4
        wait
        > LIST version="11"
        list a@12 end=12
        > REPLACE version=12 Relist a@12
        > WATCH version="12" stream=1
        "#,
    );
}

// REF-37: given a published version 10, when the Reflector panics, fails or is restarted, then its first
// request asks "10" (list or watch-list), never "0" or "": no reader ever sees a version lower than before.
// - a the first request asks "10", as a list or as a watch-list
// - b so does a restarted Reflector:
//   `inf_42_a_restarted_reflector_asks_at_the_version_it_had_reached_and_delivers_only_true_differences`
// - c no reader ever sees a version lower than before:
//   `every_random_run_ends_with_a_true_cache_and_subscribers_that_received_only_the_truth`
#[test]
fn ref_37_a_machine_that_goes_on_asks_for_what_its_source_had_delivered() {
    check_resumed(
        &lists(),
        r#"
        newest 10
        start
        > LIST version="10"
        list-fails 500
        > WAIT 0.8..1.6
        wait
        > LIST version="10"
        "#,
    );
}
