//! Lines for people. Without colour they are plain ASCII, except for texts of the cluster. `Text::line` makes and escapes all but
//! the summary, which does that itself.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style as Paint};
use informer_core::words::shortened;

use super::{KindStatus, hints, state_name, worst_source};
use crate::describe::{Describe, Values};
use crate::lines::time_of_day;
use crate::run::{Ending, InformerReport, Report};
use actix_informer::object::Object;
use actix_informer::printable::printable;
use actix_informer::status::SourceState;
use actix_informer::subscription::Notify;

/// A longer key shifts the rest.
const KEY_WIDTH: usize = 36;
/// In characters: an error may quote a server.
const MAX_ERROR_CHARS: usize = 900;
/// In characters, after the event or state.
const MAX_REST_CHARS: usize = 4_000;

#[derive(Debug, Clone)]
pub(crate) struct Text {
    coloured: bool,
    kind_width: usize,
}

impl Text {
    pub(crate) fn new(coloured: bool, kind_width: usize) -> Self {
        Self { coloured, kind_width }
    }

    pub(super) fn event<S: Describe>(&self, (kind, values): (&str, Values), notify: &Notify<S>) -> String {
        let (event, paint, what) = match notify {
            Notify::Added { object, .. } => ("Added", green(), object.outline()),
            Notify::Updated { old, object, .. } => ("Updated", yellow(), changes(old, object, values)),
            Notify::Deleted { last, exact, .. } => ("Deleted", red(), deletion_text(last, *exact)),
        };
        let (event, cause) = (format!("{event:<9}"), notify.cause().as_str());
        self.line(kind, (paint, &event), &format!(" {:<KEY_WIDTH$} {cause:<11} {what}", key(notify)))
    }

    pub(super) fn state(&self, kind: &str, current: &KindStatus) -> String {
        let status = &current.informer;
        let state = status.state();
        let source = worst_source(status).map(|source| format!(" in {source}")).unwrap_or_default();
        let (paint, rest) = match &state {
            SourceState::Backoff { attempts, error, until }
            | SourceState::Denied { attempts, error, until }
            | SourceState::Gone { attempts, error, until }
            | SourceState::SelectorRejected { attempts, error, until } => {
                let wait = until.saturating_sub(current.now).as_secs_f64();
                (red(), format!(" (attempt {attempts}, next in {wait:.1} s){source}: {error}"))
            }
            SourceState::Streaming if !status.synced => (green(), ": storing the first list".to_owned()),
            SourceState::Streaming => (green(), format!(": {}", self.counts(current))),
            _ => (Paint::new(), String::new()),
        };
        let failed =
            status.failed.as_ref().map(|why| format!("; not restarted any more: {why}")).unwrap_or_default();
        let hints: String = hints(status).iter().map(|hint| format!("; {hint}")).collect();
        // Hints are whole; a long error is cut.
        let room = MAX_ERROR_CHARS.saturating_sub(hints.chars().count());
        let rest = format!("{}{hints}", shortened(&format!("{rest}{failed}"), room));
        self.line(kind, (paint.bold(), state_name(&state)), &rest)
    }

    pub(super) fn status(&self, kind: &str, current: &KindStatus, rate: f64) -> String {
        let name = state_name(&current.informer.state());
        let text = format!("{name}: {}, {rate:.1} changes/s", self.counts(current));
        self.line(kind, (Paint::new().dimmed(), &text), "")
    }

    pub(super) fn object<S: Describe>(&self, kind: &str, object: &Object<S>) -> String {
        let (name, version) = (object.key().to_string(), object.version());
        let rest = format!(" {name:<KEY_WIDTH$} {version:<11} {}", object.outline());
        self.line(kind, (Paint::new(), "Cached   "), &rest)
    }

    pub(super) fn summary(&self, report: &Report) -> String {
        let title = format!(
            "summary after {:.1} s ({}): {}",
            report.seconds,
            match report.ending {
                Ending::Interrupted => "Ctrl-C",
                other => other.as_str(),
            },
            outcome(report)
        );
        let title = printable(&title);
        let mut lines = self.paint(Paint::new().bold(), &title);
        for informer in &report.informers {
            // Writing to a String cannot fail.
            let _ = write!(lines, "\n  {}", printable(&summary_of(informer)));
        }
        lines
    }

    /// Escapes everything, then colours `head`.
    fn line(&self, kind: &str, (paint, head): (Paint, &str), rest: &str) -> String {
        let time = self.paint(Paint::new().dimmed(), &time_of_day());
        let (kind, head, rest) = (printable(kind), printable(head), shortened(rest, MAX_REST_CHARS));
        let (head, rest) = (self.paint(paint, &head), printable(&rest));
        format!("{time} {kind:<width$} {head}{rest}", width = self.kind_width).trim_end().to_owned()
    }

    fn counts(&self, current: &KindStatus) -> String {
        let status = &current.informer;
        let version = current.version.as_deref().unwrap_or("none");
        let mut text = format!(
            "{} at version {version}, {}, {}",
            number(status.objects as u64, "object"),
            number(status.restarts, "restart"),
            number(status.relists(), "relist"),
        );
        if status.undecodable > 0 {
            let _ = write!(text, ", {} undecodable", status.undecodable);
        }
        text
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if self.coloured { format!("{paint}{text}{paint:#}") } else { text.to_owned() }
    }
}

fn key<S>(notify: &Notify<S>) -> String {
    notify.key().to_string()
}

fn changes<S: Describe>(old: &Object<S>, new: &Object<S>, values: Values) -> String {
    if old.ptr_eq(new) {
        "unchanged (resync)".to_owned()
    } else {
        super::changes(old, new, values).join("; ")
    }
}

fn deletion_text<S: Describe>(last: &Object<S>, exact: bool) -> String {
    let outline = last.outline();
    let was = if outline.is_empty() { String::new() } else { format!("was {outline}") };
    if exact { was } else { format!("{was} (the deletion was missed; this is the last known state)") }
}

fn summary_of(informer: &InformerReport) -> String {
    let (events, causes) = (&informer.events, &informer.causes);
    let mut text = format!(
        "{}: {} at version {}; {} added, {} updated, {} deleted",
        informer.kind,
        number(informer.objects as u64, "object"),
        informer.resource_version.as_deref().unwrap_or("none"),
        events.added,
        events.updated,
        events.deleted,
    );
    let by_cause: Vec<String> = [
        ("initial list", causes.initial_list),
        ("watch", causes.watch),
        ("relist", causes.relist),
        ("rewind", causes.rewind),
        ("resync", causes.resync),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .map(|(cause, count)| format!("{count} by {cause}"))
    .collect();
    let _ = write!(
        text,
        " ({}); {}, {}",
        if by_cause.is_empty() { "no notifications".to_owned() } else { by_cause.join(", ") },
        number(informer.restarts, "restart"),
        number(informer.relists, "relist"),
    );
    if let Some(error) = &informer.last_error {
        let when = if informer.failing { "failing at the end" } else { "recovered from" };
        let _ = write!(text, "; {when}: {}", shortened(error, MAX_ERROR_CHARS));
    }
    for hint in &informer.hints {
        let _ = write!(text, "; {hint}");
    }
    text
}

/// Also names kinds that never synced or were not followed at the end: what they missed is unknown.
fn outcome(report: &Report) -> String {
    let names = |is_named: fn(&&InformerReport) -> bool| {
        let named = report.informers.iter().filter(is_named).map(|one| one.kind.as_str());
        Some(named.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    let unsynced = names(|one| !one.synced).map(|names| format!("NOT synced: {names}"));
    let failing = names(|one| one.synced && one.failing);
    let failing = failing.map(|names| format!("NOT followed at the end: {names}"));
    let unclean = (!report.clean).then(|| "NOT everything was delivered".to_owned());
    let bad: Vec<String> = [unclean, unsynced, failing].into_iter().flatten().collect();
    if bad.is_empty() { "everything was delivered".to_owned() } else { bad.join(", ") }
}

fn number(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn green() -> Paint {
    AnsiColor::Green.on_default()
}

fn yellow() -> Paint {
    AnsiColor::Yellow.on_default()
}

fn red() -> Paint {
    AnsiColor::Red.on_default()
}

#[cfg(test)]
mod tests {
    use crate::describe::ShownPod;
    use kube_core::Resource as _;

    use super::*;
    use crate::run::{CauseCounts, EventCounts};
    use actix_informer::object::{Meta, ObjectKey, ResourceVersion, SourceId};
    use actix_informer::subscription::Cause;

    const HOSTILE: &str = "k\n12:00:00 forged\u{1b}[2J\u{9b}1m\u{202e}";

    fn pod(number: u64) -> Object<ShownPod> {
        let mut pod = ShownPod::default();
        let texts =
            [(format!("{HOSTILE}{number}"), HOSTILE.to_owned()), ("same".to_owned(), format!("{number}\n"))];
        pod.meta_mut().labels = Some(texts.clone().into());
        pod.meta_mut().annotations = Some(texts.into());
        let version = ResourceVersion::from_number(number).unwrap();
        let key = ObjectKey::namespaced(HOSTILE, HOSTILE);
        Object::new(Meta::new(key, version, SourceId::default()), pod)
    }

    #[test]
    fn a_line_escapes_kinds_names_and_keys_and_values_of_labels() {
        let updated = Notify::Updated { old: pod(1), object: pod(2), cause: Cause::Watch };
        let deleted = Notify::Deleted { last: pod(1), exact: false, cause: Cause::Relist };
        for coloured in [false, true] {
            let text = Text::new(coloured, 3);
            for notify in [&updated, &deleted] {
                let line = text.event((HOSTILE, Values::Shown), notify);
                // The colours of the line are removed first: the rest must have no escape sequence.
                let colours = ["\u{1b}[2m", "\u{1b}[33m", "\u{1b}[31m", "\u{1b}[0m"];
                let line = colours.iter().fold(line, |line, colour| line.replace(colour, ""));
                assert_eq!(printable(&line), line, "{line:?}");
                assert!(line.contains(r"12:00:00 forged\u{1b}[2J\u{9b}1m\u{202e}"), "{line}");
            }
            let cached = text.object(HOSTILE, &pod(1));
            assert!(!cached.contains('\n') && !cached.contains("\u{1b}[2J"), "{cached:?}");
        }
    }

    #[test]
    fn a_summary_says_whether_the_last_error_was_overcome() {
        let mut informer = InformerReport {
            kind: "Pod".to_owned(),
            synced: true,
            objects: 1,
            resource_version: Some("7".to_owned()),
            newest_object: None,
            events: EventCounts::default(),
            causes: CauseCounts::default(),
            queue_order: "PerKey",
            policy: "Coalesce",
            coalesced: 0,
            dropped: 0,
            restarts: 0,
            relists: 0,
            undecodable: 0,
            last_error: Some("no answer".to_owned()),
            failing: false,
            hints: Vec::new(),
        };
        assert!(summary_of(&informer).ends_with("; recovered from: no answer"));
        informer.failing = true;
        assert!(summary_of(&informer).ends_with("; failing at the end: no answer"));
        let mut report =
            Report { ending: Ending::TimeOver, seconds: 1.0, clean: true, informers: vec![informer] };
        assert_eq!(outcome(&report), "NOT followed at the end: Pod");
        report.informers[0].hints = vec!["namespace \"shpo\" does not exist".to_owned()];
        assert!(summary_of(&report.informers[0]).ends_with("; namespace \"shpo\" does not exist"));
        report.informers[0].synced = false;
        assert_eq!(outcome(&report), "NOT synced: Pod");
        report.clean = false;
        assert_eq!(outcome(&report), "NOT everything was delivered, NOT synced: Pod");
    }
}
