//! Events about objects: which are sent, with which count, and when.
//!
//! [`RecorderMachine::check`] tests these invariants:
//! 1. An accepted event is sent, dropped with a counted reason, or still waits. The number that waits is
//!    bounded.
//! 2. An event has one request at a time; the next one contains all repeats since then.
//! 3. A request is retried a bounded number of times. If the server fails for a namespace, only that one
//!    waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::queue::machine::Bucket;
use event::{Identity, cut, name_of};
use informer_core::reflector::Moment;
use lines::NamespaceLines;
use record::{Record, State};
use series::{Lru, Similar};

pub use event::{COMBINED, Event, EventText, EventType, InvalidEvent, MOST_NOTE, MOST_WORD, Reference};
pub use record::{DropReason, EventRequest, LastError, RecorderFigures, Repeats, RequestId, Verb};
pub use sending::{Answer, WARN_EVERY, Warning};

mod event;
mod lines;
mod record;
mod sending;
mod series;

/// The settings of a recorder. The defaults are client-go's, except that of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderConfig {
    /// How repeats are sent.
    pub repeats: Repeats,
    /// How many events may wait for their request or its answer. 1,000.
    pub queue: usize,
    /// How many events, objects and groups of similar events are remembered, each. 4,096, and more than
    /// `queue`.
    pub cached: usize,
    /// How many requests are under way at the same time. 4.
    pub at_once: usize,
    /// How many requests the events of one object may cause at once. 25.
    pub burst: u32,
    /// After them, one more is allowed each time this has passed. 300 s.
    pub refill: Duration,
    /// The number of notes from which on similar events are combined. 10.
    pub combined: u32,
    /// Events are similar only if each comes within this time after the one before. 600 s.
    pub combined_within: Duration,
    /// How often a request is tried. 12.
    pub tries: u32,
    /// A series is over when no repeat has come for this long. 6 minutes.
    pub idle: Duration,
    /// How often a series that goes on is sent. 30 minutes.
    pub heartbeat: Duration,
}

impl Default for RecorderConfig {
    fn default() -> Self {
        Self {
            repeats: Repeats::Series,
            queue: 1_000,
            cached: 4_096,
            at_once: 4,
            burst: 25,
            refill: Duration::from_secs(300),
            combined: 10,
            combined_within: Duration::from_secs(600),
            tries: 12,
            idle: Duration::from_secs(6 * 60),
            heartbeat: Duration::from_secs(30 * 60),
        }
    }
}

/// When something happens: on the clock of the runtime, and as the time since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct At {
    /// On the clock of the runtime, with a random number.
    pub moment: Moment,
    /// Since 1970.
    pub wall: Duration,
}

/// What has become of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Emitted {
    /// It will be sent.
    Accepted,
    /// It is a repeat that is sent later, with others.
    Merged,
    /// It is not sent.
    Dropped(DropReason),
}

/// The recorder; the module's documentation describes it.
///
/// ```
/// # use informer_operator::events::machine::{At, Emitted, Event, EventText, EventType, RecorderMachine, RecorderConfig, Reference, Verb, Answer};
/// # use informer_core::reflector::Moment;
/// use std::time::Duration;
/// let mut recorder = RecorderMachine::new(RecorderConfig::default());
/// let at = At { moment: Moment { now: Duration::ZERO, chance: 0.0 }, wall: Duration::from_secs(1_700_000_000) };
/// let pod = Reference { kind: "Pod".into(), name: "web".into(), ..Reference::default() };
/// let text = EventText { reason: "Started", action: "Start", note: "it runs" };
/// let event = Event::new(pod, EventType::Normal, text);
/// assert_eq!(recorder.emit(event.clone(), &event.object_key(), at), Emitted::Accepted);
/// let request = recorder.next_request(at).expect("the event waits");
/// assert_eq!((request.verb, request.count), (Verb::Create, 1));
/// recorder.handle_answer(request.id, Answer::Done, at);
/// recorder.emit(event.clone(), &event.object_key(), at);
/// let request = recorder.next_request(at).expect("the repeat begins a series");
/// assert_eq!((request.verb, request.count), (Verb::Patch, 2));
/// ```
pub struct RecorderMachine {
    config: RecorderConfig,
    records: BTreeMap<u64, Record>,
    known: Lru<Arc<Identity>, u64>,
    similar: Similar,
    objects: Lru<String, Bucket>,
    lines: NamespaceLines,
    in_flight: BTreeSet<u64>,
    /// When each known series is handled.
    timers: BTreeSet<(Duration, u64)>,
    figures: RecorderFigures,
    warning: sending::Warnings,
    is_closed: bool,
    next_id: u64,
    last_stamp: u64,
}

impl RecorderMachine {
    /// An empty one. Numbers that cannot be are raised: each bound is at least one.
    pub fn new(config: RecorderConfig) -> Self {
        let queue = config.queue.max(1);
        let config = RecorderConfig {
            queue,
            cached: config.cached.max(queue + 1),
            at_once: config.at_once.max(1),
            tries: config.tries.max(1),
            ..config
        };
        let combined = usize::try_from(config.combined).unwrap_or(usize::MAX);
        Self {
            records: BTreeMap::new(),
            known: Lru::new(config.cached),
            similar: Similar::new(combined, config.combined_within, config.cached),
            objects: Lru::new(config.cached),
            lines: NamespaceLines::default(),
            in_flight: BTreeSet::new(),
            timers: BTreeSet::new(),
            figures: RecorderFigures::default(),
            warning: sending::Warnings::default(),
            is_closed: false,
            next_id: 0,
            last_stamp: 0,
            config,
        }
    }

    /// Takes an event. Events with the same `spam_key` share the tokens of the spam filter.
    pub fn emit(&mut self, event: Event, spam_key: &str, at: At) -> Emitted {
        self.figures.emitted += 1;
        let emitted = self.take(event, spam_key, at);
        match emitted {
            Emitted::Accepted => {}
            Emitted::Merged => self.figures.merged += 1,
            Emitted::Dropped(reason) => self.figures.drop_one(reason),
        }
        emitted
    }

    /// Decides all before any change: an event without room leaves no trace.
    fn take(&mut self, event: Event, spam_key: &str, at: At) -> Emitted {
        if self.is_closed {
            return Emitted::Dropped(DropReason::Closed);
        }
        let event = match event.checked() {
            Ok(event) => event,
            Err(why) => {
                self.note_loss(DropReason::Invalid, &why.to_string(), at);
                return Emitted::Dropped(DropReason::Invalid);
            }
        };
        let now = at.moment.now;
        let group = Arc::new(Identity::similar(&event));
        let is_combined = self.similar.is_combined(&group, &event.note, now);
        let identity = if is_combined { Arc::clone(&group) } else { Arc::new(group.with_note(&event.note)) };
        let record = self.known.peek(&identity).and_then(|id| self.records.get(id));
        let is_request =
            record.is_none_or(|known| known.wants(self.config.repeats) && !known.is_told_later());
        let is_in_flight = record.is_some_and(|known| matches!(known.state, State::InFlight { .. }));
        if is_request && !is_in_flight && self.unsent() >= self.config.queue {
            self.note_loss(DropReason::Full, "the queue of events is full", at);
            return Emitted::Dropped(DropReason::Full);
        }
        let namespace = &event.regarding.namespace;
        if is_request && !is_in_flight && self.lines.is_crowded(namespace, self.config.queue) {
            let why = format!("events of namespace {namespace:?} cannot be sent, and fill half of the queue");
            self.note_loss(DropReason::Full, &why, at);
            return Emitted::Dropped(DropReason::Full);
        }
        let may_send = !is_request || self.has_token(spam_key, now);
        self.similar.count(&group, &event.note, now);
        let note = if is_combined { format!("{COMBINED}{}", event.note) } else { event.note.clone() };
        let id = match self.known.get(&identity).copied() {
            Some(id) => id,
            None => self.remember(identity, event, at),
        };
        self.repeat(id, &note, at);
        match (is_request, may_send) {
            (false, _) => return Emitted::Merged,
            (true, false) => return Emitted::Dropped(DropReason::Spam),
            (true, true) => self.enqueue(id),
        }
        Emitted::Accepted
    }

    fn repeat(&mut self, id: u64, note: &str, at: At) {
        let Some(record) = self.records.get_mut(&id) else { return };
        record.count = record.count.saturating_add(1);
        (record.last, record.seen) = (record.last.max(at.wall), at.moment.now);
        // A note on the server can be changed only with its count.
        if self.config.repeats == Repeats::Count || record.told.is_none() {
            cut(note, MOST_NOTE).clone_into(&mut record.note);
        }
    }

    fn remember(&mut self, identity: Arc<Identity>, event: Event, at: At) -> u64 {
        let (id, name) = (self.next_id, self.name(&event.regarding.name, at));
        self.next_id += 1;
        let is_series = self.config.repeats == Repeats::Series;
        let timer = is_series.then(|| at.moment.now.saturating_add(self.config.idle));
        let record = Record {
            identity: Arc::clone(&identity),
            is_known: true,
            name,
            event: Arc::new(event),
            note: String::new(),
            first: at.wall,
            last: at.wall,
            seen: at.moment.now,
            count: 0,
            told: None,
            unclear: None,
            tries: 0,
            state: State::Idle,
            timer,
        };
        let records = &self.records;
        let may_go = |id: &u64| records.get(id).is_none_or(Record::is_idle);
        let gone = self.known.insert(identity, id, may_go);
        self.records.insert(id, record);
        self.timers.extend(timer.map(|timer| (timer, id)));
        if let Some(gone) = gone {
            self.forget(gone, at);
        }
        id
    }

    /// The random part separates recorders that emit at the same time.
    fn name(&mut self, object: &str, at: At) -> String {
        let nanos = u64::try_from(at.wall.as_nanos()).unwrap_or(u64::MAX / 2);
        let drawn = nanos.saturating_add((at.moment.chance.clamp(0.0, 1.0) * 1_000_000.0) as u64);
        self.last_stamp = drawn.max(self.last_stamp.saturating_add(1));
        name_of(object, self.last_stamp)
    }

    fn has_token(&mut self, spam_key: &str, now: Duration) -> bool {
        let key = spam_key.to_owned();
        if self.objects.get(&key).is_none() {
            let full = Bucket::new(self.config.refill, self.config.burst);
            self.objects.insert(key.clone(), full, |_| true);
        }
        self.objects.get(&key).is_some_and(|bucket| bucket.try_take(now))
    }

    /// How many events wait for their request or its answer.
    pub fn unsent(&self) -> usize {
        self.lines.len() + self.in_flight.len()
    }

    /// Refuses events from here on. The repeats of series that were not sent yet are sent now, without a
    /// wait.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.lines.end_all_waits();
        self.tell_all();
    }

    /// What is measured.
    pub fn figures(&self) -> RecorderFigures {
        RecorderFigures {
            waiting: self.lines.len(),
            in_flight: self.in_flight.len(),
            known: self.known.len(),
            ..self.figures.clone()
        }
    }

    /// A recorder with the same configuration and figures that remembers nothing, for one whose check fails.
    /// What waited is counted as forgotten.
    pub fn emptied(&self) -> Self {
        let mut empty = Self::new(self.config.clone());
        empty.figures = self.figures.clone();
        (0..self.unsent()).for_each(|_| empty.figures.drop_one(DropReason::Forgotten));
        (empty.is_closed, empty.last_stamp, empty.next_id) = (self.is_closed, self.last_stamp, self.next_id);
        empty
    }
}

informer_core::debug_as!(RecorderMachine, self, figures = self.figures());

impl RecorderMachine {
    /// Tests the invariants.
    ///
    /// # Errors
    /// Names the one that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let is = |id: &u64, wanted: fn(State) -> bool| {
            self.records.get(id).is_some_and(|record| wanted(record.state))
        };
        let count =
            |wanted: fn(State) -> bool| self.records.values().filter(|record| wanted(record.state)).count();
        let waits = |state| state == State::Waiting;
        let flies = |state| matches!(state, State::InFlight { .. });
        let known = self.records.values().filter(|record| record.is_known).count();
        let is_timed = |(_, id): &(_, u64)| self.records.get(id).is_some_and(|record| record.is_known);
        let timers = if self.config.repeats == Repeats::Series { known } else { 0 };
        let rules = [
            (self.lines.ids().all(|id| is(id, waits)), "what waits is marked"),
            (self.in_flight.iter().all(|id| is(id, flies)), "what is in flight is marked"),
            (count(waits) == self.lines.len(), "each waits once"),
            (count(flies) == self.in_flight.len(), "each is in flight once"),
            (self.is_closed || self.unsent() <= self.config.queue, "the queue is bounded"),
            (self.in_flight.len() <= self.config.at_once, "requests are bounded"),
            (self.lines.check(self.in_flight.len()), "the lines of the namespaces are in order"),
            (self.known.len() <= self.config.cached, "what is known is bounded"),
            (known == self.known.len(), "each known event is found"),
            (self.known.values().all(|id| self.records.contains_key(id)), "what is found is there"),
            (self.timers.len() == timers && self.timers.iter().all(is_timed), "each has a timer"),
            (
                self.records.values().all(|record| record.told.is_none_or(|told| told.count <= record.count)),
                "no more is told than was",
            ),
            (
                self.records.values().all(|record| record.is_known || !record.is_idle()),
                "nothing idle is unknown",
            ),
            (self.known.check() && self.objects.check() && self.similar.check(), "the caches are in order"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(rule))
    }
}

#[cfg(test)]
mod tests;
