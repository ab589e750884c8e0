//! Rewinds: when the rewind question is asked, which parts are held meanwhile, and what follows from each answer.

use super::script::{check, check_resumed, lists, watch_lists};
use super::watches::check_watching;

#[test]
fn ref_36_after_a_reconnect_nothing_is_delivered_before_the_servers_version_is_known() {
    check_watching(
        r#"
        pass 2
        breaks 500
        > WAIT 0.8..1.6
        wait
        > LIST version="10"
        list end=10
        > REPLACE version=10 Relist
        > WATCH version="10" stream=1
        pass 2
        head
        reads yes
        frames *11
        > DELTA *11
        breaks cut
        > WATCH version="11" stream=2
        reads yes
        head
        > ASK
        reads no
        version 11
        reads yes
        frames a@12
        > DELTA a@12
        count rewinds=0
        "#,
    );
}

#[test]
fn ref_36_a_server_below_our_version_is_listed_at_its_latest_and_nothing_skipped() {
    check_watching(
        r#"
        pass 2
        frames a@20
        > DELTA a@20
        breaks cut
        > WATCH version="20" stream=1
        head
        > ASK
        version 15
        > CLOSE stream=1
        > LIST version="" limit=500 everything
        count rewinds=1 failures=0
        list a@15 end=16
        > REPLACE version=16 Rewind a@15
        > WATCH version="16" stream=2 everything
        newest 16
        head
        state Streaming
        frames b@17
        > DELTA b@17
        count rewinds=1 relists=1 rewind=1
        "#,
    );
}

#[test]
fn ref_36_a_failed_list_of_a_rewind_is_asked_for_again_as_such() {
    check_watching(
        r#"
        pass 11
        ends
        > WATCH version="10" stream=1
        head
        > ASK
        version 5
        > CLOSE stream=1
        > LIST version="" limit=500 everything
        list a@1 end=6 next=C1
        > LIST token=C1 limit=500 everything
        list-fails 410
        > LIST version="" everything
        list-fails cut
        > WAIT 0.8..1.6
        wait
        > LIST version="" limit=500 everything
        list a@1 end=12
        > REPLACE version=12 Rewind a@1
        > WATCH version="12" stream=2 everything
        count rewinds=1
        "#,
    );
}

#[test]
fn ref_36_a_rewind_is_listed_also_where_watch_lists_are_known_and_the_relist_after_it_skips_nothing() {
    check_resumed(
        &watch_lists(),
        r#"
        start
        > WATCH version="10" initial-events stream=0
        frames a@1 *10end
        > REPLACE version=10 Relist a@1
        pass 1
        ends
        > WATCH version="10" stream=1
        head
        > ASK
        version 5
        > CLOSE stream=1
        > LIST version="" limit=500 everything
        list a@1 end=5
        > REPLACE version=5 Rewind a@1
        > WATCH version="5" stream=2 everything
        head
        frames *6
        > DELTA *6
        pass 1
        breaks 410
        > WATCH version="6" initial-events stream=3 everything
        frames a@1 *7end
        > REPLACE version=7 Relist a@1
        pass 1
        ends
        > WATCH version="7" stream=4
        "#,
    );
}

#[test]
fn ref_36_a_list_or_watch_list_that_is_older_than_what_was_delivered_is_a_rewind_too() {
    check_resumed(
        &lists(),
        r#"
        start
        > LIST version="10"
        list-fails too-large
        > LIST version="" limit=500
        list a@3 end=5 next=C1
        > LIST version="" limit=500 everything
        list a@3 end=5
        > REPLACE version=5 Rewind a@3
        > WATCH version="5" stream=0 everything
        count rewinds=1
        "#,
    );
    check_resumed(
        &watch_lists(),
        r#"
        start
        > WATCH version="10" initial-events stream=0
        breaks too-large
        > WATCH version="" initial-events stream=1
        frames a@3 *5end b@6
        > CLOSE stream=1
        > LIST version="" limit=500 everything
        list a@3 b@6 end=6
        > REPLACE version=6 Rewind a@3 b@6
        > WATCH version="6" stream=2 everything
        count rewinds=1
        "#,
    );
}

#[test]
fn ref_36_a_server_that_goes_back_again_and_again_is_listed_after_waits() {
    check_watching(
        r#"
        pass 11
        ends
        > WATCH version="10" stream=1
        head
        > ASK
        version 5
        > CLOSE stream=1
        > LIST version="" limit=500 everything
        list end=5
        > REPLACE version=5 Rewind
        > WATCH version="5" stream=2 everything
        head
        pass 11
        ends
        > WATCH version="5" stream=3 everything
        head
        > ASK
        version 4
        > CLOSE stream=3
        > WAIT 0.8..1.6
        wait
        > LIST version="" limit=500 everything
        count rewinds=2 failures=1
        "#,
    );
}

#[test]
fn ref_51_a_source_that_went_on_to_20_asks_at_20_and_sees_no_rewind() {
    check_watching(
        r#"
        frames a@20
        > DELTA a@20
        breaks 500
        > WAIT 0.8..1.6
        wait
        > LIST version="20"
        list end=20
        > REPLACE version=20 Relist
        > WATCH version="20" stream=1
        count rewinds=0
        "#,
    );
}

#[test]
fn ref_54_a_watch_that_ran_to_its_timeout_is_not_followed_by_the_question() {
    // Bookmarks keep the renewals away; the timeout asked for is 300 s with the least chance, 600 s with the most.
    let minute = |minute: u32| format!("pass 20\n frames *{0}\n > DELTA *{0}\n", 100 + minute);
    let bookmarks: String = (1..=30).map(minute).collect();
    check_watching(&format!("{bookmarks} ends\n > WATCH version=\"130\" stream=1\n head\n state Streaming"));
}

#[test]
fn ref_54_a_watch_that_ended_earlier_is_followed_by_the_question() {
    for end in ["ends", "breaks cut"] {
        check_watching(&format!("pass 12\n {end}\n > WATCH version=\"10\" stream=1\n head\n > ASK"));
    }
}

#[test]
fn ref_54_frames_that_come_before_the_answer_are_held_and_delivered_after_it() {
    check_watching(
        r#"
        pass 12
        ends
        > WATCH version="10" stream=1
        frames a@11
        > ASK
        frames b@12
        newest 10
        version 12
        > DELTA a@11 b@12
        newest 12
        "#,
    );
}

// REF-54: given a watch that ran to the timeout it had asked for, or a renewal of ours, when the next begins,
// then the rewind question is not asked; one that ended earlier, cleanly or not, is followed by it. The
// question goes through `ListRequest{name}` and counts as no LIST in any other scenario; frames of the new
// watch are held until it is answered; a failed question is a failed watch.
// - a after a watch that ran to its timeout the question is not asked:
//   `ref_54_a_watch_that_ran_to_its_timeout_is_not_followed_by_the_question`
// - b nor after a renewal of ours: `ref_39_a_silent_watch_is_renewed_after_30_then_60_then_each_90_seconds`
// - c one that ended earlier, cleanly or not, is followed by it:
//   `ref_54_a_watch_that_ended_earlier_is_followed_by_the_question`
// - d it goes through `ListRequest{name}` and counts as no LIST
// - e frames of the new watch are held until it is answered:
//   `ref_54_frames_that_come_before_the_answer_are_held_and_delivered_after_it`
// - f a failed question is a failed watch
#[test]
fn ref_54_a_failed_question_is_a_failed_watch() {
    for (answer, wait) in [("refused", "0.8..1.6"), ("429:7", "7..8"), ("403", "1..2"), ("410", "0.8..1.6")] {
        check_watching(
            &r#"
            pass 12
            ends
            > WATCH version="10" stream=1
            frames a@11
            > ASK
            version-fails ANSWER
            > CLOSE stream=1
            > WAIT RANGE
            count failures=1 lists=1
            wait
            > WATCH version="10" stream=2
            head
            > ASK
            version 11
            frames a@11
            > DELTA a@11
            "#
            .replace("ANSWER", answer)
            .replace("RANGE", wait),
        );
    }
}

#[test]
fn ref_54_an_answer_that_does_not_come_fails_the_watch_too_and_a_late_one_is_ignored() {
    check_watching(
        r#"
        pass 12
        ends
        > WATCH version="10" stream=1
        head
        > ASK
        pass 30
        > CLOSE stream=1
        > WAIT 0.8..1.6
        version 5
        wait
        > WATCH version="10" stream=2
        count rewinds=0 failures=1
        "#,
    );
}

#[test]
fn ref_35_a_question_answered_with_404_shows_that_the_kind_is_gone() {
    check_watching(
        r#"
        pass 12
        ends
        > WATCH version="10" stream=1
        head
        > ASK
        version-fails 404
        > CLOSE stream=1
        > WAIT 1..2
        state Gone
        wait
        > LIST version="10"
        "#,
    );
}

#[test]
fn informer_1_a_first_list_below_what_a_predecessor_has_delivered_is_a_rewind() {
    check(
        &lists(),
        r#"
        floor 50
        start
        > LIST version="50"
        list a@20 end=30
        > LIST version="" limit=500 everything
        count rewinds=1 failures=0
        list a@20 end=31
        > REPLACE version=31 Rewind a@20
        > WATCH version="31" stream=0 everything
        "#,
    );
}
