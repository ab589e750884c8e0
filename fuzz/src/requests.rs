//! What a client can send to the in-memory API server: bodies, and the lines of requests.
//!
//! Answers "what must hold for every request?" A body is a JSON value or a refusal, bounded by its own length where it
//! is not by the server's limits; a line names a resource in parts that are parts, or none.
//! 1. A reading is the same the second time.
//!
//! Read next: `tests/apiserver/src/fuzzing.rs`, the readers.

use informer_apiserver::fuzzing::{protobuf, request_line as read_line, yaml};
use serde_json::Value;

/// The kinds that a body without a type is read as.
const KINDS: [(&str, &str); 8] = [
    ("v1", "ConfigMap"),
    ("v1", "Pod"),
    ("v1", "Event"),
    ("apps/v1", "Deployment"),
    ("coordination.k8s.io/v1", "Lease"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("authorization.k8s.io/v1", "SubjectAccessReview"),
    ("v1", "DeleteOptions"),
];

/// The first byte chooses: even ones a kind in protobuf, odd ones YAML.
pub fn request_body(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let (api_version, kind) = KINDS[usize::from(first / 2) % KINDS.len()];
    let read = || if first % 2 == 0 { protobuf(api_version, kind, body) } else { yaml(body) };
    let Some(value) = read() else { return };
    assert_eq!(read().as_ref(), Some(&value), "a reading is the same the second time");
    let text = serde_json::to_vec(&value).expect("a value is JSON");
    let again: Value = serde_json::from_slice(&text).expect("what was written can be read");
    assert_eq!(serde_json::to_vec(&again).ok(), Some(text));
    if first % 2 == 0 {
        assert!(value["kind"].is_string() && value["apiVersion"].is_string(), "{value}");
    }
}

/// Any text is a resource or none, and no part of a resource is empty or holds a slash.
pub fn request_line(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let Some(line) = read_line(path, query) else { return };
    assert!(matches!(line.verb, "get" | "list" | "watch"), "{line:?}");
    let optional = usize::from(line.parts[0].is_empty());
    for part in &line.parts[optional..] {
        assert!(!part.is_empty() && !part.contains('/'), "{line:?}");
    }
    assert_eq!(read_line(path, query), Some(line));
}
