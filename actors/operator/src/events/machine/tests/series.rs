//! Series of events.k8s.io: REC-11.

use super::*;

#[test]
fn rec_11_the_first_repeat_begins_a_series_with_count_two_and_further_ones_are_counted_in_silence() {
    let mut world = World::of(Repeats::Series);
    world.emit(event("Pulled", "it"));
    assert_eq!(world.done(), [created("it")]);
    world.emit(event("Pulled", "it"));
    assert_eq!(world.done(), [patched("it", 2)]);
    assert_eq!(world.emit(event("Pulled", "it")), Emitted::Merged);
    assert_eq!(world.done(), []);
}

#[test]
fn rec_11_after_six_idle_minutes_a_series_is_told_and_over() {
    let mut world = World::of(Repeats::Series);
    for _ in 0..3 {
        world.emit(event("Pulled", "it"));
        world.done();
        world.now += MINUTE;
    }
    world.now = 8 * MINUTE - SECOND;
    assert_eq!(world.done(), []);
    world.now = 8 * MINUTE;
    let last = world.next().expect("what was not told");
    assert_eq!((last.verb, last.count, last.last), (Verb::Patch, 3, WALL + 2 * MINUTE));
    world.answer(&last, Answer::Done);
    assert_eq!(world.recorder.figures().known, 0);
    world.emit(event("Pulled", "it"));
    assert_eq!(world.done(), [created("it")], "another event");
}

#[test]
fn rec_11_an_event_without_repeats_is_forgotten_after_six_idle_minutes() {
    let mut world = World::of(Repeats::Series);
    world.emit(event("Pulled", "it"));
    world.done();
    assert_eq!((world.recorder.next_due(), world.recorder.figures().known), (Some(6 * MINUTE), 1));
    world.now = 6 * MINUTE;
    assert_eq!((world.done(), world.recorder.figures().known), (vec![], 0));
    assert_eq!(world.recorder.next_due(), None);
}

#[test]
fn rec_11_a_series_that_goes_on_is_told_each_thirty_minutes() {
    let mut world = World::of(Repeats::Series);
    let mut told = Vec::new();
    for minute in 0..100 {
        world.emit(event("Pulled", "it"));
        told.extend(world.done().into_iter().map(|(_, _, count)| (minute, count)));
        world.now += MINUTE;
    }
    assert_eq!(told, [(0, 1), (1, 2), (31, 32), (61, 62), (91, 92)]);
}
