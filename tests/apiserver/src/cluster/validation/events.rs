//! Events: their checks, by the group in which they are written.
//!
//! Answers: which events are refused, and what of an event may not change? Core checks little; events.k8s.io requires
//! all members, and lets only the series change.
//! 1. The causes name members as a real server stores them, whichever group was asked.
use serde_json::{Value, json};

use super::super::kind::Kind;
use super::super::names;
use super::causes::{Causes, text};

const MOST_NOTE: usize = 1024;
const MOST_WORD: usize = 128;

/// The names of members in both groups.
struct Words {
    about: &'static str,
    note: &'static str,
    source: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    controller: &'static str,
}

const CORE: Words = Words {
    about: "involvedObject",
    note: "message",
    source: "source",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
    controller: "reportingComponent",
};
const NEW: Words = Words {
    about: "regarding",
    note: "note",
    source: "deprecatedSource",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
    controller: "reportingController",
};

fn is_new(kind: &Kind) -> bool {
    kind.resource.is("events.k8s.io", "events")
}

fn is_event(kind: &Kind) -> bool {
    kind.storage.is("", "events")
}

/// What is wrong with a new event; nothing for other kinds.
pub(super) fn of_new(kind: &Kind, body: &Value, causes: &mut Causes) {
    if !is_event(kind) {
        return;
    }
    check(kind, body, causes);
    if is_new(kind) {
        series(body, causes);
        if body["eventTime"].is_null() {
            causes.required("eventTime", "");
        }
        let how = text(body, "type");
        if !matches!(how, "Normal" | "Warning") {
            causes.invalid("type", &json!(""), &format!("has invalid value: {how}"));
        }
        for (field, member) in [
            ("firstTimestamp", NEW.first),
            ("lastTimestamp", NEW.last),
            ("count", NEW.count),
            ("source", NEW.source),
        ] {
            if is_set(&body[member]) {
                causes.invalid(field, &json!(""), "needs to be unset");
            }
        }
    }
}

/// What is wrong with a change of an event; nothing for other kinds.
pub(super) fn of_change(kind: &Kind, old: &Value, body: &Value, causes: &mut Causes) {
    if !is_event(kind) {
        return;
    }
    check(kind, body, causes);
    if is_new(kind) {
        if old["series"] != body["series"] {
            series(body, causes);
        }
        fixed(old, body, causes);
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Number(number) => number.as_i64() != Some(0),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    }
}

/// The checks of both groups.
fn check(kind: &Kind, body: &Value, causes: &mut Causes) {
    let words = if is_new(kind) { &NEW } else { &CORE };
    let is_old = body["eventTime"].is_null();
    let (about, own) = (text(&body[words.about], "namespace"), text(&body["metadata"], "namespace"));
    let agrees = match (about.is_empty(), is_old) {
        (true, true) => own == "default",
        (true, false) => matches!(own, "default" | "kube-system"),
        // An event with a time of its own may be about an object in any namespace.
        (false, is_old) => !is_old || about == own,
    };
    if !agrees {
        causes.invalid("involvedObject.namespace", &json!(about), "does not match event.namespace");
    }
    if is_old {
        return;
    }
    let controller = text(body, words.controller);
    if controller.is_empty() {
        causes.required(words.controller, "");
    }
    causes.invalid_for(words.controller, &json!(controller), names::label_key_faults(controller));
    for name in ["reportingInstance", "action", "reason"] {
        let word = text(body, name);
        if word.is_empty() {
            causes.required(name, "");
        }
        if word.len() > MOST_WORD {
            causes.invalid(name, &json!(""), &format!("can have at most {MOST_WORD} characters"));
        }
    }
    if text(body, words.note).len() > MOST_NOTE {
        causes.invalid("message", &json!(""), &format!("can have at most {MOST_NOTE} characters"));
    }
}

fn series(body: &Value, causes: &mut Causes) {
    let series = &body["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or(0) < 2 {
        causes.invalid("series.count", &json!(""), "should be at least 2");
    }
    if series["lastObservedTime"].is_null() {
        causes.required("series.lastObservedTime", "");
    }
}

/// What may not change through events.k8s.io, in the order of a real server, which checks the reason twice.
fn fixed(old: &Value, new: &Value, causes: &mut Causes) {
    let members = [
        ("involvedObject", NEW.about),
        ("reason", "reason"),
        ("message", NEW.note),
        ("source", NEW.source),
        ("firstTimestamp", NEW.first),
        ("lastTimestamp", NEW.last),
        ("count", NEW.count),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", NEW.controller),
        ("reportingInstance", "reportingInstance"),
    ];
    for (field, member) in members {
        if old[member] == new[member] {
            continue;
        }
        if matches!(field, "involvedObject" | "related") {
            causes.invalid_text(field, &reference(&new[member]), "field is immutable");
        } else {
            causes.unchanged(field, old.get(member), new.get(member));
        }
    }
}

/// A reference as Go writes the type that it works with inside.
fn reference(of: &Value) -> String {
    let members = [
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    let told: Vec<String> =
        members.iter().map(|(go, name)| format!("{}:{}", json!(go), json!(text(of, name)))).collect();
    format!("{{{}}}", told.join(","))
}
