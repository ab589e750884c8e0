//! Requests and their answers. A repeat of an event that is gone on the server creates it again, with its
//! count. If a create got no clear answer and the event exists at the next try, it is ours. Losses are logged
//! at most once in [`WARN_EVERY`].

use std::sync::Arc;
use std::time::Duration;

use super::record::{EventRequest, Record, RequestId, State, Told, Verb};
use super::{At, DropReason, LastError, RecorderMachine};

/// At most one warning about losses in this time.
pub const WARN_EVERY: Duration = Duration::from_secs(600);

/// What the server said to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// It is done.
    Done,
    /// The event to be patched is not there.
    NotFound,
    /// An event of this name is there already.
    Exists,
    /// It may be done later: the server failed, is overloaded or cannot be reached.
    Later {
        /// The wait that the server requests.
        after: Option<Duration>,
        /// What went wrong.
        why: String,
    },
    /// It will not be done.
    Refused {
        /// The server's word for it.
        word: String,
        /// What it says.
        why: String,
    },
}

/// A loss to be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Why something was dropped.
    pub reason: DropReason,
    /// What went wrong, and with which event.
    pub why: String,
    /// How many losses were not logged since the last warning.
    pub others: u64,
}

#[derive(Debug, Default)]
pub(super) struct Warnings {
    next: Option<Warning>,
    quiet_until: Duration,
    others: u64,
}

impl RecorderMachine {
    /// The next request to send. It must be answered by [`Self::handle_answer`].
    pub fn next_request(&mut self, at: At) -> Option<EventRequest> {
        self.look_at_series(at);
        if self.in_flight.len() >= self.config.at_once {
            return None;
        }
        let id = self.lines.pop(at.moment.now)?;
        self.in_flight.insert(id);
        self.records.get_mut(&id).map(|record| record.request(id))
    }

    /// When [`Self::next_request`] may return one without any event or answer before it. May be in the past.
    pub fn next_due(&self) -> Option<Duration> {
        let series = self.timers.first().filter(|_| !self.is_closed).map(|(at, _)| *at);
        self.lines.next_due().into_iter().chain(series).min()
    }

    /// Takes the answer to a request.
    pub fn handle_answer(&mut self, RequestId(id): RequestId, answer: Answer, at: At) {
        self.handle(id, answer, true, at);
    }

    /// `is_of_server`: a failure is the server's.
    fn handle(&mut self, id: u64, answer: Answer, is_of_server: bool, at: At) {
        let Some(record) = self.records.get_mut(&id) else { return };
        let State::InFlight { count, again } = record.state else { return };
        self.in_flight.remove(&id);
        record.state = State::Idle;
        let event = Arc::clone(&record.event);
        let namespace = &*event.regarding.namespace;
        self.lines.landed(namespace);
        match &answer {
            Answer::Later { after, .. } if is_of_server => self.lines.failed(namespace, *after, at.moment),
            Answer::Later { .. } => {}
            _ => self.lines.succeeded(namespace),
        }
        match answer {
            Answer::Done => self.told(id, count, again, at),
            Answer::NotFound if record.told.is_some() => {
                record.told = None;
                self.put_first(id);
            }
            Answer::Exists => match record.unclear {
                Some(found) => self.told(id, found, again || found < count, at),
                None => self.name_taken(id, again, at),
            },
            Answer::Later { why, .. } => self.failed(id, (count, again), why, at),
            Answer::NotFound => {
                self.refused(id, ("NotFound", "the server has no such namespace or kind"), again, at);
            }
            Answer::Refused { word, why } => self.refused(id, (&word, &why), again, at),
        }
        self.lines.tidy(namespace);
    }

    /// No request under way will be answered: all are sent again.
    pub fn reclaim(&mut self, at: At) {
        for id in self.in_flight.clone() {
            let why = "the actor that sent it has died".to_owned();
            self.handle(id, Answer::Later { after: None, why }, false, at);
        }
    }

    /// The warning to log, if there is one.
    pub fn take_warning(&mut self) -> Option<Warning> {
        self.warning.next.take()
    }

    pub(super) fn enqueue(&mut self, id: u64) {
        let Some(record) = self.records.get_mut(&id) else { return };
        match &mut record.state {
            State::InFlight { again, .. } => *again = true,
            State::Idle => {
                record.state = State::Waiting;
                self.lines.push(&record.event.regarding.namespace, id);
            }
            State::Waiting => {}
        }
    }

    fn put_first(&mut self, id: u64) {
        if let Some(record) = self.records.get_mut(&id) {
            record.state = State::Waiting;
            self.lines.push_first(&record.event.regarding.namespace, id);
        }
    }

    fn told(&mut self, id: u64, count: u32, again: bool, at: At) {
        let Some(record) = self.records.get_mut(&id) else { return };
        match record.told.replace(Told { count, at: at.moment.now }) {
            None => self.figures.created += 1,
            Some(_) => self.figures.patched += 1,
        }
        (record.tries, record.unclear) = (0, None);
        let again = again || (self.is_closed && record.untold() > 0);
        self.rest(id, again);
    }

    /// Another writer has this name.
    fn name_taken(&mut self, id: u64, again: bool, at: At) {
        let Some(event) = self.records.get(&id).map(|record| Arc::clone(&record.event)) else { return };
        let name = self.name(&event.regarding.name, at);
        let Some(record) = self.records.get_mut(&id) else { return };
        record.tries += 1;
        if record.tries >= self.config.tries {
            return self.refused(id, ("AlreadyExists", "an event of this name is there"), again, at);
        }
        record.name = name;
        self.put_first(id);
    }

    fn failed(&mut self, id: u64, (count, again): (u32, bool), why: String, at: At) {
        let Some(record) = self.records.get_mut(&id) else { return };
        record.tries += 1;
        if record.told.is_none() {
            record.unclear.get_or_insert(count);
        }
        let (gives_up, about) = (record.tries >= self.config.tries, about(record));
        if gives_up {
            record.tries = 0;
            self.figures.drop_one(DropReason::GaveUp);
            self.note_loss(DropReason::GaveUp, &format!("{about}: {why}"), at);
            // Events accepted since then have tries of their own.
            self.rest(id, again);
        } else {
            self.figures.retries += 1;
            self.figures.last_error = Some(LastError { text: format!("{about}: {why}"), wall: at.wall });
            self.enqueue(id);
        }
    }

    fn refused(&mut self, id: u64, (word, why): (&str, &str), again: bool, at: At) {
        let Some(record) = self.records.get_mut(&id) else { return };
        record.tries = 0;
        let about = about(record);
        self.figures.drop_one(DropReason::Refused);
        self.figures.refuse(word.to_owned());
        self.note_loss(DropReason::Refused, &format!("{about}: {why}"), at);
        self.rest(id, again);
    }

    fn rest(&mut self, id: u64, again: bool) {
        let is_known = self.records.get(&id).is_some_and(|record| record.is_known);
        if again {
            self.enqueue(id);
        } else if !is_known {
            self.records.remove(&id);
        }
    }

    pub(super) fn note_loss(&mut self, reason: DropReason, why: &str, at: At) {
        self.figures.last_error = Some(LastError { text: why.to_owned(), wall: at.wall });
        let warnings = &mut self.warning;
        if at.moment.now < warnings.quiet_until {
            warnings.others += 1;
            return;
        }
        warnings.quiet_until = at.moment.now.saturating_add(WARN_EVERY);
        let others = std::mem::take(&mut warnings.others);
        warnings.next = Some(Warning { reason, why: why.to_owned(), others });
    }
}

fn about(record: &Record) -> String {
    let verb = if record.told.is_some() { Verb::Patch } else { Verb::Create };
    let verb = if verb == Verb::Patch { "patch" } else { "create" };
    format!("cannot {verb} the event {} of {}", record.event.reason, record.event.regarding)
}
