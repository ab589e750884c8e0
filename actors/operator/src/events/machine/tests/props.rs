//! Random histories of a recorder beside naive models: a server that is a map, a list of all notes, a list of all tokens.
//!
//! Answers "is anything lost, doubled or counted wrong, whatever the server answers?".

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What happens in a history.
#[derive(Debug, Clone)]
enum Step {
    /// An event about this object, for this reason, with this note.
    Emit(u8, u8, u8),
    Pass(u32),
    Send,
    /// The request under way that comes at this place is answered.
    Answer(u8, Given),
    /// The server loses an event.
    Expire(u8),
    Die,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Given {
    Handled,
    /// It is handled, and the answer is lost.
    Lost,
    Failed,
    Refused,
}

fn step() -> impl Strategy<Value = Step> {
    let given = prop_oneof![5 => Just(Given::Handled), 1 => Just(Given::Lost), 1 => Just(Given::Failed), 1 => Just(Given::Refused)];
    prop_oneof![
        6 => (0..3_u8, 0..3_u8, 0..15_u8).prop_map(|(object, reason, note)| Step::Emit(object, reason, note)),
        2 => (0..500_u32).prop_map(Step::Pass),
        5 => Just(Step::Send),
        5 => (any::<u8>(), given).prop_map(|(place, given)| Step::Answer(place, given)),
        1 => any::<u8>().prop_map(Step::Expire),
        1 => Just(Step::Die),
    ]
}

/// A server that is a map from names to counts.
#[derive(Default)]
struct Server(BTreeMap<String, u32>);

impl Server {
    fn handle(&mut self, request: &EventRequest) -> Answer {
        match (request.verb, self.0.get_mut(&request.name)) {
            (Verb::Create, Some(_)) => Answer::Exists,
            (Verb::Patch, None) => Answer::NotFound,
            (Verb::Patch, Some(count)) => {
                assert!(*count <= request.count, "a count goes back");
                *count = request.count;
                Answer::Done
            }
            (Verb::Create, None) => {
                self.0.insert(request.name.clone(), request.count);
                Answer::Done
            }
        }
    }

    fn answer(&mut self, request: &EventRequest, given: Given) -> Answer {
        match given {
            Given::Handled => self.handle(request),
            Given::Lost => {
                self.handle(request);
                later()
            }
            Given::Failed => later(),
            Given::Refused => Answer::Refused { word: "Forbidden".to_owned(), why: "no".to_owned() },
        }
    }
}

/// Plays a history, then lets everything succeed. Gives the recorder, the server, and how often something was refused,
/// given up or lost by the server.
fn play(config: RecorderConfig, steps: &[Step]) -> (World, Server, bool) {
    let (mut world, mut server) = (World::with(config), Server::default());
    let (mut under_way, mut is_lossless) = (Vec::<EventRequest>::new(), true);
    for step in steps {
        match *step {
            Step::Emit(object, reason, note) => {
                let mut event = event(&format!("Reason{reason}"), &format!("note {note}"));
                event.regarding.name = format!("pod-{object}");
                world.emit(event);
            }
            Step::Pass(seconds) => world.now += SECOND * seconds,
            Step::Send => under_way.extend(world.next()),
            Step::Answer(place, given) if !under_way.is_empty() => {
                let request = under_way.remove(usize::from(place) % under_way.len());
                let answer = server.answer(&request, given);
                is_lossless &= given != Given::Refused;
                world.answer(&request, answer);
            }
            Step::Expire(place) if !server.0.is_empty() => {
                let name = server.0.keys().nth(usize::from(place) % server.0.len()).cloned();
                server.0.remove(&name.expect("it is not empty"));
                is_lossless = false;
            }
            Step::Die => {
                under_way.clear();
                world.recorder.reclaim(at(world.now));
            }
            Step::Answer(..) | Step::Expire(_) => {}
        }
        assert_eq!(world.recorder.check(), Ok(()));
        assert!(world.recorder.unsent() <= world.recorder.config.queue);
    }
    for request in under_way {
        let answer = server.handle(&request);
        world.answer(&request, answer);
    }
    world.recorder.close();
    while world.recorder.unsent() > 0 {
        let Some(request) = world.next() else {
            world.now = world.recorder.next_due().expect("something waits");
            continue;
        };
        let answer = server.handle(&request);
        world.answer(&request, answer);
    }
    (world, server, is_lossless)
}

proptest! {
    #[test]
    fn whatever_the_server_answers_the_counts_on_it_are_those_of_the_events(
        steps in proptest::collection::vec(step(), 1..80), is_series: bool,
    ) {
        let repeats = if is_series { Repeats::Series } else { Repeats::Count };
        let config = RecorderConfig { repeats, burst: 1_000, combined: 1_000, ..RecorderConfig::default() };
        let (world, server, is_lossless) = play(config, &steps);
        let figures = world.recorder.figures();
        let emitted = steps.iter().filter(|step| matches!(step, Step::Emit(..))).count() as u64;
        prop_assert_eq!(figures.emitted, emitted);
        let told: u64 = server.0.values().map(|count| u64::from(*count)).sum();
        prop_assert!(told <= emitted);
        if is_lossless && figures.dropped(DropReason::GaveUp) == 0 {
            prop_assert_eq!(told, emitted);
            prop_assert_eq!(figures.created, server.0.len() as u64);
        }
    }

    #[test]
    fn with_small_bounds_what_is_not_told_was_dropped_for_a_counted_reason(
        steps in proptest::collection::vec(step(), 1..80),
        queue in 1..5_usize, at_once in 1..4_usize, is_series: bool,
    ) {
        let repeats = if is_series { Repeats::Series } else { Repeats::Count };
        let config = RecorderConfig {
            repeats, queue, at_once, cached: 6, burst: 4, combined: 3, ..RecorderConfig::default()
        };
        let (world, server, is_lossless) = play(config, &steps);
        let figures = world.recorder.figures();
        let told: u64 = server.0.values().map(|count| u64::from(*count)).sum();
        let dropped: u64 = figures.dropped.values().sum();
        prop_assert!(told <= figures.emitted);
        if is_lossless && dropped == 0 {
            prop_assert_eq!(told, figures.emitted);
        }
        let lost = figures.dropped(DropReason::GaveUp) + figures.dropped(DropReason::Forgotten);
        if is_lossless && lost == 0 {
            // What found the queue full left no trace; what had no token may be told with a later repeat.
            let taken = figures.emitted - figures.dropped(DropReason::Full);
            prop_assert!((taken - figures.dropped(DropReason::Spam)..=taken).contains(&told), "{figures:?}");
        }
        prop_assert!(world.recorder.similar.check());
    }

    #[test]
    fn a_note_is_combined_exactly_if_a_reading_of_all_notes_says_so(
        notes in proptest::collection::vec((0..20_u8, 0..700_u64), 1..120),
    ) {
        let group = Arc::new(Identity::similar(&event("Failed", "")));
        let mut similar = Similar::new(10, 600 * SECOND, 8);
        // All notes since the last pause, with whether each had an event of its own.
        let mut recent: Vec<(u8, bool)> = Vec::new();
        let mut now = Duration::ZERO;
        for (note, pause) in notes {
            now += SECOND * u32::try_from(pause).expect("it is small");
            if pause >= 600 {
                recent.clear();
            }
            let mut own: Vec<u8> = recent.iter().filter(|(_, is_own)| *is_own).map(|(note, _)| *note).collect();
            own.sort_unstable();
            own.dedup();
            let is_combined = !own.contains(&note) && own.len() >= 9;
            let text = note.to_string();
            prop_assert_eq!(similar.is_combined(&group, &text, now), is_combined);
            similar.count(&group, &text, now);
            recent.push((note, !is_combined));
        }
    }

    #[test]
    fn an_object_has_as_many_requests_as_a_reading_of_all_its_requests_allows(
        pauses in proptest::collection::vec(0..400_u32, 1..120),
    ) {
        let config = RecorderConfig { repeats: Repeats::Count, combined: 1_000, ..RecorderConfig::default() };
        let mut world = World::with(config);
        // Tokens in units of a second: 25 of 300 s each, filled by the time that passes.
        let mut tokens = 25 * 300_u32;
        for (n, pause) in pauses.into_iter().enumerate() {
            world.now += SECOND * pause;
            tokens = (tokens + pause).min(25 * 300);
            let may = tokens >= 300;
            let emitted = world.emit(event(&format!("Reason{n}"), "it"));
            world.done();
            prop_assert_eq!(emitted == Emitted::Accepted, may);
            tokens -= if may { 300 } else { 0 };
        }
    }
}
