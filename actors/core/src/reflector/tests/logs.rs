//! Lines for the log: when, at which level, and in which words.

use std::time::Duration;

use super::script::{check, check_resumed, error, lists};
use super::watches::check_watching;
use crate::reflector::{Effect, ListWatchMachine, LogLevel, LogLine, Moment};

#[test]
fn ref_59_a_source_that_fails_says_so_at_once_with_the_reason_and_when_it_is_asked_again() {
    for (failure, words) in [
        ("403", "denied: 403; asked again in 1s..2s"),
        ("401", "not authenticated: 401; asked again in 1s..2s"),
        ("404", "no such resource: 404; asked again in 1s..2s"),
        ("selector", "selector rejected: fields=x=1: selector; asked again in 30s..1m"),
        ("cut", "connection failed: cut; asked again in 0.8s..1.6s"),
        ("timeout", "timed out: timeout; asked again in 0.8s..1.6s"),
        ("429:7", "overloaded: slow down; asked again in 7s..8s"),
        ("500", "server answered 500: no; asked again in 0.8s..1.6s"),
    ] {
        check(
            &lists(),
            &format!(
                r#"
                start
                > LIST version="0" limit=500
                silent
                list-fails {failure}
                > WAIT {wait}
                says Warn cannot list or watch pods: {words}
                silent
                "#,
                wait = match failure {
                    "401" | "403" | "404" => "1..2",
                    "selector" => "30..60",
                    "429:7" => "7..8",
                    _ => "0.8..1.6",
                }
            ),
        );
    }
}

#[test]
fn ref_59_it_says_when_it_has_recovered_after_how_long_and_how_many_attempts() {
    check_watching(
        r#"
        breaks 403
        > WAIT 1..2
        says Warn cannot list or watch pods: denied: 403; asked again in 1s..2s
        wait
        > WATCH version="10" stream=1
        breaks 403
        > WAIT 2..4
        silent
        wait
        > WATCH version="10" stream=2
        head
        > ASK
        silent
        version 10
        says Info lists and watches pods again, after 3s..6s and 2 failed attempts
        silent
        "#,
    );
}

#[test]
fn ref_59_the_beginning_of_a_list_is_not_a_recovery() {
    check(
        &lists(),
        r#"
        start
        > LIST version="0" limit=500
        list-fails cut
        > WAIT 0.8..1.6
        says Warn cannot list or watch pods: connection failed: cut; asked again in 0.8s..1.6s
        wait
        > LIST version="0" limit=500
        list a@1
        state Listing 1
        list-fails cut
        > WAIT 1.6..3.2
        silent
        wait
        > LIST version="0" limit=500
        list a@1 end=10
        > REPLACE version=10 InitialList a@1
        > WATCH version="10" stream=0
        silent
        head
        says Info lists and watches pods again, after 2.4s..4.8s and 2 failed attempts
        "#,
    );
}

#[test]
fn ref_60_a_relist_says_why_and_the_first_list_says_nothing_above_debug() {
    check_watching(
        r#"
        silent
        notes lists pods at version "0"
        frames a@11
        > DELTA a@11
        breaks 410
        > LIST version="11"
        says Info lists pods again: the version asked for is not on the server (expired or too large)
        list end=12
        > REPLACE version=12 Relist
        > WATCH version="12" stream=1
        notes a list of pods is whole: 0 objects at version 12
        head
        frames a@12
        > DELTA a@12
        pass 1
        frames a@9
        > CLOSE stream=1
        > LIST version="12"
        says Info lists pods again: a frame came with an older version than the one reached
        "#,
    );
    check_resumed(
        &lists(),
        r#"
        start
        > LIST version="10"
        says Info lists pods again: its reflector was started again
        list end=9
        > LIST version="" limit=500 everything
        says Info lists pods again: the server has gone back to an older state
        "#,
    );
    check_watching(
        r#"
        breaks unreadable
        > LIST version="10"
        says Info lists pods again: a frame came whose object cannot be named
        "#,
    );
}

#[test]
fn ref_60_lists_and_watches_that_begin_and_end_are_debug_lines() {
    check_watching(
        r#"
        notes watches pods from version 10
        pass 20
        ends
        > WATCH version="10" stream=1
        notes a watch of pods has ended after 20s
        head
        > ASK
        version 10
        pass 30
        > WATCH version="10" stream=2
        notes watches pods anew from version 10: the open watch was silent
        "#,
    );
}

/// Warnings and information of a source that fails for so many hours: its requests are answered, one each time that it
/// asks, with these errors in turn, `"ok"` being a list and a watch that ends at once.
fn lines_of(hours: u64, answers: &[&str]) -> Vec<LogLine> {
    let mut machine = ListWatchMachine::<()>::new(lists(), None);
    let mut at = Moment { now: Duration::ZERO, chance: 0.3 };
    let mut turn = answers.iter().cycle();
    let mut lines = Vec::new();
    machine.start();
    while at.now < Duration::from_secs(hours * 3_600) {
        while let Some(effect) = machine.poll_effect() {
            match effect {
                Effect::AcquireListPermit => machine.handle_list_permit(at),
                Effect::List { .. } => match turn.next().copied() {
                    Some("ok") | None => {
                        let version = super::script::version("10");
                        let end = crate::delta::ListPart::End { version, token: None };
                        machine.handle_list_part(end, at);
                        machine.handle_list_end(Ok(()), at);
                    }
                    Some(name) => machine.handle_list_end(Err(error(name)), at),
                },
                Effect::Watch { stream, .. } => {
                    machine.handle_watch_parts(stream, Vec::new(), at);
                    machine.handle_version(Ok(super::script::version("10")), at);
                    machine.handle_watch_end(stream, Err(error("404")), at);
                }
                _ => {}
            }
        }
        lines.extend(std::iter::from_fn(|| machine.poll_log()).filter(|line| line.level > LogLevel::Debug));
        at.now = machine.poll_timeout().expect("something is waited for");
        machine.handle_timeout(at);
    }
    lines
}

#[test]
fn ref_59_a_lasting_outage_is_logged_at_most_each_ten_minutes() {
    for answer in ["401", "403", "404", "selector", "cut", "429", "500"] {
        let lines = lines_of(5, &[answer]);
        assert!((27..=30).contains(&lines.len()), "{answer}: {lines:#?}");
        assert!(lines.iter().all(|line| line.level == LogLevel::Warn));
        assert!(lines[1].text.starts_with("cannot list or watch pods, for 10m"), "{}", lines[1].text);
        assert!(lines[1].text.contains(" attempts failed, asked again in "), "{}", lines[1].text);
    }
}

#[test]
fn ref_59_a_new_class_is_always_logged_and_quick_changes_of_class_do_not_flood_the_log() {
    let lines = lines_of(1, &["cut", "403", "404", "401"]);
    let first: Vec<_> = lines[..4].iter().filter_map(|line| line.reason).collect();
    assert_eq!(first, ["failed", "denied", "gone", "unauthorized"], "each is said at once");
    assert!(lines.len() <= 4 * 6, "at most each ten minutes a class: {lines:#?}");
}

#[test]
fn ref_59_a_source_that_fails_and_recovers_again_and_again_does_not_flood_the_log() {
    // It lists, its watch is gone at once, and so on, each half minute to a minute.
    let lines = lines_of(5, &["ok"]);
    let warnings = lines.iter().filter(|line| line.level == LogLevel::Warn).count();
    assert!((20..=31).contains(&warnings), "{warnings}");
    let recovered = lines.iter().filter(|line| line.reason == Some("recovered")).count();
    assert!(recovered <= warnings, "a recovery is said when its failure was: {recovered}");
    let counted = lines.iter().any(|line| line.text.contains("failures before this one were not logged"));
    assert!(counted, "{lines:#?}");
}

#[test]
fn ref_59_a_second_outage_that_lasts_is_logged_soon_although_one_was_logged_shortly_before() {
    check_watching(
        r#"
        breaks 403
        > WAIT 1..2
        says Warn cannot list or watch pods: denied: 403; asked again in 1s..2s
        wait
        > WATCH version="10" stream=1
        head
        > ASK
        version 10
        says Info lists and watches pods again, after 1s..2s and 1 failed attempt
        breaks 403
        > WAIT 2..4
        silent
        wait
        > WATCH version="10" stream=2
        pass 29
        breaks 403
        > WAIT 4..8
        says Warn cannot list or watch pods: denied: 403; 1 failure before this one was not logged, asked again in 4s..8s
        "#,
    );
}

#[test]
fn ref_59_a_line_quotes_a_bounded_part_of_foreign_words_on_one_line() {
    let mut machine = ListWatchMachine::<()>::new(lists(), None);
    let at = Moment { now: Duration::ZERO, chance: 0.0 };
    machine.start();
    machine.handle_list_permit(at);
    let words = format!("first\nsecond\u{1b}[31m{}", "x".repeat(100_000));
    machine.handle_list_end(Err(crate::list_watch_error::ListWatchError::source(words)), at);
    let warning = std::iter::from_fn(|| machine.poll_log()).last().expect("a line");
    assert!(warning.text.starts_with("cannot list or watch pods: source failed: first second [31mxxx"));
    assert!(warning.text.len() < 1_000 && !warning.text.contains(char::is_control), "{}", warning.text);
}
