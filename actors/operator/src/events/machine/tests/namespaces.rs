//! A namespace in which the server fails, beside others.

use super::*;

fn of(namespace: &str, number: usize) -> Event {
    let mut event = event("Pulled", "an image");
    (event.regarding.namespace, event.regarding.name) = (namespace.to_owned(), format!("web-{number}"));
    event
}

/// Answers every request: of the namespace `bad` the server fails. Returns how many events of other namespaces were told,
/// and how many requests of `bad` were sent.
fn answered(world: &mut World) -> (usize, usize) {
    let (mut told, mut failed) = (0, 0);
    while let Some(request) = world.next() {
        let is_bad = request.event.regarding.namespace == "bad";
        world.answer(&request, if is_bad { later() } else { Answer::Done });
        if is_bad { failed += 1 } else { told += 1 }
    }
    (told, failed)
}

#[test]
fn operator_a8_a_namespace_whose_events_fail_holds_up_the_events_of_no_other() {
    for bad in [100, 900] {
        let mut world = World::of(Repeats::Series);
        for number in 0..bad {
            world.emit(of("bad", number));
        }
        let mut told = 0;
        for number in 0..1_000 {
            assert_eq!(
                world.emit(of("good", number)),
                Emitted::Accepted,
                "event {number} beside {bad} bad ones"
            );
            if number % 10 == 9 {
                told += answered(&mut world).0;
                world.now += SECOND;
            }
        }
        assert_eq!(told, 1_000, "each within its second, beside {bad} bad ones");
    }
}

#[test]
fn operator_a8_a_namespace_that_fails_has_one_request_at_a_time_after_growing_waits_and_half_of_the_queue() {
    let mut world = World::with(RecorderConfig { queue: 100, ..RecorderConfig::default() });
    let emitted: Vec<_> = (0..200).map(|number| world.emit(of("bad", number))).collect();
    assert_eq!(
        emitted.iter().filter(|emitted| **emitted == Emitted::Accepted).count(),
        100,
        "nothing has failed"
    );
    let mut waits = Vec::new();
    assert_eq!(answered(&mut world), (0, 1));
    for _ in 0..6 {
        let due = world.recorder.next_due().expect("it waits");
        waits.push(due - world.now);
        world.now = due;
        let request = world.next().expect("it is due");
        assert!(world.next().is_none(), "one request at a time");
        world.answer(&request, later());
        assert_eq!(answered(&mut world), (0, 0), "then the next wait");
    }
    assert_eq!(waits, [800, 1_600, 3_200, 6_400, 12_800, 25_600].map(Duration::from_millis));
    assert_eq!(world.emit(of("bad", 200)), Emitted::Dropped(DropReason::Full));
    let (_, first) = (world.emit(of("good", 0)), answered(&mut world));
    assert_eq!(first, (0, 0), "the queue is full of what waited before the first failure");
    let mut world = World::with(RecorderConfig { queue: 100, ..RecorderConfig::default() });
    world.emit(of("bad", 0));
    answered(&mut world);
    let emitted = (1..200).map(|number| world.emit(of("bad", number)));
    assert_eq!(emitted.filter(|emitted| *emitted == Emitted::Accepted).count(), 49, "half of the queue");
    assert_eq!(world.emit(of("good", 0)), Emitted::Accepted);
    assert_eq!(answered(&mut world), (1, 0));
}

#[test]
fn operator_a8_when_all_requests_under_way_are_lost_nobody_waits_for_it() {
    let mut world = World::of(Repeats::Series);
    for number in 0..4 {
        world.emit(of("good", number));
        world.next().expect("four at once");
    }
    world.recorder.reclaim(at(world.now));
    assert_eq!(answered(&mut world), (4, 0));
}
