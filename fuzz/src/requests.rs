//! Fuzz targets for what a client can send to the in-memory API server: bodies and request lines.
//!
//! Answers "what must hold for every request?" A body gives a JSON value or is refused; a refused patch changes nothing;
//! a definition accepts the objects that it has stored; a request line names a resource with complete parts, or none.
//! Invariants:
//! 1. Reading the same bytes twice gives the same value; a value read from protobuf can be written and read again.
//!
//! Read next: `tests/apiserver/src/fuzzing.rs`, the readers.

use informer_apiserver::fuzzing::{
    Language, custom, patch, protobuf, request_line as read_line, to_protobuf, yaml,
};
use serde_json::Value;

/// The kinds with which a body without a type is read.
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

/// The first byte chooses the format: an even one protobuf, with one of the kinds, an odd one YAML.
pub fn request_body(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let (api_version, kind) = KINDS[usize::from(first / 2) % KINDS.len()];
    let read = || if first % 2 == 0 { protobuf(api_version, kind, body) } else { yaml(body) };
    let Some(value) = read() else { return };
    assert_eq!(read().as_ref(), Some(&value), "a second reading gives the same value");
    let text = serde_json::to_vec(&value).expect("a value is JSON");
    let again: Value = serde_json::from_slice(&text).expect("what was written can be read");
    assert_eq!(serde_json::to_vec(&again).ok(), Some(text));
    if first % 2 == 0 {
        assert!(value["kind"].is_string() && value["apiVersion"].is_string(), "{value}");
        let written = to_protobuf(&value).expect("what was read can be written");
        let again = protobuf(api_version, kind, &written).expect("what was written can be read");
        assert_eq!(to_protobuf(&again), Some(written), "{value}");
    }
}

/// The first byte chooses the patch language. A refused patch gives a 4xx or 500 and changes nothing; an applied one
/// keeps the name and the uid of the object.
pub fn patch_body(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let language = match first % 4 {
        0 => Language::Json,
        1 => Language::Merge,
        2 => Language::Strategic,
        _ => Language::Apply,
    };
    let (stored, refused) = patch(language, body);
    assert_eq!(stored["metadata"]["name"], "a", "{stored}");
    assert!(stored["metadata"]["uid"].is_string(), "{stored}");
    if let Some(code) = refused {
        assert!((400..=500).contains(&code), "{code}");
        assert_eq!(
            stored["spec"]["template"]["spec"]["containers"][0]["image"], "i",
            "a refused patch changes nothing"
        );
    }
    assert_eq!(patch(language, body), (stored, refused), "the same patch gives the same result");
}

/// The input is a schema and an object, with a zero byte between them. An object that was stored is accepted again.
pub fn definition(data: &[u8]) {
    let Some(middle) = data.iter().position(|byte| *byte == 0) else { return };
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    let (Some(schema), Some(body)) = (read(&data[..middle]), read(&data[middle + 1..])) else { return };
    let Some(stored) = custom(&schema, &body) else { return };
    let again =
        custom(&schema, &stored).unwrap_or_else(|| panic!("{schema} accepts {body} and refuses {stored}"));
    let content = |value: &Value| {
        let mut content = value.clone();
        content.as_object_mut().map(|members| members.remove("metadata"));
        content
    };
    assert_eq!(content(&again), content(&stored), "{schema}");
}

/// Any text names a resource or none, and no part of the resource is empty or has a slash.
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
