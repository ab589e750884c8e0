//! What is given up at a bound, what is counted then, and which of several decisions about repeats comes first.
//!
//! Answers "what follows when a number of the recorder is reached, and when it is not?". Each test stands on both sides of
//! its bound.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::event::Identity;
use super::super::record::RecorderFigures;
use super::super::series::{Lru, MOST_NOTES, Similar};
use super::*;

/// An event about another object, which has tokens of its own.
fn about(name: &str) -> Event {
    let mut event = event("Pulled", "it");
    event.regarding.name = name.to_owned();
    event
}

/// A recorder that is full of events but for its queue: the oldest of them is a series with so many repeats, and the
/// newest ones are under way. Then one more event is emitted.
fn one_too_many(repeats: Repeats, (queue, under_way): (usize, usize), repeated: usize) -> World {
    let (cached, burst) = (queue + 1, if repeats == Repeats::Count { 1 } else { 25 });
    let mut world =
        World::with(RecorderConfig { repeats, queue, cached, burst, ..RecorderConfig::default() });
    for _ in 0..=repeated {
        world.emit(about("oldest"));
        world.done();
        world.now += 2 * MINUTE;
    }
    for n in 0..queue {
        world.emit(about(&format!("other-{n}")));
        if n + under_way < queue {
            world.done();
        } else {
            assert!(world.next().is_some(), "it is under way");
        }
    }
    assert_eq!(world.emit(about("new")), Emitted::Accepted);
    world
}

#[test]
fn rec_11_a_series_that_gives_way_is_told_if_there_is_room_for_it_beside_the_event_that_takes_its_place() {
    for (queue, under_way) in [(2, 0), (3, 0), (3, 1), (4, 2)] {
        let mut world = one_too_many(Repeats::Series, (queue, under_way), 3);
        assert_eq!(world.dropped(DropReason::Forgotten), 0, "{queue} {under_way}");
        assert_eq!(world.done(), [patched("it", 4), created("it")], "{queue} {under_way}");
    }
}

#[test]
fn rec_11_without_that_room_its_repeats_are_counted_as_forgotten_and_a_warning_says_so() {
    for (queue, under_way) in [(2, 1), (3, 2), (4, 3)] {
        let mut world = one_too_many(Repeats::Series, (queue, under_way), 3);
        assert_eq!(world.dropped(DropReason::Forgotten), 1, "{queue} {under_way}");
        let reason = world.recorder.take_warning().map(|warning| warning.reason);
        assert_eq!(reason, Some(DropReason::Forgotten));
        assert_eq!(world.done(), [created("it")], "{queue} {under_way}");
    }
}

#[test]
fn rec_11_an_event_of_which_everything_was_told_is_forgotten_without_a_word() {
    // Without a series nothing is told later: what had no token is told with the next repeat, or not.
    for (repeats, repeated) in [(Repeats::Series, 0), (Repeats::Count, 1)] {
        let mut world = one_too_many(repeats, (2, 1), repeated);
        assert_eq!((world.dropped(DropReason::Forgotten), world.recorder.take_warning()), (0, None));
        assert_eq!(world.done(), [created("it")], "{repeats:?}");
    }
}

#[test]
fn rec_11_a_series_that_is_over_while_the_queue_is_full_is_told_when_it_is_looked_at_again_a_minute_later() {
    let mut world = World::with(RecorderConfig { queue: 1, ..RecorderConfig::default() });
    for _ in 0..3 {
        world.emit(about("one"));
        world.done();
    }
    world.emit(about("two"));
    let under_way = world.next().expect("it fills the queue");
    world.now = 6 * MINUTE;
    assert_eq!((world.next(), world.recorder.unsent()), (None, 1));
    world.answer(&under_way, Answer::Done);
    world.now += MINUTE;
    assert_eq!(world.done(), [patched("it", 3)]);
}

#[test]
fn rec_09_a_series_whose_last_request_was_refused_is_not_told_again_after_the_close() {
    let mut world = World::of(Repeats::Series);
    for _ in 0..3 {
        world.emit(event("Pulled", "it"));
        world.done();
    }
    world.recorder.close();
    let refused = Answer::Refused { word: "Forbidden".to_owned(), why: "no".to_owned() };
    assert_eq!(world.sent(&refused).len(), 1);
    world.now += 60 * MINUTE;
    assert_eq!((world.next(), world.recorder.next_due()), (None, None));
}

#[test]
fn rec_11_repeats_of_a_create_under_way_that_tells_of_a_series_are_counted_in_silence() {
    let mut world = World::of(Repeats::Series);
    for _ in 0..2 {
        world.emit(event("Pulled", "it"));
    }
    let create = world.next().expect("it waits");
    assert_eq!((create.verb, create.count), (Verb::Create, 2));
    assert_eq!(world.emit(event("Pulled", "it")), Emitted::Merged);
    world.answer(&create, Answer::Done);
    assert_eq!(world.done(), []);
}

#[test]
fn rec_11_the_first_repeat_of_a_create_under_way_begins_a_series_and_the_next_ones_are_part_of_that() {
    let mut world = World::of(Repeats::Series);
    world.emit(event("Pulled", "it"));
    let create = world.next().expect("it waits");
    let emitted = [(); 3].map(|()| world.emit(event("Pulled", "it")));
    assert_eq!(emitted, [Emitted::Accepted, Emitted::Merged, Emitted::Merged]);
    world.answer(&create, Answer::Done);
    assert_eq!(world.done(), [patched("it", 4)]);
}

#[test]
fn rec_07_a_repeat_of_an_unclear_create_that_is_there_is_told_by_a_patch() {
    let mut world = World::of(Repeats::Count);
    world.emit(event("Pulled", "it"));
    world.sent(&later());
    world.now += MINUTE;
    let again = world.next().expect("it is tried again");
    world.emit(event("Pulled", "it"));
    world.answer(&again, Answer::Exists);
    assert_eq!(world.done(), [patched("it", 2)]);
}

#[test]
fn rec_07_a_repeat_that_came_before_the_last_name_was_taken_has_tries_of_its_own() {
    let config = RecorderConfig { tries: 2, repeats: Repeats::Count, ..RecorderConfig::default() };
    let mut world = World::with(config);
    world.emit(event("Pulled", "it"));
    let first = world.next().expect("it waits");
    world.answer(&first, Answer::Exists);
    let second = world.next().expect("another name");
    world.emit(event("Pulled", "it"));
    world.answer(&second, Answer::Exists);
    assert_eq!(world.dropped(DropReason::Refused), 1);
    assert_eq!(world.next().map(|request| request.count), Some(2));
}

#[test]
fn the_name_of_an_event_is_cut_before_a_letter_or_digit() {
    for (letters, rest) in [(235, "-b"), (235, ".b"), (234, ".-b"), (234, "--b")] {
        let letters = "a".repeat(letters);
        assert_eq!(name_of(&format!("{letters}{rest}"), 255), format!("{letters}.ff"));
    }
}

#[test]
fn refusals_are_counted_by_sixteen_words_and_those_with_further_words_together() {
    let mut figures = RecorderFigures::default();
    (0..16).for_each(|n| figures.refuse(format!("Word{n}")));
    assert_eq!(figures.refused.len(), 16);
    for word in ["Word16", "Word17", "Word3"] {
        figures.refuse(word.to_owned());
    }
    assert_eq!((figures.refused.len(), figures.refused["Other"], figures.refused["Word3"]), (17, 2, 2));
}

proptest! {
    /// Each key is its own value; whether an entry may go is in `held`.
    #[test]
    fn what_gives_way_is_what_a_list_in_the_order_of_use_says(
        uses in proptest::collection::vec((0..8_u8, 0..4_u8), 1..100), most in 1..5_usize, held in 0..8_u8,
    ) {
        let mut lru = Lru::new(most);
        let mut list: Vec<u8> = Vec::new();
        for (key, verb) in uses {
            let place = list.iter().position(|known| *known == key);
            match (verb, place) {
                (0, _) => prop_assert_eq!(lru.peek(&key).copied(), place.map(|_| key)),
                (1, _) => {
                    prop_assert_eq!(lru.remove(&key), place.map(|_| key));
                    list.retain(|known| *known != key);
                }
                (_, Some(_)) => {
                    prop_assert_eq!(lru.get(&key).copied(), Some(key));
                    list.retain(|known| *known != key);
                    list.push(key);
                }
                (_, None) => {
                    let goes = list.iter().position(|known| *known != held).filter(|_| list.len() >= most);
                    let gone = goes.map(|at| list.remove(at));
                    prop_assert_eq!(lru.insert(key, key, |known| *known != held), gone);
                    list.push(key);
                }
            }
            prop_assert!(lru.check() && lru.len() == list.len());
        }
    }
}

#[test]
fn of_similar_events_4096_notes_are_told_by_themselves_at_most_whatever_is_asked_for() {
    let group = Arc::new(Identity::similar(&event("Failed", "")));
    let mut similar = Similar::new(usize::MAX, Duration::MAX, 8);
    for note in 0..MOST_NOTES {
        assert!(!similar.is_combined(&group, &note.to_string(), Duration::ZERO));
        similar.count(&group, &note.to_string(), Duration::ZERO);
    }
    assert!(similar.is_combined(&group, "another", Duration::ZERO) && similar.check());
    assert!(!similar.is_combined(&group, "7", Duration::ZERO), "it is known");
}
