//! How a printer reads an object: texts, numbers, lists and ages at JSON pointers, never an error.
//!
//! Answers: what is at this pointer, and what is shown if nothing is? It has no rules for single kinds.
//! 1. A missing text is empty, a missing number is 0, a missing list is empty.
//! 2. An age that is not known is `<unknown>`.
//! 3. A length of time has two units at most, the coarser the longer it is (`45s`, `3m20s`, `5d`): up to two minutes seconds,
//!    up to ten minutes both, then minutes; the same again with hours, days and years.
//! 4. A time a little ahead is `0s`, one further ahead is `<invalid>`.

use serde_json::{Map, Value, json};

use crate::cluster::selector;

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
        let text = self.at(pointer).map(selector::label_text).unwrap_or_default();
        json!(if text.is_empty() { "<none>" } else { text.as_str() })
    }

    /// The text of a plain map of labels; `<none>` where it is empty.
    pub(super) fn labels(&self, pointer: &str) -> Value {
        let text = self.map(pointer).map(selector::map_text).unwrap_or_default();
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

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Writes a duration given in seconds.
pub(crate) fn human(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds, (MINUTE, "m"), (1, "s")),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds, (HOUR, "h"), (MINUTE, "m")),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds, (DAY, "d"), (HOUR, "h")),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, (big, big_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    let rest = seconds % big / small;
    let head = format!("{}{big_name}", seconds / big);
    if rest == 0 { head } else { format!("{head}{rest}{small_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_37_a_duration_gets_coarser_as_it_gets_longer() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (5 * HOUR + 90, "5h1m"),
            (8 * HOUR, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 5 * HOUR, "3d5h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (9 * YEAR, "9y"),
        ] {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }
}
