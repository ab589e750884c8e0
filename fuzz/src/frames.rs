//! Fuzz targets that compare the splitter with a simple reading of the same bytes.
//!
//! Answers "does the splitter find the same frames in any chunks?" The first byte of the input chooses the size of the
//! chunks and the limit.

use actix_informer::representation::WireKind;
use actix_informer::unstable::{Frame, ListHead, SplitError, Splitter};
use bytes::Bytes;
use serde_json::Value;

/// How the bytes arrive.
struct Arrival {
    chunk: usize,
    limit: usize,
}

fn arrival(data: &[u8]) -> Option<(Arrival, Bytes)> {
    let (first, rest) = data.split_first()?;
    let chunk = 1 + usize::from(first & 0x1f);
    let limit = if first & 0x80 == 0 { usize::MAX } else { 1 + usize::from(first >> 5 & 3) * 20 };
    Some((Arrival { chunk, limit }, Bytes::copy_from_slice(rest)))
}

fn chunks(bytes: &Bytes, size: usize) -> impl Iterator<Item = Bytes> {
    bytes.chunks(size.max(1)).map(|chunk| bytes.slice_ref(chunk))
}

/// The frames are the texts between newlines, in any chunks; of a line above the limit, its first bytes.
pub fn frames_watch(data: &[u8]) {
    let Some((Arrival { chunk, limit }, bytes)) = arrival(data) else { return };
    let (mut splitter, mut found) = (Splitter::watch(WireKind::Json, limit), Vec::new());
    chunks(&bytes, chunk).for_each(|chunk| splitter.push(&chunk, &mut found).expect("any bytes are lines"));
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let unfinished = lines.pop().unwrap_or_default();
    let half = (!unfinished.is_empty()).then_some(SplitError::HalfEvent(unfinished.len()));
    assert_eq!(splitter.finish().err(), half);
    lines.retain(|line| !line.is_empty());
    assert_eq!(found.len(), lines.len());
    for (frame, line) in found.iter().zip(lines) {
        match frame {
            Frame::Whole(bytes) => assert!(bytes == line && line.len() <= limit),
            Frame::Oversize { head, size } => {
                assert!(*size == line.len() && *size > limit && head == &line[..limit]);
            }
            _ => unreachable!("a frame of a new kind"),
        }
    }
}

type Split = Result<(ListHead, Vec<Frame>), SplitError>;

fn split(bytes: &Bytes, chunk: usize, limit: usize) -> Split {
    let (mut splitter, mut items) = (Splitter::list(WireKind::Json, limit), Vec::new());
    for chunk in chunks(bytes, chunk) {
        splitter.push(&chunk, &mut items)?;
    }
    Ok((splitter.finish()?, items))
}

/// The items are the same in any chunks, and those that a parser finds; a list that a parser accepts is accepted, unless it
/// has a member twice.
pub fn frames_list(data: &[u8]) {
    let Some((Arrival { chunk, limit }, bytes)) = arrival(data) else { return };
    let found = split(&bytes, chunk, limit);
    let at_once = split(&bytes, bytes.len(), limit);
    match (&found, &at_once) {
        (Ok(found), Ok(at_once)) => assert_eq!(found, at_once),
        (Err(_), Err(_)) => {}
        _ => panic!("the chunks change the result: {found:?} {at_once:?}"),
    }
    let Ok(members) = serde_json::from_slice::<Members>(&bytes) else { return };
    if limit < bytes.len() {
        return;
    }
    if members.repeat() {
        assert!(found.is_err(), "a list with a member twice is accepted");
    } else if members.are_a_list() {
        let (_, items) = found.unwrap_or_else(|error| panic!("a list is refused: {error}"));
        let items: Vec<Value> = items.iter().map(value).collect();
        assert_eq!(items, members.items());
    }
}

fn value(frame: &Frame) -> Value {
    let Frame::Whole(bytes) = frame else { panic!("an item below the limit is not complete") };
    serde_json::from_slice(bytes).expect("an item of a valid document is valid")
}

/// The members of an object in their order, including repeated ones.
struct Members(Vec<(String, Value)>);

impl Members {
    /// Whether all members that the splitter reads have the types of a list.
    fn are_a_list(&self) -> bool {
        let text = |value: &Value| value.is_null() || value.is_string();
        self.0.iter().all(|(key, value)| match (&**key, value) {
            ("kind" | "apiVersion", value) => text(value),
            ("metadata", Value::Object(members)) => {
                ["resourceVersion", "continue"].iter().all(|key| members.get(*key).is_none_or(text))
            }
            ("metadata", value) => value.is_null(),
            ("items", value) => value.is_null() || value.is_array(),
            _ => true,
        })
    }

    /// Whether a member that the splitter reads is there twice: such a list is refused.
    fn repeat(&self) -> bool {
        ["kind", "apiVersion", "metadata", "items"]
            .iter()
            .any(|read| self.0.iter().filter(|(key, _)| key == read).count() > 1)
    }

    fn items(&self) -> Vec<Value> {
        let lists = self.0.iter().filter(|(key, _)| key == "items").filter_map(|(_, value)| value.as_array());
        lists.flatten().cloned().collect()
    }
}

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
