//! The pods as protobuf.
//!
//! Answers "which bytes is pod n at this moment in protobuf?" and "what stands around it in a list or an event?" The messages are
//! the in-memory server's. Invariants:
//! 1. A message is made once; of a changed pod only the digits of its version and its count of restarts are written anew.

use anyhow::{Context, ensure};
use informer_apiserver::fuzzing::to_protobuf;
use serde_json::{Value, json};

use crate::pod::{Pattern, Values};

const MAGIC: &[u8] = b"k8s\0";
/// An empty `contentEncoding` and an empty `contentType`.
const TAIL: &[u8] = &[0x1a, 0, 0x22, 0];
/// The two forms of a pod that show where the digits and the count stand. All versions have nine digits.
const FORMS: [(u64, u64); 2] = [(111_111_111, 1), (222_222_222, 2)];
const DIGITS: usize = 9;

/// One pod without its envelope.
#[derive(Debug)]
pub(super) struct Message {
    bytes: Box<[u8]>,
    digits: Box<[u16]>,
    restarts: Box<[u16]>,
}

impl Message {
    pub(super) fn new(pattern: &Pattern, values: &Values) -> anyhow::Result<Self> {
        let [ones, twos] = FORMS.map(|(version, restarts)| {
            let mut text = Vec::new();
            pattern.write(values, version, restarts, &mut text);
            let envelope = to_protobuf(&serde_json::from_slice(&text)?).context("a pod has a message")?;
            unwrapped(&envelope).map(<[u8]>::to_vec)
        });
        let (ones, twos) = (ones?, twos?);
        ensure!(ones.len() == twos.len(), "the forms differ in length");
        let at = |one: u8, two: u8| -> anyhow::Result<Box<[u16]>> {
            let pairs = ones.iter().zip(&twos).enumerate();
            let places = pairs.filter(|(_, pair)| *pair == (&one, &two)).map(|(at, _)| u16::try_from(at));
            Ok(places.collect::<Result<_, _>>()?)
        };
        let (digits, restarts) = (at(b'1', b'2')?, at(1, 2)?);
        ensure!(!digits.is_empty() && digits.len().is_multiple_of(DIGITS), "{} digits", digits.len());
        ensure!(!restarts.is_empty(), "no count of restarts");
        Ok(Self { bytes: ones.into(), digits, restarts })
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn write(&self, version: u64, restarts: u64, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        let message = &mut out[begin..];
        let digits = format!("{version:0width$}", width = DIGITS).into_bytes();
        for (place, digit) in self.digits.iter().zip(digits.iter().cycle()) {
            message[usize::from(*place)] = *digit;
        }
        for place in &self.restarts {
            message[usize::from(*place)] = (restarts % 10) as u8;
        }
    }
}

/// The message in an envelope.
fn unwrapped(envelope: &[u8]) -> anyhow::Result<&[u8]> {
    let mut rest = envelope.strip_prefix(MAGIC).context("an envelope begins so")?;
    loop {
        let (tag, after) = rest.split_first().context("an envelope has a message")?;
        let (length, after) = varint(after).context("a field has a length")?;
        let (field, after) = after.split_at_checked(length).context("a field is whole")?;
        if *tag == 0x12 {
            return Ok(field);
        }
        rest = after;
    }
}

fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.iter().position(|byte| *byte < 0x80)?;
    let value = bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    Some((value, &bytes[end + 1..]))
}

fn put_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_len(value: usize) -> usize {
    value.max(1).ilog2() as usize / 7 + 1
}

fn put_field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    put_varint(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn field_len(bytes: usize) -> usize {
    1 + varint_len(bytes) + bytes
}

/// Up to the message, which has this length.
fn put_head(kind: &str, message: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    let mut types = Vec::new();
    put_field(1, b"v1", &mut types);
    put_field(2, kind.as_bytes(), &mut types);
    put_field(1, &types, out);
    out.push(0x12);
    put_varint(message, out);
}

/// Up to the first item of a list whose messages have these lengths.
pub(super) fn put_list_head(
    (version, token): (u64, Option<usize>),
    messages: impl Iterator<Item = usize>,
    out: &mut Vec<u8>,
) {
    let mut metadata = Vec::new();
    put_field(2, version.to_string().as_bytes(), &mut metadata);
    if let Some(token) = token {
        put_field(3, token.to_string().as_bytes(), &mut metadata);
    }
    put_head("PodList", field_len(metadata.len()) + messages.map(field_len).sum::<usize>(), out);
    put_field(1, &metadata, out);
}

/// In front of a message of this length.
pub(super) fn put_item_head(message: usize, out: &mut Vec<u8>) {
    out.push(0x12);
    put_varint(message, out);
}

pub(super) fn put_tail(out: &mut Vec<u8>) {
    out.extend_from_slice(TAIL);
}

/// An event about a pod whose message `write` appends.
pub(super) fn put_pod_event(kind: &str, message: usize, write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    let mut object = Vec::with_capacity(message + 64);
    put_head("Pod", message, &mut object);
    write(&mut object);
    put_tail(&mut object);
    put_event(kind, &object, out);
}

/// An event about an object in its envelope.
fn put_event(kind: &str, object: &[u8], out: &mut Vec<u8>) {
    let raw = field_len(object.len());
    let length = field_len(kind.len()) + field_len(raw);
    out.extend_from_slice(&(length as u32).to_be_bytes());
    put_field(1, kind.as_bytes(), out);
    out.push(0x12);
    put_varint(raw, out);
    put_field(1, object, out);
}

/// An event about an object that is made for it.
pub(super) fn put_json_event(kind: &str, object: &Value, out: &mut Vec<u8>) -> anyhow::Result<()> {
    put_event(kind, &to_protobuf(object).context("it has a message")?, out);
    Ok(())
}

pub(super) fn bookmark(version: u64, ends_list: bool) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"resourceVersion": version.to_string()}, "spec": {"containers": []}, "status": {},
    });
    if ends_list {
        pod["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    pod
}
