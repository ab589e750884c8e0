//! When what is known serves, and when the server is asked again.

use futures_util::future::join;

use super::*;

#[tokio::test]
async fn a_panic_while_the_server_is_asked_is_an_error_of_all_that_wait_and_stops_no_later_question() {
    let memory = Arc::new(Memory::default());
    let ask = || {
        let question = Question { order: memory.question(), newer: false, ttl: Duration::MAX };
        let panics = |_| async {
            tokio::task::yield_now().await;
            panic!("a bug")
        };
        match memory.next(question, panics) {
            Next::Ask(asking) | Next::Wait(asking) => asking,
            other => panic!("nothing is known: {other:?}"),
        }
    };
    let (first, second) = join(ask(), ask()).await;
    for answer in [first, second, ask().await] {
        assert!(matches!(answer, Err(DiscoveryError::Panicked(text)) if text == "a bug"));
    }
    assert_eq!(memory.status().failures, 2);
}

fn found(order: u64, is_incomplete: bool) -> KeptOrigin {
    let now = Instant::now();
    KeptOrigin { order, at: now, age: Duration::ZERO, arrived: now, is_incomplete }
}

fn asked(order: u64, newer: bool, ttl: Duration) -> Question {
    Question { order, newer, ttl }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_serves_until_its_time_to_live_and_shorter_if_it_is_incomplete() {
    let begun = Instant::now();
    let (second, question) = (Duration::from_secs(1), asked(2, false, TTL));
    for (is_incomplete, lives) in [(false, TTL), (true, INCOMPLETE_TTL)] {
        let known = found(1, is_incomplete);
        assert!(known.answers(question, None, begun + lives - second));
        assert!(!known.answers(question, None, begun + lives));
    }
    let strict = asked(2, false, second);
    assert!(!found(1, true).answers(strict, None, begun + second), "a shorter one is kept");
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_as_old_as_its_asking_and_an_incomplete_one_lives_from_its_arrival() {
    let (begun, question) = (Instant::now(), asked(2, false, TTL));
    let slow = |is_incomplete, took| KeptOrigin { arrived: begun + took, ..found(1, is_incomplete) };
    let took = INCOMPLETE_TTL * 2;
    assert!(slow(true, took).answers(question, None, begun + took));
    assert!(!slow(true, took).answers(question, None, begun + took + INCOMPLETE_TTL));
    for is_incomplete in [false, true] {
        assert!(!slow(is_incomplete, TTL).answers(question, None, begun + TTL));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_before_it_was_invalidated_does_not_serve() {
    let (now, question) = (Instant::now(), asked(6, false, TTL));
    assert!(!found(3, false).answers(question, Some(4), now));
    assert!(found(5, false).answers(question, Some(4), now));
    assert!(found(0, false).answers(question, None, now), "a cache on disk");
    assert!(!found(0, false).answers(question, Some(1), now));
    assert!(!found(7, false).answers(question, Some(8), now), "also if it is newer than the question");
}

#[tokio::test(start_paused = true)]
async fn only_an_answer_that_was_begun_after_the_question_proves_that_a_name_is_missing() {
    let (now, question) = (Instant::now(), asked(7, true, TTL));
    assert!(found(8, false).answers(question, None, now));
    assert!(!found(6, false).answers(question, None, now) && !found(0, false).answers(question, None, now));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_begun_after_the_question_answers_it_however_old_it_is() {
    let later = Instant::now() + TTL;
    for newer in [false, true] {
        assert!(found(8, true).answers(asked(7, newer, Duration::ZERO), None, later));
    }
    assert!(!found(6, true).answers(asked(7, false, Duration::ZERO), None, later));
}

#[tokio::test(start_paused = true)]
async fn unknown_names_ask_eight_times_at_once_and_then_once_each_two_seconds() {
    let (mut budget, begun) = (MissBudget::default(), Instant::now());
    for _ in 0..BURST {
        assert_eq!(budget.take(begun), Ok(()));
    }
    assert_eq!(budget.take(begun), Err(BETWEEN));
    assert_eq!(budget.take(begun + BETWEEN), Ok(()));
    assert_eq!(budget.take(begun + BETWEEN), Err(BETWEEN));
    let later = begun + BETWEEN * 100;
    assert_eq!(
        (0..BURST + 3).filter(|_| budget.take(later).is_ok()).count(),
        BURST as usize,
        "no more than a burst is saved"
    );
}
