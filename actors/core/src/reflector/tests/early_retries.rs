//! A missing kind and what refuses us: asked again soon at first, rarely later.

use std::time::Duration;

use proptest::prelude::*;

use super::script::{check, check_resumed, error, lists, version, watch_lists};
use super::watches::check_watching;
use crate::delta::ListPart;
use crate::reflector::{Effect, ListWatchMachine, Moment, ReflectorConfig, SourceState};

/// The waits of the first ten minutes, as far as they grow.
const WAITS: [&str; 5] = ["1..2", "2..4", "4..8", "8..16", "15..30"];

/// A script in which this failure comes `failures` times, and each is followed by one list.
fn failures(name: &str, state: &str, failures: usize) -> String {
    let mut script = String::from("start\n > LIST version=\"0\" limit=500\n");
    for failure in 0..failures {
        let wait = WAITS.get(failure).copied().unwrap_or("15..30");
        script += &format!(
            "list-fails {name}\n > WAIT {wait}\n state {state}\n wait\n > LIST version=\"0\" limit=500\n state {state}\n"
        );
    }
    script
}

#[test]
fn ref_35_a_kind_that_is_missing_is_asked_for_after_1_2_4_to_30_seconds_with_one_request_each() {
    check(&lists(), &failures("404", "Gone", 20));
}

#[test]
fn ref_62_credentials_that_are_refused_again_are_tried_after_1_2_4_to_30_seconds_with_one_request_each() {
    check(&lists(), &failures("401", "Denied", 20));
}

#[test]
fn client_informerd_what_is_forbidden_is_tried_after_1_2_4_to_30_seconds_with_one_request_each() {
    check(&lists(), &failures("403", "Denied", 20));
}

#[test]
fn client_informerd_what_is_forbidden_after_it_was_followed_is_tried_soon_since_a_server_that_starts_forbids_all()
 {
    check_watching(
        r#"
        pass 12
        ends
        > WATCH version="10" stream=1
        breaks cut
        > WAIT 0.8..1.6
        wait
        > WATCH version="10" stream=2
        breaks 403
        > WAIT 1..2
        state Denied
        wait
        > WATCH version="10" stream=3
        breaks 403
        > WAIT 2..4
        wait
        > WATCH version="10" stream=4
        head
        > ASK
        version 10
        state Streaming
        "#,
    );
}

#[test]
fn ref_35_after_ten_minutes_a_missing_kind_is_asked_for_each_30_to_60_seconds() {
    for (name, state) in [("404", "Gone"), ("401", "Denied"), ("403", "Denied")] {
        let list = "> LIST version=\"0\" limit=500\n";
        let mut script = format!("start\n {list} list-fails {name}\n > WAIT 1..2\n wait\n {list} busy 600\n");
        for _ in 0..10 {
            script += &format!("list-fails {name}\n > WAIT 30..60\n state {state}\n wait\n {list}");
        }
        check(&lists(), &script);
    }
}

#[test]
fn ref_35_a_kind_that_comes_and_goes_while_it_is_watched_is_asked_for_soon_each_time() {
    check_watching(
        r#"
        frames a@11
        > DELTA a@11
        breaks 404
        > WAIT 1..2
        state Gone
        wait
        > LIST version="11"
        state Gone
        list-fails 404
        > WAIT 2..4
        wait
        > LIST version="11"
        list b@50 end=50
        > REPLACE version=50 Relist b@50
        > WATCH version="50" stream=1
        head
        state Streaming
        count gone=2 refused=2
        pass 10
        ends
        > WATCH version="50" stream=2
        breaks 404
        > WAIT 1..2
        "#,
    );
}

#[test]
fn ref_35_a_kind_whose_watch_is_refused_at_once_each_time_is_not_taken_for_one_that_is_back() {
    check_watching(
        r#"
        breaks 404
        > WAIT 1..2
        wait
        > LIST version="10"
        list end=10
        > REPLACE version=10 Relist
        > WATCH version="10" stream=1
        head
        state Streaming
        breaks 404
        > WAIT 2..4
        "#,
    );
}

#[test]
fn ref_35_a_watch_list_of_a_missing_kind_is_asked_for_soon_and_as_such() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        breaks 404
        > WAIT 1..2
        state Gone
        wait
        > WATCH version="" initial-events stream=1
        breaks 401
        > WAIT 1..2
        state Denied
        wait
        > WATCH version="" initial-events stream=2
        breaks 404
        > WAIT 2..4
        "#,
    );
}

#[test]
fn ref_62_a_renewal_that_is_refused_with_401_leaves_the_open_watch_followed() {
    check_watching(
        r#"
        pass 30
        > WATCH version="10" stream=1
        breaks 401 stream=1
        state Denied
        frames a@11 stream=0
        > DELTA a@11
        state Streaming
        "#,
    );
}

// REF-63: given a LIST or WATCH with a selector that is answered 400 or 422, when it persists, then the state
// is SelectorRejected and the error quotes the selector, it is asked again each 30 to 60 s, and what had
// refused the watch-list before is not taken for a server without watch-lists. (New: it was retried as a
// failed connection is, and the selector was shown nowhere.)
// - a the state is SelectorRejected, quotes the selector, and is asked again each 30 to 60 s
// - b only what the server itself finds invalid in a request with selectors alone is their fault:
//   `ref_63_only_what_the_server_itself_finds_invalid_in_a_request_with_selectors_alone_is_their_fault`
// - c the error quotes them in the state, in a wait that fails and in the log:
//   `ref_61_the_state_the_wait_and_the_log_say_the_same_of_each_refusal_and_what_to_do`
// - d later relists ask for watch-lists again
#[test]
fn ref_63_a_selector_that_the_server_rejects_is_a_state_of_its_own_and_asked_each_30_to_60_seconds() {
    check(
        &watch_lists(),
        r#"
        start
        > WATCH version="" initial-events stream=0
        breaks unsupported
        > LIST version="0" limit=500
        list-fails selector
        > WAIT 30..60
        state SelectorRejected
        error fields=x=1
        wait
        > LIST version="0" limit=500
        state SelectorRejected
        list-fails selector
        > WAIT 30..60
        wait
        > LIST version="0" limit=500
        list end=10
        > REPLACE version=10 InitialList
        > WATCH version="10" stream=1
        state Streaming
        count rejected_selectors=2 failures=2
        breaks 410
        > WATCH version="10" initial-events stream=2
        "#,
    );
    check_resumed(
        &lists(),
        r#"
        start
        > LIST version="10"
        list end=10
        > REPLACE version=10 Relist
        > WATCH version="10" stream=0
        breaks selector
        > WAIT 30..60
        state SelectorRejected
        wait
        > LIST version="10"
        "#,
    );
}

#[test]
fn ref_35_an_early_wait_is_never_longer_than_a_late_one_and_none_is_early_where_that_is_set() {
    let hurried = ReflectorConfig { refused_wait: Duration::from_secs(2), ..lists() };
    check(
        &hurried,
        r#"
        start
        > LIST version="0" limit=500
        list-fails 404
        > WAIT 1..2
        wait
        > LIST version="0" limit=500
        list-fails 404
        > WAIT 2..4
        wait
        > LIST version="0" limit=500
        list-fails 404
        > WAIT 2..4
        "#,
    );
    let never = ReflectorConfig { early_for: Duration::ZERO, ..lists() };
    check(&never, "start\n > LIST version=\"0\" limit=500\n list-fails 404\n > WAIT 30..60");
}

/// Answers every list with the failure until `comes_at`, and then with an empty list. Gives the times of all requests
/// up to the first that succeeds, or up to `end`.
fn requests(name: &str, comes_at: Duration, end: Duration, chances: &[f64]) -> Vec<Duration> {
    let mut machine = ListWatchMachine::<()>::new(lists(), None);
    let mut chances = chances.iter().copied().cycle();
    let mut at = Moment { now: Duration::ZERO, chance: 0.0 };
    let mut times = Vec::new();
    machine.start();
    loop {
        at.chance = chances.next().expect("a cycle");
        while let Some(effect) = machine.poll_effect() {
            match effect {
                Effect::AcquireListPermit => machine.handle_list_permit(at),
                Effect::List { .. } => {
                    times.push(at.now);
                    if at.now >= comes_at {
                        let end = ListPart::End { version: version("10"), token: None };
                        machine.handle_list_part(end, at);
                        machine.handle_list_end(Ok(()), at);
                        return times;
                    }
                    machine.handle_list_end(Err(error(name)), at);
                    assert_eq!(machine.state().next_try(), machine.poll_timeout(), "the state says when");
                    assert_eq!(usize::try_from(machine.state().attempts()), Ok(times.len()));
                    let is_named =
                        matches!(machine.state(), SourceState::Gone { .. } | SourceState::Denied { .. });
                    assert!(is_named, "{:?}", machine.state());
                }
                other => panic!("not while it is missing: {other:?}"),
            }
        }
        at.now = machine.poll_timeout().expect("it is asked again");
        if at.now > end {
            return times;
        }
        machine.handle_timeout(at);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ref_35_a_missing_kind_is_found_within_seconds_or_as_long_again_as_it_was_missing_and_in_a_minute_at_last(
        name in prop::sample::select(vec!["404", "401", "403"]),
        comes_at_ms in 1_u64..3_600_000,
        chances in prop::collection::vec(0.0_f64..1.0, 1..50),
    ) {
        let comes_at = Duration::from_millis(comes_at_ms);
        let times = requests(name, comes_at, Duration::MAX, &chances);
        let late = *times.last().expect("it was asked") - comes_at;
        let bound = match comes_at.as_secs() {
            0..570 => (comes_at * 2 + Duration::from_secs(2)).min(Duration::from_secs(30)),
            _ => Duration::from_secs(60),
        };
        prop_assert!(late <= bound, "found {late:?} after it came, at {comes_at:?}");
    }

    #[test]
    fn ref_35_a_kind_that_never_comes_costs_few_requests(
        chances in prop::collection::vec(0.0_f64..1.0, 1..50),
    ) {
        let hour = Duration::from_secs(3_600);
        let times = requests("404", Duration::MAX, hour, &chances);
        let early = times.iter().filter(|time| time.as_secs() < 600).count();
        prop_assert!((20..=44).contains(&early), "{early} requests in the first ten minutes");
        prop_assert!((49..=101).contains(&(times.len() - early)), "{} requests in the rest", times.len() - early);
        for pair in times.windows(2) {
            let wait = pair[1] - pair[0];
            let range = if pair[0].as_secs() < 600 { 1..=30 } else { 30..=60 };
            prop_assert!(
                wait >= Duration::from_secs(*range.start()) && wait <= Duration::from_secs(*range.end()),
                "{wait:?} after {:?}", pair[0]
            );
        }
    }
}
