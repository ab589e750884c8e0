//! What one object weighs, and in which fields: a sample for the memory report (`KnownObjects::note_sample`).
//!
//! 1. A field is a member of the object, or of its `metadata`, `spec` or `status`, with its name and its colon. The
//!    names below other members are often keys of the user's, of which each object has others.
//! 2. No value of the object is kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use informer_actors::list_watch::ObjectSample;
use serde_json::value::RawValue;

use crate::representation::{Encoded, Prune, Representation};

/// Their members are fields of their own.
const PARTED: [&str; 3] = ["metadata", "spec", "status"];
/// Two quotes, a colon and a comma.
const AROUND: u64 = 4;

/// `None` if its text does not parse: it counts as undecodable elsewhere, or its reader will find it.
pub(super) fn of<R: Representation>(
    representation: &R,
    (object, prune): (&Encoded<'_>, &Prune),
    body: &R::Body,
) -> Option<ObjectSample> {
    let text = object.kept(prune, None).ok()?;
    let mut fields = Vec::new();
    for (name, value) in members(&text)? {
        let inner = PARTED.contains(&&*name).then(|| members(value.get())).flatten();
        match inner {
            Some(inner) => fields
                .extend(inner.iter().map(|(inner, value)| (format!("{name}.{inner}"), bytes(inner, value)))),
            None => fields.push((name.to_string(), bytes(&name, value))),
        }
    }
    let (sent, text) = (object.bytes().len() as u64, text.len() as u64);
    let kept = representation.weigh(body).map(|bytes| bytes as u64);
    Some(ObjectSample { sent, text, kept, fields })
}

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

fn members(text: &str) -> Option<Members<'_>> {
    serde_json::from_str(text).ok()
}

fn bytes(name: &str, value: &RawValue) -> u64 {
    AROUND + (name.len() + value.get().len()) as u64
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::representation::{Lazy, Typed};

    const POD: &str = r#"{"kind":"Pod","metadata":{"name":"a","managedFields":[{"manager":"m"}],"labels":{"app":"b"}},"spec":{"nodeName":"n"},"data":{"secret":"value"}}"#;

    #[test]
    fn a_sample_names_the_fields_that_are_kept_with_their_bytes_and_no_value() {
        let (object, prune) = (Encoded::json(POD), Prune::default());
        let lazy = Lazy::<Pod>::new();
        let body = lazy.keep(&object, &prune).unwrap();
        let sample = of(&lazy, (&object, &prune), &body).unwrap();
        assert_eq!((sample.sent, sample.text), (POD.len() as u64, 111));
        assert_eq!(sample.kept, Some(body.kept_bytes() as u64));
        let mut fields = sample.fields;
        fields.sort();
        let expected = [
            ("data", 26),
            ("kind", 13),
            ("metadata.labels", 23),
            ("metadata.name", 11),
            ("spec.nodeName", 15),
        ];
        assert_eq!(fields, expected.map(|(path, bytes)| (path.to_owned(), bytes)));
    }

    #[test]
    fn what_a_type_takes_is_not_guessed_and_what_is_no_object_is_no_sample() {
        let (object, prune) = (Encoded::json(POD), Prune::default());
        let typed = Typed::<Pod>::new();
        let body = typed.keep(&object, &prune).unwrap();
        assert_eq!(of(&typed, (&object, &prune), &body).unwrap().kept, None);
        assert_eq!(of(&typed, (&Encoded::json("[]"), &prune), &body), None);
    }
}
