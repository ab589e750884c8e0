//! How a printer reads an object: texts, numbers, lists and ages at JSON pointers, never an error.
//!
//! Answers: what is at this pointer, and what is shown if nothing is? It has no rules for single kinds.
//! 1. A missing text is empty, a missing number is 0, a missing list is empty.
//! 2. An age that is not known is `<unknown>`.
use serde_json::{Map, Value, json};

use super::duration::human;
use crate::cluster::label_selector;

/// An object, seen at one moment.
#[derive(Debug)]
pub(super) struct View<'a> {
    value: &'a Value,
    now: i64,
}

/// Seconds since 1970 of an API time stamp.
pub(super) fn seconds(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

impl<'a> View<'a> {
    pub(super) fn new(value: &'a Value, now: i64) -> Self {
        Self { value, now }
    }

    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.value.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text, or what is shown where there is none.
    pub(super) fn or(&self, pointer: &str, missing: &str) -> Value {
        match self.text(pointer) {
            "" => json!(missing),
            text => json!(text),
        }
    }

    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    pub(super) fn flag(&self, pointer: &str, missing: bool) -> bool {
        self.at(pointer).and_then(Value::as_bool).unwrap_or(missing)
    }

    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn map(&self, pointer: &str) -> Option<&'a Map<String, Value>> {
        self.at(pointer).and_then(Value::as_object)
    }

    pub(super) fn len(&self, pointer: &str) -> usize {
        self.map(pointer).map_or_else(|| self.list(pointer).len(), Map::len)
    }

    pub(super) fn name(&self) -> Value {
        json!(self.text("/metadata/name"))
    }

    pub(super) fn is_going(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_some()
    }

    /// How long ago the time stamp at `pointer` was.
    pub(super) fn since(&self, pointer: &str) -> String {
        self.since_text(self.text(pointer))
    }

    pub(super) fn since_text(&self, text: &str) -> String {
        seconds(text).map_or_else(|| "<unknown>".to_owned(), |then| human(self.now - then))
    }

    pub(super) fn age(&self) -> Value {
        json!(self.since("/metadata/creationTimestamp"))
    }

    /// The time of creation itself, as kinds without a printer of their own show it.
    pub(super) fn created(&self) -> Value {
        self.at("/metadata/creationTimestamp").cloned().unwrap_or_else(|| json!("0001-01-01T00:00:00Z"))
    }

    /// The text of a label selector; `<none>` where it selects by nothing.
    pub(super) fn selector(&self, pointer: &str) -> Value {
        let text = self.at(pointer).map(label_selector::text).unwrap_or_default();
        json!(if text.is_empty() { "<none>" } else { text.as_str() })
    }

    /// The text of a plain map of labels; `<none>` where it is empty.
    pub(super) fn labels(&self, pointer: &str) -> Value {
        let text = self.map(pointer).map(label_selector::map_text).unwrap_or_default();
        json!(if text.is_empty() { "<none>" } else { text.as_str() })
    }

    /// One text member of each element of a list, joined.
    pub(super) fn joined(&self, pointer: &str, member: &str, between: &str) -> String {
        let texts = self.list(pointer).iter().filter_map(|element| element[member].as_str());
        texts.collect::<Vec<_>>().join(between)
    }

    /// A list of texts, joined by commas.
    pub(super) fn texts(&self, pointer: &str) -> String {
        self.list(pointer).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
    }

    /// Names and images of the containers of a pod's spec at `pointer`.
    pub(super) fn containers(&self, pointer: &str) -> [Value; 2] {
        let at = format!("{pointer}/containers");
        [json!(self.joined(&at, "name", ",")), json!(self.joined(&at, "image", ","))]
    }

    /// The condition of this type, in the status.
    pub(super) fn condition(&self, name: &str) -> Option<&'a Value> {
        self.list("/status/conditions").iter().find(|condition| condition["type"] == name)
    }

    pub(super) fn holds(&self, condition: &str) -> bool {
        self.condition(condition).is_some_and(|condition| condition["status"] == "True")
    }
}

/// The first `most` of some texts, and how many more there are; `missing` where there is none.
pub(super) fn first_few(texts: &[String], most: usize, missing: &str) -> Value {
    if texts.is_empty() {
        return json!(missing);
    }
    let shown = texts[..texts.len().min(most)].join(",");
    json!(match texts.len().checked_sub(most) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} + {more} more..."),
    })
}
