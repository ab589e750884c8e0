//! Renewals: when a silent watch is renewed, and what follows.

use super::script::{check, watch_lists};
use super::watches::check_watching;

#[test]
fn ref_39_a_silent_watch_is_renewed_after_30_then_60_then_each_90_seconds() {
    check_watching(
        r#"
        pass 29.9
        pass 0.1
        > WATCH version="10" stream=1
        state Streaming
        reads yes stream=0
        head
        > CLOSE stream=0
        pass 59.9
        pass 0.1
        > WATCH version="10" stream=2
        head
        > CLOSE stream=1
        pass 89.9
        pass 0.1
        > WATCH version="10" stream=3
        head
        > CLOSE stream=2
        pass 90
        > WATCH version="10" stream=4
        count renewals=3 lists=1 failures=0
        "#,
    );
}

#[test]
fn ref_39_an_object_or_bookmark_resets_the_silence_to_30_seconds() {
    for frame in ["a@11", "*11"] {
        check_watching(
            &r#"
            pass 30
            > WATCH version="10" stream=1
            head
            > CLOSE stream=0
            pass 50
            frames FRAME
            > DELTA FRAME
            pass 29.9
            pass 0.1
            > WATCH version="11" stream=2
            "#
            .replace("FRAME", frame),
        );
    }
}

#[test]
fn ref_39_a_frame_of_the_first_stream_meanwhile_cancels_the_renewal() {
    check_watching(
        r#"
        pass 30
        > WATCH version="10" stream=1
        frames stream=0 a@11
        > CLOSE stream=1
        > DELTA a@11
        head stream=1
        frames stream=1 a@11
        newest 11
        pass 30
        > WATCH version="11" stream=2
        count renewals=0
        "#,
    );
}

#[test]
fn ref_39_what_the_second_brings_with_its_head_is_delivered_once() {
    check_watching(
        r#"
        pass 30
        > WATCH version="10" stream=1
        frames stream=1 a@11
        > CLOSE stream=0
        > DELTA a@11
        frames stream=0 a@11
        "#,
    );
}

#[test]
fn ref_39_a_watch_list_that_has_synced_is_renewed_as_a_plain_watch() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        frames a@1 *3end
        > REPLACE version=3 InitialList a@1
        pass 30
        > WATCH version="3" stream=1
        "#,
    );
}

#[test]
fn ref_53_a_change_behind_a_dead_relay_comes_with_the_first_renewal() {
    check_watching(
        r#"
        pass 30
        > WATCH version="10" stream=1
        head
        > CLOSE stream=0
        frames a@11
        > DELTA a@11
        count renewals=1 failures=0
        "#,
    );
}

#[test]
fn ref_39_a_renewal_that_fails_leaves_the_first_stream_open_and_waits() {
    for failure in ["refused", "429", "500"] {
        check_watching(
            &r#"
            pass 30
            > WATCH version="10" stream=1
            breaks stream=1 FAILURE
            state Backoff 1
            reads yes stream=0
            pass 1.6
            > WATCH version="10" stream=2
            frames stream=0 a@11
            > CLOSE stream=2
            > DELTA a@11
            state Streaming
            count failures=1 lists=1
            "#
            .replace("FAILURE", failure),
        );
    }
}

#[test]
fn ref_39_after_a_failed_renewal_the_next_is_followed_by_the_rewind_question() {
    check_watching(
        r#"
        pass 30
        > WATCH version="10" stream=1
        pass 30
        > CLOSE stream=1
        error timed out
        state Backoff 1
        pass 1.6
        > WATCH version="10" stream=2
        head
        > CLOSE stream=0
        > ASK
        version 10
        state Streaming
        "#,
    );
}

#[test]
fn ref_39_a_renewal_refused_for_its_version_or_for_our_rights_ends_the_first_stream() {
    for (answer, next) in [("410", "LIST version=\"10\""), ("403", "WAIT 1..2"), ("404", "WAIT 1..2")] {
        check_watching(&format!(
            r#"
            pass 30
            > WATCH version="10" stream=1
            breaks stream=1 {answer}
            > CLOSE stream=0
            > {next}
            "#
        ));
    }
}

#[test]
fn ref_39_the_first_stream_ending_meanwhile_ends_the_renewal_too() {
    check_watching(
        r#"
        pass 30
        > WATCH version="10" stream=1
        pass 2
        ends stream=0
        > CLOSE stream=1
        > WATCH version="10" stream=2
        count failures=0
        "#,
    );
}
