//! Objects for tests, made by key, version and, where it matters, uid and body.

use crate::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};

pub(crate) fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

pub(crate) fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

/// An object of source `default`, life `u1`, without words.
pub(crate) fn object(name: &str, number: u64) -> Object<String> {
    worded(name, number, "")
}

pub(crate) fn worded(name: &str, number: u64, words: &str) -> Object<String> {
    brought_by(&SourceId::default(), name, "u1", number, words)
}

pub(crate) fn life(name: &str, uid: &str, number: u64) -> Object<String> {
    brought_by(&SourceId::default(), name, uid, number, "")
}

pub(crate) fn brought_by(
    source: &SourceId,
    name: &str,
    uid: &str,
    number: u64,
    words: &str,
) -> Object<String> {
    let meta = Meta {
        key: key(name),
        uid: Uid::new(uid),
        version: version(number),
        source: source.clone(),
        wire_bytes: 0,
        form: 0,
    };
    Object::new(meta, words.to_owned())
}

/// How tests write an object down: `a/x u1@3`.
pub(crate) fn written<S>(object: &Object<S>) -> String {
    format!(
        "{} {}@{}",
        object.key(),
        object.object_uid().map_or_else(|| "-".to_owned(), Uid::to_string),
        object.version()
    )
}
