//! The format of the files: frames of records, with a length and a checksum before each.
//!
//! Answers: which bytes represent a change, and up to which byte is the file valid? It reads and writes no files.
//! 1. A frame is a length (8 bytes) and the CRC-32 (4 bytes) of the payload, little endian, then the payload: a JSON list
//!    of records.
//! 2. The records of a frame are read together or not at all: what one visit to the store has changed is one frame.
//! 3. Reading stops, without an error, at the first frame that is incomplete or damaged.
use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Committed;

const HEAD: usize = 12;

/// One record of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record<'a> {
    /// All records before this one are outdated.
    Replaced,
    /// No version above this has been issued.
    Reserved(u64),
    /// This object has this state from this version on.
    Put {
        revision: u64,
        #[serde(borrow)]
        group: Cow<'a, str>,
        #[serde(borrow)]
        plural: Cow<'a, str>,
        #[serde(borrow)]
        key: Cow<'a, str>,
        #[serde(borrow)]
        body: &'a RawValue,
    },
    /// This object is deleted from this version on.
    Removed {
        revision: u64,
        #[serde(borrow)]
        group: Cow<'a, str>,
        #[serde(borrow)]
        plural: Cow<'a, str>,
        #[serde(borrow)]
        key: Cow<'a, str>,
    },
    /// A snapshot ends here, and is complete.
    Complete,
    /// A log ends here, and the next one continues it.
    Continued,
}

/// Appends a frame of these records.
pub(crate) fn frame<'a>(out: &mut Vec<u8>, records: impl IntoIterator<Item = Record<'a>>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    let mut before = b'[';
    for record in records {
        out.push(before);
        serde_json::to_writer(&mut *out, &record).expect("a record always encodes");
        before = b',';
    }
    debug_assert!(before == b',', "a frame has a record");
    out.push(b']');
    let payload = &out[start + HEAD..];
    let (length, sum) = (payload.len() as u64, crc32fast::hash(payload));
    out[start..start + 8].copy_from_slice(&length.to_le_bytes());
    out[start + 8..start + HEAD].copy_from_slice(&sum.to_le_bytes());
}

impl Committed {
    /// The record of this change.
    pub(crate) fn record(&self) -> Record<'_> {
        let Self::Change(resource, event) = self else { return Record::Replaced };
        let (group, plural) = (Cow::from(&*resource.group), Cow::from(&*resource.plural));
        let (revision, key) = (event.revision, Cow::from(&*event.key));
        match &event.new {
            Some(object) => {
                let text = std::str::from_utf8(&object.body).expect("a body is JSON");
                let body = serde_json::from_str(text).expect("a body is JSON");
                Record::Put { revision, group, plural, key, body }
            }
            None => Record::Removed { revision, group, plural, key },
        }
    }
}

/// The frames in these bytes, up to the first that is incomplete or damaged.
#[derive(Debug)]
pub(crate) struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes that could not be read, or have not been read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Vec<Record<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first_chunk::<8>()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (payload, rest) = rest.split_at_checked(length)?;
        if crc32fast::hash(payload) != u32::from_le_bytes(*sum) {
            return None;
        }
        let records = serde_json::from_slice(payload).ok()?;
        self.0 = rest;
        Some(records)
    }
}
