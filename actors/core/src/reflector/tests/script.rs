//! Runs a script of events against the machine and compares its effects, line by line.
//!
//! Answers "does the machine ask for exactly these effects?". Each script is run twice, with the smallest and the
//! largest random number, so `WAIT 0.8..1.6` proves both ends of the range.
//!
//! Events: `start`, `pass SECONDS` (timers fire on the way), `busy SECONDS` (none does), `wait` (until the
//! next timer), `full SECONDS` (the queue takes the next delivery so late), `budget taken|free` (free at first: a permit is given when it is asked for),
//! `list ITEMS [end=V [next=TOKEN]]`, `list-ends`, `list-fails ERROR`, `head`, `frames ITEMS`, `ends`,
//! `breaks ERROR` (each with `stream=N`, by default the newest), `version V`, `version-fails ERROR`.
//! Checks: `says LEVEL WORDS` (the next line for the log above debug), `silent` (there is none), `notes WORDS` (a
//! debug line since the last such check), `state ...`, `count NAME=N ...`, `newest V`, `error WORDS`, `reads yes|no`,
//! `permit needed|free`. Items: `nothing` a part without objects, `a@3` an object or ADDED, `-a@3` DELETED, `!a@3` set
//! aside, `!-a@3` DELETED and undecoded, `*3` a bookmark, `*3end` the one that ends initial events, `?` unreadable.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use crate::delta::{ListPart, Replacement, Undecodable, listed_bytes};
use crate::meta::{Meta, Object, ObjectKey, SourceId, Uid};

/// The machine of the tests: lists and watches, no watch-lists.
pub(super) fn lists() -> ReflectorConfig {
    ReflectorConfig { watch_list: false, ..ReflectorConfig::new("pods") }
}

/// The machine with its defaults: watch-lists first.
pub(super) fn watch_lists() -> ReflectorConfig {
    ReflectorConfig::new("pods")
}

/// Runs the script on a machine that never delivered anything.
pub(super) fn check(config: &ReflectorConfig, script: &str) {
    for chance in [0.0, 1.0] {
        Script::new(config.clone(), None, chance).run(script);
    }
}

/// Runs the script on a machine that goes on from version 10.
pub(super) fn check_resumed(config: &ReflectorConfig, script: &str) {
    for chance in [0.0, 1.0] {
        Script::new(config.clone(), Some(version("10")), chance).run(script);
    }
}

pub(super) fn version(text: &str) -> ResourceVersion {
    text.parse().expect("tests use decimal versions")
}

struct Script {
    machine: ListWatchMachine<()>,
    at: Moment,
    newest_stream: u32,
    waits_until: Option<Duration>,
    budget_free: bool,
    permit_asked: bool,
    /// How long the next delivery waits for a full queue.
    queue_wait: Duration,
    /// Lines for the log that no check has looked at: above debug, and debug.
    log: (VecDeque<String>, Vec<String>),
}

impl Script {
    fn new(config: ReflectorConfig, resume: Option<ResourceVersion>, chance: f64) -> Self {
        let at = Moment { now: Duration::from_secs(1_000), chance };
        let machine = ListWatchMachine::new(config, resume);
        Self {
            machine,
            at,
            newest_stream: 0,
            waits_until: None,
            budget_free: true,
            permit_asked: false,
            queue_wait: Duration::ZERO,
            log: Default::default(),
        }
    }

    fn run(mut self, script: &str) {
        let lines: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let mut rest = lines.as_slice();
        while let Some((happening, after)) = rest.split_first() {
            let effects = after.iter().take_while(|line| line.starts_with('>')).count();
            let expected: Vec<&str> = after[..effects].iter().map(|line| line[1..].trim()).collect();
            let mut done = Vec::new();
            self.happen(happening, &mut done);
            self.drain(&mut done);
            let equal = done.len() == expected.len()
                && done.iter().zip(&expected).all(|(done, expected)| self.is_as(done, expected));
            assert!(equal, "after `{happening}`\n  expected {expected:#?}\n  but {done:#?}\nin{script}");
            rest = &after[effects..];
        }
    }

    /// Whether an effect is the expected one; of a range, the end that belongs to this run's chance.
    fn is_as(&self, done: &str, expected: &str) -> bool {
        let low = self.at.chance == 0.0;
        let mut words = String::new();
        for word in expected.split(' ') {
            let word = word.split_once("..").map_or(word, |(least, most)| if low { least } else { most });
            let _ = write!(words, "{}{word}", if words.is_empty() { "" } else { " " });
        }
        done == words
    }

    fn happen(&mut self, line: &str, done: &mut Vec<String>) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let stream = rest.split(' ').find_map(|word| word.strip_prefix("stream="));
        let stream = StreamId(stream.map_or(self.newest_stream, |id| id.parse().unwrap()));
        let items = rest.split(' ').filter(|word| !word.is_empty() && !word.contains('='));
        let at = self.at;
        match word {
            "start" => self.machine.start(),
            "floor" => self.machine.not_older_than(Some(version(rest))),
            "budget" => self.budget_free = rest == "free",
            "full" => self.queue_wait = Duration::from_secs_f64(rest.parse().unwrap()),
            "busy" => self.at.now += Duration::from_secs_f64(rest.parse().unwrap()),
            "pass" => self.pass(Duration::from_secs_f64(rest.parse().unwrap()), done),
            "wait" => {
                self.at.now = self.machine.poll_timeout().expect("something is waited for");
                self.machine.handle_timeout(self.at);
            }
            "list" => self.list(rest),
            "list-ends" => self.machine.handle_list_end(Ok(()), at),
            "list-fails" => self.machine.handle_list_end(Err(error(rest)), at),
            "head" => self.machine.handle_watch_parts(stream, Vec::new(), at),
            "frames" => self.machine.handle_watch_parts(stream, items.map(frame).collect(), at),
            "ends" => self.machine.handle_watch_end(stream, Ok(()), at),
            "breaks" => {
                let what = items.into_iter().next_back().expect("how it breaks");
                self.machine.handle_watch_end(stream, Err(error(what)), at);
            }
            "says" => {
                let line = self.log.0.pop_front().unwrap_or_default();
                assert!(self.is_as(&line, rest), "said `{line}`, not `{rest}`");
            }
            "silent" => assert_eq!(self.log.0, [""; 0]),
            "notes" => {
                let noted = std::mem::take(&mut self.log.1);
                assert!(noted.iter().any(|line| line == rest), "{noted:?}");
            }
            "version" => self.machine.handle_version(Ok(version(rest)), at),
            "version-fails" => self.machine.handle_version(Err(error(rest)), at),
            _ => self.look(word, rest, stream),
        }
    }

    fn look(&self, word: &str, rest: &str, stream: StreamId) {
        let machine = &self.machine;
        match word {
            "state" => assert_eq!(state_text(machine.state()), rest),
            "permit" => assert_eq!(if machine.needs_list_permit() { "needed" } else { "free" }, rest),
            "newest" => {
                assert_eq!(machine.resource_version().map(ToString::to_string).as_deref(), Some(rest))
            }
            "reads" => {
                let wants = machine.wants_watch_input(stream);
                assert_eq!(if wants { "yes" } else { "no" }, rest.split(' ').next().unwrap());
            }
            "silent-for" => {
                let silence = self.at.now - machine.last_frame_at().expect("something came");
                assert_eq!(silence, Duration::from_secs_f64(rest.parse().unwrap()));
            }
            "error" => {
                let error = machine.last_error().expect("an error").to_string();
                assert!(error.contains(rest), "{error}");
            }
            "count" => {
                let all = format!("{:?}", machine.counters()).replace(": ", "=");
                for count in rest.split(' ') {
                    let found = all.split([' ', ',', '{', '}']).any(|counter| counter == count);
                    assert!(found, "not {count} in {all}");
                }
            }
            unknown => panic!("no such word in scripts: {unknown}"),
        }
    }

    fn pass(&mut self, time: Duration, done: &mut Vec<String>) {
        let end = self.at.now + time;
        while let Some(due) = self.machine.poll_timeout().filter(|due| *due <= end) {
            self.at.now = due;
            self.machine.handle_timeout(self.at);
            self.drain(done);
        }
        self.at.now = end;
    }

    fn list(&mut self, rest: &str) {
        let (mut end, mut token) = (None, None);
        for word in rest.split(' ').filter(|word| !word.is_empty()) {
            if let Some(text) = word.strip_prefix("end=") {
                end = Some(version(text));
            } else if let Some(text) = word.strip_prefix("next=") {
                token = Some(text.to_owned());
            } else {
                self.machine.handle_list_part(list_part(word), self.at);
            }
        }
        if let Some(version) = end {
            self.machine.handle_list_part(ListPart::End { version, token }, self.at);
            self.machine.handle_list_end(Ok(()), self.at);
        }
    }

    fn drain(&mut self, done: &mut Vec<String>) {
        if self.permit_asked && self.budget_free {
            self.permit_asked = false;
            self.machine.handle_list_permit(self.at);
        }
        while let Some(effect) = self.machine.poll_effect() {
            if matches!(effect, Effect::AcquireListPermit) {
                assert!(self.machine.needs_list_permit(), "asked for what it does not need");
                match self.budget_free {
                    true => self.machine.handle_list_permit(self.at),
                    false => self.permit_asked = true,
                }
                continue;
            }
            if matches!(effect, Effect::Deliver(_)) {
                self.at.now += std::mem::take(&mut self.queue_wait);
            }
            if let Effect::Watch { stream, request, .. } = &effect {
                self.newest_stream = stream.0;
                self.machine.handle_watch_sent(*stream, self.at);
                let seconds = request.timeout.as_secs();
                assert!((300..=600).contains(&seconds) || seconds >= 1_800, "{request:?}");
            }
            done.push(effect_text(&effect));
        }
        while let Some(line) = self.machine.poll_log() {
            match line.level {
                LogLevel::Debug => self.log.1.push(line.text),
                level => self.log.0.push_back(format!("{level:?} {}", line.text)),
            }
        }
        let until = match &self.machine.phase {
            Phase::Waiting { until, .. } => Some(*until),
            _ => None,
        };
        if self.waits_until != until {
            self.waits_until = until;
            done.extend(until.map(|until| format!("WAIT {}", (until - self.at.now).as_secs_f64())));
        }
    }
}

pub(super) fn error(name: &str) -> ListWatchError {
    let text: Arc<str> = name.into();
    let overloaded = |retry_after| ListWatchError::Overloaded { message: "slow down".into(), retry_after };
    let status = |code| ListWatchError::Status { code, reason: "".into(), message: "no".into() };
    match name {
        "410" => ListWatchError::Expired(text),
        "too-large" => ListWatchError::TooLargeVersion(text),
        "429" => overloaded(None),
        "401" => ListWatchError::Unauthorized(text),
        "403" => ListWatchError::Denied(text),
        "selector" => ListWatchError::SelectorRejected { selectors: "fields=x=1".into(), message: text },
        "404" => ListWatchError::NotFound(text),
        "unsupported" => ListWatchError::WatchListUnsupported(text),
        "unreadable" => ListWatchError::Unreadable(text),
        "protocol" => ListWatchError::Protocol(text),
        "timeout" => ListWatchError::Timeout(text),
        "cut" | "refused" => ListWatchError::Connection { message: text, source: None },
        "own" => ListWatchError::source("own"),
        _ => match name.strip_prefix("429:") {
            Some(seconds) => overloaded(Some(Duration::from_secs_f64(seconds.parse().unwrap()))),
            None => status(name.parse().expect("the name of an error, or a code")),
        },
    }
}

pub(super) fn object(text: &str) -> Object<()> {
    let (name, at) = text.split_once('@').expect("name@version");
    let meta = Meta {
        key: ObjectKey::cluster(name),
        uid: Uid::new(name),
        version: version(at),
        source: SourceId::default(),
        wire_bytes: 1,
        form: 0,
    };
    Object::new(meta, ())
}

fn undecodable(text: &str) -> Undecodable {
    let object = object(text);
    Undecodable { key: object.key().clone(), version: object.version().clone(), error: "bad".into() }
}

fn list_part(item: &str) -> ListPart<()> {
    match item.strip_prefix('!') {
        Some(rest) => ListPart::Undecodable(undecodable(rest)),
        None if item == "nothing" => ListPart::Objects(Vec::new()),
        None if item == "?" => ListPart::Unreadable("garbage".into()),
        None => ListPart::Objects(vec![object(item)]),
    }
}

pub(super) fn frame(item: &str) -> WatchPart<()> {
    let strip = |prefix| item.strip_prefix(prefix);
    if let Some(rest) = strip("*") {
        let (number, end) = rest.strip_suffix("end").map_or((rest, false), |number| (number, true));
        WatchPart::Bookmark { version: version(number), initial_events_end: end }
    } else if let Some(rest) = strip("!!") {
        WatchPart::LateUndecodable(undecodable(rest))
    } else if let Some(rest) = strip("!-") {
        WatchPart::DeletedUndecodable(undecodable(rest))
    } else if let Some(rest) = strip("!") {
        WatchPart::Undecodable(undecodable(rest))
    } else if let Some(rest) = strip("-") {
        WatchPart::Deleted(object(rest))
    } else {
        WatchPart::Applied(object(item))
    }
}

fn state_text(state: &SourceState) -> String {
    match state {
        SourceState::Listing { received } => format!("Listing {received}"),
        SourceState::Backoff { attempts, .. } => format!("Backoff {attempts}"),
        SourceState::Denied { .. } => "Denied".to_owned(),
        SourceState::Gone { .. } => "Gone".to_owned(),
        SourceState::SelectorRejected { .. } => "SelectorRejected".to_owned(),
        other => format!("{other:?}"),
    }
}

fn effect_text(effect: &Effect<()>) -> String {
    let all = |everything: &bool| if *everything { " everything" } else { "" };
    match effect {
        Effect::AcquireListPermit => "PERMIT".to_owned(),
        Effect::List { request, everything } => {
            let what = request.token.as_ref().map_or_else(
                || format!("version={:?}", request.version.to_string()),
                |token| format!("{}token={token}", request.version),
            );
            let limit = request.limit.map_or_else(String::new, |limit| format!(" limit={limit}"));
            format!("LIST {what}{limit}{}", all(everything))
        }
        Effect::Watch { stream, request, everything } => {
            let initial = if request.initial_events { " initial-events" } else { "" };
            let asked = request.version.to_string();
            format!("WATCH version={asked:?}{initial} stream={stream}{}", all(everything))
        }
        Effect::Close(stream) => format!("CLOSE stream={stream}"),
        Effect::CloseList => "CLOSE list".to_owned(),
        Effect::Yield => "YIELD".to_owned(),
        Effect::AskVersion(request) => {
            assert!(request.name.is_some() && request.version.to_string().is_empty(), "{request:?}");
            "ASK".to_owned()
        }
        Effect::Deliver(Delivery::Replace(replacement)) => replace_text(replacement),
        Effect::Deliver(Delivery::Delta(parts)) => {
            parts.iter().fold("DELTA".to_owned(), |text, part| format!("{text} {}", part_text(part)))
        }
    }
}

fn replace_text(replacement: &Replacement<()>) -> String {
    assert_eq!(
        replacement.bytes,
        listed_bytes(&*replacement.objects, &*replacement.undecodable),
        "its weight"
    );
    let mut text = format!("REPLACE version={} {}", replacement.version, replacement.cause);
    for object in replacement.objects.iter() {
        let _ = write!(text, " {}@{}", object.key(), object.version());
    }
    for undecodable in replacement.undecodable.iter() {
        let _ = write!(text, " !{}@{}", undecodable.key, undecodable.version);
    }
    text
}

fn part_text(part: &WatchPart<()>) -> String {
    match part {
        WatchPart::Applied(object) => format!("{}@{}", object.key(), object.version()),
        WatchPart::Deleted(object) => format!("-{}@{}", object.key(), object.version()),
        WatchPart::Undecodable(undecodable) => format!("!{}@{}", undecodable.key, undecodable.version),
        WatchPart::DeletedUndecodable(undecodable) => {
            format!("!-{}@{}", undecodable.key, undecodable.version)
        }
        WatchPart::LateUndecodable(undecodable) => {
            format!("!!{}@{}", undecodable.key, undecodable.version)
        }
        WatchPart::Fetched(object) => format!("?{}@{}", object.key(), object.version()),
        WatchPart::Bookmark { version, .. } => format!("*{version}"),
    }
}
