//! Defaults and refusals of built-in kinds, compared with `writes.json`: the answers of kube-apiserver 1.36.2 to the
//! same bodies.
//!
//! They answer: does a client read back the same object, or the same refusal? `record-writes.py` makes the recording.
use serde_json::{Value, json};

use crate::client::{Answer, merge_patch, post, server};

/// Method, path, body, and the code and body of the answer.
type Write = (String, String, Value, u16, Value);

/// What differs each time, or does not have the same text.
fn kept(answer: &Answer) -> Value {
    let mut body = answer.json();
    if answer.code >= 300 {
        return json!({"reason": body["reason"], "message": body["message"]});
    }
    for name in ["managedFields", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.remove(name);
        }
    }
    body
}

/// A real server adds how its own structures differ; up to there the words must be the same.
fn begun(received: &str, answer: &Answer) -> Value {
    let ours = answer.json()["message"].clone();
    let begin = received.split('\n').next().unwrap_or_default();
    let same = begin.len() < received.len() && ours.as_str().is_some_and(|ours| ours.starts_with(begin));
    if same { ours } else { json!(received) }
}

/// Replaces what is random or counted differently: uids, cluster addresses, times.
fn levelled(value: &Value) -> Value {
    let drawn = |text: &str| {
        (text.len() == 36 && text.matches('-').count() == 4)
            || text.starts_with("10.0.0.")
            || text.ends_with("00:00Z")
    };
    match value {
        Value::String(text)
            if drawn(text) || text.parse::<f64>().is_err() && text.len() == 20 && text.ends_with('Z') =>
        {
            json!("*")
        }
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), levelled(value))).collect(),
        Value::Array(list) => list.iter().map(levelled).collect(),
        other => other.clone(),
    }
}

/// The members in which two values differ, by their paths.
fn differences(at: &str, ours: &Value, theirs: &Value, into: &mut String) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
                let null = Value::Null;
                let (a, b) = (a.get(name).unwrap_or(&null), b.get(name).unwrap_or(&null));
                differences(&format!("{at}/{name}"), a, b, into);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{at}/{index}"), a, b, into);
            }
        }
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => into.push_str(&format!("  {at}: {ours}\n      not {theirs}\n")),
    }
}

#[test]
fn api_22_built_in_objects_are_completed_and_refused_as_by_a_real_server() {
    let recorded: Vec<Vec<Write>> = serde_json::from_str(include_str!("writes.json")).unwrap();
    let mut wrong = String::new();
    for group in &recorded {
        let server = server();
        for (method, path, body, code, received) in group {
            let answer =
                if method == "POST" { post(&server, path, body) } else { merge_patch(&server, path, body) };
            let mut received = received.clone();
            if *code >= 300 {
                let message = received["message"].as_str().unwrap_or_default();
                received = json!({"reason": received["reason"], "message": begun(message, &answer)});
            }
            let mut found = String::new();
            if answer.code != *code {
                found.push_str(&format!("  code {} not {code}: {}\n", answer.code, answer.text()));
            }
            differences("", &levelled(&kept(&answer)), &levelled(&received), &mut found);
            if !found.is_empty() {
                wrong.push_str(&format!("{method} {path} {body}\n{found}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
