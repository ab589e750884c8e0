//! What follows from the answers of a server: REC-07, names that are taken, refusals.

use super::*;

#[test]
fn rec_07_a_patch_that_is_answered_404_is_followed_by_a_create_with_the_count() {
    for repeats in [Repeats::Count, Repeats::Series] {
        let mut world = World::of(repeats);
        world.emit(event("Pulled", "it"));
        world.done();
        world.emit(event("Pulled", "it"));
        let patch = world.next().expect("a patch");
        world.answer(&patch, Answer::NotFound);
        let create = world.next().expect("a create, at once");
        assert_eq!((patch.verb, create.verb, create.count), (Verb::Patch, Verb::Create, 2));
        assert_eq!((&patch.name, patch.first), (&create.name, create.first));
        world.answer(&create, Answer::NotFound);
        assert_eq!(world.next(), None, "the namespace is gone");
        assert_eq!(world.recorder.figures().refused["NotFound"], 1);
    }
}

#[test]
fn rec_07_a_server_that_fails_is_tried_twelve_times_and_meanwhile_nothing_else_of_the_namespace_is_sent() {
    let mut world = World::of(Repeats::Series);
    world.emit(event("Pulled", "it"));
    let mut waits = Vec::new();
    for _ in 0..12 {
        assert_eq!(world.sent(&later()).len(), 1);
        let Some(due) = world.recorder.next_due().filter(|_| world.recorder.unsent() > 0) else { break };
        waits.push((due - world.now).as_millis());
        world.now = due - Duration::from_millis(1);
        assert_eq!(world.next(), None, "it waits");
        world.now = due;
    }
    assert_eq!(waits[..8], [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    assert_eq!((world.done(), world.dropped(DropReason::GaveUp)), (vec![], 1));
    assert_eq!(world.recorder.figures().retries, 11);
    world.emit(event("Pulled", "other"));
    assert_eq!(world.next(), None, "the server was not seen to work");
    world.now += MINUTE;
    assert_eq!(world.done(), [created("other")]);
    let warning = world.recorder.take_warning().expect("a loss");
    assert_eq!(warning.why, "cannot create the event Pulled of Pod shop/web: it is down");
}

#[test]
fn rec_07_a_wait_that_the_server_names_is_kept_and_a_success_ends_the_growth() {
    let mut world = World::of(Repeats::Count);
    world.emit(event("Pulled", "it"));
    world.sent(&Answer::Later { after: Some(7 * SECOND), why: "busy".to_owned() });
    assert_eq!(world.recorder.next_due(), Some(7 * SECOND));
    world.now = 7 * SECOND;
    world.done();
    world.emit(event("Pulled", "it"));
    world.sent(&later());
    assert_eq!(world.recorder.next_due(), Some(world.now + Duration::from_millis(800)));
}

#[test]
fn rec_07_a_create_without_a_clear_answer_is_not_made_twice() {
    let mut world = World::of(Repeats::Count);
    world.emit(event("Pulled", "it"));
    world.sent(&later());
    world.emit(event("Pulled", "it"));
    world.now += MINUTE;
    let again = world.next().expect("it is tried again");
    assert_eq!((again.verb, again.count), (Verb::Create, 2));
    world.answer(&again, Answer::Exists);
    assert_eq!(world.done(), [patched("it", 2)], "it was there, with a count of one");
    assert_eq!(world.recorder.figures().created, 1);
}

#[test]
fn a_name_that_somebody_else_has_is_exchanged_for_another_one() {
    let mut world = World::of(Repeats::Series);
    world.emit(event("Pulled", "it"));
    let first = world.next().expect("a create");
    world.answer(&first, Answer::Exists);
    let second = world.next().expect("a create, at once");
    assert_ne!(first.name, second.name);
    assert_eq!(first.name, format!("web.{:x}", WALL.as_nanos()));
    assert_eq!(world.sent(&Answer::Exists), []);
    world.answer(&second, Answer::Exists);
    assert_eq!(world.sent(&Answer::Exists).len(), 10);
    assert_eq!(world.dropped(DropReason::Refused), 1);
}

#[test]
fn refusals_are_counted_by_the_servers_word_and_one_in_ten_minutes_is_a_warning() {
    let mut world = World::of(Repeats::Series);
    let refused = Answer::Refused { word: "Forbidden".to_owned(), why: "not allowed".to_owned() };
    for n in 0..3 {
        world.emit(event(&format!("Reason{n}"), "it"));
        world.sent(&refused);
    }
    let warning = world.recorder.take_warning().expect("the first refusal");
    assert_eq!((warning.reason, warning.others), (DropReason::Refused, 0));
    assert_eq!(warning.why, "cannot create the event Reason0 of Pod shop/web: not allowed");
    assert_eq!(world.recorder.take_warning(), None);
    world.now += WARN_EVERY;
    world.emit(event("Reason3", "it"));
    world.sent(&refused);
    assert_eq!(world.recorder.take_warning().map(|warning| warning.others), Some(2));
    let figures = world.recorder.figures();
    assert_eq!((figures.refused["Forbidden"], figures.dropped(DropReason::Refused)), (4, 4));
    assert!(
        figures
            .last_error
            .is_some_and(|error| error.text.contains("Reason3") && error.wall == WALL + WARN_EVERY)
    );
}

#[test]
fn requests_of_an_actor_that_died_are_sent_again() {
    let mut world = World::of(Repeats::Series);
    world.emit(event("Pulled", "it"));
    let lost = world.next().expect("a create");
    world.recorder.reclaim(at(world.now));
    assert_eq!(world.recorder.check(), Ok(()));
    let again = world.next().expect("at once");
    assert_eq!((again.verb, &again.name), (Verb::Create, &lost.name));
    world.answer(&again, Answer::Exists);
    assert_eq!((world.next(), world.recorder.figures().created), (None, 1), "it is ours");
}

#[test]
fn rec_07_an_event_that_is_not_there_is_created_before_others_and_its_success_ends_the_count_of_its_tries() {
    let mut world =
        World::with(RecorderConfig { tries: 2, repeats: Repeats::Count, ..RecorderConfig::default() });
    world.emit(event("Pulled", "it"));
    world.sent(&later());
    world.now += MINUTE;
    assert_eq!(world.done(), [created("it")], "at the second try");
    world.emit(event("Pulled", "it"));
    world.emit(event("Killed", "it"));
    let patch = world.next().expect("a patch");
    world.answer(&patch, Answer::NotFound);
    let create = world.next().expect("a create");
    assert_eq!((create.verb, &create.event.reason[..]), (Verb::Create, "Pulled"), "it goes first");
    world.answer(&create, Answer::Exists);
    let renamed = world.next().expect("another name");
    assert_ne!(renamed.name, create.name, "what is there is not ours: the first create was answered");
    assert_eq!(world.dropped(DropReason::GaveUp), 0);
}

#[test]
fn rec_07_a_request_that_succeeds_has_all_its_tries_again() {
    let mut world =
        World::with(RecorderConfig { tries: 2, repeats: Repeats::Count, ..RecorderConfig::default() });
    for _ in 0..3 {
        world.emit(event("Pulled", "it"));
        world.sent(&later());
        world.now += MINUTE;
        assert_eq!(world.done().len(), 1);
    }
    assert_eq!(world.dropped(DropReason::GaveUp), 0);
}

#[test]
fn rec_09_repeats_that_came_while_the_last_request_was_under_way_are_told_after_the_close() {
    let mut world = World::of(Repeats::Series);
    world.emit(event("Pulled", "it"));
    world.done();
    world.emit(event("Pulled", "it"));
    let patch = world.next().expect("the series begins");
    for _ in 0..3 {
        assert_eq!(world.emit(event("Pulled", "it")), Emitted::Merged);
    }
    world.recorder.close();
    world.answer(&patch, Answer::Done);
    assert_eq!(world.done(), [patched("it", 5)]);
}

#[test]
fn rec_08_what_is_not_taken_is_a_warning_with_its_reason() {
    let mut world = World::with(RecorderConfig { queue: 1, at_once: 1, ..RecorderConfig::default() });
    world.emit(event("", "it"));
    let reasons = |world: &mut World| world.recorder.take_warning().map(|warning| warning.reason);
    assert_eq!(reasons(&mut world), Some(DropReason::Invalid));
    world.now += WARN_EVERY;
    world.emit(event("Pulled", "it"));
    world.emit(event("Killed", "it"));
    assert_eq!(reasons(&mut world), Some(DropReason::Full));
}

#[test]
fn as_many_requests_are_under_way_at_once_as_the_configuration_says() {
    let mut world = World::with(RecorderConfig { at_once: 2, ..RecorderConfig::default() });
    for reason in ["One", "Two", "Three"] {
        world.emit(event(reason, "it"));
    }
    let first = world.next().expect("it waits");
    assert!(world.next().is_some() && world.next().is_none());
    world.answer(&first, Answer::Done);
    assert!(world.next().is_some());
}

#[test]
fn rec_07_of_several_creates_without_a_clear_answer_the_first_may_be_the_one_that_is_there() {
    let mut world = World::of(Repeats::Count);
    for _ in 0..2 {
        world.emit(event("Pulled", "it"));
        world.sent(&later());
        world.now += MINUTE;
    }
    let create = world.next().expect("it is tried again");
    world.answer(&create, Answer::Exists);
    assert_eq!(world.done(), [patched("it", 2)], "the count on the server is perhaps one");
    assert_eq!(world.recorder.figures().patched, 1);
}

#[test]
fn rec_07_a_repeat_that_came_before_the_last_try_failed_has_tries_of_its_own() {
    let refused = Answer::Refused { word: "Forbidden".to_owned(), why: "not allowed".to_owned() };
    for (answer, reason) in [(later(), DropReason::GaveUp), (refused, DropReason::Refused)] {
        let config = RecorderConfig { tries: 2, repeats: Repeats::Count, ..RecorderConfig::default() };
        let mut world = World::with(config);
        world.emit(event("Pulled", "it"));
        world.sent(&later());
        world.now += MINUTE;
        let second = world.next().expect("the second try");
        world.emit(event("Pulled", "it"));
        world.answer(&second, answer);
        assert_eq!(world.dropped(reason), 1);
        world.now += MINUTE;
        world.sent(&later());
        world.now += MINUTE;
        assert_eq!(world.next().map(|request| request.count), Some(2), "after {reason:?}");
    }
}

#[test]
fn rec_07_requests_that_fail_together_are_one_failure_and_a_refusal_ends_the_growth_of_the_waits() {
    let mut world = World::of(Repeats::Count);
    world.emit(event("One", "it"));
    world.emit(event("Two", "it"));
    let both = [(); 2].map(|()| world.next().expect("two wait"));
    both.iter().for_each(|request| world.answer(request, later()));
    assert_eq!(world.recorder.next_due(), Some(Duration::from_millis(800)));
    world.now = MINUTE;
    world.sent(&Answer::Refused { word: "Forbidden".to_owned(), why: "not allowed".to_owned() });
    world.emit(event("Three", "it"));
    world.sent(&later());
    assert_eq!(world.recorder.next_due(), Some(MINUTE + Duration::from_millis(800)));
}

#[test]
fn rec_11_an_event_that_is_under_way_is_not_forgotten() {
    let mut world = World::of(Repeats::Series);
    world.emit(event("Pulled", "it"));
    let create = world.next().expect("it waits");
    world.now += 7 * MINUTE;
    assert_eq!(world.next(), None);
    world.answer(&create, Answer::Done);
    world.emit(event("Pulled", "it"));
    assert_eq!(world.done(), [patched("it", 2)]);
}
