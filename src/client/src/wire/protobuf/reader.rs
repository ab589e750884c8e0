//! The protobuf wire format: a row of numbered fields, each in one of four encodings. It knows no message.
//!
//! 1. Every read is checked against what is left: bytes that end too early are an error, never a panic.
//! 2. The API does not use groups (wire types 3 and 4): they are refused. So the first byte of an envelope, which would begin
//!    one, begins no message.
//! 3. A length comes before its bytes, but is known after them: the bytes are then moved.

use super::Fault;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    /// No field of Kubernetes has this encoding. It marks a map whose entries were all cut.
    Fixed32,
    Bytes(&'a [u8]),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        let wire = match wire_type {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Fault::Truncated)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                self.array::<4>()?;
                Wire::Fixed32
            }
            _ => return Err(Fault::WireType),
        };
        Ok(Some((number, wire)))
    }

    /// As [`Self::field`]; of an incomplete field the bytes that are there.
    pub(super) fn field_or_part(&mut self) -> Option<(u32, Wire<'a>, IsWhole)> {
        let before = self.rest;
        if let Ok(found) = self.field() {
            return found.map(|(number, wire)| (number, wire, true));
        }
        self.rest = before;
        let (number, wire_type) = self.tag().ok()?;
        (wire_type == 2 && self.varint().is_ok()).then(|| {
            let part = std::mem::take(&mut self.rest);
            (number, Wire::Bytes(part), false)
        })
    }

    /// For a packed list.
    pub(super) fn packed(&mut self) -> Result<Option<u64>, Fault> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn tag(&mut self) -> Result<(u32, u8), Fault> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..=MAX_NUMBER).contains(number));
        Ok((number.ok_or(Fault::WireType)?, (tag & 7) as u8))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::WireType)
    }
}

pub(super) type IsWhole = bool;

/// The format allows no larger one.
pub(super) const MAX_NUMBER: u32 = (1 << 29) - 1;

/// `None` without such bytes, or if the message cannot be read to its end.
pub(super) fn last_bytes(message: &[u8], wanted: u32) -> Option<&[u8]> {
    let (mut reader, mut found) = (Reader::new(message), None);
    while let Some((number, wire)) = reader.field().ok()? {
        if let (true, Wire::Bytes(bytes)) = (number == wanted, wire) {
            found = Some(bytes);
        }
    }
    found
}

/// Up to where the message can be read.
pub(super) fn all_bytes(message: &[u8], wanted: u32) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || {
        while let Ok(Some((number, wire))) = reader.field() {
            if let (true, Wire::Bytes(bytes)) = (number == wanted, wire) {
                return Some(bytes);
            }
        }
        None
    })
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes or a text.
pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn put_message<T>(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    put_varint(out, u64::from(number) << 3 | 2);
    let start = out.len();
    let written = write(out);
    let before = out.len();
    put_varint(out, (before - start) as u64);
    let length_bytes = out.len() - before;
    out[start..].rotate_right(length_bytes);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_cut_off_gives_what_is_there_and_no_bytes_panic() {
        let mut message = Vec::new();
        put_bytes(&mut message, 3, b"name");
        put_bytes(&mut message, 17, &[7; 200]);
        for end in 0..message.len() {
            let mut reader = Reader::new(&message[..end]);
            while let Some((number, wire, is_whole)) = reader.field_or_part() {
                let Wire::Bytes(bytes) = wire else { panic!("only bytes were written") };
                assert_eq!(is_whole, bytes.len() == if number == 3 { 4 } else { 200 }, "{end}");
            }
        }
        for group in [0x6b_u8, 0x0b, 0x0c] {
            assert_eq!(Reader::new(&[group]).field(), Err(Fault::WireType));
        }
        assert_eq!(Reader::new(&[0xff; 11]).field(), Err(Fault::WireType));
    }
}
