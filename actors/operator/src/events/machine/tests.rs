//! A recorder in tables: each test is a conversation with a server that answers as the test says.

mod answers;
mod bounds;
mod namespaces;
mod props;
mod series;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// 2023-11-14.
const WALL: Duration = Duration::from_secs(1_700_000_000);

fn at(now: Duration) -> At {
    At { moment: Moment { now, chance: 0.0 }, wall: WALL + now }
}

fn event(reason: &str, note: &str) -> Event {
    let pod = Reference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        ..Reference::default()
    };
    Event::new(pod, EventType::Normal, EventText { reason, action: "Act", note })
}

/// A recorder, the time, and what the server was sent: verb, note and count of each request.
struct World {
    recorder: RecorderMachine,
    now: Duration,
}

impl World {
    fn of(repeats: Repeats) -> Self {
        Self::with(RecorderConfig { repeats, ..RecorderConfig::default() })
    }

    fn with(config: RecorderConfig) -> Self {
        Self { recorder: RecorderMachine::new(config), now: Duration::ZERO }
    }

    fn emit(&mut self, event: Event) -> Emitted {
        let key = event.object_key();
        let emitted = self.recorder.emit(event, &key, at(self.now));
        assert_eq!(self.recorder.check(), Ok(()));
        emitted
    }

    fn next(&mut self) -> Option<EventRequest> {
        self.recorder.next_request(at(self.now))
    }

    fn answer(&mut self, request: &EventRequest, answer: Answer) {
        self.recorder.handle_answer(request.id, answer, at(self.now));
        assert_eq!(self.recorder.check(), Ok(()));
    }

    /// All requests that can be sent now, each of which is answered like this.
    fn sent(&mut self, answer: &Answer) -> Vec<(Verb, String, u32)> {
        let mut sent = Vec::new();
        while let Some(request) = self.next() {
            self.answer(&request, answer.clone());
            sent.push((request.verb, request.note, request.count));
        }
        sent
    }

    fn done(&mut self) -> Vec<(Verb, String, u32)> {
        self.sent(&Answer::Done)
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.recorder.figures().dropped(reason)
    }
}

fn later() -> Answer {
    Answer::Later { after: None, why: "it is down".to_owned() }
}

fn created(note: &str) -> (Verb, String, u32) {
    (Verb::Create, note.to_owned(), 1)
}

fn patched(note: &str, count: u32) -> (Verb, String, u32) {
    (Verb::Patch, note.to_owned(), count)
}

#[test]
fn rec_01_the_same_event_twice_is_a_patch_with_count_two() {
    let mut world = World::of(Repeats::Count);
    assert_eq!(world.emit(event("Pulled", "an image")), Emitted::Accepted);
    assert_eq!(world.done(), [created("an image")]);
    let mut newer = event("Pulled", "an image");
    newer.regarding.resource_version = "7".to_owned();
    world.emit(newer);
    assert_eq!(world.done(), [patched("an image", 2)]);
    let others = [event("Pulled", "another image"), event("Killed", "an image")];
    let mut related = event("Pulled", "an image");
    related.related = Some(related.regarding.clone());
    for other in others.into_iter().chain([related]) {
        let note = other.note.clone();
        world.emit(other);
        assert_eq!(world.done(), [created(&note)], "another event");
    }
}

#[test]
fn rec_01_repeats_that_come_before_the_request_is_made_are_one_request() {
    let mut world = World::of(Repeats::Count);
    let emitted: Vec<_> = (0..3).map(|_| world.emit(event("Pulled", "it"))).collect();
    assert_eq!(emitted, [Emitted::Accepted, Emitted::Merged, Emitted::Merged]);
    let request = world.next().expect("it waits");
    assert_eq!((request.verb, request.count), (Verb::Create, 3));
    assert_eq!(world.emit(event("Pulled", "it")), Emitted::Accepted, "the request has been made");
    assert_eq!(world.next(), None, "an event has one request at a time");
    world.answer(&request, Answer::Done);
    assert_eq!(world.done(), [patched("it", 4)]);
}

#[test]
fn rec_01_the_last_time_of_an_event_never_goes_back() {
    let mut world = World::of(Repeats::Count);
    world.now = MINUTE;
    world.emit(event("Pulled", "an image"));
    let earlier = At { wall: WALL, ..at(MINUTE) };
    let repeat = event("Pulled", "an image");
    world.recorder.emit(repeat.clone(), &repeat.object_key(), earlier);
    let request = world.next().expect("it waits");
    assert_eq!((request.count, request.first, request.last), (2, WALL + MINUTE, WALL + MINUTE));
}

#[test]
fn rec_02_the_tenth_of_similar_events_is_told_as_combined_and_the_next_increments_its_count() {
    for repeats in [Repeats::Count, Repeats::Series] {
        let mut world = World::of(repeats);
        for n in 1..10 {
            world.emit(event("Failed", &format!("try {n}")));
            assert_eq!(world.done(), [created(&format!("try {n}"))]);
            world.now += 599 * SECOND;
        }
        world.emit(event("Failed", "try 10"));
        assert_eq!(world.done(), [created("(combined from similar events): try 10")]);
        world.emit(event("Failed", "try 11"));
        let newest = if repeats == Repeats::Count { 11 } else { 10 };
        assert_eq!(world.done(), [patched(&format!("(combined from similar events): try {newest}"), 2)]);
    }
}

#[test]
fn rec_02_a_note_that_is_known_is_told_by_itself_also_when_others_are_combined() {
    let mut world = World::of(Repeats::Count);
    for n in 1..=12 {
        world.emit(event("Failed", &format!("try {n}")));
    }
    world.done();
    world.emit(event("Failed", "try 3"));
    assert_eq!(world.done(), [patched("try 3", 2)]);
    let mut other = event("Failed", "try 13");
    other.regarding.name = "db".to_owned();
    world.emit(other);
    assert_eq!(world.done(), [created("try 13")], "another object");
}

// REC-03: given events spaced by the aggregation interval, when correlated, then not aggregated.
// - a not aggregated
#[test]
fn rec_03_events_that_are_spaced_by_the_interval_are_not_combined() {
    let mut world = World::of(Repeats::Count);
    for n in 0..30 {
        world.emit(event("Failed", &format!("try {n}")));
        assert_eq!(world.done(), [created(&format!("try {n}"))]);
        world.now += 600 * SECOND;
    }
}

#[test]
fn rec_05_after_25_events_an_object_has_one_each_five_minutes_whatever_their_reasons() {
    let mut world = World::of(Repeats::Count);
    let reason = |n: u32| event(&format!("Reason{n}"), "it");
    assert!((0..25).all(|n| world.emit(reason(n)) == Emitted::Accepted));
    assert_eq!(world.emit(reason(25)), Emitted::Dropped(DropReason::Spam));
    let mut other = reason(26);
    other.regarding.name = "db".to_owned();
    assert_eq!(world.emit(other), Emitted::Accepted, "another object");
    world.now = 299 * SECOND;
    assert_eq!(world.emit(reason(27)), Emitted::Dropped(DropReason::Spam));
    world.now = 300 * SECOND;
    assert_eq!(world.emit(reason(28)), Emitted::Accepted);
    assert_eq!(world.emit(reason(29)), Emitted::Dropped(DropReason::Spam));
    assert_eq!((world.done().len(), world.dropped(DropReason::Spam)), (27, 3));
}

#[test]
fn rec_05_with_a_key_of_its_own_each_reason_has_its_own_tokens() {
    let mut recorder = RecorderMachine::new(RecorderConfig::default());
    for n in 0..100 {
        let event = event(&format!("Reason{n}"), "it");
        let key = event.reason.clone();
        assert_eq!(recorder.emit(event, &key, at(Duration::ZERO)), Emitted::Accepted);
    }
}

#[test]
fn rec_05_a_repeat_without_a_token_is_counted_and_told_with_the_next_one() {
    let mut world = World::of(Repeats::Count);
    for _ in 0..30 {
        world.emit(event("Pulled", "it"));
        world.done();
    }
    assert_eq!(world.dropped(DropReason::Spam), 5);
    world.now += 300 * SECOND;
    world.emit(event("Pulled", "it"));
    assert_eq!(world.done(), [patched("it", 31)]);
}

#[test]
fn rec_08_a_full_queue_drops_the_new_event_and_every_earlier_one_is_sent() {
    let config = RecorderConfig { queue: 3, ..RecorderConfig::default() };
    let mut world = World::with(config);
    let request = |world: &mut World| world.next().expect("one waits");
    assert_eq!(world.emit(event("One", "it")), Emitted::Accepted);
    let under_way = request(&mut world);
    assert_eq!(world.emit(event("Two", "it")), Emitted::Accepted);
    assert_eq!(world.emit(event("Three", "it")), Emitted::Accepted);
    assert_eq!(world.emit(event("Four", "it")), Emitted::Dropped(DropReason::Full));
    assert_eq!(world.emit(event("Two", "it")), Emitted::Merged, "a repeat needs no room");
    world.answer(&under_way, Answer::Done);
    assert_eq!(world.emit(event("Four", "it")), Emitted::Accepted, "and it has left no trace");
    let counts: Vec<u32> = world.done().into_iter().map(|(_, _, count)| count).collect();
    assert_eq!(counts, [2, 1, 1]);
    assert_eq!(world.dropped(DropReason::Full), 1);
}

#[test]
fn rec_08_a_repeat_of_the_event_that_is_being_sent_needs_no_room_in_a_full_queue() {
    let mut world =
        World::with(RecorderConfig { queue: 1, repeats: Repeats::Count, ..RecorderConfig::default() });
    world.emit(event("Pulled", "an image"));
    let request = world.next().expect("it waits");
    assert_eq!(world.emit(event("Killed", "by hand")), Emitted::Dropped(DropReason::Full));
    assert_eq!(world.emit(event("Pulled", "an image")), Emitted::Accepted);
    assert_eq!(world.emit(event("Pulled", "an image")), Emitted::Merged, "the one before tells of it");
    assert_eq!(world.recorder.figures().merged, 1);
    world.answer(&request, Answer::Done);
    assert_eq!(world.done(), [patched("an image", 3)]);
}

#[test]
fn rec_09_a_recorder_that_is_closed_sends_what_waits_without_delay_and_refuses_more() {
    let mut world = World::of(Repeats::Series);
    for _ in 0..5 {
        world.emit(event("Pulled", "it"));
        world.done();
    }
    world.emit(event("Killed", "it"));
    world.sent(&later());
    assert_eq!(world.next(), None, "it waits");
    world.recorder.close();
    assert_eq!(world.emit(event("Pulled", "it")), Emitted::Dropped(DropReason::Closed));
    assert_eq!(world.done(), [created("it"), patched("it", 5)]);
    assert_eq!((world.recorder.unsent(), world.recorder.next_due()), (0, None));
}

#[test]
fn rec_09_the_waits_of_a_closed_recorder_begin_anew() {
    let mut world = World::of(Repeats::Count);
    world.emit(event("Pulled", "it"));
    let mut wait = |is_closed: bool| {
        if is_closed {
            world.recorder.close();
        }
        world.sent(&later());
        let due = world.recorder.next_due().expect("it is tried again");
        due - std::mem::replace(&mut world.now, due)
    };
    let first = wait(false);
    assert!(wait(false) > first && wait(false) > first);
    assert_eq!(wait(true), first);
}

#[test]
fn rec_09_a_recorder_that_begins_anew_counts_what_it_has_forgotten() {
    let mut world = World::of(Repeats::Count);
    world.emit(event("Pulled", "it"));
    world.emit(event("Killed", "it"));
    world.next().expect("one is under way");
    let anew = world.recorder.emptied();
    assert_eq!((anew.unsent(), anew.figures().dropped(DropReason::Forgotten), anew.check()), (0, 2, Ok(())));
}

#[test]
fn rec_09_a_closed_recorder_gives_up_what_is_refused() {
    let mut world = World::of(Repeats::Series);
    for _ in 0..3 {
        world.emit(event("Pulled", "it"));
        world.done();
    }
    world.recorder.close();
    let refused = Answer::Refused { word: "Forbidden".to_owned(), why: "no".to_owned() };
    assert_eq!((world.sent(&refused).len(), world.recorder.unsent()), (1, 0));
}

#[test]
fn rec_10_the_event_of_an_object_without_namespace_is_in_default() {
    let mut node = event("Ready", "it is");
    assert_eq!(node.namespace(), "shop");
    node.regarding.namespace.clear();
    assert_eq!(node.namespace(), "default");
}

#[test]
fn what_no_server_would_accept_is_refused_and_long_notes_are_cut_at_a_character() {
    let checked = |change: fn(&mut Event)| {
        let mut event = event("Pulled", "it");
        change(&mut event);
        event.checked().map(|event| event.note).map_err(|why| why.to_string())
    };
    let word = |what: &str, text: &str| {
        Err(format!("the event's {what} {text:?} is not one word of at most 128 bytes"))
    };
    assert_eq!(
        checked(|event| event.regarding.name.clear()),
        Err("the object of the event has no name".to_owned())
    );
    assert_eq!(
        checked(|event| event.regarding.kind.clear()),
        Err("the object of the event has no kind".to_owned())
    );
    assert_eq!(checked(|event| event.reason.clear()), word("reason", ""));
    assert_eq!(checked(|event| event.action = "two words".to_owned()), word("action", "two words"));
    assert_eq!(checked(|event| event.reason = "a".repeat(129)), word("reason", &"a".repeat(128)));
    assert_eq!(checked(|event| event.note = format!("{}é", "a".repeat(1023))), Ok("a".repeat(1023)));
    assert_eq!(checked(|event| event.note = "é".repeat(512)), Ok("é".repeat(512)));
    let mut world = World::of(Repeats::Series);
    assert_eq!(world.emit(event("", "it")), Emitted::Dropped(DropReason::Invalid));
}

#[test]
fn the_name_of_an_event_is_valid_whatever_its_object_is_called() {
    for (object, expected) in
        [("web", "web.ff"), ("a.b-c", "a.b-c.ff"), ("system:node", "event.ff"), ("a.-b", "event.ff")]
    {
        assert_eq!(name_of(object, 255), expected);
    }
    let long = name_of(&"a".repeat(253), u64::MAX);
    assert_eq!((long.len(), long.ends_with(".ffffffffffffffff")), (253, true));
}

#[test]
fn what_was_not_used_for_longest_is_forgotten_and_its_repeats_are_told_first() {
    let config = RecorderConfig { queue: 2, cached: 3, ..RecorderConfig::default() };
    let mut world = World::with(config);
    for _ in 0..3 {
        world.emit(event("One", "it"));
        world.done();
    }
    for reason in ["Two", "Three", "Four"] {
        world.emit(event(reason, "it"));
        let expected =
            if reason == "Four" { vec![patched("it", 3), created("it")] } else { vec![created("it")] };
        let mut sent = world.done();
        sent.sort_by_key(|(verb, ..)| *verb == Verb::Create);
        assert_eq!(sent, expected);
    }
    world.emit(event("One", "it"));
    assert_eq!(world.done(), [created("it")]);
    assert_eq!(world.recorder.figures().known, 3);
}
