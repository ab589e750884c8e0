//! The format of the log: records with a length and a checksum before each.
//!
//! Answers: which bytes stand for a change, and up to where can these bytes be trusted? It reads and writes no files.
//! 1. A record is `length` and CRC-32 of the payload (4 bytes each, little endian), then the payload, which is JSON.
//! 2. Reading stops, without an error, at the first record that is not whole or not sound.
use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Committed;

const HEAD: usize = 8;

/// One line of history.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record<'a> {
    /// Everything before this is void.
    Replaced,
    /// No version above this has been issued.
    Reserved(u64),
    /// This object is so from this version on.
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
    /// This object is gone from this version on.
    Removed {
        revision: u64,
        #[serde(borrow)]
        group: Cow<'a, str>,
        #[serde(borrow)]
        plural: Cow<'a, str>,
        #[serde(borrow)]
        key: Cow<'a, str>,
    },
}

impl Record<'_> {
    /// Appends this record.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        serde_json::to_writer(&mut *out, self).expect("a record always encodes");
        let payload = &out[start + HEAD..];
        let length = u32::try_from(payload.len()).expect("no body is larger than the limit of requests");
        let sum = crc32fast::hash(payload);
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        out[start + 4..start + HEAD].copy_from_slice(&sum.to_le_bytes());
    }
}

impl Committed {
    /// Appends the record of this change.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Self::Change(resource, event) = self else { return Record::Replaced.write(out) };
        let (group, plural) = (Cow::from(&*resource.group), Cow::from(&*resource.plural));
        let (revision, key) = (event.revision, Cow::from(&*event.key));
        match &event.new {
            Some(object) => {
                let text = std::str::from_utf8(&object.body).expect("a body is JSON");
                let body = serde_json::from_str(text).expect("a body is JSON");
                Record::Put { revision, group, plural, key, body }.write(out);
            }
            None => Record::Removed { revision, group, plural, key }.write(out),
        }
    }
}

/// The records in these bytes, up to the first that is not whole and sound.
pub(crate) fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (payload, rest) = rest.split_at_checked(length)?;
        if crc32fast::hash(payload) != u32::from_le_bytes(*sum) {
            return None;
        }
        bytes = rest;
        serde_json::from_slice(payload).ok()
    })
}
