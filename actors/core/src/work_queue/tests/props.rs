//! Any history against a naive model: keys in plain lists, searched from their beginning.
//!
//! The four promises: no key is lost, one worker a key, order in a lane, and bounded waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proptest::prelude::*;

use crate::reflector::Moment;
use crate::work_queue::{ExponentialPerKey, MOST_PASSED_OVER, MOST_WAIT, Priority, WorkQueue};

/// Keys are numbers below this; a lane is the number modulo `LANES`.
const KEYS: u8 = 12;
const LANES: u8 = 3;

#[derive(Debug, Clone)]
enum Step {
    Add(u8, Priority),
    AddAfter(u8, u64, Priority),
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
        20 => (key.clone(), time.clone(), priority).prop_map(|(key, time, of)| Step::AddAfter(key, time, of)),
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

/// A key in a line.
#[derive(Debug, Clone)]
struct Waits {
    key: u8,
    since: Duration,
    /// Turns that may pass until it has to be served.
    turns_left: u32,
}

#[derive(Debug, Clone)]
struct Runs {
    priority: Priority,
    again: Option<(Priority, Duration)>,
}

/// By priority, the lowest first: lanes in the order of their turns, each with its keys.
type Lines = [VecDeque<(u8, VecDeque<Waits>)>; 3];

#[derive(Debug, Default)]
struct Model {
    lines: Lines,
    passed_over: [u32; 3],
    runs: BTreeMap<u8, Runs>,
    delays: BTreeMap<u8, (Duration, Priority)>,
    retrying: BTreeSet<u8>,
    is_shut_down: bool,
}

impl Model {
    fn len(&self) -> usize {
        self.lines.iter().flatten().map(|(_, line)| line.len()).sum()
    }

    fn push(&mut self, key: u8, priority: Priority, since: Duration) {
        let lanes = &mut self.lines[priority as usize];
        let lane = key % LANES;
        if !lanes.iter().any(|(other, _)| *other == lane) {
            lanes.push_back((lane, VecDeque::new()));
        }
        let (_, line) = lanes.iter_mut().find(|(other, _)| *other == lane).expect("it was put in");
        let turns_left = MOST_WAIT * u32::from(LANES) * (u32::try_from(line.len()).expect("few keys") + 1);
        line.push_back(Waits { key, since, turns_left });
    }

    /// Takes a key out of its line, if it waits there.
    fn pull(&mut self, key: u8, is_below: Priority) -> Option<(Waits, bool)> {
        for (class, lanes) in self.lines.iter_mut().enumerate() {
            for at in 0..lanes.len() {
                let Some(place) = lanes[at].1.iter().position(|waits| waits.key == key) else { continue };
                if class >= is_below as usize {
                    return Some((lanes[at].1[place].clone(), false));
                }
                let waits = lanes[at].1.remove(place)?;
                if lanes[at].1.is_empty() {
                    lanes.remove(at);
                }
                if lanes.is_empty() {
                    self.passed_over[class] = 0;
                }
                return Some((waits, true));
            }
        }
        None
    }

    fn add(&mut self, key: u8, priority: Priority, now: Duration) {
        if let Some(runs) = self.runs.get_mut(&key) {
            let (former, since) = runs.again.unwrap_or((priority, now));
            runs.again = Some((former.max(priority), since));
            return;
        }
        match self.pull(key, priority) {
            None => self.push(key, priority, now),
            Some((waits, true)) => self.push(key, priority, waits.since),
            Some((_, false)) => {}
        }
    }

    fn add_after(&mut self, key: u8, delay: Duration, priority: Priority, now: Duration) {
        if delay.is_zero() {
            return self.add(key, priority, now);
        }
        let (due, former) = self.delays.get(&key).copied().unwrap_or((now + delay, priority));
        self.delays.insert(key, (due.min(now + delay), former.max(priority)));
    }

    fn take(&mut self, now: Duration) -> Option<(u8, Priority, Duration)> {
        let mut due: Vec<_> = self.delays.iter().filter(|(_, (due, _))| *due <= now).collect();
        due.sort_by_key(|(_, (due, _))| *due);
        let due: Vec<_> = due.into_iter().map(|(key, (due, priority))| (*key, *due, *priority)).collect();
        for (key, due, priority) in due {
            self.delays.remove(&key);
            self.retrying.remove(&key);
            self.add(key, priority, due);
        }
        let waiting = (0..3).filter(|class| !self.lines[*class].is_empty());
        let most = waiting.clone().max_by_key(|class| (self.passed_over[*class], *class))?;
        let is_due = self.passed_over[most] >= MOST_PASSED_OVER;
        let class = if is_due { most } else { waiting.clone().max()? };
        for other in 0..3 {
            let is_passed_over = other != class && !self.lines[other].is_empty();
            self.passed_over[other] = if is_passed_over { self.passed_over[other] + 1 } else { 0 };
        }
        let (lane, mut line) = self.lines[class].pop_front()?;
        let waits = line.pop_front()?;
        if !line.is_empty() {
            self.lines[class].push_back((lane, line));
        }
        for waits in self.lines.iter_mut().flatten().flat_map(|(_, line)| line) {
            waits.turns_left -= 1;
        }
        let priority = Priority::ALL[2 - class];
        self.runs.insert(waits.key, Runs { priority, again: None });
        Some((waits.key, priority, now - waits.since))
    }

    fn done(&mut self, key: u8) -> bool {
        let Some(runs) = self.runs.remove(&key) else { return false };
        self.retrying.remove(&key);
        if let Some((priority, since)) = runs.again {
            self.push(key, priority, since);
        }
        true
    }

    fn shut_down(&mut self) {
        self.is_shut_down = true;
        self.delays.clear();
        self.retrying.clear();
    }
}

struct World {
    queue: WorkQueue<u8>,
    model: Model,
    now: Duration,
}

impl World {
    /// No two steps have the same time, so no two delayed adds are due at once.
    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let Self { queue, model, now } = self;
        *now += Duration::from_nanos(1);
        let now = *now;
        match step {
            Step::Add(key, priority) => {
                queue.add(key, priority, now);
                if !model.is_shut_down {
                    model.add(key, priority, now);
                }
            }
            Step::AddAfter(key, time, priority) => {
                queue.add_after(key, Duration::from_millis(time), priority, now);
                if !model.is_shut_down {
                    model.add_after(key, Duration::from_millis(time), priority, now);
                }
            }
            Step::Take => {
                let taken = queue.take(now).map(|taken| (taken.key, taken.priority, taken.waited));
                prop_assert_eq!(taken, model.take(now));
            }
            Step::Done(key) => prop_assert_eq!(queue.done(&key, now), model.done(key)),
            Step::RetryAfter(key, time) => {
                let delay = Duration::from_millis(time);
                prop_assert_eq!(queue.retry_after(&key, delay, now), model.runs.contains_key(&key));
                let priority = model.runs.get(&key).map(|runs| runs.priority);
                if let Some(priority) = priority.filter(|_| !model.is_shut_down) {
                    model.add_after(key, delay, priority, now);
                }
                model.done(key);
            }
            Step::Retry(key, time) => return self.retry(key, Duration::from_millis(time)),
            Step::Pass(time) => self.now += Duration::from_millis(time),
            Step::Drain => {
                queue.drain();
                model.shut_down();
            }
            Step::ShutDown => {
                queue.shut_down();
                model.shut_down();
            }
            Step::Force => {
                let before = model.len() + model.delays.len();
                let again = model.runs.values_mut().filter_map(|runs| runs.again.take()).count();
                prop_assert_eq!(queue.force(), before + again);
                model.shut_down();
                (model.lines, model.passed_over) = Default::default();
            }
            Step::Rebuild => return self.rebuild(),
        }
        Ok(())
    }

    /// A key has failed, and the limiter says this delay.
    fn retry(&mut self, key: u8, delay: Duration) -> Result<(), TestCaseError> {
        let Self { queue, model, now } = self;
        let moment = Moment { now: *now, chance: 0.0 };
        let retried = queue.retry(&key, &mut ExponentialPerKey::new(delay, delay), moment);
        let priority = model.runs.get(&key).map(|runs| runs.priority);
        let priority = priority.filter(|_| !model.is_shut_down);
        prop_assert_eq!(retried, priority.map(|_| delay));
        if let Some(priority) = priority {
            model.add_after(key, delay, priority, *now);
        }
        model.done(key);
        if priority.is_some() {
            model.retrying.insert(key);
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
        let is_shut_down = self.model.is_shut_down;
        self.queue = WorkQueue::with_lanes(|one, other| (one % LANES).cmp(&(other % LANES)));
        self.model = Model { is_shut_down, ..Model::default() };
        if is_shut_down {
            self.queue.shut_down();
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let Self { queue, model, now } = self;
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
        self.now += Duration::from_secs(1);
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
    ) {
        let queue = WorkQueue::with_lanes(|one: &u8, other| (one % LANES).cmp(&(other % LANES)));
        let mut world = World { queue, model: Model::default(), now: Duration::ZERO };
        for step in steps {
            world.step(step)?;
            world.check()?;
        }
        world.finish()?;
    }
}
