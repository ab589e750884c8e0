//! The state that the lines of one process give.
//!
//! Answers "which objects does a script see that follows the lines?". Invariants, checked line by line:
//! 1. Every line is one JSON document with exactly one of `event`, `status`, `object`, `summary`.
//! 2. An Added is of an object that is not there, Updated and Deleted of one that is, with its uid.
//! 3. Nothing follows the summary.

use std::collections::BTreeMap;

use serde_json::Value;

/// Kind, namespace, name.
pub(crate) type Key = (String, String, String);

#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Uid and version of the objects that are there.
    pub(crate) objects: BTreeMap<Key, (String, String)>,
    /// The objects that the process reports as cached at the end.
    pub(crate) cached: BTreeMap<Key, (String, String)>,
    pub(crate) statuses: Vec<Value>,
    pub(crate) events: BTreeMap<String, u64>,
    pub(crate) causes: BTreeMap<String, u64>,
    pub(crate) summary: Option<Value>,
}

impl Replay {
    pub(crate) fn of(lines: &[String]) -> Self {
        let mut replay = Self::default();
        for line in lines {
            let document: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(replay.summary, None, "after the summary: {line}");
            let kinds = ["event", "status", "object", "summary"];
            let [kind] =
                kinds.into_iter().filter(|kind| document.get(kind).is_some()).collect::<Vec<_>>()[..]
            else {
                panic!("not exactly one kind of document: {line}");
            };
            match kind {
                "event" => replay.event(&document),
                "status" => replay.statuses.push(document["status"].clone()),
                "object" => drop(replay.cached.insert(key(&document["object"]), state(&document["object"]))),
                _ => replay.summary = Some(document["summary"].clone()),
            }
        }
        replay
    }

    fn event(&mut self, document: &Value) {
        let (event, cause) = (text(document, "event"), text(document, "cause"));
        let (key, state) = (key(document), state(document));
        let before = match event.as_str() {
            "Added" => {
                assert!(!self.objects.contains_key(&key), "added twice: {document}");
                None
            }
            _ => Some(self.objects.get(&key).unwrap_or_else(|| panic!("not there: {document}"))),
        };
        if let Some((uid, version)) = before {
            assert_eq!(*uid, state.0, "another object: {document}");
            let deleted_unseen = event == "Deleted" && document["exact"] == false;
            assert!(!deleted_unseen || *version == state.1, "not the last known version: {document}");
        }
        assert_eq!(event == "Deleted", document.get("exact").is_some(), "{document}");
        match event.as_str() {
            "Added" | "Updated" => drop(self.objects.insert(key, state)),
            "Deleted" => drop(self.objects.remove(&key)),
            other => panic!("no such event: {other}"),
        }
        *self.events.entry(event).or_default() += 1;
        *self.causes.entry(cause).or_default() += 1;
    }

    /// The summary of the only kind.
    pub(crate) fn only_informer(&self) -> &Value {
        let informers = &self.summary.as_ref().expect("a summary")["informers"];
        assert_eq!(informers.as_array().map(Vec::len), Some(1));
        &informers[0]
    }

    /// The numbers of the summary match the lines, and the cached objects are those that the lines give.
    pub(crate) fn check_against_summary(&self) {
        let informer = self.only_informer();
        assert_eq!(self.summary.as_ref().unwrap()["clean"], true);
        assert_eq!(informer["objects"], self.objects.len());
        let newest = self.objects.values().map(|(_, version)| version.parse::<u64>().unwrap()).max();
        assert_eq!(informer["newestObject"].as_str().map(|text| text.parse().unwrap()), newest);
        for (counts, written) in [("events", &self.events), ("causes", &self.causes)] {
            for (name, count) in informer[counts].as_object().unwrap() {
                assert_eq!(count.as_u64(), Some(written.get(name).copied().unwrap_or(0)), "{counts}.{name}");
            }
        }
        assert_eq!(self.cached, self.objects, "the lines do not give the cache");
    }
}

fn text(document: &Value, member: &str) -> String {
    document[member].as_str().unwrap_or_else(|| panic!("no text {member}: {document}")).to_owned()
}

fn key(document: &Value) -> Key {
    let namespace = document["namespace"].as_str().unwrap_or_default().to_owned();
    (text(document, "kind"), namespace, text(document, "name"))
}

fn state(document: &Value) -> (String, String) {
    (text(document, "uid"), text(document, "resourceVersion"))
}
