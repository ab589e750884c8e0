//! Removes from a transcript what may differ between two correct servers, and keeps the relations of these values.
//!
//! Answers: when are two answers equal? Uids, versions, times, generated names, cluster addresses, ports, continue
//! tokens and hashes always differ, and so do build details in the version.
//! 1. A uid or a version becomes the place where it was first seen, so equality within a run is kept, and one more on
//!    one side does not move the others.
//! 2. The order of all versions of objects is kept, in `order`. The version of a list or a bookmark becomes the newest
//!    version of an object that it covers: other writes may lie between.
//! 3. A time keeps its precision. Times before 2024 are a script's own and stay.
//! 4. A document that a refusal quotes is compared by its value: Go quotes what a patch has not touched in the order of
//!    its types, ours with sorted members.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use regex_lite::{Captures, Regex};
use serde_json::{Map, Value};

use super::transcript::Transcript;

/// A transcript in which only what must agree is left.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Normal {
    pub(crate) steps: Vec<(String, Value)>,
    /// Where each version of an object was first seen, oldest version first.
    pub(crate) order: Vec<String>,
}

/// The placeholders of a run's own values.
#[derive(Debug)]
struct Names {
    uids: BTreeMap<String, String>,
    versions: BTreeMap<u64, String>,
    generated: BTreeMap<String, String>,
    patterns: Patterns,
}

#[derive(Debug)]
struct Patterns {
    uid: Regex,
    time: Regex,
    cluster_ip: Regex,
    address: Regex,
    hash: Regex,
    number: Regex,
    too_large: Regex,
    too_old: Regex,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of ours")
}

impl Patterns {
    fn new() -> Self {
        Self {
            uid: pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            time: pattern(r"20(?:2[4-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
            cluster_ip: pattern(r"\b10\.0\.0\.\d{1,3}\b"),
            address: pattern(r"(https?://)?127\.0\.0\.1:\d+"),
            hash: pattern(r"hash=[0-9A-Za-z]+"),
            number: pattern(r"(RFC )?[0-9]{3,}"),
            too_large: pattern(r"resource version: \d+, current: \d+"),
            too_old: pattern(r"(old resource version: .*) \(\d+\)"),
        }
    }
}

/// The normal form of a run.
pub(crate) fn normal(transcript: &Transcript) -> Normal {
    let mut names = Names {
        uids: BTreeMap::new(),
        versions: BTreeMap::new(),
        generated: BTreeMap::new(),
        patterns: Patterns::new(),
    };
    for (number, step) in transcript.steps.iter().enumerate() {
        names.learn(&step.content, &(number + 1).to_string(), false);
    }
    let steps =
        transcript.steps.iter().map(|step| (step.label.clone(), names.told(&step.content, "", false)));
    Normal { steps: steps.collect(), order: names.versions.values().cloned().collect() }
}

/// What identifies an entry of `managedFields`.
fn owner(entry: &Value) -> String {
    let member = |name: &str| entry[name].as_str().unwrap_or_default();
    ["operation", "manager", "apiVersion", "subresource"].map(member).join(" ")
}

/// Whether this is the metadata of a list: its version is that of the store, not of a write.
fn is_collection(object: &Map<String, Value>) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind.ends_with("List") || kind == "Table" || object.get("items").is_some_and(Value::is_array)
}

/// A key's value, and whether it belongs to a collection.
fn members(object: &Map<String, Value>, collection: bool) -> Vec<(&String, &Value, bool)> {
    let bookmark = object.get("type").is_some_and(|kind| kind == "BOOKMARK");
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by_key(|(key, _)| *key);
    let is = |key: &str| match key {
        "metadata" => collection || is_collection(object),
        "object" => bookmark || collection,
        // The row of a bookmark, where Tables are asked for.
        "rows" => collection,
        _ => false,
    };
    members.into_iter().map(|(key, value)| (key, value, is(key))).collect()
}

/// As much of `generateName` as a server keeps, so that a generated name is a label.
fn kept_of(base: &str) -> &str {
    base.get(..58).unwrap_or(base)
}

fn version(text: &str) -> Option<u64> {
    text.parse().ok().filter(|version| *version > 0)
}

impl Names {
    fn learn(&mut self, value: &Value, place: &str, collection: bool) {
        match value {
            Value::Object(object) => {
                self.learn_generated(object);
                for (key, value, of_collection) in members(object, collection) {
                    let place = format!("{place}/{key}");
                    match value {
                        Value::String(text) if key == "resourceVersion" && !collection => {
                            if let Some(version) = version(text) {
                                self.versions.entry(version).or_insert(place);
                            }
                        }
                        other => self.learn(other, &place, of_collection),
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.learn(item, &format!("{place}/{index}"), collection);
                }
            }
            Value::String(text) => {
                for found in self.patterns.uid.find_iter(text) {
                    self.uids.entry(found.as_str().to_owned()).or_insert_with(|| place.to_owned());
                }
            }
            _ => {}
        }
    }

    fn learn_generated(&mut self, object: &Map<String, Value>) {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        if let (Some(base), Some(name)) = (text("generateName"), text("name"))
            && let base = kept_of(base)
            && let Some(end) = name.strip_prefix(base)
            && !base.is_empty()
        {
            self.generated.insert(name.to_owned(), format!("{base}<{}>", "?".repeat(end.len())));
        }
    }

    fn told(&self, value: &Value, key: &str, collection: bool) -> Value {
        match value {
            Value::Object(object) => {
                let told = |(key, value, of_collection): (&String, &Value, bool)| {
                    let told = match value {
                        Value::String(text) if key == "resourceVersion" => self.version(text, collection),
                        other => self.told(other, key, of_collection),
                    };
                    (self.text(key, ""), told)
                };
                members(object, collection).into_iter().map(told).collect::<Map<_, _>>().into()
            }
            Value::Array(items) => {
                let mut told: Vec<Value> =
                    items.iter().map(|item| self.told(item, key, collection)).collect();
                // Owners are in the order of their times, whole seconds, which differ between two runs.
                if key == "managedFields" {
                    told.sort_by_key(owner);
                }
                // A real server lists the rules of a user in the order of a hash map.
                if matches!(key, "resourceRules" | "nonResourceRules") {
                    told.sort_by_key(Value::to_string);
                }
                told.into()
            }
            Value::String(text) => self.text(text, key).into(),
            Value::Number(_) if matches!(key, "nodePort" | "healthCheckNodePort") => "<port>".into(),
            other => other.clone(),
        }
    }

    fn version(&self, text: &str, collection: bool) -> Value {
        let Some(version) = version(text) else { return text.into() };
        if !collection {
            return self
                .versions
                .get(&version)
                .map_or_else(|| "<version>".into(), |at| format!("<{at}>").into());
        }
        match self.versions.range(..=version).next_back() {
            Some((_, at)) => format!("<covers {at}>").into(),
            None => "<covers nothing>".into(),
        }
    }

    fn text(&self, text: &str, key: &str) -> String {
        if matches!(key, "continue" | "etag") && !text.is_empty() {
            return format!("<{key}>");
        }
        // Ages in a row of a Table: a moment may lie between the two.
        if key == "cells" && text.strip_suffix('s').is_some_and(|age| age.parse::<u8>().is_ok()) {
            return "<seconds>".to_owned();
        }
        // A server shows the address that it was configured to advertise.
        if key == "serverAddress" && text.parse::<SocketAddr>().is_ok() {
            return "<server>".to_owned();
        }
        if matches!(key, "buildDate" | "compiler" | "gitCommit" | "gitTreeState" | "goVersion") {
            return "<of the build>".to_owned();
        }
        let patterns = &self.patterns;
        let uid = |found: &Captures<'_>| {
            self.uids.get(&found[0]).map_or_else(|| "<uid>".to_owned(), |at| format!("<uid {at}>"))
        };
        let time = |found: &Captures<'_>| {
            let digits = found.get(1).map_or(0, |fraction| fraction.len() - 1);
            format!("<time.{digits}{}>", if &found[2] == "Z" { "" } else { " with zone" })
        };
        let text = patterns.uid.replace_all(text, uid);
        let text = patterns.time.replace_all(&text, time);
        let text = patterns.address.replace_all(&text, "<server>");
        let text = patterns.cluster_ip.replace_all(&text, "<cluster ip>");
        let mut text = patterns.hash.replace_all(&text, "hash=<hash>").into_owned();
        for (name, told) in &self.generated {
            text = text.replace(name, told);
        }
        if key == "message" {
            text = self.message(&text);
        }
        text
    }

    /// The text with sorted members in the first document that it quotes.
    fn sorted(&self, text: &str) -> Option<String> {
        let start = text.find("Invalid value: \"{")? + "Invalid value: ".len();
        let mut quoted = serde_json::Deserializer::from_str(&text[start..]).into_iter::<String>();
        let document: Value = serde_json::from_str(&quoted.next()?.ok()?).ok()?;
        let (before, after) = (&text[..start], &text[start + quoted.byte_offset()..]);
        let told = Value::String(self.told(&document, "", false).to_string());
        Some(format!("{before}{told}{after}"))
    }

    fn message(&self, text: &str) -> String {
        let patterns = &self.patterns;
        let text = self.sorted(text).unwrap_or_else(|| text.to_owned());
        let text = patterns.too_large.replace_all(&text, "resource version: <n>, current: <m>");
        let text = patterns.too_old.replace_all(&text, "$1 (<m>)");
        let known = |found: &Captures<'_>| {
            // The 1123 of an RFC is a version only by its digits; with these before it, it does not parse.
            let at = found[0].parse().ok().and_then(|version: u64| self.versions.get(&version));
            at.map_or_else(|| found[0].to_owned(), |at| format!("<{at}>"))
        };
        patterns.number.replace_all(&text, known).into_owned()
    }
}
