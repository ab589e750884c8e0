//! How much memory an object takes in a store besides its body.
//!
//! Answers "what does each object of a large cluster cost before its body?": its names, its uid, its version and its place
//! in the map. Objects of a namespace share the text of it, as those of the client do.

use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
use informer_core::snapshot::Snapshot;

use crate::held;

const OBJECTS: u64 = 200_000;
const NAMESPACES: u64 = 200;
/// The most bytes of an object besides its body and the text of its name, its uid included.
const MOST: usize = 160;

fn uid(number: u64) -> Uid {
    Uid::new(&format!("{:08x}-0000-4000-8000-{number:012x}", number * 7)).expect("not empty")
}

pub(crate) fn an_object_costs_little_besides_its_body() {
    let namespaces: Vec<ObjectKey> =
        (0..NAMESPACES).map(|n| ObjectKey::namespaced(format!("team-{n}"), "")).collect();
    let source = SourceId::default();
    let before = held();
    let object = |number: u64| {
        let in_namespace = &namespaces[usize::try_from(number % NAMESPACES).expect("small")];
        let key = in_namespace.sibling(format!("web-7d4b9c6f5-{number:06}"));
        let version = ResourceVersion::from_number(number + 1).expect("not zero");
        Object::new(Meta::new(key, version, source.clone()).uid(Some(uid(number))).wire_bytes(2_000), ())
    };
    let snapshot = Snapshot::of((0..OBJECTS).map(object), []);
    let name_bytes = "web-7d4b9c6f5-000000".len();
    let each = (held() - before) / snapshot.len() - name_bytes;
    println!("an object costs {each} bytes besides its body and its name");
    assert!(each <= MOST, "an object costs {each} bytes besides its body and its name");
}
