//! The naive queue: keys in plain lists, searched from their beginning.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::LANES;
use crate::queue::machine::{MOST_PASSED_OVER, MOST_PERIODS, MOST_TURNS, Priority};

/// A key in a line.
#[derive(Debug, Clone)]
pub(super) struct Waits {
    pub(super) key: u8,
    pub(super) since: Duration,
    /// Turns that may pass until it has to be served.
    pub(super) turns_left: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Runs {
    pub(super) priority: Priority,
    pub(super) since: Duration,
    pub(super) again: Option<(Priority, Duration)>,
    pub(super) note: Vec<u64>,
}

/// By priority, the lowest first: lanes in the order of their turns, each with its keys.
pub(super) type Lines = [VecDeque<(u8, VecDeque<Waits>)>; 3];

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) lines: Lines,
    pub(super) passed_over: [u32; 3],
    pub(super) runs: BTreeMap<u8, Runs>,
    pub(super) delays: BTreeMap<u8, (Duration, Priority)>,
    /// Until when a postponed key is put off at most.
    pub(super) latest: BTreeMap<u8, Duration>,
    pub(super) retrying: BTreeSet<u8>,
    /// Whose delayed add only failures have led to.
    pub(super) only_retried: BTreeSet<u8>,
    /// What is handed out with a key next, and what came with its delayed add.
    pub(super) notes: BTreeMap<u8, Vec<u64>>,
    pub(super) delayed_notes: BTreeMap<u8, Vec<u64>>,
    pub(super) is_shut_down: bool,
    pub(super) is_forced: bool,
}

impl Model {
    pub(super) fn len(&self) -> usize {
        self.lines.iter().flatten().map(|(_, line)| line.len()).sum()
    }

    pub(super) fn push(&mut self, key: u8, priority: Priority, since: Duration) {
        let lanes = &mut self.lines[priority as usize];
        let lane = key % LANES;
        if !lanes.iter().any(|(other, _)| *other == lane) {
            lanes.push_back((lane, VecDeque::new()));
        }
        let (_, line) = lanes.iter_mut().find(|(other, _)| *other == lane).expect("it was put in");
        let turns_left = MOST_TURNS * u32::from(LANES) * (u32::try_from(line.len()).expect("few keys") + 1);
        line.push_back(Waits { key, since, turns_left });
    }

    /// Takes a key out of its line, if it waits there.
    pub(super) fn pull(&mut self, key: u8, is_below: usize) -> Option<(Waits, bool)> {
        for (class, lanes) in self.lines.iter_mut().enumerate() {
            for at in 0..lanes.len() {
                let Some(place) = lanes[at].1.iter().position(|waits| waits.key == key) else { continue };
                if class >= is_below {
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

    pub(super) fn add(&mut self, key: u8, priority: Priority, now: Duration) {
        if let Some(runs) = self.runs.get_mut(&key) {
            let (former, since) = runs.again.unwrap_or((priority, now));
            runs.again = Some((former.max(priority), since));
            return;
        }
        match self.pull(key, priority as usize) {
            None => self.push(key, priority, now),
            Some((waits, true)) => self.push(key, priority, waits.since),
            Some((_, false)) => {}
        }
    }

    pub(super) fn add_noted(&mut self, key: u8, (priority, note): (Priority, u64), now: Duration) {
        self.add(key, priority, now);
        self.notes.entry(key).or_default().push(note);
    }

    pub(super) fn add_after(&mut self, key: u8, delay: Duration, noted: (Priority, u64), now: Duration) {
        if delay.is_zero() {
            return self.add_noted(key, noted, now);
        }
        if let Some(latest) = self.latest.get_mut(&key) {
            *latest = (now + delay).min(*latest);
        }
        let due = self.delays.get(&key).map_or(now + delay, |(former, _)| (now + delay).min(*former));
        self.set_delay(key, due, noted);
    }

    pub(super) fn postpone(&mut self, key: u8, quiet: Duration, noted: (Priority, u64), now: Duration) {
        let is_waiting =
            self.lines.iter().flatten().any(|(_, line)| line.iter().any(|waits| waits.key == key));
        if quiet.is_zero() || is_waiting {
            return self.add_noted(key, noted, now);
        }
        let asked = self.delays.get(&key).map_or(Duration::MAX, |(due, _)| *due);
        let latest = *self.latest.entry(key).or_insert_with(|| (now + quiet * MOST_PERIODS).min(asked));
        self.set_delay(key, (now + quiet).min(latest), noted);
    }

    pub(super) fn set_delay(&mut self, key: u8, due: Duration, (priority, note): (Priority, u64)) {
        self.only_retried.remove(&key);
        let former = self.delays.get(&key).map_or(priority, |(_, former)| *former);
        self.delays.insert(key, (due, former.max(priority)));
        self.delayed_notes.entry(key).or_default().push(note);
    }

    pub(super) fn discard(&mut self, key: u8) -> bool {
        if self.runs.contains_key(&key) {
            return false;
        }
        self.pull(key, Priority::ALL.len());
        self.delays.remove(&key);
        self.latest.remove(&key);
        self.retrying.remove(&key);
        self.only_retried.remove(&key);
        self.notes.remove(&key);
        self.delayed_notes.remove(&key);
        true
    }

    pub(super) fn take(&mut self, now: Duration) -> Option<(u8, Priority, Duration, Vec<u64>)> {
        let mut due: Vec<_> = self.delays.iter().filter(|(_, (due, _))| *due <= now).collect();
        due.sort_by_key(|(_, (due, _))| *due);
        let due: Vec<_> = due.into_iter().map(|(key, (due, priority))| (*key, *due, *priority)).collect();
        for (key, due, priority) in due {
            self.delays.remove(&key);
            self.latest.remove(&key);
            self.retrying.remove(&key);
            self.only_retried.remove(&key);
            self.add(key, priority, due);
            let noted = self.delayed_notes.remove(&key).unwrap_or_default();
            self.notes.entry(key).or_default().extend(noted);
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
        let note = self.notes.remove(&waits.key).unwrap_or_default();
        self.runs.insert(waits.key, Runs { priority, since: now, again: None, note: note.clone() });
        Some((waits.key, priority, now - waits.since, note))
    }

    /// A key that is being processed is in order: it is not tried again.
    pub(super) fn in_order(&mut self, key: u8) {
        if self.runs.contains_key(&key) && self.only_retried.remove(&key) {
            self.delays.remove(&key);
            self.delayed_notes.remove(&key);
        }
    }

    /// A failure leads to this delayed add.
    pub(super) fn retry_after(&mut self, key: u8, delay: Duration, noted: (Priority, u64), now: Duration) {
        let is_retry = !self.delays.contains_key(&key) || self.only_retried.contains(&key);
        self.add_after(key, delay, noted, now);
        self.retrying.insert(key);
        if is_retry {
            self.only_retried.insert(key);
        }
    }

    pub(super) fn done(&mut self, key: u8) -> bool {
        let Some(runs) = self.runs.remove(&key) else { return false };
        self.retrying.remove(&key);
        if let Some((priority, since)) = runs.again {
            self.push(key, priority, since);
        }
        true
    }

    pub(super) fn shut_down(&mut self) {
        self.is_shut_down = true;
        self.delays.clear();
        self.latest.clear();
        self.delayed_notes.clear();
        self.retrying.clear();
        self.only_retried.clear();
    }
}
