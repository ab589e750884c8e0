//! Watches: what comes, how they end, and what that means for the next request.

use super::script::{check, check_resumed, lists, watch_lists};
use crate::reflector::{Effect, ListWatchMachine, Moment, ReflectorConfig};
use std::time::Duration;

/// Listed at version 10 with nothing in it, and the watch accepted.
pub(super) const WATCHING: &str = r#"
        start
        > LIST version="0" limit=500
        list end=10
        > REPLACE version=10 InitialList
        > WATCH version="10" stream=0
        head
"#;

pub(super) fn check_watching(script: &str) {
    check(&lists(), &format!("{WATCHING}{script}"));
}

/// The timeout of the first watch, given the least one as set, if it is.
fn timeout(least: Option<Duration>, chance: f64) -> Duration {
    let unset = watch_lists();
    let config = ReflectorConfig { min_watch_timeout: least.unwrap_or(unset.min_watch_timeout), ..unset };
    let mut machine = ListWatchMachine::<()>::new(config, None);
    machine.start();
    assert!(matches!(machine.poll_effect(), Some(Effect::AcquireListPermit)));
    machine.handle_list_permit(Moment { now: Duration::ZERO, chance });
    let Some(Effect::Watch { request, .. }) = machine.poll_effect() else { panic!("not a watch") };
    request.timeout
}

// REF-09: given a minimum watch timeout unset or 1 s, when watching, then the request's timeout is random in
// [300, 600] s; given 30 min, in [1800, 3600] s; the client's own deadline lies above it.
// - a unset or 1 s, the timeout is random in [300, 600] s
// - b given 30 min, in [1800, 3600] s
// - c the client's own deadline lies above it:
//   `a_watch_lasts_thirty_seconds_longer_than_it_was_asked_for_and_not_more`
#[test]
fn ref_09_the_watch_timeout_is_drawn_from_once_to_twice_the_least() {
    let minutes = |count: u64| Duration::from_secs(count * 60);
    for unset_or_short in [None, Some(Duration::ZERO), Some(Duration::from_secs(1))] {
        let drawn = [0.0, 0.5, 1.0].map(|chance| timeout(unset_or_short, chance));
        assert_eq!(drawn, [minutes(5), Duration::from_secs(450), minutes(10)], "{unset_or_short:?}");
    }
    let drawn = [0.0, 0.5, 1.0].map(|chance| timeout(Some(minutes(30)), chance));
    assert_eq!(drawn, [minutes(30), minutes(45), minutes(60)]);
}

#[test]
fn a_watch_that_a_full_queue_has_delayed_has_its_whole_time_for_the_answer() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        full 40
        list end=10
        > REPLACE version=10 InitialList
        > WATCH version="10" stream=0
        pass 29.9
        head
        state Streaming
        count watches=1 failures=0
        ends
        > WAIT 0.8..1.6
        error the watch of pods ended after 0.0 s
        "#,
    );
}

// REF-13: given an ERROR frame 500 InternalError, also after good frames, when received, then it is a
// failure: one backoff wait, no second watch, then a LIST at the published version, counted as a relist with
// its reason.
// - a it is a failure with one backoff wait and no second watch, with and without good frames before
// - b then a LIST at the published version
// - c it is counted as a relist with its reason
// - d every form of an ERROR frame is so:
//   `an_error_event_or_an_unreadable_bookmark_is_one_failure_of_its_type_and_a_relist`
#[test]
fn ref_13_an_error_frame_is_one_wait_and_then_a_relist_also_after_good_frames() {
    for (frames, version) in [("", "10"), ("frames a@11\n > DELTA a@11", "11")] {
        check_watching(
            &r#"
            FRAMES
            breaks 500
            > WAIT 0.8..1.6
            state Backoff 1
            wait
            > LIST version="VERSION"
            count watches=1 failures=1 relists=1 failed=1
            "#
            .replace("FRAMES", frames)
            .replace("VERSION", version),
        );
    }
}

// REF-15: given a watch that ends with no frame before max(10 s, the last wait), when it repeats, then each
// is a failure with a typed "very short watch" error naming the resource, the waits grow as in REF-10 and
// nothing relists; one that was silent for longer is not a failure.
// - a each is a failure with a typed error that names the resource
// - b the waits grow and nothing relists
// - c one that was silent for 10 s is not a failure:
//   `ref_15_a_watch_that_was_silent_for_longer_is_not_a_failure`
// - d after a longer wait it has to be silent for that long: `ref_15_silence_must_outlast_the_last_wait`
#[test]
fn ref_15_watches_that_end_at_once_with_nothing_are_failures_and_nothing_relists() {
    check_watching(
        r#"
        ends
        > WAIT 0.8..1.6
        state Backoff 1
        error very short watch: the watch of pods ended after 0.0 s without a frame
        wait
        > WATCH version="10" stream=1
        head
        > ASK
        version 10
        pass 9.9
        breaks cut
        > WAIT 1.6..3.2
        error was cut
        count short_watches=2 failures=2 lists=1
        "#,
    );
}

#[test]
fn ref_15_a_watch_that_was_silent_for_longer_is_not_a_failure() {
    check_watching(
        r#"
        pass 10
        ends
        > WATCH version="10" stream=1
        count failures=0 short_watches=0
        "#,
    );
}

#[test]
fn ref_15_silence_must_outlast_the_last_wait() {
    let refusals: String = (1..=5)
        .map(|stream| {
            format!("breaks refused\n > WAIT {}\n wait\n > WATCH version=\"10\" stream={stream}\n", {
                ["0.8..1.6", "1.6..3.2", "3.2..6.4", "6.4..12.8", "12.8..25.6"][stream - 1]
            })
        })
        .collect();
    check_resumed(
        &lists(),
        &format!(
            r#"
            start
            > LIST version="10"
            list end=10
            > REPLACE version=10 Relist
            > WATCH version="10" stream=0
            {refusals}
            head
            > ASK
            version 10
            pass 12
            ends
            > WAIT 25.6..51.2
            count short_watches=1 failures=6
            "#
        ),
    );
}

#[test]
fn ref_16_a_stream_that_brought_a_frame_and_ends_or_is_cut_is_opened_again_at_once() {
    for end in ["ends", "breaks cut", "breaks timeout"] {
        check_watching(
            &r#"
            pass 2
            frames a@11
            > DELTA a@11
            END
            > WATCH version="11" stream=1
            state Streaming
            count failures=0 lists=1
            "#
            .replace("END", end),
        );
    }
}

#[test]
fn ref_16_a_watch_is_not_opened_twice_within_a_second() {
    check_watching(
        r#"
        pass 0.25
        frames a@11
        > DELTA a@11
        breaks cut
        > WAIT 0.75
        state Streaming
        wait
        > WATCH version="11" stream=1
        count failures=0
        "#,
    );
}

#[test]
fn ref_16_a_stream_that_brought_a_frame_resets_the_backoff() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list-fails 500
        > WAIT 0.8..1.6
        wait
        > LIST version="0" limit=500
        list-fails 500
        > WAIT 1.6..3.2
        wait
        > LIST version="0" limit=500
        list end=10
        > REPLACE version=10 InitialList
        > WATCH version="10" stream=0
        head
        frames *11
        > DELTA *11
        pass 1
        ends
        > WATCH version="11" stream=1
        breaks refused
        > WAIT 0.8..1.6
        state Backoff 1
        "#,
    );
}

#[test]
fn ref_18_the_next_watch_asks_from_the_last_frame_of_any_kind() {
    for (frames, newest) in [
        ("a@11", "11"),
        ("a@11 a@20", "20"),
        ("a@11 *30", "30"),
        ("a@11 -a@40", "40"),
        ("!a@50", "50"),
        ("!-a@60", "60"),
    ] {
        check_watching(
            &r#"
            pass 2
            frames FRAMES
            > DELTA FRAMES
            newest NEWEST
            breaks cut
            > WATCH version="NEWEST" stream=1
            "#
            .replace("FRAMES", frames)
            .replace("NEWEST", newest),
        );
    }
}

#[test]
fn ref_23_what_a_closed_stream_still_brings_is_ignored() {
    check_watching(
        r#"
        breaks 410
        > LIST version="10"
        frames stream=0 a@11
        ends stream=0
        reads no stream=0
        list end=12
        > REPLACE version=12 Relist
        > WATCH version="12" stream=1
        frames stream=0 a@13
        newest 12
        "#,
    );
}

#[test]
fn ref_32_an_undecodable_object_moves_the_version_on_and_nothing_relists() {
    check_watching(
        r#"
        frames !a@11 b@12
        > DELTA !a@11 b@12
        newest 12
        count relists=0 failures=0
        "#,
    );
}

#[test]
fn what_a_reader_finds_late_is_delivered_whatever_its_version_and_is_no_frame_of_the_server() {
    check_watching(
        r#"
        frames a@12
        > DELTA a@12
        pass 7
        frames !!a@3 !!a@12
        > DELTA !!a@3 !!a@12
        silent-for 7
        frames a@13
        > DELTA a@13
        "#,
    );
}

#[test]
fn ref_50_the_time_since_the_last_frame_is_visible() {
    check_watching(
        r#"
        pass 20
        frames *11
        > DELTA *11
        breaks 429:3600
        > WAIT 3600..3601
        pass 3500
        silent-for 3500
        state Backoff 1
        "#,
    );
}

#[test]
fn a_watch_whose_head_does_not_come_has_failed() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list end=10
        > REPLACE version=10 InitialList
        > WATCH version="10" stream=0
        pass 30
        > CLOSE stream=0
        > WAIT 0.8..1.6
        error timed out: pods: the answer to a watch
        "#,
    );
}
