//! The protobuf wire format: a row of numbered fields, each in one of four encodings.
//!
//! Answers: which field comes next, and which bytes belong to it; and how is one written? It does not know any
//! message.
//! 1. Every read is checked against what is left; running out is an error, not a panic.
//! 2. Groups (wire types 3 and 4) have no use in the API and are refused.
//! 3. A length is written before its bytes though it is known only after them: the bytes are then moved to make room.
use super::ProtobufError;

/// The value of a field, not yet interpreted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// Reads fields from the front of a message.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The next field; none at the end.
    pub(super) fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let kind = (tag & 7) as u8;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or(ProtobufError::WireType(kind))?;
        let wire = match kind {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Truncated)?;
                Wire::Bytes(self.take(len)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(ProtobufError::WireType(other)),
        };
        Ok(Some((number, wire)))
    }

    /// The next varint of a packed list; none at the end.
    pub(super) fn packed(&mut self) -> Result<Option<u64>, ProtobufError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Overflow)
    }
}

/// How many bytes this number takes.
pub(super) fn varint_len(value: u64) -> usize {
    (64 - value.leading_zeros()).max(1).div_ceil(7) as usize
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field that is a number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// A field that is a floating-point number.
pub(crate) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

/// A field that is bytes, a text or a message that is written already.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A field that is a message, which `write` writes.
pub(crate) fn put_message(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, u64::from(number) << 3 | 2);
    let start = out.len();
    write(out);
    let len = (out.len() - start) as u64;
    put_varint(out, len);
    out[start..].rotate_right(varint_len(len));
}

/// Text as Go's JSON writes it: what is not UTF-8 becomes the replacement character.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
