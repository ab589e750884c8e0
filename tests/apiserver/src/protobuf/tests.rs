//! Reading and writing compared with Go's results for the same bytes and values, and tests with arbitrary bytes.
//!
//! `fixtures.txt.gz` is written by tests/control-plane/tables: for each kind its zero value and one with all fields set.
use std::io::Read as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::Value;

mod roundtrip;

use super::table::TABLE;
use super::{Expected, MAGIC, ProtobufError, Refused, answer, decode, decode_answer};

const NOTHING: Expected<'_> = Expected { api_version: "", kind: "" };

/// The bodies of the fixtures, with the JSON of each.
static BODIES: LazyLock<Vec<(Vec<u8>, Value)>> = LazyLock::new(|| {
    let mut fixtures = String::new();
    let packed: &[u8] = include_bytes!("fixtures.txt.gz");
    flate2::read::GzDecoder::new(packed).read_to_string(&mut fixtures).unwrap();
    let line = |line: &str| {
        let mut words = line.splitn(4, ' ').skip(2);
        let body = STANDARD.decode(words.next().unwrap()).unwrap();
        (body, serde_json::from_str(words.next().unwrap()).unwrap())
    };
    fixtures.lines().map(line).collect()
});

#[test]
fn api_38_a_protobuf_body_of_every_kind_reads_as_the_json_go_would_send() {
    for (body, json) in BODIES.iter() {
        let decoded = decode(body, NOTHING).unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(decoded, *json, "left: ours, right: Go's");
        let written = answer::value(json).unwrap_or_else(|| panic!("no message: {json}"));
        // The full definition sets both one schema and many where only one of them can be written in JSON.
        if json.pointer("/spec/versions/0").is_none() {
            assert_eq!(STANDARD.encode(&written), STANDARD.encode(body), "left: ours, right: Go's: {json}");
        }
    }
    assert!(BODIES.len() > 150, "all kinds are there: {}", BODIES.len());
}

#[test]
fn a_body_without_type_is_read_as_what_the_endpoint_expects() {
    let body = [MAGIC, &[0x0a, 0, 0x12, 0]].concat();
    let expected = Expected { api_version: "v1", kind: "ConfigMap" };
    assert_eq!(decode(&body, expected).unwrap()["kind"], "ConfigMap");
    let unknown = Expected { api_version: "example.com/v1", kind: "Widget" };
    assert!(matches!(
        decode(&body, unknown),
        Err(Refused::Message { error: ProtobufError::UnknownKind { .. }, .. })
    ));
}

#[test]
fn a_body_that_expands_too_far_is_refused() {
    let kind = Expected { api_version: "v1", kind: "Pod" };
    let wrap = |number: u8, inner: &[u8]| {
        let mut out = vec![number << 3 | 2];
        let mut len = inner.len();
        while len > 0x7f {
            out.push((len & 0x7f) as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        [out.as_slice(), inner].concat()
    };
    let containers = [0x12, 0].repeat(1_000_000);
    let body = [MAGIC, &wrap(2, &wrap(2, &containers))].concat();
    let many = decode(&body, kind);
    assert!(matches!(many, Err(Refused::Message { error: ProtobufError::TooMany, .. })));
    // A schema's field 28 (`not`) holds a schema.
    let schema = (0..200).fold(Vec::new(), |inner, _| [&[0xe2, 1][..], &wrap(0, &inner)[1..]].concat());
    let place = TABLE.schema();
    let deep = super::message::Decoder::new(&TABLE).message(place, &schema, 0);
    assert!(matches!(deep, Err(ProtobufError::TooDeep)), "{deep:?}");
}

#[test]
fn a_list_is_written_with_its_items_in_one_envelope() {
    let list = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"},
        "items": [{"metadata": {"name": "a"}, "data": {"k": "v"}}, {"metadata": {"name": "b"}}]});
    let written = answer::value(&list).unwrap();
    assert_eq!(decode_answer(&written).as_ref(), Ok(&list));
    let go = "azhzAAoTCgJ2MRINQ29uZmlnTWFwTGlzdBI7CgcKABIBNxoAEhsKEQoBYRIAGgAiACoAMgA4AEIAEgYKAWsSAXYSEwoRCgFiEgAaACIAKgAyADgAQgAaACIA";
    assert_eq!(STANDARD.encode(&written), go);
}

#[test]
fn an_event_is_written_with_its_length_before_it() {
    assert_eq!(STANDARD.encode(answer::event("ADDED", b"x")), "AAAADAoFQURERUQSAwoBeA==", "as Go frames it");
}

proptest! {
    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..200) {
        let kinds: Vec<_> = TABLE.kinds().collect();
        let (api_version, kind) = kinds[at % kinds.len()];
        let len = bytes.len() as u8;
        let envelope = [MAGIC, &[0x12, len | 0x80, len >> 7], &bytes].concat();
        let _either = decode(&envelope, Expected { api_version, kind });
        let _either = decode(&bytes, NOTHING);
    }

    #[test]
    fn a_broken_body_is_an_error_or_a_value_that_can_be_written(at in 0usize..10_000, position in 0usize..10_000, byte in any::<u8>()) {
        let mut body = BODIES[at % BODIES.len()].0.clone();
        let position = position % body.len();
        body[position] = byte;
        if let Ok(value) = decode(&body, NOTHING) {
            let written = answer::value(&value).expect("what was read can be written");
            let again = decode(&written, NOTHING).expect("what was written can be read");
            prop_assert_eq!(answer::value(&again), Some(written), "{}", value);
        }
        let _either = decode(&body[..position], NOTHING);
    }
}
