//! Random scripts: the invariants of the machine hold for every answer of a source, and a healthy source leads to
//! `Streaming`.
//!
//! Answers "is there an order of answers that breaks a promise?". A `Source` keeps the open requests and answers them
//! at random. After every effect it compares the machine with its own model, which shares no code with the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::script::{error, frame, object};
use crate::delta::{Cause, ListPart};
use crate::request::{AskedVersion, WatchRequest};

const ERRORS: [&str; 16] = [
    "410",
    "too-large",
    "429",
    "429:3",
    "401",
    "403",
    "404",
    "selector",
    "unsupported",
    "unreadable",
    "protocol",
    "timeout",
    "cut",
    "500",
    "422",
    "own",
];

/// One random step: which answer, which number in it, and the machine's own random number.
type Dice = (u8, u8, f64);

struct Open {
    initial: bool,
    head: bool,
    /// The net result of the initial events so far.
    content: BTreeMap<String, u64>,
}

struct Source {
    machine: ListWatchMachine<()>,
    at: Moment,
    watches: BTreeMap<StreamId, Open>,
    /// The objects received of the list under way.
    list: Option<usize>,
    question: bool,
    delivered: Option<u64>,
    /// The number of objects of a list or watch-list that has just become whole.
    whole: Option<usize>,
    /// The newest answer said that the version is expired or too large, and since then the machine has waited for
    /// nothing but the list budget, and has asked nothing.
    refused: bool,
    rewinds: u64,
    budget_taken: bool,
    /// Whether a list or watch-list was under way when this step began.
    listing_was_open: bool,
    /// The answer to a list or watch-list makes the machine ask for it in another way, without a wait.
    starts_over: bool,
    /// When the last relist without a wait began, and how many had begun and how many had failed by then.
    relisted: (Option<Duration>, u64, u64),
}

fn number(version: &ResourceVersion) -> u64 {
    version.to_string().parse().expect("small versions")
}

impl Source {
    fn new(watch_list: bool, page_size: Option<u32>, resume: Option<u64>) -> Self {
        let config = ReflectorConfig { watch_list, page_size, ..ReflectorConfig::new("pods") };
        let machine = ListWatchMachine::new(config, resume.and_then(ResourceVersion::from_number));
        let at = Moment { now: Duration::ZERO, chance: 0.0 };
        Self {
            machine,
            at,
            watches: BTreeMap::new(),
            list: None,
            question: false,
            delivered: resume,
            whole: None,
            refused: false,
            rewinds: 0,
            budget_taken: false,
            listing_was_open: false,
            starts_over: false,
            relisted: (None, 0, 0),
        }
    }

    /// A version near the newest: sometimes below it, mostly above.
    fn near(&self, dice: u8) -> u64 {
        (self.delivered.unwrap_or(50) + u64::from(dice % 8)).saturating_sub(2).max(1)
    }

    fn step(&mut self, (kind, value, chance): Dice) {
        self.at.chance = chance;
        self.whole = None;
        self.listing_was_open = self.machine.needs_list_permit();
        let stream = self.watches.keys().nth(usize::from(value) % self.watches.len().max(1)).copied();
        match (self.list.is_some(), stream) {
            _ if kind.is_multiple_of(8) => self.pass(value),
            _ if kind.is_multiple_of(11) => self.budget(value.is_multiple_of(2)),
            _ if kind % 8 == 1 && self.question => self.answer(value),
            (true, _) => self.answer_list(kind, value),
            (false, Some(stream)) if self.machine.wants_watch_input(stream) => self.feed(stream, kind, value),
            (false, Some(_)) if self.question => self.answer(value),
            _ => self.pass(255),
        }
        self.drain();
    }

    /// The list budget is used up, or has room.
    fn budget(&mut self, taken: bool) {
        self.budget_taken = taken;
        if !taken {
            self.machine.handle_list_permit(self.at);
        }
    }

    /// Time passes: to the next timer, or a part of the way.
    fn pass(&mut self, value: u8) {
        match self.machine.poll_timeout() {
            Some(due) if value >= 64 => self.at.now = self.at.now.max(due),
            Some(due) => self.at.now += due.saturating_sub(self.at.now) / 3,
            None => self.at.now += Duration::from_secs(u64::from(value)),
        }
        self.machine.handle_timeout(self.at);
    }

    fn answer(&mut self, value: u8) {
        self.question = false;
        let answer = match value {
            0..64 => Err(error(ERRORS[usize::from(value) % ERRORS.len()])),
            _ => Ok(version(self.near(value))),
        };
        self.machine.handle_version(answer, self.at);
    }

    fn answer_list(&mut self, kind: u8, value: u8) {
        let received = self.list.expect("a list is open");
        match kind % 6 {
            0 | 1 => {
                self.list = Some(received + 1);
                let part = ListPart::Objects(vec![object(&format!("o{received}@1"))]);
                self.machine.handle_list_part(part, self.at);
            }
            2 => self.machine.handle_list_part(ListPart::Unreadable("garbage".into()), self.at),
            3 => {
                self.list = None;
                self.fail(value, |source, error| source.machine.handle_list_end(Err(error), source.at));
            }
            _ => {
                let token = value.is_multiple_of(4).then(|| format!("after-{received}-{value}"));
                self.whole = token.is_none().then_some(received);
                let end = ListPart::End { version: version(self.near(value)), token };
                self.machine.handle_list_part(end, self.at);
                self.list = None;
                self.machine.handle_list_end(Ok(()), self.at);
            }
        }
    }

    fn fail(&mut self, value: u8, report: impl FnOnce(&mut Self, ListWatchError)) {
        let error = error(ERRORS[usize::from(value) % ERRORS.len()]);
        self.refused = matches!(error, ListWatchError::Expired(_) | ListWatchError::TooLargeVersion(_));
        let other_way = matches!(
            error,
            ListWatchError::WatchListUnsupported(_) | ListWatchError::Status { code: 400 | 422, .. }
        );
        self.starts_over |= self.listing_was_open && (self.refused || other_way);
        report(self, error);
    }

    fn feed(&mut self, stream: StreamId, kind: u8, value: u8) {
        let near = self.near(value);
        let open = self.watches.get_mut(&stream).expect("fed streams are open");
        let was_head = std::mem::replace(&mut open.head, true);
        match kind % 7 {
            _ if !was_head && kind % 7 < 5 => self.machine.handle_watch_parts(stream, Vec::new(), self.at),
            0 => self.end(stream, |source| source.machine.handle_watch_end(stream, Ok(()), source.at)),
            1 => self.end(stream, |source| {
                source.fail(value, |source, error| {
                    source.machine.handle_watch_end(stream, Err(error), source.at);
                });
            }),
            2 => {
                self.whole = open.initial.then_some(open.content.len());
                open.initial = false;
                self.frames(stream, &format!("*{near}end"));
            }
            3 if value.is_multiple_of(3) => {
                open.content.remove(&format!("o{}", value % 5));
                self.frames(stream, &format!("-o{}@{near}", value % 5));
            }
            _ => {
                open.content.insert(format!("o{}", value % 5), near);
                self.frames(stream, &format!("o{}@{near}", value % 5));
            }
        }
    }

    fn frames(&mut self, stream: StreamId, item: &str) {
        self.machine.handle_watch_parts(stream, vec![frame(item)], self.at);
    }

    fn end(&mut self, stream: StreamId, report: impl FnOnce(&mut Self)) {
        self.watches.remove(&stream);
        report(self);
    }

    /// Takes the effects of the machine, and checks that each is allowed.
    fn drain(&mut self) {
        while let Some(effect) = self.machine.poll_effect() {
            match effect {
                Effect::AcquireListPermit if self.budget_taken => {}
                Effect::AcquireListPermit => self.machine.handle_list_permit(self.at),
                Effect::List { request, everything } => self.list_asked(&request, everything),
                Effect::Watch { stream, request, .. } => self.watch_asked(stream, &request),
                Effect::Close(stream) => {
                    assert!(self.watches.remove(&stream).is_some(), "closed what is not open");
                }
                Effect::CloseList => assert!(self.list.take().is_some(), "closed no list"),
                Effect::Yield => {}
                Effect::AskVersion(_) => self.question = true,
                Effect::Deliver(Delivery::Replace(replacement)) => self.replaced(&replacement),
                Effect::Deliver(Delivery::Delta(parts)) => self.moved(&parts),
            }
        }
        if let Phase::Waiting { until, .. } = self.machine.phase {
            let wait = until.saturating_sub(self.at.now);
            self.refused = false;
            assert!(wait <= Duration::from_secs(60), "waits {wait:?}");
            assert!(self.list.is_none() && self.watches.is_empty(), "waits with something open");
        }
        assert_eq!(self.machine.resource_version().map(number), self.delivered);
        let open = self.list.is_some() || self.watches.values().any(|open| open.initial);
        assert!(self.machine.needs_list_permit() || !open, "a list without a permit");
    }

    fn list_asked(&mut self, request: &crate::request::ListRequest, everything: bool) {
        assert!(self.watches.is_empty() && self.list.is_none(), "a list beside something else");
        if request.token.is_none() {
            let rewinding = self.machine.counters().rewinds > self.rewinds;
            assert!(everything || !rewinding);
            self.version_asked(&request.version, rewinding);
            self.relist_begun();
            self.refused = false;
            self.list = Some(0);
        } else {
            self.list = Some(self.machine_received());
        }
    }

    fn machine_received(&self) -> usize {
        let SourceState::Listing { received } = self.machine.state() else {
            panic!("pages while not listing")
        };
        usize::try_from(*received).expect("few objects")
    }

    fn watch_asked(&mut self, stream: StreamId, request: &WatchRequest) {
        assert!(self.list.is_none(), "a watch beside a list");
        assert!(request.timeout >= Duration::from_secs(300) && request.timeout <= Duration::from_secs(600));
        if request.initial_events {
            assert!(self.watches.is_empty());
            let first = self.delivered.is_none();
            self.version_asked(&request.version, first);
            self.relist_begun();
            self.refused = false;
        } else {
            let renewal = self.watches.values().all(|open| open.head && !open.initial);
            assert!(renewal && self.watches.len() <= 1, "two watches and no renewal");
            assert_eq!(request.version.version().map(number), self.delivered);
        }
        let open = Open { initial: request.initial_events, head: false, content: BTreeMap::new() };
        self.watches.insert(stream, open);
    }

    /// Relists without a wait are spaced, except rewinds and lists that start over. Relists after a failure have
    /// waited.
    fn relist_begun(&mut self) {
        let counters = self.machine.counters();
        let by = &counters.relists_by;
        let begun = by.expired + by.unreadable + by.stale + by.rewind;
        let (last, begun_before, failures) = self.relisted;
        if begun == begun_before {
            return;
        }
        if counters.rewinds == self.rewinds && counters.failures == failures && !self.starts_over {
            let since = last.map(|last| self.at.now - last);
            assert!(since.is_none_or(|since| since >= Duration::from_secs(1)), "again after {since:?}");
        }
        self.relisted = (Some(self.at.now), begun, counters.failures);
        self.starts_over = false;
    }

    fn version_asked(&self, asked: &AskedVersion, may_be_latest: bool) {
        match asked {
            AskedVersion::Latest => assert!(may_be_latest || self.refused, "asked at the latest version"),
            AskedVersion::Any => assert_eq!(self.delivered, None, "asked at version 0"),
            AskedVersion::From(version) => assert_eq!(Some(number(version)), self.delivered),
        }
    }

    fn replaced(&mut self, replacement: &crate::delta::Replacement<()>) {
        let keys: BTreeSet<_> = replacement.objects.iter().map(|object| object.key().clone()).collect();
        assert_eq!(Some(keys.len()), self.whole.take(), "not the whole of it");
        let version = number(&replacement.version);
        match self.delivered {
            None => assert_eq!(replacement.cause, Cause::InitialList),
            Some(before) if version < before => assert_eq!(replacement.cause, Cause::Rewind),
            Some(_) => assert!(matches!(replacement.cause, Cause::Relist | Cause::Rewind)),
        }
        if replacement.cause == Cause::Rewind {
            assert!(self.machine.counters().rewinds > self.rewinds);
        }
        self.rewinds = self.machine.counters().rewinds;
        self.delivered = Some(version);
    }

    fn moved(&mut self, parts: &[WatchPart<()>]) {
        assert!(!parts.is_empty() && !self.question, "delivered before the answer");
        for part in parts {
            let version = number(part.version());
            assert!(Some(version) >= self.delivered, "went back");
            self.delivered = Some(version);
        }
    }

    /// A healthy server: it answers every open request without an error.
    fn recover(&mut self) {
        self.budget(false);
        self.drain();
        for _ in 0..50 {
            self.whole = None;
            let newest = version(self.delivered.unwrap_or(1));
            if matches!(self.machine.state(), SourceState::Streaming) && self.list.is_none() && !self.question
            {
                return;
            }
            if self.question {
                self.question = false;
                self.machine.handle_version(Ok(newest), self.at);
            } else if let Some(received) = self.list.take() {
                self.whole = Some(received);
                self.machine.handle_list_part(ListPart::End { version: newest, token: None }, self.at);
                self.machine.handle_list_end(Ok(()), self.at);
            } else if let Some((stream, open)) =
                self.watches.iter_mut().rfind(|(_, open)| open.initial || !open.head)
            {
                let (stream, initial) = (*stream, std::mem::take(&mut open.initial));
                open.head = true;
                self.whole = initial.then_some(open.content.len());
                let parts = if initial { vec![frame(&format!("*{newest}end"))] } else { Vec::new() };
                self.machine.handle_watch_parts(stream, parts, self.at);
            } else {
                self.pass(255);
            }
            self.drain();
        }
        panic!("a healthy server did not lead to Streaming: {:?}", self.machine);
    }
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_source_answers_the_promises_hold_and_a_healthy_one_leads_to_streaming(
        watch_list in any::<bool>(),
        page_size in prop::option::of(1_u32..5),
        resume in prop::option::of(5_u64..50),
        script in prop::collection::vec((any::<u8>(), any::<u8>(), 0.0_f64..1.0), 0..120),
    ) {
        let mut source = Source::new(watch_list, page_size, resume);
        source.machine.start();
        source.drain();
        for dice in script {
            source.step(dice);
        }
        source.recover();
    }
}
