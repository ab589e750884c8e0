//! Any history against a naive model: keys in plain lists, searched from their beginning.
//!
//! The four promises: no key is lost, one worker a key, order in a lane, and bounded waits.

use std::time::Duration;

use proptest::prelude::*;

use crate::queue::machine::{ExponentialPerKey, Merge, Priority, QueueMachine};
use informer_core::reflector::Moment;
use model::Model;

use super::discard_all;

mod model;

/// Keys are numbers below this; a lane is the number modulo `LANES`.
const KEYS: u8 = 12;
const LANES: u8 = 3;

/// What was noted of a key: the numbers of the steps that led to it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Noted(Vec<u64>);

impl Merge for Noted {
    type Tally = ();

    fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    fn is_large(&self) -> bool {
        !self.0.is_empty()
    }

    fn cut(&mut self) {
        self.0.clear();
    }
}

type Queue = QueueMachine<u8, Noted>;

fn queue(most: usize) -> Queue {
    Queue::noting(|one, other| (one % LANES).cmp(&(other % LANES)), most)
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8, Priority),
    AddAfter(u8, u64, Priority),
    Postpone(u8, u64, Priority),
    /// The work begins: what came since the hand-out is part of it.
    Begin(u8),
    /// Nobody has worked on the key.
    PutBack(u8),
    Discard(u8),
    Take,
    Done(u8),
    RetryAfter(u8, u64),
    /// A failure.
    Retry(u8, u64),
    Pass(u64),
    Drain,
    ShutDown,
    Force,
    Rebuild,
}

fn step() -> impl Strategy<Value = Step> {
    let priority = prop::sample::select(Priority::ALL.to_vec());
    let (key, time) = (0..KEYS, 0..200_u64);
    prop_oneof![
        60 => (key.clone(), priority.clone()).prop_map(|(key, priority)| Step::Add(key, priority)),
        20 => (key.clone(), time.clone(), priority.clone()).prop_map(|(key, time, of)| Step::AddAfter(key, time, of)),
        20 => (key.clone(), time.clone(), priority).prop_map(|(key, time, of)| Step::Postpone(key, time, of)),
        15 => key.clone().prop_map(Step::Begin),
        5 => key.clone().prop_map(Step::PutBack),
        5 => key.clone().prop_map(Step::Discard),
        60 => Just(Step::Take),
        30 => key.clone().prop_map(Step::Done),
        15 => (key.clone(), time.clone()).prop_map(|(key, time)| Step::RetryAfter(key, time)),
        15 => (key, 1..200_u64).prop_map(|(key, time)| Step::Retry(key, time)),
        20 => time.prop_map(Step::Pass),
        1 => Just(Step::Drain),
        1 => Just(Step::ShutDown),
        1 => Just(Step::Force),
        2 => Just(Step::Rebuild),
    ]
}

struct World {
    queue: Queue,
    model: Model,
    now: Duration,
    /// The number of the present step.
    number: u64,
    /// Whether no note is cut.
    is_exact: bool,
}

impl World {
    /// No two steps have the same time, so no two delayed adds are due at once.
    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        self.now += Duration::from_nanos(1);
        self.number += 1;
        let Self { queue, model, now, number, .. } = self;
        let (now, number) = (*now, *number);
        match step {
            Step::Add(..) | Step::AddAfter(..) | Step::Postpone(..) => self.add(step),
            Step::Begin(_) | Step::PutBack(_) | Step::Take => return self.hand_out(step),
            Step::Discard(key) => prop_assert_eq!(queue.discard(&key), model.discard(key)),
            Step::Done(key) => {
                model.in_order(key);
                prop_assert_eq!(queue.done(&key, now), model.done(key));
            }
            Step::RetryAfter(key, time) => {
                let delay = Duration::from_millis(time);
                let is_back = queue.retry_after_with(&key, delay, Noted(vec![number]), now);
                prop_assert_eq!(is_back, model.runs.contains_key(&key));
                let priority = model.runs.get(&key).map(|runs| runs.priority);
                model.in_order(key);
                if let Some(priority) = priority.filter(|_| !model.is_shut_down) {
                    model.add_after(key, delay, (priority, number), now);
                }
                model.done(key);
            }
            Step::Retry(key, time) => return self.retry(key, Duration::from_millis(time)),
            Step::Pass(time) => self.now += Duration::from_millis(time),
            Step::Drain => {
                queue.drain();
                discard_all(queue);
                model.shut_down();
            }
            Step::ShutDown => {
                queue.shut_down();
                discard_all(queue);
                model.shut_down();
            }
            Step::Force => {
                let before = model.len() + model.delays.len();
                let again = model.runs.values_mut().filter_map(|runs| runs.again.take()).count();
                queue.force();
                prop_assert_eq!(discard_all(queue), before + again);
                model.shut_down();
                model.is_forced = true;
                (model.lines, model.passed_over, model.notes) = Default::default();
            }
            Step::Rebuild => return self.rebuild(),
        }
        Ok(())
    }

    /// Something is added.
    fn add(&mut self, step: Step) {
        let noted = |priority, number| (priority, Noted(vec![number]));
        let Self { queue, model, now, number, .. } = self;
        let (now, number, is_open) = (*now, *number, !model.is_shut_down);
        match step {
            Step::Add(key, priority) => {
                queue.add_with(key, noted(priority, number), now);
                if is_open {
                    model.add_noted(key, (priority, number), now);
                }
            }
            Step::AddAfter(key, time, priority) => {
                let delay = Duration::from_millis(time);
                queue.add_after_with(key, delay, noted(priority, number), now);
                if is_open {
                    model.add_after(key, delay, (priority, number), now);
                }
            }
            Step::Postpone(key, time, priority) => {
                let quiet = Duration::from_millis(time);
                queue.postpone_with(key, quiet, noted(priority, number), now);
                if is_open {
                    model.postpone(key, quiet, (priority, number), now);
                }
            }
            _ => {}
        }
    }

    /// A key is handed out, or its worker begins or goes.
    fn hand_out(&mut self, step: Step) -> Result<(), TestCaseError> {
        let Self { queue, model, now, is_exact, .. } = self;
        let now = *now;
        let is_same = |note: &Noted, expected: &Vec<u64>| !*is_exact || note.0 == *expected;
        match step {
            Step::Begin(key) => {
                let note = queue.begin(&key);
                let Some(runs) = model.runs.get_mut(&key) else { return Ok(()) };
                runs.again = None;
                prop_assert!(is_same(&note, &model.notes.remove(&key).unwrap_or_default()));
            }
            Step::PutBack(key) => {
                let runs = model.runs.get_mut(&key);
                let note = runs.as_ref().map(|runs| runs.note.clone()).unwrap_or_default();
                prop_assert_eq!(queue.put_back(&key, Noted(note.clone()), now), runs.is_some());
                if let Some(runs) = runs.filter(|_| !model.is_forced) {
                    let (again, since) = runs.again.unwrap_or((runs.priority, runs.since));
                    runs.again = Some((again.max(runs.priority), since));
                    model.notes.entry(key).or_default().splice(0..0, note);
                }
                model.done(key);
            }
            Step::Take => {
                let (taken, expected) = (queue.take(now), model.take(now));
                let Some(taken) = taken else {
                    prop_assert_eq!(expected, None);
                    return Ok(());
                };
                let (key, priority, waited, note) = expected.expect("the model hands one out, too");
                prop_assert_eq!((taken.key, taken.priority, taken.waited), (key, priority, waited));
                prop_assert!(is_same(&taken.note, &note), "{:?} and {:?}", taken.note, note);
            }
            _ => {}
        }
        Ok(())
    }

    /// A key has failed, and the limiter says this delay.
    fn retry(&mut self, key: u8, delay: Duration) -> Result<(), TestCaseError> {
        let Self { queue, model, now, number, .. } = self;
        let moment = Moment { now: *now, chance: 0.0 };
        let note = Noted(vec![*number]);
        let retried = queue.retry_with(&key, note, &mut ExponentialPerKey::new(delay, delay), moment);
        let priority = model.runs.get(&key).map(|runs| runs.priority);
        let priority = priority.filter(|_| !model.is_shut_down);
        prop_assert_eq!(retried, priority.map(|_| delay));
        model.done(key);
        if let Some(priority) = priority {
            model.retry_after(key, delay, (priority, *number), *now);
        }
        Ok(())
    }

    /// The keys are the same; their places and delays are not.
    fn rebuild(&mut self) -> Result<(), TestCaseError> {
        self.queue = self.queue.rebuilt();
        prop_assert_eq!(self.queue.check(), Ok(()));
        let runs: Vec<u8> = (0..KEYS).filter(|key| self.queue.is_processing(key)).collect();
        prop_assert!(runs.iter().eq(self.model.runs.keys()), "{:?}", runs);
        let waiting = self.model.lines.iter().flatten().flat_map(|(_, line)| line);
        let mut known: Vec<u8> = waiting.map(|waits| waits.key).collect();
        known.extend(self.model.delays.keys().filter(|key| !runs.contains(key)));
        known.sort_unstable();
        known.dedup();
        prop_assert_eq!(self.queue.len(), known.len());
        // From here on both begin anew.
        let Model { is_shut_down, is_forced, .. } = self.model;
        self.queue = queue(if self.is_exact { usize::MAX } else { 3 });
        self.model = Model { is_shut_down, is_forced, ..Model::default() };
        if is_forced {
            self.queue.force();
        } else if is_shut_down {
            self.queue.shut_down();
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let Self { queue, model, now, .. } = self;
        prop_assert_eq!(queue.check(), Ok(()));
        prop_assert_eq!(queue.len(), model.len());
        prop_assert_eq!(queue.next_due(), model.delays.values().map(|(due, _)| *due).min());
        let figures = queue.figures(*now);
        prop_assert_eq!((figures.processing, figures.delayed), (model.runs.len(), model.delays.len()));
        prop_assert_eq!(figures.retrying, model.retrying.len());
        let is_any_left = model.len() > 0 || model.runs.values().any(|runs| runs.again.is_some());
        prop_assert_eq!(queue.is_over(), model.is_shut_down && !is_any_left);
        let late =
            model.lines.iter().flatten().flat_map(|(_, line)| line).find(|waits| waits.turns_left == 0);
        prop_assert!(late.is_none(), "waits too long: {:?}", late);
        Ok(())
    }

    /// Everything that was accepted is handed out in the end.
    fn finish(mut self) -> Result<(), TestCaseError> {
        self.now += Duration::from_secs(10);
        for _ in 0..4 {
            for key in 0..KEYS {
                self.step(Step::Done(key))?;
            }
            for _ in 0..=KEYS {
                self.step(Step::Take)?;
                self.check()?;
            }
        }
        (0..KEYS).try_for_each(|key| self.step(Step::Done(key)))?;
        prop_assert_eq!((self.queue.len(), self.queue.slots.len()), (0, 0));
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_history_is_that_of_the_naive_queue_and_no_key_is_lost_doubled_or_late(
        steps in prop::collection::vec(step(), 1..250),
        is_exact in prop::bool::weighted(0.8),
    ) {
        let queue = queue(if is_exact { usize::MAX } else { 3 });
        let mut world = World { queue, model: Model::default(), now: Duration::ZERO, number: 0, is_exact };
        for step in steps {
            world.step(step)?;
            world.check()?;
        }
        world.finish()?;
    }
}
