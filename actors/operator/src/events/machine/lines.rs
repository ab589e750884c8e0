//! The events that wait, in a line for each namespace, so that one that fails holds up no other.
//!
//! Namespaces take turns. After a failure a namespace waits, longer with each further failure, and has one
//! request at a time until a success: it takes only one of the shared places.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use informer_core::backoff::{Backoff, BackoffPolicy};
use informer_core::reflector::Moment;

/// While more are due, [`NamespaceLines::next_due`] is in the past.
const MOST_DUE: usize = 250;

#[derive(Debug, Default)]
pub(super) struct NamespaceLines {
    by_namespace: BTreeMap<Arc<str>, NamespaceLine>,
    /// By turn.
    ready: BTreeMap<u64, Arc<str>>,
    /// Until when.
    held: BTreeSet<(Duration, Arc<str>)>,
    next_turn: u64,
    waiting: usize,
}

#[derive(Debug)]
struct NamespaceLine {
    waiting: VecDeque<u64>,
    in_flight: usize,
    hold: Option<Duration>,
    backoff: Backoff,
    turn: Option<u64>,
}

impl NamespaceLine {
    fn new() -> Self {
        let backoff = Backoff::new(BackoffPolicy::default());
        Self { waiting: VecDeque::new(), in_flight: 0, hold: None, backoff, turn: None }
    }

    fn fails(&self) -> bool {
        self.backoff.attempts() > 0
    }

    fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.in_flight == 0 && self.hold.is_none()
    }

    fn is_ready(&self) -> bool {
        !self.waiting.is_empty() && self.hold.is_none() && !(self.fails() && self.in_flight > 0)
    }
}

impl NamespaceLines {
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// A namespace that fails gets at most half of the places.
    pub(super) fn is_crowded(&self, namespace: &str, places: usize) -> bool {
        let line = self.by_namespace.get(namespace);
        line.is_some_and(|line| line.fails() && line.waiting.len() >= places.div_ceil(2))
    }

    pub(super) fn push(&mut self, namespace: &str, id: u64) {
        self.change(namespace, |line| line.waiting.push_back(id));
        self.waiting += 1;
    }

    pub(super) fn push_first(&mut self, namespace: &str, id: u64) {
        self.change(namespace, |line| line.waiting.push_front(id));
        self.waiting += 1;
    }

    /// In flight until [`Self::landed`].
    pub(super) fn pop(&mut self, now: Duration) -> Option<u64> {
        self.end_waits(now);
        let (_, namespace) = self.ready.pop_first()?;
        let id = self.change(&namespace, |line| {
            line.turn = None;
            line.in_flight += 1;
            line.waiting.pop_front()
        });
        self.waiting -= usize::from(id.is_some());
        id
    }

    /// [`Self::tidy`] must follow.
    pub(super) fn landed(&mut self, namespace: &str) {
        self.change(namespace, |line| line.in_flight = line.in_flight.saturating_sub(1));
    }

    /// `after` is the server's. A failure during a wait does not make it longer.
    pub(super) fn failed(&mut self, namespace: &str, after: Option<Duration>, moment: Moment) {
        let until = self.change(namespace, |line| {
            if line.hold.is_some() {
                return None;
            }
            let drawn = line.backoff.next_wait(moment.chance);
            let wait = after.map_or(drawn, |asked| asked.max(drawn));
            line.hold = Some(moment.now.saturating_add(wait));
            line.hold
        });
        self.held.extend(until.map(|until| (until, Arc::from(namespace))));
    }

    pub(super) fn succeeded(&mut self, namespace: &str) {
        self.change(namespace, |line| line.backoff.reset());
    }

    pub(super) fn tidy(&mut self, namespace: &str) {
        if self.by_namespace.get(namespace).is_some_and(NamespaceLine::is_over) {
            self.by_namespace.remove(namespace);
        }
    }

    pub(super) fn end_all_waits(&mut self) {
        self.held.clear();
        let namespaces: Vec<_> = self.by_namespace.keys().cloned().collect();
        for namespace in namespaces {
            self.change(&namespace, |line| {
                line.hold = None;
                line.backoff.reset();
            });
            self.tidy(&namespace);
        }
    }

    pub(super) fn next_due(&self) -> Option<Duration> {
        self.held.first().map(|(until, _)| *until)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &u64> {
        self.by_namespace.values().flat_map(|line| &line.waiting)
    }

    pub(super) fn check(&self, in_flight: usize) -> bool {
        let is_sound = |(name, line): (&Arc<str>, &NamespaceLine)| {
            line.is_ready() == line.turn.is_some()
                && line.turn.is_none_or(|turn| self.ready.get(&turn) == Some(name))
                && line.hold.is_none_or(|until| self.held.contains(&(until, Arc::clone(name))))
                && !line.is_over()
        };
        let turns = self.by_namespace.values().filter(|line| line.turn.is_some()).count();
        let holds = self.by_namespace.values().filter(|line| line.hold.is_some()).count();
        self.by_namespace.iter().all(is_sound)
            && (turns, holds) == (self.ready.len(), self.held.len())
            && self.by_namespace.values().map(|line| line.in_flight).sum::<usize>() == in_flight
            && self.ids().count() == self.waiting
    }

    fn end_waits(&mut self, now: Duration) {
        for _ in 0..MOST_DUE {
            let Some((until, namespace)) = self.held.first().cloned().filter(|(until, _)| *until <= now)
            else {
                return;
            };
            self.held.remove(&(until, Arc::clone(&namespace)));
            self.change(&namespace, |line| line.hold = None);
            self.tidy(&namespace);
        }
    }

    /// Also gives or takes the turn.
    fn change<R>(&mut self, namespace: &str, change: impl FnOnce(&mut NamespaceLine) -> R) -> R {
        let name = match self.by_namespace.get_key_value(namespace) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(namespace),
        };
        let line = self.by_namespace.entry(Arc::clone(&name)).or_insert_with(NamespaceLine::new);
        let result = change(line);
        match (line.is_ready(), line.turn) {
            (true, None) => {
                line.turn = Some(self.next_turn);
                self.ready.insert(self.next_turn, name);
                self.next_turn += 1;
            }
            (false, Some(turn)) => {
                line.turn = None;
                self.ready.remove(&turn);
            }
            _ => {}
        }
        result
    }
}
